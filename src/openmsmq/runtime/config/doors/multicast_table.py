"""The table `[multicast]` of a configuration file: by which interface, how fast, and from whom."""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec

from openmsmq.runtime.config.tables import says


class MulticastTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about multicast."""

    interface: Annotated[
        str,
        says(
            "The interface for multicast, by name or IPv4 address. Empty: the one that the system "
            "takes for multicast addresses."
        ),
    ] = ""
    rate_kb_s: Annotated[
        int,
        says(
            "How fast messages leave for each address, in thousand bytes a second. Windows has 70; "
            "0: as fast as the network takes them.",
            ge=0,
            le=10_000_000,
        ),
    ] = 70
    hops: Annotated[int, says("How many routers packets may pass, and one.", ge=1, le=255)] = 16
    accept_from: Annotated[
        tuple[str, ...],
        says(
            "Networks from which packets are taken, such as `10.0.0.0/8`. Empty: all. Whoever can "
            "send from there can send into every queue with a multicast address that everybody may "
            "write to."
        ),
    ] = ()

    def __post_init__(self) -> None:
        for text in self.accept_from:
            try:
                ipaddress.IPv4Network(text)
            except ValueError as error:
                raise ValueError(
                    f"accept_from: {error}: give networks of IPv4 such as 10.0.0.0/8"
                ) from None

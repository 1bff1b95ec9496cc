"""What sources and receivers want done, and what may be changed of how they behave."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.protocol.pgm import limits
from openmsmq.wire.pgm.packets import SourceId


class Group(msgspec.Struct, frozen=True, order=True, gc=False):
    """A multicast address: where sources send to, and receivers listen."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may change of the profile. [MC-MQSRM 2.1.3.1]"""

    rate_bytes_per_s: int = limits.PGM_RATE_BYTES_PER_S
    """What a source sends at most; 0 for whatever the network takes."""
    window_s: int = limits.PGM_WINDOW_S
    window_bytes: int = limits.PGM_WINDOW_MAX_BYTES
    source_bytes: int = limits.PGM_SOURCE_MAX_BYTES
    sources_bytes: int = limits.PGM_SOURCES_MAX_BYTES
    sources_max: int = limits.PGM_SOURCES_MAX_COUNT
    source_rate_bytes_per_s: int = limits.PGM_SOURCE_RATE_BYTES_PER_S


DEFAULT = Profile()


class Transmit(msgspec.Struct, frozen=True, gc=False):
    """Send a packet to an address: that of a group, or of a source."""

    data: bytes
    address: str
    hops: int | None = None
    """How far it may go; None for as far as the driver lets multicast go."""
    for_routers: bool = False
    """Whether routers on the way are to look at it."""


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """What an application of a source has sent is there, whole and in its order."""

    source: SourceId
    address: str
    """The computer that the source is on."""
    group: Group
    payload: bytes


class Lost(msgspec.Struct, frozen=True, gc=False):
    """Packets of a source that nobody repairs any more."""

    source: SourceId
    address: str
    group: Group
    count: int


Output: TypeAlias = Transmit | Delivered | Lost

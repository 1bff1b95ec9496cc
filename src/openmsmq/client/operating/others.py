"""The other queue managers of the directory: where each is, and how to come to it as who asks.

A token is shown to nobody who could keep it, or whom anybody on the way could overhear: only over
TLS, where the other one proves its name, or without leaving this computer.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import msgspec

from openmsmq.client.aio import QueueManager, connect
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.settings import API_PORT, Settings
from openmsmq.directory.image import DirectoryImage
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.topology import QueueManagerInfo

OTHERS_MAX_COUNT: Final = 64
"""Other queue managers that are asked at most."""

OTHERS_AT_ONCE_COUNT: Final = 8
"""Other queue managers that are asked at a time."""

OTHER_CONNECT_MAX_S: Final = 2.0
"""How long one may take to answer the connection."""

OTHER_MAX_S: Final = 10.0
"""How long one may take to answer everything."""

Result = TypeVar("Result")


class Other(msgspec.Struct, frozen=True):
    """Another queue manager: what it answered, or why it could not be asked."""

    info: QueueManagerInfo
    address: str
    problem: str
    """Empty if it has answered."""


def others_of(
    image: DirectoryImage, own: Guid, first: Sequence[Guid] = ()
) -> list[QueueManagerInfo]:
    """Return the other queue managers of the directory: those named first, then by name."""
    places = {identifier: place for place, identifier in enumerate(first)}
    return sorted(
        (one for one in image.managers.values() if one.identifier != own),
        key=lambda one: (places.get(one.identifier, len(places)), fold(one.computer_name)),
    )


def address_of(info: QueueManagerInfo, *, by_name: bool) -> str:
    """Return where applications reach a queue manager; by its name if it has to prove that."""
    name = info.qualified_computer_name or info.computer_name
    address = name if by_name or not info.addresses else info.addresses[0]
    return f"[{address}]:{API_PORT}" if ":" in address else f"{address}:{API_PORT}"


def settings_for(own: Settings, info: QueueManagerInfo) -> tuple[Settings | None, str]:
    """Return how to connect as who is connected here; or nothing, and why not."""
    if info.foreign:
        return None, "it is of another kind, which knows no such questions"
    address = address_of(info, by_name=bool(own.tls))
    is_private = bool(own.tls) or _is_here(address)
    if own.token and not is_private:
        return None, "without TLS everybody on the way could read the token: it was not shown"
    return (
        msgspec.structs.replace(
            own,
            address=address,
            connect_timeout_s=OTHER_CONNECT_MAX_S,
            call_timeout_s=OTHER_MAX_S,
            start_wait_s=0,
            reconnect_within_s=0,
        ),
        "",
    )


def _is_here(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def ask_others(
    own: Settings,
    infos: Sequence[QueueManagerInfo],
    ask: Callable[[QueueManager], Awaitable[Result]],
) -> list[tuple[Other, Result | None]]:
    """Ask other queue managers the same, some at a time, and wait for none too long."""
    gate = asyncio.Semaphore(OTHERS_AT_ONCE_COUNT)

    async def one(info: QueueManagerInfo, place: int) -> tuple[Other, Result | None]:
        if place >= OTHERS_MAX_COUNT:
            return Other(info, "", f"more than {OTHERS_MAX_COUNT} are not asked at once"), None
        settings, problem = settings_for(own, info)
        if settings is None:
            return Other(info, "", problem), None
        async with gate:
            try:
                async with asyncio.timeout(OTHER_MAX_S):
                    # To make what TLS needs reads files, which may be wrong.
                    async with connect(settings) as manager:
                        if manager.identifier != info.identifier:
                            problem = f"{manager.name} answers there, and not it"
                            return Other(info, settings.address, problem), None
                        return Other(info, settings.address, ""), await ask(manager)
            except TimeoutError:
                problem = f"it took longer than {OTHER_MAX_S:.0f} s"
            except (ConnectionLost, MsmqError, OSError, ValueError) as error:
                problem = str(error) or type(error).__name__
        return Other(info, settings.address, problem), None

    return list(await asyncio.gather(*(one(info, place) for place, info in enumerate(infos))))

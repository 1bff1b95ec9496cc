"""Which queues the options mean, and at which queue managers they are.

A queue manager is taken once, however many of its addresses the option has. The driver of a stream
keeps its connections for as long as the query runs: by them a queue manager knows that it lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import msgspec

from openmsmq.api.messages import Epoch, QueueStatus
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.connecting import connected, explained
from openmsmq.spark.errors import BadOption, QueueGone, QueueProblem
from openmsmq.spark.options import Place
from openmsmq.spark.source.offsets import Spot
from openmsmq.spark.source.options import ANYTHING, Places, matches

_SHARED: Final = "00" * 15
"""How the identities of system queues begin: all queue managers have the same."""


class Source(msgspec.Struct, frozen=True):
    """A queue manager as it is now."""

    address: str
    identity: str
    manager: QueueManager
    epochs: list[Epoch]

    def spot(self, status: QueueStatus, next_number: int, begin: int | None = None) -> Spot:
        """Return a place in one of its queues."""
        return Spot(
            self.address,
            status.path_name,
            status.identifier.hex(),
            next_number,
            begin,
            self.identity,
            self.epochs[-1].identifier if self.epochs else "",
        )


class Managers:
    """The queue managers of the option; connected when they are needed."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._open: dict[str, tuple[QueueManager, ExitStack]] = {}
        # Spark does not stop every reader that it has made.
        weakref.finalize(self, _close_all, self._open)

    def now(self, *, first: bool = False) -> list[Source]:
        """Return the queue managers, each once, in the order of their addresses.

        Each is asked for something, and so found again if it was restarted.
        """
        found: dict[str, Source] = {}
        for address in self._place.addresses:
            manager = self._connected(address, first)
            try:
                with explained(address):
                    epochs = manager.epochs()
            except QueueProblem:
                self._drop(address)
                raise
            identity = manager.identifier.hex()
            found.setdefault(identity, Source(address, identity, manager, epochs))
        return list(found.values())

    def _connected(self, address: str, first: bool) -> QueueManager:
        if address not in self._open:
            stack = ExitStack()
            manager = stack.enter_context(connected(self._place, address, first=first))
            self._open[address] = manager, stack
        return self._open[address][0]

    def _drop(self, address: str) -> None:
        self._open.pop(address)[1].close()

    def close(self) -> None:
        """End all connections."""
        _close_all(self._open)


def _close_all(connections: dict[str, tuple[QueueManager, ExitStack]]) -> None:
    while connections:
        connections.popitem()[1][1].close()


def queues_at(
    source: Source, names: tuple[str, ...], gone: Callable[[str, QueueGone], None]
) -> list[QueueStatus]:
    """Return the queues that the option means at one queue manager, each of them once.

    `gone` hears of one that is not there, and may raise.
    """
    found: dict[str, QueueStatus] = {}
    for name in names:
        try:
            with explained(source.address, name):
                found |= {status.path_name: status for status in _find(source.manager, name)}
        except QueueGone as error:
            gone(name, error)
    return list(found.values())


def _find(manager: QueueManager, name: str) -> list[QueueStatus]:
    """Return the queues that a name in the option means, as they are now."""
    if ANYTHING not in name:
        return [manager.queue(name).properties()]
    pattern, _, suffix = name.partition(";")
    found = [queue for queue in manager.queues() if matches(pattern, queue.path_name)]
    if not suffix:
        return found
    beside = {f"{queue.path_name};{suffix}".lower() for queue in found}
    return [queue for queue in manager.queues(everything=True) if queue.path_name.lower() in beside]


def home_of(spot: Spot, sources: list[Source]) -> Source | None:
    """Find the queue manager that has a queue; None if the option does not have it."""
    if spot.manager:
        return next((each for each in sources if each.identity == spot.manager), None)
    # An older version has noted only how it was reached, and which queue it is.
    by_address = next((each for each in sources if each.address == spot.address), None)
    if by_address is not None or spot.identity.startswith(_SHARED):
        return by_address
    return next((each for each in sources if _has(each, spot)), None)


def _has(source: Source, spot: Spot) -> bool:
    with explained(source.address, spot.queue):
        manager = source.manager
        if not manager.exists(spot.queue):
            return False
        return manager.queue(spot.queue).properties().identifier.hex() == spot.identity


def starting_number(wish: str | Places, status: QueueStatus, source: Source) -> int:
    """Return the arrival number at which the option lets a new query begin in a queue.

    Of queue managers that have queues of the same name, one is meant by a key of an offset.
    """
    end = status.last_arrival_number + 1
    key = source.spot(status, 0).key
    if not isinstance(wish, str):
        wish = tuple((status.path_name if name == key else name, place) for name, place in wish)
    number = place_in(wish, status.path_name, "earliest", end)
    if number > end:
        raise BadOption(
            "startingOffsets",
            f"{status.path_name} has no arrival number {number}: the last one was {end - 1}",
        )
    return number


def place_in(wish: str | Places, queue: str, default: str, end: int) -> int:
    """Return the place that an option names in a queue: a number, or a word for one."""
    found: str | int = default
    if isinstance(wish, str):
        found = wish
    else:
        for pattern, place in wish:
            if matches(pattern, queue):
                found = place
                break
    if isinstance(found, int):
        return found
    return 0 if found == "earliest" else end

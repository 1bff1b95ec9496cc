"""The trace of a run: what happened, when and where, for people and for comparison."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.sim.checks.facts import numbers_in

if TYPE_CHECKING:
    from openmsmq.sim.checks.wire_watch import WirePacket
    from openmsmq.sim.clock import Timeline
    from openmsmq.storage.port import Batch

AROUND_COUNT: Final = 60
"""How many events are shown around a violation."""


class Event(msgspec.Struct, frozen=True):
    """One thing that happened."""

    time_ms: int
    kind: str
    node: int
    """Where; -1 for the network."""
    text: str
    target: int = -1
    """The node that a packet goes to."""
    arrival_ms: int = -1
    """When it arrives there; -1 when it never does."""
    messages: tuple[int, ...] = ()
    connection: int = 0


class Trace:
    """Collects events if somebody wants them; else it costs next to nothing."""

    def __init__(self, timeline: Timeline, *, wanted: bool) -> None:
        self._timeline = timeline
        self.wanted = wanted
        self.events: list[Event] = []
        self.names: list[str] = []

    # What happened.

    def note(
        self,
        node: int,
        kind: str,
        text: str,
        messages: tuple[int, ...] = (),
        *,
        target: int = -1,
        arrival_ms: int = -1,
        connection: int = 0,
    ) -> None:
        """Note something that happened on a node."""
        if self.wanted:
            now_ms = self._timeline.now_ms
            self.events.append(
                Event(now_ms, kind, node, text, target, arrival_ms, messages, connection)
            )

    def persist(self, node: int, ticket: int, batch: Batch, delay_ms: int) -> None:
        """Note a batch on its way to the disk."""
        if self.wanted:
            values = [value for _, value in batch.changes if value]
            values += [value for _, aside in batch.aside for value in aside]
            numbers = tuple(number for value in values for number in numbers_in(value))
            text = f"batch {ticket}: {len(batch.changes)} changes, {len(batch.volatile)} volatile"
            arrival_ms = self._timeline.now_ms + delay_ms
            self.note(node, "persist", text, numbers, arrival_ms=arrival_ms)

    def packets(
        self,
        node: int,
        target: int,
        connection: int,
        packets: list[WirePacket],
        arrival_ms: int,
    ) -> None:
        """Note packets that left a node."""
        for packet in packets:
            self.note(
                node,
                "packet",
                f"{packet.name} {packet.text}",
                () if packet.message is None else (packet.message,),
                target=target,
                arrival_ms=arrival_ms,
                connection=connection,
            )

    def opened(self, node: int, target: int, connection: int) -> None:
        """Note a new connection."""
        text, now_ms = f"connection {connection} opened", self._timeline.now_ms
        self.note(node, "connect", text, target=target, arrival_ms=now_ms, connection=connection)

    def cut(self, connection: int, text: str) -> None:
        """Note that a connection broke."""
        self.note(-1, "fault", f"connection {connection}: {text}", connection=connection)

    # What to show.

    @property
    def digest(self) -> str:
        """A short text that is the same for equal traces only."""
        return hashlib.sha256(msgspec.msgpack.encode(self.events)).hexdigest()

    def around(self, messages: tuple[int, ...], count: int = AROUND_COUNT) -> list[Event]:
        """Return the last events, and all earlier ones that are about some messages."""
        recent = len(self.events) - count
        wanted = set(messages)
        return [
            event
            for index, event in enumerate(self.events)
            if index >= recent
            or wanted.intersection(event.messages)
            or event.kind in ("crash", "start")
        ]

    def lines(self, events: list[Event]) -> list[str]:
        """Write events as lines."""
        return [self._line(event) for event in events]

    def _line(self, event: Event) -> str:
        where = self.names[event.node] if event.node >= 0 else "network"
        text = event.text
        if event.kind == "packet":
            arrival = "lost" if event.arrival_ms < 0 else f"arrives {event.arrival_ms / 1000:.3f}"
            text = f"-> {self.names[event.target]} ({arrival}) {text}"
        elif event.kind == "persist":
            text += f", durable {event.arrival_ms / 1000:.3f}"
        about = " ".join(f"m{number}" for number in event.messages)
        line = f"{event.time_ms / 1000:10.3f}  {where:<8} {event.kind:<8} {text}"
        return f"{line}  [{about}]" if about else line

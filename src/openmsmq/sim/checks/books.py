"""The books of a run: what applications asked for and were told, against what the disks have.

Everything here is seen from outside: calls and their answers; `disk_watch` has the batches that
became durable, `wire_watch` the bytes on the wire. A `Violation` is raised at the moment a promise
is broken; `endings` looks at the whole run once it is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api.messages import Entry
from openmsmq.manager.notices import Notice, NoticeKind
from openmsmq.sim.checks.copies import Copies
from openmsmq.sim.checks.disk_watch import DiskWatch
from openmsmq.sim.checks.facts import FOREVER_MS, Fate, Group, Kind, SimMessage, number_in
from openmsmq.sim.checks.hostile_watch import HostileWatch
from openmsmq.sim.checks.remote_watch import RemoteWatch
from openmsmq.sim.checks.wire_watch import WireWatch
from openmsmq.sim.scenarios.scenario import PLAIN, TRANSACTIONAL
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_LONG_QUEUES: Final = (PLAIN, TRANSACTIONAL)
_LENGTHS: Final = (0, 0, 3_000, 0, 12_000)
"""How long bodies are that are read from other computers: some in one fragment, some in several."""
READING: Final = "reading"
PURGING: Final = "purging"
_LATE_EFFECT_MS: Final = 20_000
"""How long a call may take effect whose application is gone: no disk is slower."""


class Errand(msgspec.Struct, eq=False):
    """A call that may take messages out of a queue: when it was handed in, and answered."""

    kind: str
    begun_ms: int
    ended_ms: int = FOREVER_MS
    unknown: bool = False
    """Whether the application never heard its answer."""


class Books:
    """Follows every message from the call that sends it to its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: dict[int, SimMessage] = {}
        self.by_message_id: dict[bytes, SimMessage] = {}
        self.groups: list[Group] = []
        self.errands: dict[tuple[int, str], list[Errand]] = {}
        self.disks = DiskWatch(self, world)
        self.wire = WireWatch(self, world)
        self.copies = Copies(self, world)
        self.hostile: HostileWatch | None = None
        """Checks what must hold beside an adversary, too."""
        self.remote: RemoteWatch | None = None
        """Follows what readers on other computers are given."""
        self.report_droppers: set[int] = set()
        """Nodes that had no room for a report: that gives way first."""
        self.express_droppers: set[int] = set()
        """Nodes that had no memory for an express message."""
        self._undecided: dict[int, list[Group]] = {}
        self._orders: dict[int, int] = {}

    def new_group(self, node: Node) -> Group:
        """Begin a transaction, or a call that sends several messages."""
        group = Group(len(self.groups) + 1, node)
        self.groups.append(group)
        return group

    def new_message(self, kind: Kind, group: Group, target: Node, queue: str) -> SimMessage:
        """Make a message that is about to be sent."""
        path = queue.casefold()
        message = SimMessage(len(self.messages) + 1, kind, group.node, target, path, path, group)
        message.sent_ms = self._world.timeline.now_ms
        if self.remote is not None and path in _LONG_QUEUES:
            message.padding_bytes = _LENGTHS[message.number % len(_LENGTHS)]
        self.messages[message.number] = message
        return message

    def commits(self, group: Group) -> None:
        """The call that makes a group take effect is handed in."""
        group.fate = Fate.UNDER_WAY
        order = self._orders.get(group.node.index, 0)
        for message in group.messages:
            order += 1
            message.order = order
        self._orders[group.node.index] = order

    def acknowledged(self, group: Group) -> None:
        """An application heard that a group has taken effect."""
        group.fate = Fate.ACKNOWLEDGED
        for message in group.messages:
            if message.certain and message.source.index not in message.durable_at:
                raise Violation(
                    f"{message} was acknowledged to its sender before {message.source.name} had "
                    "it on its disk"
                )
        for message in group.taken:
            if message.is_there:
                raise Violation(
                    f"{group} was committed and {message}, which it received, is still on the disk"
                )
            self._consume(message)
            message.holder = None

    def failed(self, group: Group) -> None:
        """An application heard that nothing of a group took effect."""
        group.fate = Fate.FAILED
        for message in group.messages:
            if message.effective:
                raise Violation(
                    f"{message} was refused, and is in a queue of {message.source.name}"
                )
        self._let_go(group)

    def unknown(self, group: Group) -> None:
        """The connection was lost while a group might take effect."""
        group.fate = Fate.UNKNOWN
        if group.node.up:
            self._undecided.setdefault(group.node.index, []).append(group)
        else:
            self._decide(group)

    def power_lost(self, node: Node) -> None:
        """A node lost power: now it is certain what took effect."""
        for group in self._undecided.pop(node.index, ()):
            self._decide(group)

    def _decide(self, group: Group) -> None:
        """The power is gone: what is not on the disk now will never be there."""
        if group.applied_ms is None:
            group.fate = Fate.FAILED
            self._let_go(group)

    def _let_go(self, group: Group) -> None:
        for message in group.taken:
            if message.holder is group:
                message.holder = None

    def errand(self, node: Node, queue: str, kind: str) -> Errand:
        """A call that may take messages out of a queue is handed in."""
        errand = Errand(kind, self._world.timeline.now_ms)
        self.errands.setdefault((node.index, queue.casefold()), []).append(errand)
        return errand

    def errand_ends(self, errand: Errand, node: Node, *, unknown: bool = False) -> None:
        """Such a call is answered, or never will be."""
        errand.ended_ms = self._world.timeline.now_ms
        errand.unknown = unknown
        if unknown and node.up:
            # The application is gone; what it asked for may still be done.
            errand.ended_ms += _LATE_EFFECT_MS

    def purged(self, errand: Errand, node: Node, queue: str) -> None:
        """An application heard that a queue was purged: what was there before must be gone.

        What a transaction holds goes when that gives it back. What a stream has reserved stays, and
        nobody here knows what that is before it is read.
        """
        if "stream" in self._world.scenario.operations:
            return
        for message in self.messages.values():
            if (
                message.target is node
                and message.queue == queue.casefold()
                and message.is_there
                and message.arrived_ms < errand.begun_ms
            ):
                message.purged_ms = self._world.timeline.now_ms

    def purges_forgotten(self, node: Node) -> None:
        """A node lost power, or its disk was full: what transactions held may come back."""
        for message in self.messages.values():
            if message.target is node:
                message.purged_ms = None

    def given(self, node: Node, queue: str, entries: Iterable[Entry], group: Group | None) -> None:
        """An application was given messages, for good or in a transaction."""
        watch = self.disks.watches[node.index]
        path = queue.casefold()
        for entry in entries:
            message = self.known(number_in(entry.packet), node, path)
            if message is None:
                continue
            self._require_free(message, group)
            if group is not None:
                self._hold(message, group)
                continue
            if watch.holds(path, entry.lookup_id):
                raise Violation(
                    f"{message} was given to its receiver while {node.name} still had it on its "
                    "disk"
                )
            if message.certain and not message.arrivals:
                raise Violation(
                    f"{message} ({message.kind.value}) was given to its receiver and was never on "
                    f"the disk of {node.name}"
                )
            if message.consumed >= message.arrivals and not message.certain:
                # It was handed to a reader that waited, and never lay in the queue.
                self.disks.arrives(message, node, path, durable=False)
            self._consume(message)

    def reserved(self, messages: Iterable[SimMessage], reader: str) -> None:
        """A stream has read messages, which nobody else may have; without a name it is done."""
        for message in messages:
            message.reserved_for = reader

    def processed(self, node: Node, queue: str, batch: dict[int, SimMessage]) -> None:
        """A stream heard that the messages of a batch, by lookup identifier, are completed."""
        for lookup_id, message in batch.items():
            if self.disks.watches[node.index].holds(queue.casefold(), lookup_id):
                raise Violation(
                    f"{message} was completed, and {node.name} still has it on its disk"
                )
            if message.lost_with is None:
                self._consume(message)

    def _require_free(
        self, message: SimMessage, group: Group | None, asked_ms: int = FOREVER_MS
    ) -> None:
        """Nobody is given what somebody else has, or what was purged before he asked."""
        whom, holder = group or "a reader", message.holder
        if message.reserved_for:
            raise Violation(
                f"{message} was given to {whom} while {message.reserved_for} has it reserved"
            )
        doubtful = holder is None or holder.doubtful or holder.fate is Fate.UNKNOWN
        if holder is not group and not doubtful:
            raise Violation(f"{message} was given to {whom} while {holder} holds it")
        if message.purged_ms is not None and message.purged_ms < asked_ms:
            raise Violation(f"{message} was given to {whom}, though it had been purged")
        if self.remote is not None:
            self.remote.require_free(message)

    def _hold(self, message: SimMessage, group: Group) -> None:
        message.holder = group
        message.held = True
        group.taken.append(message)

    def require_free(self, message: SimMessage, asked_ms: int) -> None:
        """A reader on another computer was given a message for which it asked at some moment."""
        self._require_free(message, None, asked_ms)

    def consumed(self, message: SimMessage) -> None:
        """A reader on another computer knows that it has taken a message."""
        self._consume(message)

    def _consume(self, message: SimMessage) -> None:
        message.consumed += 1
        if message.consumed > max(1, message.arrivals):
            raise Violation(f"{message} was received {message.consumed} times")

    def told(self, node: Node, notice: Notice) -> None:
        """A node tells its operator something."""
        if notice.kind is NoticeKind.REPORT_DROPPED:
            self.report_droppers.add(node.index)
        elif ("reason", "express memory") in notice.facts:
            self.express_droppers.add(node.index)

    # Why things may be as they are.

    def may_be_removed(self, message: SimMessage, node: Node, path: str) -> bool:
        """Whether somebody may have asked for a message to go out of its queue, or its time has."""
        if message.may_have_expired():
            return True
        if self.remote is not None and self.remote.may_be_removed(message):
            return True
        now_ms = self._world.timeline.now_ms
        errands = self.errands.get((node.index, path), ())
        return any(errand.ended_ms >= now_ms for errand in errands) or self.purged_late(message)

    def purged_late(self, message: SimMessage) -> bool:
        """Whether a purge met it in somebody's hands: it goes when he gives it back."""
        return any(
            errand.kind == PURGING
            and errand.ended_ms >= message.arrived_ms
            and self._may_be_held(message, errand)
            for errand in self.errands.get((message.target.index, message.queue), ())
        )

    def _may_be_held(self, message: SimMessage, errand: Errand) -> bool:
        """Whether a transaction has had it, or a reader elsewhere may have, heard of or not."""
        if message.held or self.remote is None:
            return message.held
        return self.remote.may_have_had(message, errand)

    def may_be_refused(self, message: SimMessage) -> bool:
        """Whether a message may be refused though nothing is wrong.

        An express message is, if strangers have filled their share of the memory and nobody says
        that its sender is none of them.
        """
        scenario = self._world.scenario
        return scenario.may_refuse(message.queue) or (
            message.kind is Kind.EXPRESS
            and message.target.index in self.express_droppers
            and scenario.hostile is not None
            and not scenario.hostile.is_pinned
        )

    def purged_at(self, message: SimMessage, moment_ms: int) -> bool:
        """Whether a purge of its queue may have removed a message by some moment."""
        return any(
            errand.kind == PURGING and errand.begun_ms <= moment_ms
            for errand in self.errands.get((message.target.index, message.queue), ())
        )

    def known(self, number: int | None, node: Node, path: str) -> SimMessage | None:
        """Return the message with a number, if it has one; nobody makes any up."""
        if number is None:
            return None
        message = self.messages.get(number)
        if message is None:
            raise Violation(f"{path} of {node.name} has a message that nobody sent: {number}")
        return message

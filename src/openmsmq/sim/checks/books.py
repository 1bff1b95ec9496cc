"""The books of a run: what applications were told, against what the disks have.

Everything here is seen from outside: calls and their answers, batches that became durable, bytes
on the wire. A `Violation` is raised at the moment a promise is broken; `endings` looks at the
whole run once it is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api.messages import Entry
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.queue import QueueRole
from openmsmq.sim.checks.copies import Copies
from openmsmq.sim.checks.facts import MAY_TAKE_EFFECT, Fate, Group, Kind, SimMessage, number_in
from openmsmq.sim.checks.hostile_watch import HostileWatch
from openmsmq.sim.checks.store_watch import Change, Lying, StoreWatch
from openmsmq.sim.checks.wire_watch import WireWatch
from openmsmq.sim.violation import Violation
from openmsmq.storage.port import Batch
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

READING: Final = "reading"
PURGING: Final = "purging"
FOREVER_MS: Final = 1 << 62
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
        self.watches: dict[int, StoreWatch] = {}
        self.errands: dict[tuple[int, str], list[Errand]] = {}
        self.wire = WireWatch(self, world)
        self.copies = Copies(self, world)
        self.hostile: HostileWatch | None = None
        """Checks what must hold beside an adversary, too."""
        self.report_droppers: set[int] = set()
        """Nodes that had no room for a report: that gives way first."""
        self.crash_times_ms: dict[int, list[int]] = {}
        self.refusal_times_ms: dict[int, list[int]] = {}
        self._undecided: dict[int, list[Group]] = {}
        self._orders: dict[int, int] = {}
        self._last_order: dict[tuple[int, int, str, str], int] = {}

    # What applications do.

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
            if self._is_there(message):
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

    def given(self, node: Node, queue: str, entries: Iterable[Entry], group: Group | None) -> None:
        """An application was given messages, for good or in a transaction."""
        watch = self.watches[node.index]
        path = queue.casefold()
        for entry in entries:
            message = self._known(number_in(entry.packet), node, path)
            if message is None:
                continue
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
                self._arrives(message, node, path, durable=False)
            self._consume(message)

    def reserved(self, messages: Iterable[SimMessage], reader: str) -> None:
        """A stream has read messages, which nobody else may have; without a name it is done."""
        for message in messages:
            message.reserved_for = reader

    def processed(self, node: Node, queue: str, batch: dict[int, SimMessage]) -> None:
        """A stream heard that the messages of a batch, by lookup identifier, are completed."""
        for lookup_id, message in batch.items():
            if self.watches[node.index].holds(queue.casefold(), lookup_id):
                raise Violation(
                    f"{message} was completed, and {node.name} still has it on its disk"
                )
            if message.lost_with is None:
                self._consume(message)

    def _hold(self, message: SimMessage, group: Group) -> None:
        holder = message.holder
        if message.reserved_for:
            raise Violation(
                f"{message} was given to {group} while {message.reserved_for} has it reserved"
            )
        doubtful = holder is None or holder.doubtful or holder.fate is Fate.UNKNOWN
        if holder is not group and not doubtful:
            raise Violation(f"{message} was given to {group} while {holder} holds it")
        message.holder = group
        message.held = True
        group.taken.append(message)

    def _consume(self, message: SimMessage) -> None:
        message.consumed += 1
        if message.consumed > max(1, message.arrivals):
            raise Violation(f"{message} was received {message.consumed} times")

    # What disks do.

    def stored(self, node: Node, batch: Batch) -> None:
        """A batch is durable."""
        watch = self.watches.get(node.index)
        if watch is None:
            watch = self.watches[node.index] = StoreWatch()
        known = watch.directory_number
        changes = watch.apply(batch)
        if watch.directory_number != known:
            self._world.directory_stored()
        touched: dict[int, Group] = {}
        moved = {change.entry.message for change in changes if change.came}
        for change in changes:
            self._changed(node, change, moved, touched)
        for group in touched.values():
            self._check_whole(group)
        if self.hostile is not None:
            self.hostile.stored(node)

    def told(self, node: Node, kind: NoticeKind) -> None:
        """A node tells its operator something."""
        if kind is NoticeKind.REPORT_DROPPED:
            self.report_droppers.add(node.index)

    def refused(self, node: Node) -> None:
        """A disk had no room."""
        self.refusal_times_ms.setdefault(node.index, []).append(self._world.timeline.now_ms)

    def crashed(self, node: Node) -> None:
        """A node lost power, and what it had only in memory."""
        self.crash_times_ms.setdefault(node.index, []).append(self._world.timeline.now_ms)
        for group in self._undecided.pop(node.index, ()):
            self._decide(group)
        watch = self.watches.get(node.index)
        if watch is None:
            return
        for entry in watch.lose_power():
            message = self.messages.get(entry.message or 0)
            if message is None or entry.message_class:
                continue
            if message.certain:
                raise Violation(
                    f"{message} is {message.kind.value}, and {node.name} had it only in memory"
                )
            message.lost_with, message.reserved_for = node, ""

    def _changed(
        self,
        node: Node,
        change: Change,
        moved: set[int | None],
        touched: dict[int, Group],
    ) -> None:
        entry = change.entry
        role, path = entry.shelf.role, entry.shelf.path
        if role is None and change.came:
            raise Violation(
                f"{node.name} stored a message in queue {entry.shelf.number}, which it has no "
                "record of",
                messages=() if entry.message is None else (entry.message,),
            )
        if self.hostile is not None and change.came:
            self.hostile.came(node, entry)
        if role is QueueRole.APPLICATION and path.endswith("admin"):
            if change.came:
                self.copies.acknowledgment(entry)
            return
        message = self._known(entry.message, node, path)
        trace = self._world.trace
        if trace.wanted and message is not None:
            text = f"{message} {'into' if change.came else 'out of'} {path}"
            trace.note(node.index, "durable", text, (message.number,))
        if message is None or (entry.message_class and role is not QueueRole.SYSTEM):
            return
        if not change.came:
            self._went(message, node, entry, moved, touched)
        elif role is QueueRole.SYSTEM:
            self.copies.copied(message, node, entry)
        elif role is QueueRole.JOURNAL:
            self.copies.journaled(message)
        else:
            self._came(message, node, entry, touched)

    def _came(
        self, message: SimMessage, node: Node, entry: Lying, touched: dict[int, Group]
    ) -> None:
        if entry.durable:
            message.durable_at.add(node.index)
        elif message.certain:
            raise Violation(
                f"{node.name} keeps {message}, which is {message.kind.value}, only in memory"
            )
        if node is message.source and not message.effective:
            self._takes_effect(message, entry)
            touched[message.group.number] = message.group
        if entry.shelf.role is QueueRole.APPLICATION:
            self._arrives(message, node, entry.shelf.path, durable=entry.durable)

    def _takes_effect(self, message: SimMessage, entry: Lying) -> None:
        if message.group.fate not in MAY_TAKE_EFFECT:
            raise Violation(
                f"{message} is in {entry.shelf.path}, but its sending {message.group.fate.value}"
            )
        message.effective = True
        message.sent_s = message_bytes.sent_time_s(entry.packet)
        message.message_id = message_bytes.message_id(entry.packet)
        twin = self.by_message_id.setdefault(message.message_id, message)
        if twin is not message:
            raise Violation(f"{message} and {twin} have the same message identifier")

    def _arrives(self, message: SimMessage, node: Node, path: str, *, durable: bool) -> None:
        if node is not message.target or path != message.queue:
            raise Violation(
                f"{message} for {message.target.name} {message.queue} came into {path} of "
                f"{node.name}"
            )
        if message.group.fate not in MAY_TAKE_EFFECT:
            raise Violation(
                f"{message} came into its queue, but its sending {message.group.fate.value}"
            )
        again = message.arrivals > 0 and not self._may_come_again(message)
        message.arrivals += 1
        message.arrived_ms = self._world.timeline.now_ms
        message.lost_with = message.removed_ms = None
        if again:
            raise Violation(
                f"{message} ({message.kind.value}) came into its queue {message.arrivals} times"
            )
        if message.kind is Kind.TRANSACTIONAL:
            assert durable, f"{message} was handed over without a disk"
            self._check_order(message)

    def _may_come_again(self, message: SimMessage) -> bool:
        """Whether its node forgot that it came: of express messages only memory knows."""
        return not message.certain and any(
            moment_ms >= message.arrived_ms
            for moment_ms in self.crash_times_ms.get(message.target.index, ())
        )

    def _check_order(self, message: SimMessage) -> None:
        place = message.source.index, message.target.index, message.queue, message.name
        last = self._last_order.get(place, 0)
        if message.order <= last:
            raise Violation(f"{message} came into its queue after a message that was sent later")
        self._last_order[place] = message.order

    def _went(
        self,
        message: SimMessage,
        node: Node,
        entry: Lying,
        moved: set[int | None],
        touched: dict[int, Group],
    ) -> None:
        role = entry.shelf.role
        if role is QueueRole.APPLICATION:
            message.removed_ms = self._world.timeline.now_ms
            holder = message.holder
            if message.reserved_for:
                raise Violation(
                    f"{message} was removed from {entry.shelf.path} of {node.name} while "
                    f"{message.reserved_for} has it reserved"
                )
            if holder is not None and holder.fate in MAY_TAKE_EFFECT:
                touched[holder.number] = holder
            elif not self._may_be_removed(message, node, entry.shelf.path):
                raise Violation(
                    f"{message} was removed from {entry.shelf.path} of {node.name}, and nobody "
                    "had asked for that"
                )
        elif role is QueueRole.OUTGOING and message.number not in moved:
            self._check_left(message, node)

    def _check_left(self, message: SimMessage, node: Node) -> None:
        """A node lets go of a message for another one only when somebody else has it.

        Of a transactional message only its source has to keep a copy until the end.
        """
        if not message.certain or (
            node is not message.source and message.kind is Kind.TRANSACTIONAL
        ):
            return
        if self._world.enterprise is None:
            safe = bool(message.durable_at - {node.index, message.source.index})
        else:
            safe = message.arrivals > 0 or self._is_somewhere(message)
        if not safe and not message.may_have_expired() and not self.may_be_refused(message):
            raise Violation(
                f"{node.name} let go of {message} ({message.kind.value}), which no other disk has"
            )

    def _is_somewhere(self, message: SimMessage) -> bool:
        """Whether a disk has a message now; it may have come back to who lets it go."""
        return any(
            entry.message == message.number
            and entry.durable
            and entry.shelf.role is QueueRole.OUTGOING
            for watch in self.watches.values()
            for entry in watch.entries.values()
        )

    def _may_be_removed(self, message: SimMessage, node: Node, path: str) -> bool:
        if message.may_have_expired():
            return True
        now_ms = self._world.timeline.now_ms
        errands = self.errands.get((node.index, path), ())
        return any(errand.ended_ms >= now_ms for errand in errands) or self.purged_late(message)

    def purged_late(self, message: SimMessage) -> bool:
        """Whether a purge met it in the hands of a transaction: it goes when that gives it back."""
        return message.held and any(
            errand.kind == PURGING and errand.ended_ms >= message.arrived_ms
            for errand in self.errands.get((message.target.index, message.queue), ())
        )

    def may_be_refused(self, message: SimMessage) -> bool:
        """Whether a message may be refused though nothing is wrong."""
        return self._world.scenario.may_refuse(message.queue)

    def _check_whole(self, group: Group) -> None:
        """All of a group is on the disk, or nothing."""
        missing = [
            message for message in group.messages if message.certain and not message.effective
        ]
        left = [message for message in group.taken if self._is_there(message)]
        if group.fate is Fate.UNKNOWN and len(missing) == len(group.messages) and group.messages:
            # Its commit was refused after its application had gone; somebody else received.
            return
        if (missing or left) and self._took_effect(group):
            shown = (missing + left)[0]
            raise Violation(
                f"half of {group} is on the disk of {group.node.name}: {shown} "
                f"{'is missing' if missing else 'is still in its queue'}",
                messages=tuple(message.number for message in group.messages + group.taken),
            )
        group.applied_ms = self._world.timeline.now_ms

    def _took_effect(self, group: Group) -> bool:
        return any(message.certain and message.effective for message in group.messages) or any(
            not self._is_there(message) for message in group.taken
        )

    def _is_there(self, message: SimMessage) -> bool:
        return message.arrivals > 0 and message.removed_ms is None and message.lost_with is None

    def purged_at(self, message: SimMessage, moment_ms: int) -> bool:
        """Whether a purge of its queue may have removed a message by some moment."""
        return any(
            errand.kind == PURGING and errand.begun_ms <= moment_ms
            for errand in self.errands.get((message.target.index, message.queue), ())
        )

    def _known(self, number: int | None, node: Node, path: str) -> SimMessage | None:
        if number is None:
            return None
        message = self.messages.get(number)
        if message is None:
            raise Violation(f"{path} of {node.name} has a message that nobody sent: {number}")
        return message

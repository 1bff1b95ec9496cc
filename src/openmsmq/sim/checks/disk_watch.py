"""What the disks of a run have, batch by batch, against what applications asked for.

A message comes into queues and goes out of them only as `books` says somebody wanted it, whole
transactions at a time, in order, and at most once. Every batch is looked at when it is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.model.queue import QueueRole
from openmsmq.sim.checks.facts import MAY_TAKE_EFFECT, Fate, Group, Kind, SimMessage
from openmsmq.sim.checks.store_watch import Change, Lying, StoreWatch
from openmsmq.sim.violation import Violation
from openmsmq.storage.port import Batch
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.sim.checks.books import Books
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World


class DiskWatch:
    """Follows every message from disk to disk."""

    def __init__(self, books: Books, world: World) -> None:
        self._books = books
        self._world = world
        self.watches: dict[int, StoreWatch] = {}
        self.crash_times_ms: dict[int, list[int]] = {}
        self.refusal_times_ms: dict[int, list[int]] = {}
        self._last_order: dict[tuple[int, int, str, str], int] = {}

    def stored(self, node: Node, batch: Batch) -> None:
        """A batch is durable."""
        watch = self.watches.get(node.index)
        if watch is None:
            watch = self.watches[node.index] = StoreWatch()
        known = watch.directory_number
        changes = watch.apply(batch)
        if not watch.aside.keys() <= watch.prepared:
            raise Violation(f"{node.name} keeps what is aside for a transaction that is over")
        if watch.directory_number != known:
            self._world.directory_stored()
        touched: dict[int, Group] = {}
        moved = {change.entry.message for change in changes if change.came}
        for change in changes:
            self._changed(node, change, moved, touched)
        for group in touched.values():
            self._check_whole(group)
        if self._books.hostile is not None:
            self._books.hostile.stored(node)

    def refused(self, node: Node) -> None:
        """A disk had no room."""
        self.refusal_times_ms.setdefault(node.index, []).append(self._world.timeline.now_ms)
        self._books.purges_forgotten(node)

    def crashed(self, node: Node) -> None:
        """A node lost power, and what it had only in memory."""
        self.crash_times_ms.setdefault(node.index, []).append(self._world.timeline.now_ms)
        self._books.power_lost(node)
        self._books.purges_forgotten(node)
        watch = self.watches.get(node.index)
        if watch is None:
            return
        for entry in watch.lose_power():
            message = self._books.messages.get(entry.message or 0)
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
        if self._books.hostile is not None and change.came:
            self._books.hostile.came(node, entry)
        if role is QueueRole.APPLICATION and path.endswith("admin"):
            if change.came:
                self._books.copies.acknowledgment(entry)
            return
        message = self._books.known(entry.message, node, path)
        trace = self._world.trace
        if trace.wanted and message is not None:
            text = f"{message} {'into' if change.came else 'out of'} {path}"
            trace.note(node.index, "durable", text, (message.number,))
        if message is None or (entry.message_class and role is not QueueRole.SYSTEM):
            return
        if not change.came:
            self._went(message, node, entry, moved, touched)
        elif role is QueueRole.SYSTEM:
            self._books.copies.copied(message, node, entry)
        elif role is QueueRole.JOURNAL:
            self._books.copies.journaled(message)
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
            self.arrives(message, node, entry.shelf.path, durable=entry.durable)

    def _takes_effect(self, message: SimMessage, entry: Lying) -> None:
        if message.group.fate not in MAY_TAKE_EFFECT:
            raise Violation(
                f"{message} is in {entry.shelf.path}, but its sending {message.group.fate.value}"
            )
        message.effective = True
        message.sent_s = message_bytes.sent_time_s(entry.packet)
        message.message_id = message_bytes.message_id(entry.packet)
        twin = self._books.by_message_id.setdefault(message.message_id, message)
        if twin is not message:
            raise Violation(f"{message} and {twin} have the same message identifier")

    def arrives(self, message: SimMessage, node: Node, path: str, *, durable: bool) -> None:
        """A message comes into the queue that it is for, or straight to a reader that waits."""
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
        message.lost_with = message.removed_ms = message.purged_ms = None
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
            if self._books.remote is not None:
                self._books.remote.require_free(message)
            holder = message.holder
            if message.reserved_for:
                raise Violation(
                    f"{message} was removed from {entry.shelf.path} of {node.name} while "
                    f"{message.reserved_for} has it reserved"
                )
            if holder is not None and holder.fate in MAY_TAKE_EFFECT:
                touched[holder.number] = holder
            elif not self._books.may_be_removed(message, node, entry.shelf.path):
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
        if not safe and not message.may_have_expired() and not self._books.may_be_refused(message):
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

    def _check_whole(self, group: Group) -> None:
        """All of a group is on the disk, or nothing."""
        missing = [
            message for message in group.messages if message.certain and not message.effective
        ]
        left = [message for message in group.taken if message.is_there]
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
            not message.is_there for message in group.taken
        )

"""What a message leaves behind: copies, dead letters, acknowledgments; once, and in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.sim.checks.facts import Kind, SimMessage
from openmsmq.sim.checks.store_watch import DEAD_LETTERS, JOURNAL, Lying
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.sim.checks.books import Books
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World


class Copies:
    """Looks at every copy and acknowledgment as it becomes durable."""

    def __init__(self, books: Books, world: World) -> None:
        self._books = books
        self._world = world

    def copied(self, message: SimMessage, node: Node, entry: Lying) -> None:
        """A copy came into a journal or a dead-letter queue of a node."""
        if entry.shelf.number == JOURNAL:
            message.journal_copies += 1
            if not message.journal_on_success or message.journal_copies > 1:
                raise Violation(
                    f"{node.name} has {message.journal_copies} journal copies of {message}"
                )
            self._check_journal_time(message, node)
        elif entry.shelf.number in DEAD_LETTERS:
            # Whose time is up may have arrived and be dead at both ends.
            again = node.index in message.dead_letters and message.certain
            message.dead_letters.add(node.index)
            if again or not message.journal_on_failure:
                raise Violation(
                    f"{node.name} has {'two dead letters' if again else 'a dead letter'} of "
                    f"{message}"
                )
            self._check_dead(message, node)

    def _check_journal_time(self, message: SimMessage, node: Node) -> None:
        if not message.remote:
            return
        if node is not message.source:
            raise Violation(
                f"{node.name} has a journal copy of {message}, which {message.source.name} sent"
            )
        delivered = message.on_wire
        only_arrives = message.name.startswith("DIRECT=HTTP:") and not message.journal_on_failure
        if message.kind is Kind.RECOVERABLE or (message.certain and only_arrives):
            # Over HTTP nobody is told of the end of a message that leaves no dead letter.
            # The next node on its way has it: that is all its source ever hears.
            delivered = bool(message.durable_at - {message.source.index})
        elif message.kind is Kind.TRANSACTIONAL:
            delivered = message.removed_ms is not None
        in_doubt = message.may_have_expired() or self._books.may_be_refused(message)
        if not delivered and not in_doubt:
            raise Violation(f"{message} is in the journal of {node.name} before it was delivered")

    def _check_dead(self, message: SimMessage, node: Node) -> None:
        if message.consumed and not message.may_have_expired():
            raise Violation(f"{message} was received, and is a dead letter at {node.name}")
        if not (
            message.may_have_expired()
            or self._books.may_be_refused(message)
            or self._books.purged_at(message, self._world.timeline.now_ms)
            or message.removed_ms is not None
        ):
            raise Violation(
                f"{message} is a dead letter at {node.name}, and nothing had happened to it"
            )

    def journaled(self, message: SimMessage) -> None:
        """A copy came into the journal of the queue from which a message was received."""
        message.target_journal_copies += 1
        if message.target_journal_copies > max(1, message.arrivals):
            raise Violation(f"{message} is in the journal of its queue twice")

    def acknowledgment(self, entry: Lying) -> None:
        """An administration queue got an acknowledgment."""
        message = self._books.by_message_id.get(message_bytes.correlation_id(entry.packet))
        hostile = self._books.hostile
        if hostile is not None and (message is None or hostile.is_hostile_report(entry.packet)):
            return
        if message is None:
            raise Violation(
                f"{entry.shelf.path} got an acknowledgment of a message that was never sent"
            )
        if not message.acknowledge:
            raise Violation(f"{message} asked for no acknowledgment and got one")
        # Two nodes may find that its time is up when one did not hear that the other has it.
        in_doubt = not message.certain or (message.remote and message.may_have_expired())
        if entry.message_class in message.acknowledgments and not in_doubt:
            raise Violation(f"{message} got acknowledgment {entry.message_class:#06x} twice")
        message.acknowledgments.append(entry.message_class)

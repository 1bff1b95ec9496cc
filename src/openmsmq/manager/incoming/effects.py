"""What a turn does with what others send: sequences go on, identifiers are remembered.

Both grow: a turn may take many messages of one sender, and they are written once, when it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import SequenceId
from openmsmq.storage import records

if TYPE_CHECKING:
    from openmsmq.manager.incoming.history import History
    from openmsmq.manager.incoming.incoming_sequences import Flow, IncomingSequences


class SequencePassed(Effect):
    """A sequence goes on by a message that leaves nothing on the disk."""

    __slots__ = ("flow", "number", "sequence", "sequences")

    def __init__(
        self, sequences: IncomingSequences, flow: Flow, sequence: SequenceId, number: int
    ) -> None:
        self.sequences = sequences
        self.flow = flow
        self.sequence = sequence
        self.number = number

    def apply(self) -> None:
        """Assume that the message is taken."""
        self.flow.sequence.assume(self.sequence, self.number)

    def follow(self) -> None:
        """Let the sender hear how far it has come."""
        self.sequences.settle(self.flow, self.sequence, self.number)

    def revert(self, _: MsmqError, /) -> None:
        """Wait for it again, and for all that came since the last that is durable."""
        self.flow.take_back()

    def describe(self) -> dict[str, Plain]:
        """Return which sequence it is, and how far it has come."""
        return {
            "source": str(self.flow.source),
            "destination": self.flow.destination,
            "sequence": str(self.sequence),
            "number": self.number,
        }


class SequenceAdvanced(SequencePassed):
    """A sequence has come as far as the last message of it that this turn takes: it grows."""

    __slots__ = ("is_stored",)

    def __init__(
        self, sequences: IncomingSequences, flow: Flow, sequence: SequenceId, number: int
    ) -> None:
        super().__init__(sequences, flow, sequence, number)
        self.is_stored = False

    def go_on(self, sequence: SequenceId, number: int) -> None:
        """Take one more message."""
        self.sequence = sequence
        self.number = number
        self.flow.sequence.assume(sequence, number)

    def apply(self) -> None:
        """Assume that the first message is taken."""
        self.flow.begin_advance(self)
        self.flow.sequence.assume(self.sequence, self.number)

    def store(self, writes: Writes) -> None:
        """Write where the sequence stands, unless its record was let go in the same turn."""
        self.is_stored = self.flow.advance is self
        if self.is_stored:
            self.flow.end_advance()
            record = self.flow.record_at(self.sequence, self.number)
            writes.put(self.flow.key, records.encode_record(record))

    def follow(self) -> None:
        """Let the sender hear how far it has come."""
        if self.is_stored:
            self.sequences.settle(self.flow, self.sequence, self.number)


class RejectionsCounted(Effect):
    """Messages of a sequence were dropped for a gap: how many is written once, when the turn ends.

    It grows: a turn may drop many. The count itself is raised as they come.
    """

    __slots__ = ("flow", "sequences")

    def __init__(self, sequences: IncomingSequences, flow: Flow) -> None:
        self.sequences = sequences
        self.flow = flow

    def apply(self) -> None:
        """Let the further ones of this turn be written as one."""
        self.flow.count_rejections(are_noted=True)

    def store(self, writes: Writes) -> None:
        """Write the count, unless the sequence has gone on in this turn, or was let go."""
        self.flow.count_rejections(are_noted=False)
        record = self.sequences.record_of_rejected(self.flow)
        if record is not None:
            writes.put(self.flow.key, records.encode_record(record))

    def revert(self, _: MsmqError, /) -> None:
        """Leave the count: the messages were dropped, whatever the disk has of it."""
        self.flow.count_rejections(are_noted=False)

    def describe(self) -> dict[str, Plain]:
        """Return which sequence it is, and how many were dropped."""
        return {
            "source": str(self.flow.source),
            "destination": self.flow.destination,
            "rejected": self.flow.sequence.rejected_count,
        }


class IdentifiersNoted(Effect):
    """Messages that are not to be taken a second time: those that came in this turn. It grows."""

    __slots__ = ("fresh", "history", "number")

    def __init__(self, history: History) -> None:
        self.history = history
        self.fresh: dict[bytes, bool] = {}
        """The identifiers, and whether their messages are recoverable."""
        self.number = 0
        """The group they are in, once the turn has ended: negative if it has no record."""

    def store(self, writes: Writes) -> None:
        """Write what must be known after a restart too, and drop what is too old."""
        self.number = self.history.complete(self.fresh)
        if not self.fresh:
            return
        if self.number > 0:
            recoverable = [identifier for identifier, durable in self.fresh.items() if durable]
            writes.put(records.history_key(self.number), b"".join(recoverable))
        for number in self.history.expired():
            writes.delete(records.history_key(number))

    def revert(self, _: MsmqError, /) -> None:
        """Forget them: their senders send them again."""
        if self.number:
            self.history.filter.forget(self.number)
        self.history.drop_fresh()

    def describe(self) -> dict[str, Plain]:
        """Return how many there are."""
        return {"messages": len(self.fresh), "recoverable": sum(self.fresh.values())}

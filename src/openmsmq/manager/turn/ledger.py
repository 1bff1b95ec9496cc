"""The ledger of a turn: what is to become durable, and what follows when it is.

Everything a queue manager does in one turn is one batch. Nobody hears of it before the disk has
it: replies, and everything others could see, wait in the ledger until `settle`. If the disk
refuses, `revoke` takes back what memory already assumed, in reverse order.

One batch at a time is on its way to the disk. What happens meanwhile is the next turn; it may build
on what memory assumes, so it falls together with the batch before it.
"""

from __future__ import annotations

from openmsmq.manager.outputs import Persist
from openmsmq.manager.turn.effects import Effect
from openmsmq.manager.turn.passage import Passage
from openmsmq.manager.turn.trace import TurnTrace
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError


class Turn:
    """One batch and the effects it belongs to."""

    __slots__ = ("effects", "following", "following_last", "growing", "writes")

    def __init__(self) -> None:
        self.writes = Writes()
        self.effects: list[Effect] = []
        """All of them, in the order in which they were added."""
        self.following: list[Effect] = []
        """Those that follow, in the order in which they do."""
        self.following_last: list[Effect] = []
        """Those that follow after the others."""
        self.growing: list[Effect] = []
        """Those that take in more until the turn ends."""

    def complete(self) -> None:
        """Store what has grown until now, last first."""
        while self.growing:
            effect = self.growing.pop()
            effect.store(self.writes)
            self.following.append(effect)

    def follow(self) -> None:
        """Let everything happen that waited for the batch."""
        for effect in self.following:
            effect.follow()
        for effect in self.following_last:
            effect.follow()

    def revert(self, error: MsmqError, /) -> None:
        """Take everything back, last first."""
        for effect in reversed(self.effects):
            effect.revert(error)


class Ledger:
    """Collects the current turn and remembers the one on its way to the disk."""

    def __init__(self) -> None:
        self.passage = Passage()
        """How many entries of all queues wait for the disk."""
        self.has_work = False
        """Whether something waits to be sealed."""
        self._turn = Turn()
        self._ticket = 0
        self._under_way: dict[int, Turn] = {}
        self.trace = TurnTrace()

    def add(self, effect: Effect) -> None:
        """Carry out the first half of an effect; the second follows when the turn is durable."""
        turn = self._turn
        self.has_work = True
        turn.effects.append(effect)
        turn.following.append(effect)
        effect.apply()
        effect.store(turn.writes)

    def add_waiting(self, effect: Effect, *, last: bool = False) -> None:
        """Add an effect that has no first half: it assumes nothing and stores nothing.

        With `last` it follows after all those of its turn that were added without.
        """
        turn = self._turn
        self.has_work = True
        turn.effects.append(effect)
        (turn.following_last if last else turn.following).append(effect)

    def add_growing(self, effect: Effect) -> None:
        """Add an effect that takes in more until the end of the turn.

        It is stored, and its place among those that follow is fixed, only then. It is taken back
        as if it were complete at once.
        """
        turn = self._turn
        self.has_work = True
        turn.effects.append(effect)
        turn.growing.append(effect)
        effect.apply()

    def put(self, key: bytes, value: bytes) -> None:
        """Make a record durable with this turn."""
        self.has_work = True
        self._turn.writes.put(key, value)

    def put_many(self, records: list[tuple[bytes, bytes]], *, volatile: bool) -> None:
        """Keep several records, durable or in memory only."""
        self.has_work = True
        self._turn.writes.put_many(records, volatile=volatile)

    def take_out(self, keys: list[bytes], *, volatile: bool) -> None:
        """Remove several records that are durable, or in memory only."""
        self.has_work = True
        self._turn.writes.take_out(keys, volatile=volatile)

    def delete(self, key: bytes) -> None:
        """Remove a record with this turn, wherever it is."""
        self.has_work = True
        self._turn.writes.delete(key)

    def seal(self) -> Persist | None:
        """Close the turn; return what must be persisted, or None.

        A turn that stores nothing has no one to wait for: it is settled here. While a batch is
        under way the turn stays open.
        """
        if self._under_way:
            return None
        turn = self._turn
        turn.complete()
        self._turn = Turn()
        self.has_work = False
        self.passage.seal()
        if not turn.writes.batch:
            if self.trace.is_on:
                self.trace.settled(None, turn.effects, turn.writes.batch)
            turn.follow()
            self.passage.settled("after a turn that stores nothing")
            return None
        if self.trace.is_on:
            self.trace.sealed()
        self._ticket += 1
        self._under_way[self._ticket] = turn
        return Persist(self._ticket, turn.writes.close())

    def settle(self, ticket: int) -> None:
        """The batch is durable: let everything follow."""
        turn = self._under_way.pop(ticket)
        if self.trace.is_on:
            self.trace.settled(ticket, turn.effects, turn.writes.batch)
        turn.follow()
        self.passage.settled(f"after turn {ticket} is durable")

    def revoke(self, ticket: int, error: MsmqError) -> None:
        """The batch was refused: take back it and what was built on it, last first."""
        later, self._turn = self._turn, Turn()
        had_later, self.has_work = self.has_work, False
        refused = self._under_way.pop(ticket)
        self.passage.take_along()
        if self.trace.is_on:
            self.trace.revoked(ticket, refused.effects, refused.writes.batch)
            if had_later:
                self.trace.revoked(None, later.effects, later.writes.batch)
        for turn in (later, refused):
            turn.revert(error)
        self.passage.settled(f"after turn {ticket} was refused")

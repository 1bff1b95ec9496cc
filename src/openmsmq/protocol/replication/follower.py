"""A standby: it has the records stored that are confirmed, and takes over when the lease ends.

One request is under way at a time. Before a take-over only confirmed records are stored: what a
store has must never be ahead of what the database can lose. The take-over itself is a transaction
that has written, so all that it has seen is durable, and the rest is stored then.
"""

from __future__ import annotations

from enum import Enum

from openmsmq.protocol.replication.log import (
    Answer,
    Apply,
    Ask,
    Ended,
    FollowerOutput,
    LeaseTimes,
    LogState,
    Promoted,
    Read,
    Renew,
    Request,
    Take,
)


class FollowerState(Enum):
    """How far a standby has come."""

    WATCHING = "watching"
    TAKING = "taking"
    RENEWING = "renewing"
    """The epoch is ours, and the next answer shows how long."""
    CATCHING_UP = "catching up"
    PROMOTED = "promoted"
    ENDED = "ended"


class Follower:
    """Follows a log into a store that has all records up to a number."""

    def __init__(
        self, log: str, name: str, holder: str, number: int, times: LeaseTimes, now_ms: int
    ) -> None:
        """`log` is the log that the store belongs to; `holder` must be new with each start."""
        self.state = FollowerState.WATCHING
        self.number = number
        """The last record that is in the store."""
        self.seen: LogState | None = None
        """What the log said last."""
        self.may_take = True
        """Whether it would be primary, or only ever follows."""
        self._log = log
        self._name = name
        self._holder = holder
        self._times = times
        self._confirmed = 0
        """The newest record that the log ever said to be confirmed."""
        self._epoch = 0
        self._answer_until_ms = 0
        self._asked_ms = 0
        self._asked: Request | None = None
        self._due_ms = now_ms
        self._outputs: list[FollowerOutput] = []

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` is due; None while an answer is awaited, and at the end."""
        if self._asked is not None or self._is_over:
            return None
        return self._due_ms

    @property
    def _is_over(self) -> bool:
        return self.state in {FollowerState.PROMOTED, FollowerState.ENDED}

    def take_outputs(self) -> list[FollowerOutput]:
        """Return what is to be done, once."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def wake(self, now_ms: int) -> None:
        """Take the time; look at the log if that is due."""
        if self._asked is not None or self._is_over or now_ms < self._due_ms:
            return
        if self.state is FollowerState.RENEWING:
            self._ask(Renew(self._epoch, self._holder, self.number), now_ms)
        else:
            self._ask(Read(self.number, self._name), now_ms)

    def failed(self, now_ms: int) -> None:
        """Hear that no answer came; whatever was asked may have been done."""
        self._asked = None
        if self.state is FollowerState.TAKING:
            self.state = FollowerState.WATCHING
        self._due_ms = now_ms + self._times.look_ms

    def answered(self, answer: Answer, now_ms: int) -> None:
        """Take the answer to what was asked last."""
        asked, self._asked = self._asked, None
        if self._is_over:
            return
        state = self.seen = answer.state
        self._confirmed = max(self._confirmed, state.confirmed)
        self._due_ms = now_ms + self._times.look_ms
        problem = self._problem(state)
        if problem:
            self._end(problem)
        elif isinstance(asked, Read):
            self._have_read(answer, now_ms)
        elif not answer.done:
            self._refused()
        else:
            # Both have written: the lease is ours since they were asked, and all is durable.
            self._epoch = state.epoch
            until_ms = self._asked_ms + self._times.lease_ms - self._times.margin_ms
            self._answer_until_ms = until_ms
            self.state = FollowerState.CATCHING_UP
            self._go_on(state, now_ms)

    def applied(self, number: int) -> None:
        """Hear up to which record the store has them."""
        self.number = number

    def _problem(self, state: LogState) -> str:
        if state.log != self._log:
            return (
                f"the database has the log {state.log} of this queue manager, and the store "
                f"belongs to {self._log}: restore a back-up that was made while it was replicated"
            )
        known = max(self.number, self._confirmed)
        if known > state.last:
            return (
                f"record {known} was confirmed, and the log in the database ends with "
                f"{state.last}: the database has lost what it had confirmed"
            )
        if self.number + 1 < state.first:
            return (
                f"the store ends with record {self.number}, and the log begins with "
                f"{state.first}: begin from a newer back-up"
            )
        return ""

    def _have_read(self, answer: Answer, now_ms: int) -> None:
        state = answer.state
        is_ours = self.state is FollowerState.CATCHING_UP
        limit = state.last if is_ours else state.confirmed
        records = [record for record in answer.records if record[0] <= limit]
        numbers = [number for number, _ in records]
        if numbers != list(range(self.number + 1, self.number + 1 + len(numbers))):
            self._end("the log in the database has a gap: it was changed by something else")
            return
        if records:
            self._outputs.append(Apply(records))
            self.number = numbers[-1]
            self._due_ms = now_ms
        if is_ours:
            self._go_on(state, now_ms)
        elif state.holder == self._holder:
            # An answer was lost. What was seen may not be durable yet, and who renews writes.
            self._epoch = state.epoch
            self.state = FollowerState.RENEWING
            self._due_ms = now_ms
        elif not records and state.lease_ended and self.may_take:
            self.state = FollowerState.TAKING
            self._ask(Take(state.epoch, self._holder), now_ms)

    def _go_on(self, state: LogState, now_ms: int) -> None:
        if state.epoch != self._epoch or state.holder != self._holder:
            self._end("somebody else has taken over meanwhile")
        elif self.number < state.last:
            late = now_ms >= self._answer_until_ms - self._times.lease_ms // 2
            if late:
                self.state = FollowerState.RENEWING
            self._due_ms = now_ms
        else:
            self.state = FollowerState.PROMOTED
            promoted = Promoted(self._name, self._holder, self._epoch, self._answer_until_ms)
            self._outputs.append(promoted)

    def _refused(self) -> None:
        """Somebody else was faster, or the lease goes on."""
        if self.state is FollowerState.TAKING:
            self.state = FollowerState.WATCHING
        else:
            self._end("somebody else has taken over meanwhile")

    def _ask(self, request: Request, now_ms: int) -> None:
        self._asked = request
        self._asked_ms = now_ms
        self._outputs.append(Ask(request))

    def _end(self, why: str) -> None:
        self.state = FollowerState.ENDED
        is_damage = "taken over" not in why
        self._outputs.append(Ended(why, is_damage))

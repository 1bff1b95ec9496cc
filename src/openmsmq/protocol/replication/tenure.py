"""A primary: it appends one record at a time, keeps its lease, and says nothing it cannot know.

`Durable` comes when the log has answered an append, or when a later transaction that has written
shows that the record is there. Whoever got no answer does not know, and appends the same record
again: the transaction waits for any that is still under way, and is refused if the record is there
already. No other record is ever appended under this number in this epoch.

Until `answer_until_ms` nobody else can have taken over, as far as clocks run equally fast. Behind
that nothing may be answered until the lease is renewed. Safety does not rest on it: an append of a
primary that has lost its epoch is refused.
"""

from __future__ import annotations

from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    Ask,
    Durable,
    Ended,
    LeaseTimes,
    LogState,
    Promoted,
    Release,
    Renew,
    Request,
    TenureOutput,
    Trim,
)


class Tenure:
    """One epoch of one primary."""

    def __init__(self, promoted: Promoted, number: int, times: LeaseTimes, now_ms: int) -> None:
        self.epoch = promoted.epoch
        self.number = number
        """The last record that is durable."""
        self.answer_until_ms = promoted.answer_until_ms
        self.is_over = False
        self.last_answer_ms = now_ms
        """When the log answered last."""
        self._name = promoted.name
        self._holder = promoted.holder
        self._times = times
        self._writing: bytes | None = None
        self._unsure = False
        """Whether the record is there, and may not be durable."""
        self._asked: Request | None = None
        self._asked_ms = 0
        self._renewed_ms = now_ms - times.renew_ms
        self._due_ms = now_ms
        self._is_leaving = False
        self._backed_up = 0
        self._trimmed = 0
        self._may_trim = False
        """Whether the lease was renewed since it trimmed last."""
        self._longer_ms = 0
        """How much longer the lease was made for the record that is on its way."""
        self._outputs: list[TenureOutput] = []

    def may_answer(self, now_ms: int) -> bool:
        """Whether nobody else can be primary yet."""
        return not self.is_over and now_ms < self.answer_until_ms

    @property
    def is_writing(self) -> bool:
        """Whether a record is on its way."""
        return self._writing is not None

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` is due; None while an answer is awaited, and at the end."""
        return None if self._asked is not None or self.is_over else self._due_ms

    def take_outputs(self) -> list[TenureOutput]:
        """Return what is to be done, once."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def append(self, record: bytes, now_ms: int) -> None:
        """Append a record; `Durable` follows. The one before must be durable."""
        assert self._writing is None, "two records on their way to the log"
        self._writing = record
        if self._asked is None and not self.is_over:
            self._next(now_ms)

    def leave(self, now_ms: int) -> None:
        """End the lease as soon as what is under way is answered."""
        self._is_leaving = True
        if self._asked is None and not self.is_over:
            self._next(now_ms)

    def backed_up(self, number: int) -> None:
        """Hear that there is a back-up with all records up to a number."""
        self._backed_up = max(self._backed_up, number)

    def wake(self, now_ms: int) -> None:
        """Take the time."""
        if self._asked is None and not self.is_over and now_ms >= self._due_ms:
            self._next(now_ms)

    def failed(self, now_ms: int) -> None:
        """Hear that no answer came; whatever was asked may have been done."""
        self._asked = None
        self._longer_ms = 0
        self._renewed_ms = now_ms - self._times.renew_ms
        self._due_ms = now_ms + self._times.look_ms

    def answered(self, answer: Answer, now_ms: int) -> None:
        """Take the answer to what was asked last."""
        asked, self._asked = self._asked, None
        if self.is_over:
            return
        self.last_answer_ms = now_ms
        state = answer.state
        if state.epoch != self.epoch or state.holder != self._holder:
            self._end(f"another computer has taken over: epoch {state.epoch} has begun")
            return
        if state.last < self.number:
            self._end(
                f"the log in the database ends with record {state.last}, and {self.number} was "
                "confirmed: the database has lost what it had confirmed",
                is_damage=True,
            )
            return
        if isinstance(asked, Release):
            self._end("it has handed over")
            return
        self._trimmed = state.first - 1
        if not answer.done:
            # The record is there, from a time when the answer was lost. Whether the database can
            # still lose it again is known when something later was written.
            self._unsure = True
            self._ask(Renew(self.epoch, self._holder, self.number), now_ms)
            return
        if isinstance(asked, Append | Renew):
            self._renewed(asked.longer_ms)
            self._may_trim = True
        self._see_record(state)
        self._is_leaving = self._is_leaving or state.handover
        self._next(now_ms)

    def _renewed(self, longer_ms: int) -> None:
        self._renewed_ms, self._longer_ms = self._asked_ms, longer_ms
        # No longer, however long the lease is: what was given up may still be carried out, and make
        # it as short as others.
        until_ms = self._asked_ms + self._times.lease_ms - self._times.margin_ms
        self.answer_until_ms = max(self.answer_until_ms, until_ms)

    def _see_record(self, state: LogState) -> None:
        if self._writing is not None and state.last == self.number + 1:
            self.number += 1
            self._writing = None
            self._outputs.append(Durable(self.number))
        self._unsure = False

    def _next(self, now_ms: int) -> None:
        """Ask what is to be asked next, or wait until something is due."""
        if self._unsure:
            self._ask(Renew(self.epoch, self._holder, self.number), now_ms)
        elif self._writing is not None:
            longer_ms = self._times.longer_ms(self._writing)
            if longer_ms > self._longer_ms:
                # Before it goes, or somebody would take over in the middle of it.
                self._ask(Renew(self.epoch, self._holder, self.number, longer_ms), now_ms)
            else:
                number = self.number + 1
                append = Append(self.epoch, self._holder, number, self._writing, longer_ms)
                self._ask(append, now_ms)
        elif self._is_leaving:
            # From the moment this is asked, somebody else may be primary.
            self.answer_until_ms = now_ms
            self._ask(Release(self.epoch, self._holder), now_ms)
        elif now_ms >= self._renewed_ms + self._times.renew_ms:
            self._ask(Renew(self.epoch, self._holder, self.number), now_ms)
        elif self._backed_up > self._trimmed and self._may_trim:
            self._may_trim = False
            name, number = self._name, self.number
            self._ask(Trim(self.epoch, self._holder, self._backed_up, name, number), now_ms)
        else:
            self._due_ms = self._renewed_ms + self._times.renew_ms

    def _ask(self, request: Request, now_ms: int) -> None:
        self._asked = request
        self._asked_ms = now_ms
        self._outputs.append(Ask(request))

    def _end(self, why: str, *, is_damage: bool = False) -> None:
        self.is_over = True
        self._outputs.append(Ended(why, is_damage))

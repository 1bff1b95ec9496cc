"""Defects of a replicated queue manager that its simulator must notice."""

from __future__ import annotations

from typing import Final

from tests.sim.mutants import Mutant

_TENURE: Final = "protocol.replication.tenure:Tenure"
_FOLLOWER: Final = "protocol.replication.follower:Follower"
_LOG: Final = "sim.replication.model_log:ModelLog"

MUTANTS: Final = [
    Mutant(
        "acknowledged before the record",
        f"{_TENURE}._see_record",
        "and state.last == self.number + 1",
        "",
    ),
    Mutant(
        "a record that was found is believed before anything later was written",
        f"{_TENURE}.answered",
        "self._ask(Renew(self.epoch, self._holder, self.number), now_ms)",
        "self._see_record(state); self._next(now_ms)",
        likely=134,
    ),
    Mutant(
        "a lease that has ended is not looked at",
        f"{_TENURE}.may_answer",
        "not self.is_over and now_ms < self.answer_until_ms",
        "not self.is_over",
    ),
    Mutant(
        "a lease is counted from the answer, and longer than it is",
        f"{_TENURE}._renewed",
        "self._asked_ms + self._times.lease_ms - self._times.margin_ms",
        "self.last_answer_ms + self._times.lease_ms + self._times.margin_ms",
        likely=22,
    ),
    Mutant(
        "a longer lease is believed, though what was given up can still make it shorter",
        f"{_TENURE}._renewed",
        "max(self.answer_until_ms, until_ms)",
        "max(self.answer_until_ms, until_ms + longer_ms)",
        likely=1549,
    ),
    Mutant(
        "a standby stores what the databases can still lose",
        f"{_FOLLOWER}._have_read",
        "limit = state.last if is_ours else state.confirmed",
        "limit = state.last",
        likely=930,
    ),
    Mutant(
        "a take-over without the last records: stale reads",
        f"{_FOLLOWER}._go_on",
        "elif self.number < state.last:",
        "elif False:",
    ),
    Mutant(
        "a take-over whose answer was lost is believed without a word written",
        f"{_FOLLOWER}._have_read",
        "self.state = FollowerState.RENEWING",
        "self.state = FollowerState.CATCHING_UP; "
        "self._answer_until_ms = now_ms + self._times.lease_ms; self._go_on(state, now_ms)",
        likely=6,
    ),
    Mutant(
        "no fencing",
        f"{_LOG}._is_holder",
        "epoch == line.epoch and holder == line.holder",
        "True",
        likely=117,
    ),
    Mutant(
        "late epoch: it is the one of the primary before",
        f"{_LOG}._decide",
        "line.epoch + 1, request.holder",
        "max(line.epoch, 1), line.holder or request.holder",
    ),
    Mutant(
        "an append says nothing of its number",
        f"{_LOG}._is_next",
        "number == line.last + 1",
        "True",
        likely=11,
    ),
    Mutant(
        "trimmed too early: before all have it",
        f"{_LOG}._trimmed",
        "min([request.backed_up, *self.followers.values()])",
        "request.backed_up",
    ),
    Mutant(
        "trimmed too early: without a back-up",
        f"{_LOG}._trimmed",
        "min([request.backed_up, *self.followers.values()])",
        "min([request.backed_up + 20, *self.followers.values()])",
        likely=118,
    ),
    Mutant(
        "the lease is judged by another clock",
        f"{_LOG}._lease_ended",
        "self._timeline.now_ms >= line.lease_until_ms",
        "self._timeline.now_ms + 1500 >= line.lease_until_ms",
        likely=397,
    ),
    Mutant(
        "the database answers before its second server has it",
        f"{_LOG}._replicated",
        "self.durable = self.visible",
        "self._timeline.after(3, lambda: setattr(self, 'durable', self.visible))",
    ),
]

"""A log as two database servers keep it, one following the other synchronously.

A transaction that writes has the line about the log for itself, and nobody sees what it has done
before the second server has it. What no server protects from can happen: a request or an answer is
lost, a server starts again in the middle and shows what the other one does not have, or the other
one takes its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    LogState,
    Read,
    Release,
    Renew,
    Request,
    Take,
    Trim,
)
from openmsmq.sim.clock import Timeline

READ_MAX_COUNT = 5
"""Records of one answer: few, so that catching up takes several."""


class Line(msgspec.Struct, frozen=True):
    """The line about the log."""

    epoch: int = 0
    holder: str = ""
    first: int = 1
    last: int = 0
    confirmed: int = 0
    lease_until_ms: int = 0
    handover: bool = False


Reply = Callable[[Answer], None]


class ModelLog:
    """The two servers."""

    def __init__(self, timeline: Timeline, rng: random.Random, lease_ms: int) -> None:
        self.visible = Line()
        """What a reader sees on the server that is used."""
        self.durable = Line()
        """What both servers have."""
        self.records: dict[int, bytes] = {}
        self.followers: dict[str, int] = {}
        """What each follower said last that it has."""
        self.slow_ms = 0
        """How much longer the second server takes."""
        self.is_away = False
        self._timeline = timeline
        self._rng = rng
        self._lease_ms = lease_ms
        self._waiting: list[tuple[Request, Reply]] = []
        self._busy = False
        self._written: tuple[Line, Append | None] | None = None
        self._boot = 0

    def ask(self, request: Request, reply: Reply) -> None:
        """Take a request; the reply comes when it is done, or never."""
        if self.is_away:
            return
        if isinstance(request, Read):
            reply(self._read(request))
            return
        self._waiting.append((request, reply))
        self._next()

    def _read(self, request: Read) -> Answer:
        line = self.visible
        if request.after + 1 >= line.first:
            self.followers[request.follower] = request.after
        start = max(request.after + 1, line.first)
        stop = min(line.last, start + READ_MAX_COUNT - 1)
        found = [(number, self.records[number]) for number in range(start, stop + 1)]
        return Answer(self._state(line), True, found)

    def _next(self) -> None:
        if self._busy or not self._waiting:
            return
        request, reply = self._waiting.pop(0)
        changed = self._decide(self.visible, request)
        if changed is None:
            reply(Answer(self._state(self.visible), done=False))
            self._next()
            return
        self._busy = True
        append = request if isinstance(request, Append) else None
        self._written = changed, append
        # A long record takes longer; how much of its time it needs is of no matter here.
        longer_ms = 0 if append is None else append.longer_ms // 16
        delay_ms = self._rng.randrange(1, 4) + self.slow_ms + longer_ms
        self._timeline.after(delay_ms, self._replicated, self._boot, reply)

    def _decide(self, line: Line, request: Request) -> Line | None:
        """Return what the line becomes; None if the request comes too late."""
        now_ms = self._timeline.now_ms
        until_ms = now_ms + self._lease_ms
        change = msgspec.structs.replace
        if isinstance(request, Take):
            if request.seen_epoch != line.epoch or not self._lease_ended(line):
                return None
            epoch, holder = line.epoch + 1, request.holder
            return change(line, epoch=epoch, holder=holder, lease_until_ms=until_ms, handover=False)
        assert not isinstance(request, Read), "a read changes nothing"
        if not self._is_holder(line, request.epoch, request.holder):
            return None
        if isinstance(request, Append):
            if not self._is_next(line, request.number):
                return None
            return change(
                line,
                last=request.number,
                confirmed=request.number - 1,
                lease_until_ms=until_ms + request.longer_ms,
            )
        if isinstance(request, Renew):
            confirmed = max(line.confirmed, request.confirmed)
            until_ms += request.longer_ms
            return change(line, confirmed=confirmed, lease_until_ms=until_ms)
        if isinstance(request, Release):
            return change(line, lease_until_ms=now_ms)
        self.followers[request.follower] = request.number
        return change(line, first=max(line.first, self._trimmed(request) + 1))

    def _lease_ended(self, line: Line) -> bool:
        return self._timeline.now_ms >= line.lease_until_ms

    def _is_holder(self, line: Line, epoch: int, holder: str) -> bool:
        return epoch == line.epoch and holder == line.holder

    def _is_next(self, line: Line, number: int) -> bool:
        return number == line.last + 1

    def _trimmed(self, request: Trim) -> int:
        return min([request.backed_up, *self.followers.values()])

    def _replicated(self, boot: int, reply: Reply) -> None:
        """The second server has it, so it may be told."""
        if boot != self._boot or self._written is None:
            return
        self._show()
        self.durable = self.visible
        self._busy = False
        reply(Answer(self._state(self.visible)))
        self._next()

    def _show(self) -> None:
        assert self._written is not None, "nothing was written"
        line, append = self._written
        self._written = None
        if append is not None:
            self.records[append.number] = append.record
        self.visible = line

    def _state(self, line: Line) -> LogState:
        return LogState(
            "log",
            line.epoch,
            line.holder,
            line.first,
            line.last,
            line.confirmed,
            self._lease_ended(line),
            line.handover,
        )

    # What goes wrong, and what operators do.

    def restart(self) -> None:
        """Start the server again: what it was doing is done or not, whatever the other one has."""
        self._boot += 1
        self._waiting.clear()
        self._busy = False
        if self._written is not None and self._rng.random() < 0.5:
            self._show()
        self._written = None

    def fail_over(self) -> None:
        """The other server takes its place: what only the first one had is lost."""
        self._boot += 1
        self._waiting.clear()
        self._busy = False
        if self._written is not None and self.visible == self.durable and self._rng.random() < 0.5:
            self._show()
            self.durable = self.visible
        self._written = None
        self.visible = self.durable

    def hand_over(self) -> None:
        """Want another primary."""
        self.visible = msgspec.structs.replace(self.visible, handover=True)
        self.durable = msgspec.structs.replace(self.durable, handover=True)

"""The steps of a verb: what it asks the queue manager, without saying how that is carried out.

They are a generator, which yields requests, is sent their replies, and returns the verb's result;
the blocking and the asyncio shell carry out the same steps. `VerbRun` drives one verb and knows the
rule of reconnecting: it starts again only when nothing it has asked can have taken effect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from openmsmq.api.base import ReplyKind, Request
from openmsmq.api.messages import AnyReply, AnyRequest, Failed
from openmsmq.client.errors import ConnectionLost, NotSent, OutcomeUnknown
from openmsmq.model.errors import MsmqError, ServiceNotAvailable

RESTARTS_MAX_COUNT: Final = 3
"""How often one verb begins again on a new connection."""


class Ahead(msgspec.Struct, frozen=True):
    """A step: send the request and go on; the verb is sent the number of the call."""

    request: AnyRequest


class Collect(msgspec.Struct, frozen=True):
    """A step: wait for the answer to a call sent ahead."""

    call: int


class Until(msgspec.Struct, frozen=True):
    """A step: wait for answers to other calls until a condition holds."""

    condition: Callable[[], bool]


Step: TypeAlias = AnyRequest | Ahead | Collect | Until
Outcome: TypeAlias = AnyReply | int
Result = TypeVar("Result")
Steps: TypeAlias = Generator[Step, Any, Result]


def patience_s(request: AnyRequest, call_timeout_s: float) -> float | None:
    """How long the answer may take; None for as long as it takes."""
    wait_ms = request.patience_ms
    return None if wait_ms is None else wait_ms / 1000 + call_timeout_s


def ask(request: Request[ReplyKind]) -> Steps[ReplyKind]:
    """Ask and expect the reply to it; anything else is raised as the error it tells of."""
    reply = yield request
    if type(reply) is request.reply:
        return cast("ReplyKind", reply)
    raise failure(reply)


def failure(reply: AnyReply) -> Exception:
    """Make the error that a reply tells of.

    A queue manager that is stopping has not carried the call out: another connection may.
    """
    if isinstance(reply, Failed):
        if reply.code == ServiceNotAvailable.code:
            return NotSent(reply.detail)
        return MsmqError.from_code(reply.code, reply.detail)
    return ConnectionLost(f"the queue manager answered with {type(reply).__name__}: not for this")


class VerbRun(Generic[Result]):
    """One verb under way: takes its steps and decides what to do when the connection is lost."""

    def __init__(self, make: Callable[[], Steps[Result]]) -> None:
        self._make = make
        self._steps: Steps[Result] | None = None
        self._unsettled: AnyRequest | None = None
        self._unsettled_before: AnyRequest | None = None
        self._restarts = 0
        self.result: Result

    def start(self) -> Step | None:
        """Begin, or begin again; give the first step, or None when there is nothing to do."""
        self._steps = self._make()
        self._unsettled = None
        return self._advance(None)

    def answered(self, outcome: Outcome) -> Step | None:
        """Take what the last step gave; give the next step, or None at the end."""
        return self._advance(outcome)

    def lost(self, reason: ConnectionLost) -> None:
        """Take the loss of the connection: raises unless the verb may start again.

        The verb hears of it first, and may raise what it knows better.
        """
        assert self._steps is not None
        try:
            self._steps.throw(reason)
        except ConnectionLost as raised:
            if raised is not reason:
                raise
        unsettled = self._unsettled_before if isinstance(reason, NotSent) else self._unsettled
        if unsettled is not None:
            raise OutcomeUnknown(type(unsettled).__name__, str(reason)) from reason
        self._restarts += 1
        if self._restarts > RESTARTS_MAX_COUNT:
            raise reason

    def _advance(self, outcome: Outcome | None) -> Step | None:
        assert self._steps is not None
        try:
            step = self._steps.send(outcome)
        except StopIteration as stop:
            self.result = stop.value
            return None
        self._unsettled_before = self._unsettled
        request = step.request if isinstance(step, Ahead) else step
        if not isinstance(request, Collect | Until) and not request.may_repeat:
            # Kept for the rest of the verb: what has taken effect must not be done again.
            self._unsettled = request
        return step

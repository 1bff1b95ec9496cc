"""Names that the copy of the directory does not have: it is asked before they count as missing.

A public queue may have been published a moment ago. Whoever asks for names that do not exist in a
loop makes the directory be asked once in a second, not more: all that wait share one question.
"""

from __future__ import annotations

from collections.abc import Callable

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_CALLS_MAX_COUNT, DIRECTORY_LOOKUP_WAIT_S
from openmsmq.manager.access.handlers import Handler, HandlerTable
from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.directory.published import Published
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError, QueueNotFound


class _Lookup:
    """A call whose name was not found, until the directory has answered."""

    __slots__ = ("call", "due_ms", "error", "handler", "question", "request", "state")

    def __init__(
        self,
        handler: Handler,
        state: Connection,
        call: int,
        request: api.AnyRequest,
        error: QueueNotFound,
    ) -> None:
        self.handler = handler
        self.state = state
        self.call = call
        self.request = request
        self.error = error
        self.question = 0
        self.due_ms = 0


class NameLookups:
    """Carries out calls again whose names were not found, once the directory was asked."""

    def __init__(self, published: Published, ways: KnownWays, replies: Replies) -> None:
        self._published = published
        self._ways = ways
        self._replies = replies
        self._waiting: list[_Lookup] = []

    def asking(self, handlers: HandlerTable) -> HandlerTable:
        """Return handlers that ask the directory before they say that a name is not found."""
        return {
            kind: self._asking(handler) if kind.facts.asks_directory else handler
            for kind, handler in handlers.items()
        }

    def _asking(self, handler: Handler) -> Handler:
        def handle(state: Connection, call: int, request: api.AnyRequest, now: Instant) -> None:
            missed = self._published.missed_count
            try:
                handler(state, call, request, now)
            except QueueNotFound as error:
                if self._published.missed_count == missed or not self._may_wait:
                    raise
                self._wait(_Lookup(handler, state, call, request, error), now)

        return handle

    @property
    def _may_wait(self) -> bool:
        return self._ways.may_learn and len(self._waiting) < DIRECTORY_CALLS_MAX_COUNT

    def _wait(self, lookup: _Lookup, now: Instant) -> None:
        lookup.question = self._ways.doubt()
        lookup.due_ms = now.ticks_ms + DIRECTORY_LOOKUP_WAIT_S * 1000
        self._waiting.append(lookup)

    def heard(self, now: Instant) -> None:
        """The directory has answered: what is not found now is not there."""
        for lookup in self._taken(lambda each: self._ways.is_answered(each.question)):
            try:
                lookup.handler(lookup.state, lookup.call, lookup.request, now)
            except MsmqError as error:
                self._replies.fail(lookup.state.id, lookup.call, error)

    def failed(self, error: MsmqError) -> None:
        """The directory could not be asked."""
        self._give_up(self._taken(lambda _: True), f"could not be asked: {error.detail}")

    def wake(self, now: Instant) -> None:
        """Time has passed: who has waited long enough hears what the copy says."""
        self._give_up(
            self._taken(lambda each: each.due_ms <= now.ticks_ms),
            f"has not answered within {DIRECTORY_LOOKUP_WAIT_S} s",
        )

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._waiting[0].due_ms if self._waiting else None

    def _taken(self, is_due: Callable[[_Lookup], bool]) -> list[_Lookup]:
        """Take out what is due; who has gone meanwhile needs no answer."""
        due = [each for each in self._waiting if is_due(each)]
        self._waiting = [each for each in self._waiting if not is_due(each)]
        connections = self._replies.connections
        return [each for each in due if connections.get(each.state.id) is each.state]

    def _give_up(self, lookups: list[_Lookup], problem: str) -> None:
        for lookup in lookups:
            detail = f"{lookup.error.detail}; this is by the copy here, the directory {problem}"
            self._replies.fail(lookup.state.id, lookup.call, QueueNotFound(detail))

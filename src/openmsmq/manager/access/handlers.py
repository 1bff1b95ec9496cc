"""Which method carries out which request: each room says so itself, and no request is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

from openmsmq.api.messages import REQUESTS, AnyRequest, Hello
from openmsmq.manager.queues.connections import Connection
from openmsmq.model.clock import Instant

RequestKind = TypeVar("RequestKind", bound=AnyRequest)
Handler: TypeAlias = Callable[[Connection, int, Any, Instant], None]
HandlerTable: TypeAlias = dict[type[AnyRequest], Handler]


class Handlers:
    """Takes the methods that carry out requests, one for each."""

    def __init__(self) -> None:
        self._table: HandlerTable = {}

    def add(
        self,
        kind: type[RequestKind],
        handler: Callable[[Connection, int, RequestKind, Instant], None],
    ) -> None:
        """Have requests of a class carried out by a method."""
        if kind in self._table:
            raise ValueError(f"two methods carry out {kind.__name__}")
        self._table[kind] = handler

    def complete(self) -> HandlerTable:
        """Return the method for each class of requests; raise if one has none."""
        # The greeting is answered by the connection, before anybody is known to ask.
        missing = set(REQUESTS) - {Hello} - self._table.keys()
        if missing:
            names = ", ".join(sorted(kind.__name__ for kind in missing))
            raise ValueError(f"nobody carries out {names}")
        return self._table


class Room(Protocol):
    """Those who carry out requests."""

    def serve(self, handlers: Handlers) -> None:
        """Say which methods carry out which requests."""


def all_handlers(rooms: Iterable[Room]) -> HandlerTable:
    """Return the method for each class of requests; raise if one has none or two."""
    handlers = Handlers()
    for room in rooms:
        room.serve(handlers)
    return handlers.complete()

"""Connections of browsers: who only holds one open gives way to who has something to ask.

There are so many connections at a time. Without this, whoever opens them all and says nothing, or
says it very slowly, would keep everybody else out.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from openmsmq.console import limits


class Connection(H11Protocol):
    """A connection that is closed for another one while no whole request of it is answered."""

    since_s = 0.0
    """When it was made."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; the oldest that waits goes if there are too many."""
        super().connection_made(transport)
        self.since_s = self.loop.time()
        if len(self.connections) <= limits.CONNECTIONS_MAX_COUNT:
            return
        waiting = [
            one
            for one in self.connections
            if isinstance(one, Connection) and one is not self and one.is_waiting
        ]
        if waiting:
            oldest = min(waiting, key=lambda one: one.since_s)
            # That it is lost is noticed only later.
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is there, or not all of it."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

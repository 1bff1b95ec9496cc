"""Addresses of host names: the system's resolver, in threads, a few questions at a time.

A system call that waits for a name server cannot be called off. The threads are therefore ones
that do not keep the process from ending, and a question that takes too long is answered without
them, while they still count as busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TypeAlias

from openmsmq.runtime.addresses import literal
from openmsmq.runtime.limits import (
    RESOLVE_MS,
    RESOLVER_QUESTIONS_MAX_COUNT,
    RESOLVER_WAITING_MAX_COUNT,
)

Addresses: TypeAlias = tuple[str, ...]


def look_up(host: str) -> Addresses:
    """Ask the system, and wait; no address when it knows none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        # A name that cannot be one, such as `a..b`, is a ValueError.
        return ()
    return tuple(dict.fromkeys(str(where[0]) for *_, where in found))


class Resolver:
    """Answers each question once, never before the question is out of the way."""

    def __init__(
        self,
        answer: Callable[[str, Addresses], None],
        *,
        look_up: Callable[[str], Addresses] = look_up,
        timeout_ms: int = RESOLVE_MS,
    ) -> None:
        self._answer = answer
        self._look_up = look_up
        self._timeout_s = timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, None] = {}
        self._asked: dict[str, asyncio.TimerHandle] = {}
        self._busy_count = 0
        self._closed = False

    def resolve(self, host: str) -> None:
        """Look up a host; the same question asked again meanwhile gets the same answer."""
        if host in self._asked or host in self._waiting:
            return
        address = literal(host)
        if address is not None:
            self._loop.call_soon(self._say, host, (address,))
        elif len(self._waiting) >= RESOLVER_WAITING_MAX_COUNT:
            self._loop.call_soon(self._say, host, ())
        else:
            self._waiting[host] = None
            self._ask_next()

    def close(self) -> None:
        """Answer nothing any more."""
        self._closed = True
        self._waiting.clear()
        for timer in self._asked.values():
            timer.cancel()
        self._asked.clear()

    def _ask_next(self) -> None:
        while self._waiting and self._busy_count < RESOLVER_QUESTIONS_MAX_COUNT:
            host = next(iter(self._waiting))
            del self._waiting[host]
            self._busy_count += 1
            self._asked[host] = self._loop.call_later(self._timeout_s, self._give_up, host)
            thread = threading.Thread(target=self._ask, args=(host,), daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # The system has no thread to spare.
                self._loop.call_soon(self._found, host, ())

    def _ask(self, host: str) -> None:
        """Run in a thread."""
        addresses = self._look_up(host)
        # The loop may be over by now.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._found, host, addresses)

    def _found(self, host: str, addresses: Addresses) -> None:
        self._busy_count -= 1
        timer = self._asked.pop(host, None)
        if timer is not None:
            timer.cancel()
            self._say(host, addresses)
        if not self._closed:
            self._ask_next()

    def _give_up(self, host: str) -> None:
        del self._asked[host]
        self._say(host, ())

    def _say(self, host: str, addresses: Addresses) -> None:
        if not self._closed:
            self._answer(host, addresses)

"""The asyncio client behind the face of the blocking one, so that one suite holds for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from openmsmq.client import aio
from openmsmq.client.settings import Settings


class Awaited:
    """Something of the asyncio client: its coroutines are awaited, what they give is wrapped."""

    def __init__(self, runner: asyncio.Runner, inner: Any) -> None:
        self.runner = runner
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not inspect.ismethod(found):
            return self.wrapped(found)

        def call(*args: Any, **kwargs: Any) -> Any:
            plain = [bare(value) for value in args]
            named = {key: bare(value) for key, value in kwargs.items()}
            return self.settled(found(*plain, **named))

        return call

    def settled(self, value: Any) -> Any:
        if inspect.iscoroutine(value):
            return self.wrapped(self.runner.run(value))
        if isinstance(value, AsyncIterator):
            return self.each(value)
        return self.wrapped(value)

    def each(self, values: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self.runner.run(_next(values))
            except StopAsyncIteration:
                return

    def wrapped(self, value: Any) -> Any:
        ours = (aio.Queue, aio.Cursor, aio.Transaction, aio.QueueManager)
        entered = hasattr(value, "__aenter__")
        return Awaited(self.runner, value) if isinstance(value, ours) or entered else value

    def __enter__(self) -> Any:
        return self.wrapped(self.runner.run(_enter(self.inner)))

    def __exit__(self, *problem: Any) -> Any:
        return self.runner.run(_exit(self.inner, problem))


async def _next(values: AsyncIterator[Any]) -> Any:
    return await anext(values)


async def _enter(inner: Any) -> Any:
    return await inner.__aenter__()


async def _exit(inner: Any, problem: Any) -> Any:
    return await inner.__aexit__(*problem)


async def _connect(settings: Settings) -> aio.QueueManager:
    return await aio.connect(settings)


def bare(value: Any) -> Any:
    return value.inner if isinstance(value, Awaited) else value


def connect_awaited(runner: asyncio.Runner, settings: Settings) -> Any:
    """Connect with the asyncio client."""
    return Awaited(runner, runner.run(_connect(settings)))

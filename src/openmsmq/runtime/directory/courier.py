"""Carries the questions and changes of a queue manager to its directory, and the answers back.

Beside them one question waits at the directory until something changes there, so that the queue
manager hears of it at once. Where that cannot be it asks from time to time, as it does anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from openmsmq.model.directory import Change, Position
from openmsmq.model.errors import MsmqError, NoDirectory
from openmsmq.runtime.directory.port import DirectoryPort
from openmsmq.runtime.limits import DIRECTORY_WATCH_PAUSE_MS
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.server import Pump


class DirectoryCourier:
    """One directory as the pump drives it; the queue manager asks one thing at a time."""

    def __init__(self, port: DirectoryPort, pump: Pump, log: EventLog) -> None:
        self._port = port
        self._pump = pump
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_reached = True
        self._position: Position | None = None
        """Where the directory was when it answered last."""
        self._answered = asyncio.Event()
        self._is_watching = False

    def ask(self, position: Position) -> None:
        """Ask for changes."""
        self._start(self._ask(position))

    def change(self, ticket: int, changes: tuple[Change, ...]) -> None:
        """Make changes."""
        self._start(self._change(ticket, changes))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, position: Position) -> None:
        engine = self._pump.engine
        try:
            told = await self._port.changes(position)
        except Exception as problem:
            error = _failure(problem)
            if self._is_reached:
                self._log.warning(Event.DIRECTORY_LOST, reason=error.detail)
            self._is_reached = False
            self._pump.put_in(engine.directory_failed, error)
        else:
            if not self._is_reached:
                self._log.info(Event.DIRECTORY_FOUND)
            self._is_reached = True
            self._pump.put_in(engine.directory_told, told)
            self._position = told.position
            self._answered.set()
            if not self._is_watching:
                self._is_watching = True
                self._start(self._watch())

    async def _watch(self) -> None:
        """Tell the queue manager of changes, as long as the directory lets us wait for them."""
        while True:
            position = self._position
            assert position is not None
            try:
                if not await self._port.moved(position) or self._position != position:
                    continue
            except NoDirectory:
                # Whether another server answers is known when it is asked.
                await asyncio.sleep(DIRECTORY_WATCH_PAUSE_MS / 1000)
            except Exception as problem:
                self._log.debug(Event.DIRECTORY_UNWATCHED, reason=_failure(problem).detail)
                self._answered.clear()
                await self._answered.wait()
                continue
            self._answered.clear()
            self._pump.put_in(self._pump.engine.directory_moved)
            await self._answered.wait()

    async def _change(self, ticket: int, changes: tuple[Change, ...]) -> None:
        engine = self._pump.engine
        try:
            made = await self._port.write(changes)
        except Exception as problem:
            self._pump.put_in(engine.directory_refused, ticket, _failure(problem))
        else:
            self._pump.put_in(engine.directory_changed, ticket, made)

    async def close(self) -> None:
        """Break off what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._port.close()


def _failure(problem: Exception) -> MsmqError:
    """Return what the queue manager hears: it waits for an answer, and would never ask again."""
    if isinstance(problem, MsmqError):
        return problem
    return NoDirectory(
        f"the directory gave no answer to use: {str(problem) or type(problem).__name__}"
    )

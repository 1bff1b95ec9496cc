"""Makes new key pairs for a running queue manager, without keeping it from its work."""

from __future__ import annotations

import asyncio

from openmsmq.model.errors import InsufficientResources
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.operating_system.key_files import KeyFiles
from openmsmq.runtime.server import Pump
from openmsmq.runtime.start_errors import StartError, os_reason


class KeyMaker:
    """Carries out `MakeKeys`; the queue manager asks for one renewal at a time."""

    def __init__(self, files: KeyFiles, pump: Pump, log: EventLog) -> None:
        self._files = files
        self._pump = pump
        self._log = log
        self._task: asyncio.Task[None] | None = None

    def make(self) -> None:
        """Begin to make keys."""
        self._task = asyncio.get_running_loop().create_task(self._make())

    async def _make(self) -> None:
        engine = self._pump.engine
        try:
            made = await asyncio.to_thread(self._files.make, read_clocks().unix_s)
        except (StartError, OSError) as error:
            self._log.error(Event.KEYS_FAILED, reason=str(error))
            self._pump.put_in(engine.keys_told, InsufficientResources(str(error)))
            return
        self._log.info(Event.KEYS_MADE, count=len(made))
        self._pump.put_in(engine.keys_told, made)
        try:
            self._files.remove_all_but(engine.keys.kept)
        except OSError as error:
            self._log.error(Event.KEYS_FAILED, reason=f"old keys stay: {os_reason(error)}")

    async def close(self) -> None:
        """Wait for what is under way: a key is whole on the disk, or not there."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

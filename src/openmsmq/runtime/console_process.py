"""The web console beside the server: a process of its own, which is started again if it ends.

It is a client like any other, so that people who look cost the queue manager what clients cost. It
ends when its standard input does, so that it never outlives the server, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
from collections import deque
from pathlib import Path
from typing import Final

from openmsmq.runtime import limits
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import VARIABLE_PREFIX, ServerConfig
from openmsmq.runtime.logs import Event, EventLog

_SYSTEM: Final = "system"
_NEEDED: Final = ("starlette", "uvicorn", "jinja2")


class ConsoleProcess:
    """Keeps a console running while the server does."""

    def __init__(self, config: ServerConfig, log: EventLog) -> None:
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigError(
                f"console is given and {missing[0]} is missing: pip install 'openmsmq[console]'"
            )
        authorities = config.console_others_tls
        if authorities not in ("", _SYSTEM) and not Path(authorities).is_file():
            raise ConfigError(
                f"console_others_tls = {authorities!r} is no file: name one with the certificates "
                f"to trust, or {_SYSTEM!r}"
            )
        self._command = _command(config)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep it running."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """End it."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._process is not None:
            await self._end(self._process)

    async def _keep(self) -> None:
        ends: deque[float] = deque(maxlen=limits.CONSOLE_RESTARTS_MAX_COUNT)
        loop = asyncio.get_running_loop()
        pause_s = limits.CONSOLE_PAUSE_S
        while True:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, env=_environment()
            )
            self._log.info(Event.CONSOLE_STARTED, process=self._process.pid)
            status = await self._process.wait()
            self._process = None
            now_s = loop.time()
            is_often = len(ends) == ends.maxlen
            if is_often and now_s - ends[0] < limits.CONSOLE_RESTARTS_SPAN_S:
                self._log.error(Event.CONSOLE_GIVEN_UP, status=status, ends=len(ends) + 1)
                return
            self._log.warning(Event.CONSOLE_ENDED, status=status)
            if ends and now_s - ends[-1] >= limits.CONSOLE_RESTARTS_SPAN_S:
                pause_s = limits.CONSOLE_PAUSE_S
            ends.append(now_s)
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(limits.CONSOLE_STOP_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _command(config: ServerConfig) -> list[str]:
    assert config.socket_path is not None, "the configuration was checked"
    command = [sys.executable, "-m", "openmsmq.cli.app", "--qm", f"unix:{config.socket_path}"]
    # The Unix socket needs no TLS: this is for the others, which are asked by TCP.
    if config.console_others_tls == _SYSTEM:
        command.append("--tls")
    elif config.console_others_tls:
        command += ["--ca", config.console_others_tls]
    command += ["console", "--listen", config.console, "--until-input-ends"]
    if config.console_ask_others:
        command.append("--ask-others")
    if config.tls_cert:
        command += ["--tls-cert", config.tls_cert]
    if config.tls_key:
        command += ["--tls-key", config.tls_key]
    return command


def _environment() -> dict[str, str]:
    """Return the environment without our own variables: they were meant for the server."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(VARIABLE_PREFIX)
    }

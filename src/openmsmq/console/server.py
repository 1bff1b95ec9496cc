"""The console as a process: uvicorn serves it until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Generator
from time import monotonic  # noqa: TID251 -- the console is no part of the core
from typing import Final

import uvicorn

from openmsmq.console import limits
from openmsmq.console.app import Console
from openmsmq.console.config import BadConfig, ConsoleConfig
from openmsmq.console.connections import Connection
from openmsmq.console.sessions.attempts import OwnerOf

_BACKLOG: Final = 128
_GRACE_S: Final = 5


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take none: uvicorn would raise them again when all is done, as if it had failed."""
        yield


class ConsoleServer:
    """A console that listens; made, it has its port already."""

    def __init__(
        self,
        config: ConsoleConfig,
        clock: Callable[[], float] = monotonic,
        *,
        owner_of: OwnerOf,
    ) -> None:
        self._listener = _listen(config.host, config.port)
        self.console = Console(config, clock, owner_of)
        self._config = config
        self._server = _Server(
            uvicorn.Config(
                self.console.app,
                lifespan="on",
                # What strangers send wrong is no news: they could fill the log with it.
                log_level="error",
                access_log=False,
                server_header=False,
                date_header=True,
                proxy_headers=False,
                ws="none",
                http=Connection,
                # One more than there may be: then all of them are busy, and none gives way.
                limit_concurrency=limits.CONNECTIONS_MAX_COUNT + 1,
                timeout_keep_alive=limits.KEEP_ALIVE_S,
                timeout_graceful_shutdown=_GRACE_S,
                ssl_certfile=config.tls_cert or None,
                ssl_keyfile=(config.tls_key or config.tls_cert) or None,
            )
        )
        try:
            self._server.config.load()
        except (OSError, ssl.SSLError) as error:
            self._listener.close()
            reason = getattr(error, "strerror", None) or error
            raise BadConfig(f"the certificate {config.tls_cert} cannot be used: {reason}") from None

    @property
    def address(self) -> str:
        """What to type into a browser."""
        host, port = self._listener.getsockname()[:2]
        shown = self._config.shown_host(host)
        return f"{'https' if self._config.is_tls else 'http'}://{shown}:{port}/"

    @property
    def link(self) -> str:
        """The address that signs in once."""
        return f"{self.address}sign-in/{self.console.book.link}"

    def run(self, ready: Callable[[ConsoleServer], None], *, ends_with_input: bool = False) -> None:
        """Serve until a signal stops it; with `ends_with_input`, also when standard input ends."""
        asyncio.run(self._run(ready, ends_with_input=ends_with_input))

    async def _run(self, ready: Callable[[ConsoleServer], None], *, ends_with_input: bool) -> None:
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        if ends_with_input:
            # The pipe ends with the process that has started this one, however that ends.
            loop.add_reader(sys.stdin.fileno(), self._look_at_input)
        ready(self)
        await self._server.serve(sockets=[self._listener])

    def stop(self) -> None:
        """Begin to stop; `run` returns when that is done."""
        self._server.should_exit = True

    def _look_at_input(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.stop()


def _listen(host: str, port: int) -> socket.socket:
    """Open the port, so that who starts the console hears at once if that is not possible."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise BadConfig(
            f"{host}:{port} cannot be listened on: {error.strerror or error}; choose another with "
            "--listen ADDRESS:PORT"
        ) from None
    return listener

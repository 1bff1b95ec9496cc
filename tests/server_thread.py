"""A queue manager on a thread of this process, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import Loaded
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.operating.event_loop import loop_factory
from openmsmq.runtime.server import ExitCode
from openmsmq.runtime.service import Server
from openmsmq.storage.port import Store


class ServerThread:
    """Runs a queue manager while its `with` block lasts.

    With `api_port=0` it takes a free port; `host` and `port` say which.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        store: Store | None = None,
        log: EventLog | None = None,
        loaded: Loaded | None = None,
    ) -> None:
        self._config = config
        self._loaded = loaded
        self._store = store
        self._log = log
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._server: Server
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run, name=f"openmsmq {config.manager_name}")
        self.exit_code: ExitCode | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def host(self) -> str:
        """The address that applications connect to."""
        return self._server.tcp_endpoints[0][0]

    @property
    def port(self) -> int:
        """The port that applications connect to."""
        return self._server.tcp_endpoints[0][1]

    @property
    def server(self) -> Server:
        """The server; everything but its addresses belongs to its own thread."""
        return self._server

    def stop(self) -> None:
        """Stop in order, and wait until that is done."""
        if self._thread.is_alive():
            # It may just have ended by itself.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._server.stop)
        self.wait()

    def wait(self) -> ExitCode | None:
        """Wait until the server has ended."""
        self._thread.join()
        return self.exit_code

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory(self._config.event_loop)) as runner:
                runner.run(self._serve())
        except BaseException as problem:
            self._problem = problem
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = await Server.start(
            self._config, store=self._store, log=self._log, loaded=self._loaded
        )
        self._started.set()
        self.exit_code = await self._server.finished()


def start_server(
    data: str, *, name: str = "ALPHA", store: Store | None = None, **options: object
) -> ServerThread:
    """Make a server for a `with` block, on a free port, without logs, and without other servers.

    Everything else is as by default. The port for other queue managers cannot be a free one, so
    it is opened only with `transfer=True`.
    """
    settings: dict[str, object] = {
        "api_port": 0,
        "log_level": "error",
        "transfer": False,
        **options,
    }
    return ServerThread(ServerConfig(name=name, data=data, **settings), store=store)  # type: ignore[arg-type]

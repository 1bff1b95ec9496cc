"""What programs ask: whether the console lives, whether the queue manager is ready, and metrics.

Nobody signs in for these. The first two say nothing but yes or no. Metrics name queues, so they are
told only to who shows their token, or on this computer if an operator says so.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from openmsmq.aio import connect
from openmsmq.client.errors import ConnectionLost
from openmsmq.console import limits
from openmsmq.console.config import ConsoleConfig, is_loopback
from openmsmq.model.errors import MsmqError

Found = TypeVar("Found")
_TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"
_NOT_OFFERED: Final = (
    "Metrics are not offered here: start the console with --metrics-token-file FILE, or with "
    "--metrics-on-loopback.\n"
)


class Kept(Generic[Found]):
    """An answer that is asked for once for all who want it at about the same time."""

    def __init__(self, ask: Callable[[], Awaitable[Found]], clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._asking = asyncio.Lock()
        self._found: tuple[float, Found] | None = None

    async def get(self) -> Found:
        """Return the answer, from a moment ago or asked for now."""
        # Whoever asks all the time costs the queue manager little.
        async with self._asking:
            if self._found is None or self._clock() - self._found[0] >= limits.HEALTH_KEPT_S:
                found = await self._ask()
                # From when it came: who has waited for it does not ask again.
                self._found = self._clock(), found
            return self._found[1]


class Health:
    """Answers to programs, with the identity of this process."""

    def __init__(self, config: ConsoleConfig, clock: Callable[[], float]) -> None:
        self._config = config
        self._is_ready = Kept(self._ask_ready, clock)
        self._metrics = Kept(self._ask_metrics, clock)

    async def live(self, _: Request) -> Response:
        """Say that the console lives."""
        return PlainTextResponse("ok\n")

    async def ready(self, _: Request) -> Response:
        """Say whether the queue manager answers, and its store takes messages."""
        is_ready = await self._is_ready.get()
        return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Tell metrics in the text format of Prometheus."""
        config = self._config
        if not (config.metrics_token or config.metrics_on_loopback):
            return PlainTextResponse(_NOT_OFFERED, 404)
        if not self._may_read(request):
            wanted = {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("Show the token of the metrics.\n", 401, wanted)
        text = await self._metrics.get()
        if text is None:
            return PlainTextResponse("The queue manager does not answer.\n", 503)
        return Response(text, media_type=_TEXT_FORMAT)

    def _may_read(self, request: Request) -> bool:
        config = self._config
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        if config.metrics_token and kind.lower() == "bearer":
            return hmac.compare_digest(shown.encode(), config.metrics_token.encode())
        client = request.client
        return config.metrics_on_loopback and client is not None and is_loopback(client.host)

    async def _ask_ready(self) -> bool:
        try:
            async with connect(self._config.own) as manager:
                return not (await manager.status()).store_problem
        except (MsmqError, ConnectionLost):
            return False

    async def _ask_metrics(self) -> str | None:
        try:
            async with connect(self._config.own) as manager:
                return await manager.metrics()
        except (MsmqError, ConnectionLost):
            return None


def health_routes(config: ConsoleConfig, clock: Callable[[], float]) -> list[Route]:
    """Return the routes."""
    health = Health(config, clock)
    return [
        Route("/health/live", health.live, methods=["GET"]),
        Route("/health/ready", health.ready, methods=["GET"]),
        Route("/metrics", health.metrics, methods=["GET"]),
    ]

"""What posts to others by HTTP: a lane for each URL, bounded together."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.http.sending.lane import Lane
from openmsmq.runtime.http.sending.targets import BadUrl, LaneOptions, LanePort, Target, read_url
from openmsmq.runtime.limits import (
    HTTP_LANES_MAX_COUNT,
    HTTP_POSTS_WAITING_MAX_BYTES,
    HTTP_POSTS_WAITING_MAX_COUNT,
)
from openmsmq.runtime.start_errors import tls_reason

if TYPE_CHECKING:
    from openmsmq.runtime.config.doors.http_table import HttpTable
    from openmsmq.runtime.http.interface import PostListener


class HttpClient:
    """Sends posts; each has one outcome. Without `sends` in the configuration all are refused."""

    def __init__(self, table: HttpTable, data: str, listener: PostListener) -> None:
        """Read the certificates, or raise `ConfigError`."""
        self._table = table
        self._data = Path(data)
        self._listener = listener
        self._lanes: dict[Target, Lane] = {}
        self._forgotten: set[int] = set()
        self._under_way: dict[int, int] = {}
        """The posts that have no outcome yet, with the lengths of their bodies."""
        self._bytes = 0
        self._options: Final = LaneOptions(
            table.send_pipelined_max,
            float(table.send_timeout_s),
            float(table.send_idle_s),
            table.proxy_accept,
        )
        self._context = self._new_context() if table.sends else None

    def post(self, post: OutgoingPost) -> None:
        """Send a post; its outcome comes later."""
        loop = asyncio.get_running_loop()
        problem = self._problem(post)
        if problem is not None:
            loop.call_soon(self._listener.post_failed, post.call, *problem)
            return
        target, _ = read_url(post.url)
        self._under_way[post.call] = len(post.body)
        self._bytes += len(post.body)
        lane = self._lanes.get(target)
        if lane is None:
            port = LanePort(self._answered, self._failed, self._idle)
            lane = self._lanes[target] = Lane(target, self._tls, self._options, port)
        lane.post(post)

    def give_up(self, call: int) -> None:
        """Let nobody hear of a post any more; one that has not left does not leave."""
        if call in self._under_way and not any(lane.give_up(call) for lane in self._lanes.values()):
            self._forgotten.add(call)
            return
        self._done(call)

    def reload(self) -> None:
        """Read the certificates again; raises `ConfigError`, and then the old ones count."""
        if self._table.sends:
            self._context = self._new_context()

    def close(self) -> None:
        """End all connections."""
        for lane in list(self._lanes.values()):
            lane.close()
        self._lanes.clear()

    def _problem(self, post: OutgoingPost) -> tuple[PostFailure, str] | None:
        """Return why a post cannot leave."""
        if not self._table.sends:
            return PostFailure.REFUSED, "nothing leaves by HTTP here: [http] sends is false"
        try:
            target, _ = read_url(post.url)
        except BadUrl as error:
            return PostFailure.REFUSED, str(error)
        if len(self._under_way) >= HTTP_POSTS_WAITING_MAX_COUNT or (
            self._bytes and self._bytes + len(post.body) > HTTP_POSTS_WAITING_MAX_BYTES
        ):
            return PostFailure.BUSY, f"{len(self._under_way)} posts wait already"
        if target not in self._lanes and len(self._lanes) >= HTTP_LANES_MAX_COUNT:
            return PostFailure.BUSY, f"there are connections to {HTTP_LANES_MAX_COUNT} URLs already"
        return None

    # What lanes tell.

    def _answered(self, post: OutgoingPost, status: int, body: bytes) -> None:
        if self._done(post.call):
            self._listener.post_answered(post.call, status, body)

    def _failed(self, post: OutgoingPost, failure: PostFailure, reason: str) -> None:
        if self._done(post.call):
            self._listener.post_failed(post.call, failure, reason)

    def _idle(self, target: Target) -> None:
        self._lanes.pop(target, None)

    def _done(self, call: int) -> bool:
        """Count a post no longer; say whether somebody wants to hear of it."""
        self._bytes -= self._under_way.pop(call, 0)
        if call in self._forgotten:
            self._forgotten.remove(call)
            return False
        return True

    # Certificates.

    def _tls(self) -> ssl.SSLContext:
        assert self._context is not None, "without sends there are no lanes"
        return self._context

    def _new_context(self) -> ssl.SSLContext:
        table = self._table
        authorities = str(self._data / table.send_authorities) if table.send_authorities else None
        try:
            context = ssl.create_default_context(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"cannot use [http] send_authorities = {table.send_authorities!r}: "
                f"{tls_reason(error)}"
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if table.send_cert:
            key = str(self._data / table.send_key) if table.send_key else None
            try:
                context.load_cert_chain(str(self._data / table.send_cert), key)
            except (OSError, ssl.SSLError) as problem:
                raise ConfigError(
                    f"cannot use [http] send_cert = {table.send_cert!r}: {tls_reason(problem)}"
                ) from None
        return context

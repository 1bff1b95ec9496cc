"""Where posts go, how they leave, and who hears of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec

from openmsmq.protocol.posts import OutgoingPost, PostFailure


class BadUrl(ValueError):
    """A URL to which nothing can be posted."""


class Target(msgspec.Struct, frozen=True):
    """Where posts of one lane go."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


@lru_cache(maxsize=1_024)
def read_url(url: str) -> tuple[Target, str]:
    """Return where a post goes, and what stands in its request line; or raise `BadUrl`."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadUrl(f"{url[:200]!r} has letters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadUrl(f"{url[:200]!r} is no URL: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.username:
        raise BadUrl(f"{url[:200]!r} is no URL to post to: it begins with http:// or https://")
    is_secure = parts.scheme.lower() == "https"
    path = parts.path or "/"
    target = Target(is_secure, parts.hostname, port or (443 if is_secure else 80), path)
    return target, f"{path}?{parts.query}" if parts.query else path


class LaneOptions(msgspec.Struct, frozen=True):
    """How posts leave."""

    pipelined_max: int
    timeout_s: float
    idle_s: float
    """How long a connection without a post is kept. [MQSRM 3.1.2.4]"""
    proxy_accept: bool


class LanePort(msgspec.Struct, frozen=True):
    """Who hears of a lane."""

    answered: Callable[[OutgoingPost, int, bytes], None]
    failed: Callable[[OutgoingPost, PostFailure, str], None]
    idle: Callable[[Target], None]
    """It has no connection and nothing to do."""

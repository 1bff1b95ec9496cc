"""Tells a webhook: one POST with JSON, over a connection of its own that nobody waits for long.

It is written on the streams of the event loop, so that all of it has one time limit and can be
given up at any moment. Redirects are not followed, proxies not used, certificates verified.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final
from urllib.parse import urlsplit

from openmsmq.runtime.alarms.lanes import NotTold

TIMEOUT_S: Final = 10.0
"""How long a webhook may take, from its name to its answer."""

ANSWER_MAX_BYTES: Final = 4096
"""The longest first line of an answer; the rest is not read."""

_AGAIN: Final = frozenset({408, 425, 429})
"""Answers of a server that will be of another opinion later, beside its own failures."""


async def post(
    address: str, body: bytes, *, tls: ssl.SSLContext | None = None, timeout_s: float = TIMEOUT_S
) -> None:
    """Tell a webhook, or raise `NotTold`; the address is in no error."""
    try:
        async with asyncio.timeout(timeout_s):
            line = await _exchange(address, body, tls)
    except TimeoutError:
        raise NotTold(f"it did not answer within {timeout_s:g} s", may_try_again=True) from None
    except ssl.SSLCertVerificationError as error:
        raise NotTold(f"its certificate is not to be trusted: {error.verify_message}") from None
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise NotTold(f"it cannot be reached: {reason}", may_try_again=True) from None
    _judge(line)


async def _exchange(address: str, body: bytes, tls: ssl.SSLContext | None) -> bytes:
    """Send the request; give the first line of the answer."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    context = None
    if parts.scheme == "https":
        # To read all authorities of the system takes a while.
        context = tls or await asyncio.to_thread(ssl.create_default_context)
    port = parts.port or (443 if context else 80)
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=ANSWER_MAX_BYTES)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = (
            f"POST {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: openmsmq\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii") + body)
        await writer.drain()
        return await reader.readline()
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _judge(line: bytes) -> None:
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise NotTold("what it answers is no HTTP")
    status = int(words[1])
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise NotTold(f"it answers {status}, and redirects are not followed")
    raise NotTold(f"it answers {status}", may_try_again=status >= 500 or status in _AGAIN)

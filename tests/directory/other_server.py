"""A server of LDAP that lets everybody in and has nothing but its own entry.

It is a process of its own: libldap holds up the whole process of its client while it connects.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

BIND, SEARCH, UNBIND = 0x60, 0x63, 0x42
SUCCESS = 0


def ber(tag: int, *parts: bytes) -> bytes:
    """Write one element."""
    body = b"".join(parts)
    size = len(body)
    return bytes([tag, size] if size < 128 else [tag, 0x82, size >> 8, size & 255]) + body


def result(tag: int, code: int) -> bytes:
    return ber(tag, ber(0x0A, bytes([code])), ber(4), ber(4))


def root_entry(attributes: dict[str, str]) -> bytes:
    lines = [
        ber(0x30, ber(4, name.encode()), ber(0x31, ber(4, value.encode())))
        for name, value in attributes.items()
    ]
    return ber(0x64, ber(4), ber(0x30, *lines))


class OtherServer:
    """Answers every search with its own entry, or none, and a result."""

    def __init__(self, root: dict[str, str] | None, code: int) -> None:
        self._root = root
        self._code = code

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = (await reader.readexactly(2))[1]
        if size & 128:
            size = int.from_bytes(await reader.readexactly(size & 127), "big")
        message = await reader.readexactly(size)
        number, request = message[: 2 + message[1]], message[2 + message[1]]
        if request == BIND:
            writer.write(ber(0x30, number, result(0x61, SUCCESS)))
        elif request == SEARCH:
            if self._root is not None:
                writer.write(ber(0x30, number, root_entry(self._root)))
            writer.write(ber(0x30, number, result(0x65, self._code)))
        return request != UNBIND


async def main(address: str, folder: Path, root: dict[str, str] | None, code: int) -> None:
    """Listen, say at which port, and serve until the process is ended."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    other = OtherServer(root, code)
    async with await asyncio.start_server(other.serve, address, 0, ssl=context) as listener:
        print(listener.sockets[0].getsockname()[1], flush=True)
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *json.loads(sys.argv[3])))

"""Whose the other end of a TCP connection is, if it is on this computer: the kernel says so.

Linux answers the question about one socket over netlink; where that is closed, the table of all
sockets is read, up to a bound. A socket that its process has given up has no owner any more, and
the kernel then says user 0: such an answer is never believed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from pathlib import Path
from typing import Final

TABLE_MAX_BYTES: Final = 16 << 20
"""What is read of the table of all sockets: about 100,000 connections."""

ANSWER_MS: Final = 200
"""How long the kernel may take; it answers at once or not at all."""

Endpoint = tuple[str, int]

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBxI2s2s16s16sIII")
_ANSWER: Final = struct.Struct("=BBBB48xIIIII")
_ALL_STATES: Final = 0xFFFFFFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_ANSWER_BYTES: Final = 4096
_ESTABLISHED: Final = 1
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def owner_of(theirs: Endpoint, ours: Endpoint) -> int | None:
    """Return the user whose socket is bound to `theirs` and connected to `ours`, if known."""
    first = _look(theirs, ours)
    # A socket can lose its owner between two of the kernel's own looks at it, but not get it back.
    return first if first != 0 or _look(theirs, ours) == 0 else None


def _look(theirs: Endpoint, ours: Endpoint) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ask_kernel(theirs, ours)
    except (OSError, struct.error):
        return read_tables(theirs, ours)


def ask_kernel(theirs: Endpoint, ours: Endpoint) -> int | None:
    """Ask about one socket; raises `OSError` where such questions are not answered."""
    family = socket.AF_INET6 if ":" in theirs[0] else socket.AF_INET
    question = _QUESTION.pack(
        family,
        socket.IPPROTO_TCP,
        0,
        _ALL_STATES,
        theirs[1].to_bytes(2, "big"),
        ours[1].to_bytes(2, "big"),
        _packed(theirs[0]),
        _packed(ours[0]),
        0,
        _NO_COOKIE,
        _NO_COOKIE,
    )
    size = _HEADER.size + len(question)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_MS / 1000)
        kernel.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = kernel.recv(_ANSWER_BYTES)
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        # There is no such socket: that is an answer.
        if code == 2:
            return None
        raise OSError(code, "the kernel does not say whose a socket is")
    _, state, _, _, _, _, _, user, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    return user if state == _ESTABLISHED and inode else None


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed.ljust(16, b"\0")


def read_tables(theirs: Endpoint, ours: Endpoint) -> int | None:
    """Look a socket up in the tables of all sockets."""
    wanted = {
        f"{local} {remote}" for local, remote in zip(_forms(*theirs), _forms(*ours), strict=True)
    }
    for table in _TABLES:
        with contextlib.suppress(OSError), Path(table).open("rb") as file:
            for line in file.read(TABLE_MAX_BYTES).decode("ascii", "replace").splitlines()[1:]:
                fields = line.split()
                if len(fields) < 10 or f"{fields[1]} {fields[2]}" not in wanted:
                    continue
                state, user, inode = int(fields[3], 16), int(fields[7]), int(fields[9])
                return user if state == _ESTABLISHED and inode else None
    return None


def _forms(address: str, port: int) -> tuple[str, ...]:
    """Write an endpoint as the tables do: words of the address in the computer's own order."""
    packed = ipaddress.ip_address(address).packed
    forms = (packed,) if len(packed) == 16 else (packed, bytes(10) + b"\xff\xff" + packed)
    return tuple(f"{_words(form)}:{port:04X}" for form in forms)


def _words(packed: bytes) -> str:
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", packed))

"""Who is at the other end of a connection, and whether that user may come in."""

from __future__ import annotations

import os
import pwd
import socket
import struct
from typing import Final

import msgspec

_CREDENTIALS: Final = struct.Struct("3i")


class Door(msgspec.Struct, frozen=True):
    """A place where applications come in, and what they have to show there."""

    kind: str
    token: bytes | None = None
    group: int | None = None


class Peer(msgspec.Struct, frozen=True):
    """The process at the other end, as the kernel vouches for it."""

    process: int
    user: int
    group: int

    def __str__(self) -> str:
        return f"process {self.process} of user {self.user}"


def peer_of(connection: socket.socket) -> Peer | None:
    """Ask the kernel who has connected; None where it cannot say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    # An event loop may hand out something that only looks like a socket.
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as real:
        data = real.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(data))


def may_enter(peer: Peer, group: int | None) -> bool:
    """Whether a user is the server's own, root, or in the group that was let in."""
    if peer.user in (0, os.geteuid()):
        return True
    return group is not None and group in _groups(peer)


def _groups(peer: Peer) -> list[int]:
    try:
        name = pwd.getpwuid(peer.user).pw_name
    except KeyError:
        return [peer.group]
    return os.getgrouplist(name, peer.group)

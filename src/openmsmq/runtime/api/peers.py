"""Who is at the other end of a connection, and whether that user may come in.

Users of this computer are known by the word of the kernel, over the Unix socket and over TCP
alike. Root, and the user under which the server runs, are administrators.
"""

from __future__ import annotations

import os
import pwd
import socket
import struct
from typing import Final

import msgspec

from openmsmq.model.peers import address_of
from openmsmq.runtime.operating_system.socket_owner import Endpoint, owner_of
from openmsmq.security.access.callers import Caller, unix_caller

_CREDENTIALS: Final = struct.Struct("3i")


class Door(msgspec.Struct, frozen=True):
    """A place where applications come in, and what they have to show there."""

    kind: str
    needs_token: bool = False
    """Whether everybody has to show a token or a certificate, users of this computer too."""
    group: int | None = None
    is_open: bool = False
    """Whether those may come in, too, of whom nothing is known."""


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
    if is_administrator(peer.user):
        return True
    return group is not None and group in _groups(peer.user, peer.group)


def is_administrator(user: int) -> bool:
    """Whether a user is root, or the one under which the server runs."""
    return user in (0, os.geteuid())


def caller_of(user: int, group: int | None = None) -> Caller:
    """Return the caller that a user of this computer is, with all groups of the user."""
    try:
        found = pwd.getpwuid(user)
    except KeyError:
        name, groups = str(user), [] if group is None else [group]
    else:
        name = found.pw_name
        groups = os.getgrouplist(name, found.pw_gid if group is None else group)
    return unix_caller(name, user, frozenset(groups), administrator=is_administrator(user))


def socket_caller(group: int | None) -> Caller:
    """Return the caller that a Unix socket vouches for where the kernel does not say who it is.

    A socket without a group lets only the server's own user in, and root; one with a group lets
    its members in, and nobody knows which of them it is.
    """
    if group is None:
        return caller_of(os.geteuid())
    nobody = 0xFFFFFFFE
    return unix_caller("somebody of the group", nobody, frozenset({group}), administrator=False)


def local_caller(theirs: Endpoint | None, ours: Endpoint | None) -> Caller | None:
    """Return the user of this computer at the other end of a TCP connection; None for others."""
    if theirs is None or ours is None or not _is_here(theirs[0], ours[0]):
        return None
    user = owner_of(theirs, ours)
    return None if user is None else caller_of(user)


def _is_here(theirs: str, ours: str) -> bool:
    address = address_of(theirs)
    return address is not None and (theirs == ours or address.is_loopback)


def _groups(user: int, group: int) -> list[int]:
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        return [group]
    return os.getgrouplist(name, group)

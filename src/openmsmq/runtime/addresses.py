"""IP addresses as sockets want them; nothing here asks a name server."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

SocketAddress: TypeAlias = tuple[str, int] | tuple[str, int, int, int]


class Target(msgspec.Struct, frozen=True):
    """An address and port with the family of socket that reaches it."""

    family: socket.AddressFamily
    address: SocketAddress


def target(address: str, port: int) -> Target | None:
    """Read a literal address; None when it is none."""
    try:
        found = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (OSError, ValueError):
        return None
    family, *_, where = found[0]
    return Target(family, where)  # type: ignore[arg-type]


def literal(host: str) -> str | None:
    """Return the address that a host is already, with or without brackets; None for a name."""
    text = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def source_for(own: Iterable[str], peer: str) -> str | None:
    """Choose the own address from which to reach a peer; None leaves it to the system.

    Peers answer to where a connection comes from, so it comes from where this queue manager
    listens, except where that is everywhere, or cannot be reached from there.
    """
    there = ipaddress.ip_address(peer)
    for address in own:
        here = ipaddress.ip_address(address)
        if here.version != there.version or here.is_unspecified:
            continue
        if here.is_loopback and not there.is_loopback:
            continue
        return address
    return None


def peer_name(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Return who is at the other end; nobody, if he has gone again before we looked."""
    found: tuple[str, int] | None = transport.get_extra_info("peername")
    return found or ("0.0.0.0", 0)

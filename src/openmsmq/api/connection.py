"""Requests and replies of the application interface that are about the connection itself."""

from __future__ import annotations

from typing import Final

from openmsmq.api.base import Done, Number, Reply, Request, Text
from openmsmq.api.facts import OWN, Facts, Repeats

PROTOCOL_VERSION: Final = 1


class Welcome(Reply, frozen=True, tag="welcome"):
    """The connection is open; this is who answers."""

    version: int
    software: str
    manager_name: str
    manager: bytes
    slate_bytes: int = 0
    """How long each slate is. If it is not 0, the descriptors of as many as were wanted come with
    the first byte of this answer."""


class Hello(Request[Welcome], frozen=True, tag="hello"):
    """Opens every connection. `token` is what the queue manager's operator gave out."""

    facts = Facts(OWN, Repeats.ALWAYS)

    version: Number = PROTOCOL_VERSION
    token: Text = ""
    slates: Number = 0
    """How many slates are wanted: memory that the queue manager shares with a client of the same
    computer, and into which it puts answers that name it. They come by a Unix socket only."""


class Cancel(Request[Done], frozen=True, tag="cancel"):
    """Cancel a read that waits; the read itself then fails as cancelled."""

    facts = Facts(OWN, Repeats.ALWAYS, ends_waits=True)

    call: Number


class CallerStatus(Reply, frozen=True, tag="caller"):
    """Who the caller is to the queue manager."""

    name: str
    user: bytes
    """The SID of the user."""
    sids: list[bytes]
    """The SIDs of the user and of all groups."""
    scopes: list[str] | None
    """What the token of the caller is good for; None without bounds."""
    queues: list[str]
    """Patterns of the names of queues that the token is good for; empty for all."""
    exact_signatures: bool = False
    """Whether all queue managers of the directory understand exact signatures."""
    owner: str = ""
    """Under whose name is kept what outlives the connection: a SID, or `token:` and a name."""


class GetCaller(Request[CallerStatus], frozen=True, tag="get-caller"):
    """Ask who the queue manager takes the caller for."""

    facts = Facts(OWN, Repeats.ALWAYS)

"""What all requests and replies of the application interface are."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Something an application asks for."""


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What the queue manager answers."""

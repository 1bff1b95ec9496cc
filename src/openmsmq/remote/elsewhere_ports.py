"""What a queue of another computer wants of its driver: calls, answers, and its end."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.api import messages as api


class Invoke(msgspec.Struct, frozen=True):
    """Make a call, then `returned` or `threw` with the same number."""

    number: int
    operation: int
    stub: bytes
    patience_ms: int | None = 0
    """How long the other side may wait for a message before it answers; None for ever."""


class Tell(msgspec.Struct, frozen=True):
    """Answer a call of the application."""

    call: int
    reply: api.AnyReply


class Over(msgspec.Struct, frozen=True):
    """Nothing is left to be done; end the connection."""


Output: TypeAlias = Invoke | Tell | Over

"""What a queue manager asks its driver to do."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.api.messages import AnyReply
from openmsmq.storage.port import Batch


class Persist(msgspec.Struct, frozen=True):
    """Make a batch durable, then call `persisted(ticket)`, or `persist_failed(ticket, …)`."""

    ticket: int
    batch: Batch


class Respond(msgspec.Struct, frozen=True):
    """Answer a call of a connection."""

    connection: int
    call: int
    reply: AnyReply


Output: TypeAlias = Persist | Respond

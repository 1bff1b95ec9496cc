"""Requests and replies of the application interface: all of them, under one name.

A connection carries calls and answers in any order; each answer names its call, so an application
may have many under way. Messages travel as MSMQ packets, encoded and decoded by the application's
side: the queue manager only fills in who sent it, when, and under which number.
"""

# ruff: noqa: F403 -- this module is the sum of the others, and says nothing of its own about them

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import msgspec

from openmsmq.api.access import *
from openmsmq.api.base import Done as Done
from openmsmq.api.base import Failed as Failed
from openmsmq.api.base import Number as Number
from openmsmq.api.base import Reply as Reply
from openmsmq.api.base import Request as Request
from openmsmq.api.bulk import *
from openmsmq.api.connection import *
from openmsmq.api.directory import *
from openmsmq.api.exchange import *
from openmsmq.api.keys import *
from openmsmq.api.operating import *
from openmsmq.api.program import *
from openmsmq.api.queues import *
from openmsmq.api.transactions import *

REQUESTS: Final[tuple[type[Request[Any]], ...]] = tuple(Request.__subclasses__())
"""All classes of requests."""

REPLIES: Final[tuple[type[Reply], ...]] = tuple(
    dict.fromkeys([Failed, *(kind.reply for kind in REQUESTS)])
)
"""All classes of replies: what answers one request or another, and the failure of any."""

if TYPE_CHECKING:
    AnyRequest: TypeAlias = Request[Any]
    AnyReply: TypeAlias = Reply
else:
    # Bytes are decoded as one of these, by their tags.
    AnyRequest = Union[REQUESTS]  # noqa: UP007 -- of a tuple
    AnyReply = Union[REPLIES]  # noqa: UP007


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A request under way; `id` is the caller's, and unique among its calls under way."""

    id: Number
    request: AnyRequest


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The end of a call."""

    id: int
    reply: AnyReply

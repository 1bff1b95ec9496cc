"""What all requests and replies of the application interface are."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

NUMBER_MAX: Final = (1 << 63) - 1
"""The largest number in a request: Python's own functions take no larger ones."""

Number: TypeAlias = Annotated[int, msgspec.Meta(le=NUMBER_MAX)]
"""A number in a request. MessagePack has none that is too small."""


class Request(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Something an application asks for."""


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What the queue manager answers."""

"""How far transactions come, and what a coordinator calls them. [MQDMPR 3.1.1.14]"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import msgspec

from openmsmq.model.errors import InvalidParameter
from openmsmq.model.limits import XID_PART_MAX_CHARACTERS

XID_FORMAT_MAX: Final = (1 << 31) - 1
"""The largest format number of an xid, as PEP 249 has it."""

_FORMAT_READ_MAX: Final = (1 << 63) - 1
_PART_READ_MAX: Final = 65_536
"""What is too large for an xid and not for a request is refused with a sentence."""


class Xid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the coordinator of several resource managers calls a transaction, as X/Open has it."""

    format_id: Annotated[int, msgspec.Meta(le=_FORMAT_READ_MAX)]
    """Says who has given the name, and how its parts are to be understood."""
    global_id: Annotated[str, msgspec.Meta(max_length=_PART_READ_MAX)]
    """The transaction as a whole."""
    branch: Annotated[str, msgspec.Meta(max_length=_PART_READ_MAX)]
    """What of it is here."""

    def __str__(self) -> str:
        return f"{self.format_id}:{self.global_id}:{self.branch}"

    def require_valid(self) -> None:
        """Raise `InvalidParameter` if it cannot be the name of a transaction."""
        if not 0 <= self.format_id <= XID_FORMAT_MAX:
            raise InvalidParameter(
                f"format {self.format_id} of an xid is not from 0 to {XID_FORMAT_MAX}"
            )
        for part in (self.global_id, self.branch):
            if len(part) > XID_PART_MAX_CHARACTERS:
                raise InvalidParameter(
                    f"{part[:20]!r}… has {len(part)} characters: each part of an xid has at most "
                    f"{XID_PART_MAX_CHARACTERS}"
                )


class TransactionState(Enum):
    """How far a transaction has come. Prepared ones wait for a coordinator's word."""

    ACTIVE = "active"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"

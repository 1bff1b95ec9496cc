"""How far transactions come, and what a coordinator calls them. [MQDMPR 3.1.1.14]"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

from openmsmq.model.limits import XID_FORMAT_MAX, XID_PART_MAX_CHARACTERS


class Xid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the coordinator of several resource managers calls a transaction, as X/Open has it."""

    format_id: Annotated[int, msgspec.Meta(ge=0, le=XID_FORMAT_MAX)]
    """Says who has given the name, and how its parts are to be understood."""
    global_id: Annotated[str, msgspec.Meta(max_length=XID_PART_MAX_CHARACTERS)]
    """The transaction as a whole."""
    branch: Annotated[str, msgspec.Meta(max_length=XID_PART_MAX_CHARACTERS)]
    """What of it is here."""

    def __str__(self) -> str:
        return f"{self.format_id}:{self.global_id}:{self.branch}"


class TransactionState(Enum):
    """How far a transaction has come. Prepared ones wait for a coordinator's word."""

    ACTIVE = "active"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"

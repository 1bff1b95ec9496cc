"""How far transactions come. [MQDMPR 3.1.1.14]"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """How far a transaction has come. Prepared ones wait for a coordinator's word."""

    ACTIVE = "active"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"

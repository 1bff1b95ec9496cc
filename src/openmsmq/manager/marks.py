"""What the TransactionHeaders of one transaction say of it. [MQMQ 2.2.20.5]"""

from __future__ import annotations

from typing import Final

from openmsmq.wire.headers import transaction
from openmsmq.wire.outline import transaction_offset

MARKS: Final = transaction.FIRST | transaction.LAST | transaction.TRANSACTION_NUMBER
"""The bits that say to which transaction a message belongs, and whether it opens or closes it."""


def transaction_marks(count: int, wire_number: int) -> list[int]:
    """Give the bits of all messages that a transaction sends, in their order (C-127)."""
    marks = [wire_number << transaction.TRANSACTION_NUMBER_SHIFT] * count
    if marks:
        marks[0] |= transaction.FIRST
        marks[-1] |= transaction.LAST
    return marks


def marked(packet: bytes, mark: int) -> bytes:
    """Write them into a packet."""
    offset = transaction_offset(packet)
    flags = int.from_bytes(packet[offset : offset + 4], "little") & ~MARKS | mark
    return b"".join((packet[:offset], flags.to_bytes(4, "little"), packet[offset + 4 :]))

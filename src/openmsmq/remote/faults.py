"""Codes that calls end with and that are no errors of MSMQ. [MS-ERREF 2.1, 2.3]"""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api

BAD_OPERATION: Final = 0x1C01_0002
"""Status of a fault: the interface has no such method."""

BAD_STUB: Final = 0x0000_06F7
"""Status of a fault: the parameters are not what the method takes (R-14)."""

CONTEXT_MISMATCH: Final = 0x1C00_001A
"""Status of a fault: the caller has no such handle, here."""

INVALID_HANDLE: Final = 0xC000_0008
"""Result: there is no such cursor. [MQRR 3.1.4.7]"""

INVALID_PARAMETER: Final = 0xC000_000D
"""Result: messages do not move between these queues. [MQRR 3.1.4.10]"""

ACCESS_DENIED: Final = 0xC000_0022
"""Result: the queue is not open for receiving. [MQRR 3.1.4.6]"""

TRANSACTION_ENLIST: Final = 0xC00E_0058
"""Result: we take part in no transaction of another computer. [MQRR 3.1.4.12]"""

ILLEGAL_PROPERTY: Final = 0xC00E_0039
"""Result: there is no such property. [MQMR 3.1.4.1]"""


def code_of(reply: api.AnyReply) -> int:
    """Return the code of a failure; 0 is success."""
    return reply.code if isinstance(reply, api.Failed) else 0

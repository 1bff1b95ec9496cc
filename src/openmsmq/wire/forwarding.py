"""What a queue manager may change in a packet that only passes through. [MQQB 3.1.5.8.2]

A forwarder sends on the bytes it received; decoding and encoding again would be the identity too,
but slower. The hop count is the one field that changes, and it is not signed. A message that came
with too high a count is still read, so that its sender can be told what became of it.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.wire.cursor import need
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers import base, user

_FLAGS_OFFSET: Final = base.SIZE + 44


def count_hop(data: bytes) -> bytes:
    """Give the user message with its hop count raised by one; every other byte stays."""
    need(data, 0, base.SIZE + user.FIXED_SIZE, "UserHeader")
    hop_count = data[_FLAGS_OFFSET] & user.HOP_COUNT
    if hop_count >= HOP_MAX_COUNT:
        raise EncodeError(
            "UserHeader",
            f"hop count {hop_count}: after {HOP_MAX_COUNT} hops a message goes no further",
        )
    return b"".join(
        (data[:_FLAGS_OFFSET], bytes((data[_FLAGS_OFFSET] + 1,)), data[_FLAGS_OFFSET + 1 :])
    )

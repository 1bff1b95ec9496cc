"""SecurityHeader: the flags that only a receiver sets. [MQMQ 2.2.20.6]"""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace

from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.packets import encode
from tests.conformance import ours, peer

START = 16 + len(peer.user_header())


@pytest.mark.spec("MQMQ-2.2.20.6-05", "MQMQ-2.2.20.6-09")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (SecurityHeader(peer.sid(), flags=1), peer.security_header()),
        (
            SecurityHeader(signature=b"signature", sender_certificate=b"cert"),
            struct.pack("<HHHHII", 0, 0, 0, 9, 4, 0) + b"signature\0\0\0" + b"cert",
        ),
    ],
    ids=["sender", "signature"],
)
def test_what_we_send_does_not_say_that_it_was_authenticated(
    header: SecurityHeader, expected: bytes
) -> None:
    data = encode(replace(ours.PLAIN, security=header))
    (flags,) = struct.unpack_from("<H", data, START)
    assert flags & 0x0F10 == 0
    assert data[START : START + len(expected)] == expected

"""Ping Packet. [MQQB 2.2.7]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.datagrams import PingPacket
from tests.conformance import ours, peer


@pytest.mark.spec("MQQB-2.2.7-05")
@given(st.integers(0, 0xFFFFFFFF))
def test_a_request_does_not_say_that_it_refuses(cookie: int) -> None:
    data = PingPacket(ours.SOURCE, cookie).encode()
    assert data == struct.pack("<HHI16s", 0, 0x5548, cookie, peer.SOURCE)
    assert data[0] & 0b10 == 0
    assert not PingPacket.decode(data).refused


@pytest.mark.parametrize("refuse", [False, True])
@pytest.mark.parametrize("asker", [0, 1], ids=["server", "not server"])
def test_an_answer_is_exactly_these_bytes(refuse: bool, asker: int) -> None:
    request = PingPacket.decode(struct.pack("<HHI16s", 0xFFFC | asker, 0x5548, 99, peer.SOURCE))
    answer = request.answer(ours.TARGET, refuse=refuse)
    assert answer.encode() == struct.pack("<HHI16s", asker | refuse << 1, 0x5548, 99, peer.TARGET)

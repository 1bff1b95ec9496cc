"""Towers: what is written is read, and any bytes are a tower or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER
from openmsmq.wire.rpc.towers import Floor, Tower

SIDES = st.binary(max_size=40)
TOWERS = st.builds(Tower, st.lists(st.builds(Floor, SIDES, SIDES), max_size=8).map(tuple))


@given(TOWERS)
def test_what_is_written_is_read(tower: Tower) -> None:
    assert Tower.decode(tower.encode()) == tower


@given(st.binary(max_size=120))
def test_any_bytes_are_a_tower_or_none(data: bytes) -> None:
    try:
        tower = Tower.decode(data)
    except DecodeError:
        return
    assert data.startswith(tower.encode())
    assert tower.interface is None or tower.interface.encode()
    assert tower.port is None or 0 <= tower.port <= 0xFFFF


def test_the_tower_of_tcp_is_that_of_the_specification() -> None:
    """Written down by hand: the port and the address have the order of the network. [C706 L]"""
    tower = Tower.over_tcp(ENDPOINT_MAPPER, "192.0.2.7", 2103)
    data = tower.encode()
    assert len(data) == 75
    assert data.hex() == (
        "0500"
        "1300"
        "0d0883afe11f5dc91191a408002b14a0fa0300"
        "0200"
        "0000"
        "1300"
        "0d045d888aeb1cc9119fe808002b1048600200"
        "0200"
        "0000"
        "0100"
        "0b"
        "0200"
        "0000"
        "0100"
        "07"
        "0200"
        "0837"
        "0100"
        "09"
        "0400"
        "c0000207"
    )
    assert (tower.interface, tower.port, tower.is_over_tcp) == (ENDPOINT_MAPPER, 2103, True)


def test_an_address_of_ipv6_has_no_place_in_it() -> None:
    assert Tower.over_tcp(ENDPOINT_MAPPER, "2001:db8::1", 1).floors[4].right == bytes(4)


def test_too_many_floors_are_refused() -> None:
    with pytest.raises(DecodeError, match="floors"):
        Tower.decode(b"\xff\xff" + bytes(1000))

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm import protection
from openmsmq.security.authentication.ntlm.keys import Direction
from openmsmq.security.authentication.ntlm.protection import SIGNATURE_BYTES, Protection
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment

KEY = bytes([0x55]) * 16

fragments = st.builds(
    Fragment, st.binary(max_size=40), st.binary(max_size=3000), st.binary(max_size=8)
)


def pair(key: bytes = KEY) -> tuple[Protection, Protection]:
    return (
        Protection(key, Direction.FROM_CLIENT, exchanged_key=True),
        Protection(key, Direction.FROM_SERVER, exchanged_key=True),
    )


def test_the_example_of_the_specification() -> None:
    """[MS-NLMP 4.2.4.4]"""
    client, _ = pair()
    sealed, signature = client.seal(Fragment(b"", "Plaintext".encode("utf-16-le"), b""))
    assert sealed.hex() == "54e50165bf1936dc996020c1811b0f06fb5f"
    assert signature.hex() == "010000007fb38ec5c55d497600000000"


@given(st.lists(st.tuples(st.booleans(), st.booleans(), fragments), max_size=8))
def test_what_one_side_protects_the_other_reads(
    messages: list[tuple[bool, bool, Fragment]],
) -> None:
    sides = pair()
    for from_client, seals, fragment in messages:
        sender, receiver = sides if from_client else sides[::-1]
        if seals:
            stub, signature = sender.seal(fragment)
            sent = Fragment(fragment.header, stub, fragment.trailer)
            assert receiver.unseal(sent, signature) == fragment.stub
        else:
            signature = sender.sign(fragment.stub)
            receiver.check(signature, fragment.stub)
        assert len(signature) == SIGNATURE_BYTES


@given(fragments, st.integers(0, 1 << 20), st.integers(1, 255))
def test_one_other_byte_is_noticed(fragment: Fragment, place: int, change: int) -> None:
    client, server = pair()
    stub, signature = client.seal(fragment)
    parts = [fragment.header, stub, fragment.trailer, signature]
    place %= sum(map(len, parts))
    for index, part in enumerate(parts):
        if place < len(part):
            changed = bytearray(part)
            changed[place] ^= change
            parts[index] = bytes(changed)
            break
        place -= len(part)
    with pytest.raises(AuthenticationFailed):
        server.unseal(Fragment(*parts[:3]), parts[3])


def test_a_message_that_comes_again_is_noticed() -> None:
    client, server = pair()
    signature = client.sign(b"once")
    server.check(signature, b"once")
    with pytest.raises(AuthenticationFailed):
        server.check(signature, b"once")


def test_a_message_that_is_left_out_is_noticed() -> None:
    client, server = pair()
    client.sign(b"one")
    signature = client.sign(b"two")
    with pytest.raises(AuthenticationFailed):
        server.check(signature, b"two")


def test_a_message_sent_back_is_noticed() -> None:
    client, _ = pair()
    signature = client.sign(b"mine")
    with pytest.raises(AuthenticationFailed):
        client.check(signature, b"mine")


def test_nothing_is_right_behind_what_was_wrong() -> None:
    client, server = pair()
    first, second = client.sign(b"one"), client.sign(b"two")
    with pytest.raises(AuthenticationFailed):
        server.check(first, b"eno")
    with pytest.raises(AuthenticationFailed):
        server.check(second, b"two")


def test_numbers_that_are_used_up_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "SEQUENCE_MAX", 2)
    client, _ = pair()
    signatures = {client.sign(b"again") for _ in range(3)}
    assert len(signatures) == 3
    with pytest.raises(AuthenticationFailed, match="connect again"):
        client.sign(b"again")


def test_key_streams_begin_again_and_numbers_go_on() -> None:
    client, server = pair()
    client.sign(b"list")
    client.restart_streams()
    second = client.sign(b"list")
    assert second[-4:] == b"\1\0\0\0"
    fresh, _ = pair()
    # The checksum is of another number, so what is alike is only the stream before it.
    assert fresh.seal(Fragment(b"", b"text", b""))[0] == client_text(server)


def client_text(server: Protection) -> bytes:
    """Return what a client that began its streams again makes of `text`."""
    client, _ = pair()
    client.sign(b"list")
    client.restart_streams()
    server.restart_streams()
    return client.seal(Fragment(b"", b"text", b""))[0]

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor
from openmsmq.security.authentication.ntlm.context import REQUIRED
from openmsmq.security.authentication.ntlm.keys import nt_hash, proof, response_key
from openmsmq.security.authentication.ntlm.messages import (
    MIC_BYTES,
    MIC_OFFSET,
    AvId,
    Flag,
    Negotiate,
    decode_authenticate,
    decode_challenge,
    decode_client_proof,
    decode_pairs,
    encode_pairs,
)
from openmsmq.security.authentication.ntlm.parties import Target
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment, Level
from tests.unit.security.authentication.sides import (
    ALICE,
    FRAGMENT,
    PASSWORD,
    SERVER_CHALLENGE,
    TIME,
    Book,
    acceptor,
    conversation,
    initiator,
)


def third_message(
    client_password: str = PASSWORD, user: str = "alice"
) -> tuple[Book, NtlmAcceptor, bytes]:
    book = Book()
    server, client = acceptor(book), initiator(user, client_password)
    challenge = server.step(client.step(b"").token).token
    return book, server, client.step(challenge).token


@pytest.mark.parametrize("user", ["alice", "ALICE", "Alice"])
@pytest.mark.parametrize("domain", ["", "WORKGROUP", "alpha.example"])
def test_whoever_knows_the_password_is_who_it_says(user: str, domain: str) -> None:
    book = Book()
    server = acceptor(book)
    conversation(initiator(user, domain=domain), server)
    assert server.caller is ALICE
    assert book.attempts == [(user, True)]


def test_a_wrong_password_is_refused_and_taken_down() -> None:
    book = Book()
    server, client = acceptor(book), initiator(password="wrong horse")
    challenge = server.step(client.step(b"").token).token
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        server.step(client.step(challenge).token)
    assert book.attempts == [("alice", False)]
    with pytest.raises(AuthenticationFailed, match="yet"):
        _ = server.caller


def test_an_unknown_user_is_refused_with_the_same_words() -> None:
    said = []
    for user, password in (("bob", PASSWORD), ("alice", "wrong horse")):
        server, client = acceptor(), initiator(user, password)
        challenge = server.step(client.step(b"").token).token
        with pytest.raises(AuthenticationFailed) as refusal:
            server.step(client.step(challenge).token)
        said.append(str(refusal.value).replace(user, "somebody"))
    assert said[0] == said[1]


def test_nobody_is_judged_while_it_is_too_early() -> None:
    book = Book()
    server, client = acceptor(book), initiator()
    challenge = server.step(client.step(b"").token).token
    book.is_closed = True
    with pytest.raises(AuthenticationFailed, match="too early"):
        server.step(client.step(challenge).token)
    assert book.attempts == []


def test_the_challenge_says_who_we_are_and_what_time_it_is() -> None:
    server = acceptor()
    challenge = decode_challenge(server.step(initiator().step(b"").token).token)
    told = decode_pairs(challenge.target_info)
    assert challenge.server_challenge == SERVER_CHALLENGE
    assert challenge.target == "ALPHA"
    assert told[AvId.COMPUTER].decode("utf-16-le") == "ALPHA"
    assert told[AvId.DNS_COMPUTER].decode("utf-16-le") == "alpha.example"
    assert int.from_bytes(told[AvId.TIMESTAMP], "little") == TIME


@pytest.mark.parametrize("missing", list(REQUIRED))
def test_a_client_that_wants_less_is_refused(missing: Flag) -> None:
    wanted = (REQUIRED | Flag.SIGN | Flag.SEAL) & ~missing
    with pytest.raises(AuthenticationFailed, match="does not offer"):
        acceptor().step(Negotiate(wanted).encode())


@pytest.mark.parametrize("missing", list(REQUIRED))
def test_less_in_the_end_than_in_the_beginning_is_refused(missing: Flag) -> None:
    _, server, token = third_message()
    message = decode_authenticate(token)
    changed = msgspec.structs.replace(message, flags=message.flags & ~missing)
    with pytest.raises(AuthenticationFailed, match="does not offer"):
        server.step(changed.encode())


def talk(change: Callable[[int, bytes], bytes]) -> None:
    """Let both sides talk while somebody between them changes each message."""
    server, client = acceptor(), initiator()
    challenge = server.step(change(0, client.step(b"").token)).token
    server.step(change(2, client.step(change(1, challenge)).token))


def test_no_bit_of_any_message_can_be_changed() -> None:
    sizes: list[int] = []

    def measure(_: int, token: bytes) -> bytes:
        sizes.append(len(token))
        return token

    talk(measure)
    for number, size in enumerate(sizes):
        for place in range(size * 8):
            with pytest.raises(AuthenticationFailed):
                talk(functools.partial(flip_in, number, place))


def flip_in(number: int, place: int, current: int, token: bytes) -> bytes:
    if number != current:
        return token
    return (int.from_bytes(token, "little") ^ 1 << place).to_bytes(len(token), "little")


def test_the_mic_cannot_be_taken_out() -> None:
    _, server, token = third_message()
    bare = token[:MIC_OFFSET] + bytes(MIC_BYTES) + token[MIC_OFFSET + MIC_BYTES :]
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        server.step(bare)


def test_a_client_without_a_mic_is_accepted() -> None:
    """Those before Windows Vista have none; whether there is one is part of the proof."""
    _, server, token = third_message()
    message = decode_authenticate(token)
    blob = decode_client_proof(message.nt_response).blob
    said = {kind: value for kind, value in decode_pairs(blob[28:]).items() if kind != AvId.FLAGS}
    plain = blob[:28] + encode_pairs(said)
    key = response_key(nt_hash(PASSWORD), message.user, message.domain)
    response = proof(key, SERVER_CHALLENGE, plain) + plain
    changed = msgspec.structs.replace(message, nt_response=response, mic=b"")
    assert server.step(changed.encode()).is_complete
    assert not server.asks_for_mic


def test_what_stands_behind_the_pairs_is_part_of_the_proof_as_it_was_sent() -> None:
    _, server, token = third_message()
    message = decode_authenticate(token)
    blob = decode_client_proof(message.nt_response).blob
    said = {kind: value for kind, value in decode_pairs(blob[28:]).items() if kind != AvId.FLAGS}
    plain = blob[:28] + encode_pairs(said) + b"anything"
    key = response_key(nt_hash(PASSWORD), message.user, message.domain)
    response = proof(key, SERVER_CHALLENGE, plain) + plain
    changed = msgspec.structs.replace(message, nt_response=response, mic=b"")
    assert server.step(changed.encode()).is_complete


def refused(**changes: object) -> str:
    _, server, token = third_message()
    message = msgspec.structs.replace(decode_authenticate(token), **changes)
    with pytest.raises(AuthenticationFailed) as refusal:
        server.step(message.encode())
    return str(refusal.value)


def test_ntlm_version_1_is_refused_with_advice() -> None:
    assert "LmCompatibilityLevel" in refused(nt_response=bytes(24))


def test_lm_alone_is_refused() -> None:
    assert "LM alone" in refused(nt_response=b"")


def test_anonymous_callers_are_refused() -> None:
    assert "anonymous" in refused(user="", domain="", nt_response=b"", lm_response=b"\0")


def test_a_session_without_a_key_is_refused() -> None:
    assert "no key" in refused(encrypted_key=b"")


def test_a_proof_for_another_challenge_is_worth_nothing() -> None:
    """Somebody has overheard an authentication and sends it again."""
    _, _, overheard = third_message()
    other = NtlmAcceptor(Book(), Target("ALPHA", "alpha.example", b"another!", TIME))
    other.step(initiator().step(b"").token)
    with pytest.raises(AuthenticationFailed):
        other.step(overheard)


def test_an_authentication_has_one_end() -> None:
    server = acceptor()
    _, _, token = conversation(initiator(), server)
    with pytest.raises(AuthenticationFailed, match="over"):
        server.step(token)


def test_a_failed_authentication_cannot_be_tried_again() -> None:
    _, server, wrong = third_message("wrong horse")
    _, _, right = third_message()
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        server.step(wrong)
    with pytest.raises(AuthenticationFailed, match="is over"):
        server.step(right)


@given(st.binary(max_size=100))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        acceptor().step(data)
    _, server, token = third_message()
    with pytest.raises(AuthenticationFailed):
        server.step(token[:64] + data)


def test_a_challenge_has_eight_bytes() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        NtlmAcceptor(Book(), Target("ALPHA", "alpha.example", b"short", TIME))


def test_nothing_is_protected_before_anything_is_proved() -> None:
    for call in (
        lambda: acceptor().protect(Level.PRIVACY, FRAGMENT, signs_header=True),
        lambda: acceptor().unprotect(Level.CONNECT, FRAGMENT, b"", signs_header=True),
        lambda: acceptor().sign_list(b""),
    ):
        with pytest.raises(AuthenticationFailed, match="yet"):
            call()


def test_a_client_that_did_not_ask_for_sealing_cannot_have_privacy() -> None:
    server = acceptor()
    client = initiator()
    client.step(b"")
    wanted = REQUIRED | Flag.SIGN
    challenge = server.step(Negotiate(wanted).encode()).token
    assert not decode_challenge(challenge).flags & Flag.SEAL
    with pytest.raises(AuthenticationFailed, match="the server does not offer sealing"):
        client.step(challenge)


@pytest.mark.parametrize("level", list(Level))
def test_both_sides_protect_as_far_as_the_level_says(level: Level) -> None:
    server, client = acceptor(), initiator()
    conversation(client, server)
    for sender, receiver in ((client, server), (server, client), (client, server)):
        stub, signature = sender.protect(level, FRAGMENT, signs_header=False)
        assert len(signature) == sender.signature_size(level)
        assert (stub != FRAGMENT.stub) == (level is Level.PRIVACY)
        sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
        assert receiver.unprotect(level, sent, signature, signs_header=False) == FRAGMENT.stub


@pytest.mark.parametrize("level", [Level.CALL, Level.PACKET, Level.INTEGRITY, Level.PRIVACY])
def test_the_header_is_covered_whether_or_not_that_was_agreed(level: Level) -> None:
    server, client = acceptor(), initiator()
    conversation(client, server)
    stub, signature = client.protect(level, FRAGMENT, signs_header=False)
    sent = Fragment(b"T" + FRAGMENT.header[1:], stub, FRAGMENT.trailer)
    with pytest.raises(AuthenticationFailed):
        server.unprotect(level, sent, signature, signs_header=False)

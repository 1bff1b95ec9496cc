"""Who may use a queue, and what protects a message on its way. [MQOD 2.9.3, 2.9.4]"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import openmsmq as mq
from openmsmq.model.errors import AccessDenied
from openmsmq.model.message import (
    AuthenticationLevel,
    AuthenticationRequest,
    MessageClass,
    PrivacyLevel,
)
from openmsmq.model.queue import QueuePrivacy
from openmsmq.runtime.api.tokens import create_token
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS, Sid
from openmsmq.security.signatures.signatures import sign
from openmsmq.storage.memory import MemoryStore
from openmsmq.wire.packets import UserMessage, decode
from tests.server_thread import start_server
from tests.strategies.keys import ANYTHING_GOES, certificate
from tests.transfer.network import Network
from tests.transfer.test_protected_messages import (
    ANSWERS,
    ORDERS,
    SECRET,
    USER,
    Pair,
    allow_only,
    level_of,
    own_key,
    signer,
    spoiled,
)

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
DOES: dict[str, Callable[[mq.QueueManager], object]] = {
    "send": lambda manager: manager.queue(ORDERS).send("by alice"),
    "receive": lambda manager: manager.queue(ORDERS).receive(0),
    "peek": lambda manager: manager.queue(ORDERS).peek(0),
    "administer": lambda manager: manager.queue(ORDERS).change(label="by alice"),
}
RIGHTS = {
    "send": {"send"},
    "receive": {"receive", "peek"},
    "peek": {"peek"},
    "set-properties": {"administer"},
}


@pytest.mark.spec("MQOD-2.9.3-01")
def test_the_access_list_of_a_queue_decides_who_may_do_what(tmp_path: Path) -> None:
    everything = create_token(
        tmp_path / "tokens.json", "root", (Scope.ADMIN,), now_s=0, user=ADMINISTRATORS
    )[0]
    hers = create_token(tmp_path / "tokens.json", "alice", (Scope.ADMIN,), now_s=0, user=ALICE)[0]
    with start_server(str(tmp_path), store=MemoryStore(), api_socket="none") as server:
        where = f"{server.host}:{server.port}"
        with mq.connect(where, token=everything) as root, mq.connect(where, token=hers) as alice:
            orders = root.create_queue(ORDERS)
            orders.send_many(["one", "two", "three"])
            for everybody in ("everyone", "anonymous"):
                orders.revoke(everybody)

            def allowed() -> set[str]:
                found = set()
                for action, do in DOES.items():
                    with contextlib.suppress(AccessDenied):
                        do(alice)
                        found.add(action)
                return found

            assert allowed() == set()
            for right, may in RIGHTS.items():
                orders.grant(ALICE, right)
                assert allowed() == may
                orders.deny(ALICE, right)
                assert allowed() == set()
                orders.revoke(ALICE)
            # What was refused has changed nothing, and what was allowed has.
            assert orders.properties().label == "by alice"
            assert [message.body for message in orders.browse()] == ["two", "three", "by alice"]


@pytest.fixture
def pair() -> Pair:
    """A sender with the directory, and a destination with keys and queues."""
    return Pair(Network())


def signed(pair: Pair, packet: bytes) -> bytes:
    return sign(packet, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier)


@pytest.mark.spec("MQOD-2.9.4-01")
def test_a_signed_message_that_was_altered_is_rejected_at_its_destination(pair: Pair) -> None:
    # Any queue looks at a signature that is there, not only one that demands it.
    for number, demands in enumerate((False, True)):
        queue = rf"private$\signed{number}"
        opened = pair.opened(pair.target(queue, authentication_required=demands))
        if not number:
            pair.register(certificate())
        genuine = signed(pair, pair.packet(opened))
        pair.send(opened, genuine)
        assert pair.beta.bodies(queue) == [SECRET]
        pair.send(opened, spoiled(genuine))
        assert pair.beta.bodies(queue) == [SECRET]
        assert pair.alpha.classes(ANSWERS)[-1] == MessageClass.NACK_BAD_SIGNATURE


@pytest.mark.spec("MQOD-2.9.4-02")
def test_a_sender_is_who_the_directory_says_the_certificate_belongs_to(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    allow_only(pair, USER)
    # Nobody has registered the certificate: the signature alone proves nobody.
    pair.send(opened, signed(pair, pair.packet(opened)))
    assert pair.beta.bodies(ORDERS) == []
    pair.register(certificate())
    pair.send(opened, signed(pair, pair.packet(opened)))
    message = pair.came()
    assert message.security is not None
    assert message.security.sender_id == bytes(USER)
    assert level_of(message) is not AuthenticationLevel.NONE
    # Another's name beside the same certificate is refused.
    liar = msgspec.structs.replace(signer(), sender_id=bytes(ALICE))
    pair.send(
        opened,
        sign(pair.packet(opened), liar, AuthenticationRequest.ALWAYS, pair.alpha.identifier),
    )
    assert len(pair.beta.bodies(ORDERS)) == 1
    assert pair.alpha.classes(ANSWERS)[-1] == MessageClass.NACK_BAD_SIGNATURE


@pytest.mark.spec("MQOD-2.9.4-03")
def test_a_body_is_encrypted_between_the_queue_managers_and_nowhere_else(pair: Pair) -> None:
    opened = pair.opened(pair.target(privacy=QueuePrivacy.BODY))
    keys = pair.published()
    plain = pair.packet(opened)
    encrypted = pair.encrypt(plain, ANYTHING_GOES, PrivacyLevel.ADVANCED, keys)
    sent = decode(encrypted)
    assert isinstance(sent, UserMessage)
    assert SECRET[:13] not in sent.properties.body
    pair.send(opened, encrypted)
    assert not any(SECRET[:13] in data for data in pair.alpha.sent)
    message = pair.came()
    assert message.properties.body == SECRET
    assert message.properties.privacy_level == PrivacyLevel.ADVANCED
    # With the key of another queue manager nobody reads it there, and it is refused.
    other = own_key(seed=5).published()
    pair.send(opened, pair.encrypt(plain, ANYTHING_GOES, PrivacyLevel.ADVANCED, (other,)))
    assert pair.beta.bodies(ORDERS) == [SECRET]
    assert pair.alpha.classes(ANSWERS)[-1] == MessageClass.NACK_BAD_ENCRYPTION

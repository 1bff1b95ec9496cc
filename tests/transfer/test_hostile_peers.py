"""Peers that break the rules lose their own session; an honest one notices nothing."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import msgspec
import pytest

from openmsmq.model.queue import ConnectionStatus
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    encode,
)
from tests.transfer.letters import direct, letter
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, numbered, to_orders
from tests.transfer.network import (
    ALPHA,
    BETA,
    GAMMA,
    KNOWN_PEER,
    PEER,
    PEER_IDENTIFIER,
    Network,
    Peer,
)

TO_BETA = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"


class Scene:
    """A queue manager, an honest neighbour that keeps talking to it, and a place for another."""

    def __init__(self) -> None:
        self.network = Network()
        self.beta = self.network.manager("BETA", BETA, peers=KNOWN_PEER)
        self.beta.create(ORDERS)
        self.beta.create(LEDGER, transactional=True)
        self.alpha = self.network.manager("ALPHA", ALPHA)
        self.rogue: Peer = self.network.peer()
        self._said = 0
        self.talk()
        self._opened = self._open_sessions()

    def _open_sessions(self) -> int:
        (queue,) = self.alpha.outgoing()
        return sum(attempt.status == ConnectionStatus.ESTABLISHED for attempt in queue.history)

    def talk(self) -> None:
        """Let the honest neighbour say something."""
        for recoverable in (False, True):
            self.alpha.send(TO_BETA, b"honest %d" % self._said, recoverable=recoverable)
            self._said += 1
            self.network.run()

    def check(self) -> None:
        """The honest session went on: everything arrived, once, in order, without a new one."""
        self.talk()
        honest = [body for body in self.beta.bodies(ORDERS) if body.startswith(b"honest")]
        assert honest == [b"honest %d" % number for number in range(self._said)]
        self.network.run(15_000)
        assert self._open_sessions() == self._opened
        (queue,) = self.alpha.outgoing()
        assert (queue.message_count, queue.state) == (0, "CONNECTED")


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.check()


def garbage(seed: int) -> bytes:
    return random.Random(seed).randbytes(2_000)


def head(size: int, *, version: int = 0x10, flags: int = 3, signature: bytes = b"LIOR") -> bytes:
    return struct.pack("<BBH4sII", version, 0, flags, signature, size, 0xFFFFFFFF)


def letter_with(form: int, *, shift: int) -> bytes:
    """A good message, but for the form of a queue's name: three bits of its flags."""
    good = encode(
        letter(PEER_IDENTIFIER, 1, direct(BETA, ORDERS), admin_queue=direct(PEER, ORDERS))
    )
    flags = int.from_bytes(good[60:64], "little") & ~(7 << shift) | form << shift
    return good[:60] + flags.to_bytes(4, "little") + good[64:]


BAD_BYTES = {
    "noise": garbage(1),
    "text": b"GET / HTTP/1.1\r\nHost: beta\r\n\r\n" * 10,
    "zeros": bytes(600),
    "other version": head(600, version=0x11) + bytes(584),
    "other signature": head(600, signature=b"LIAR") + bytes(584),
    "size of nothing": head(0) + bytes(600),
    "size of a header": head(16) + bytes(600),
    "size beyond all": head(0xFFFFFFFF) + bytes(600),
    "size just beyond": head(4_194_305) + bytes(600),
    "no form of a destination": letter_with(1, shift=10),
    "no form of an administration queue": letter_with(1, shift=13),
    "unknown internal type": encode(SessionAck(SessionHeader()))[:18] + b"\x0f\0" + bytes(16),
}


@pytest.mark.spec("MQQB-3.1.5.1-02", "MQQB-2.2.1-03", "MQMQ-2.2.19.2-30", "MQMQ-2.2.19.2-34")
@pytest.mark.parametrize("when", ["at once", "after the greeting", "in the open session"])
@pytest.mark.parametrize("kind", BAD_BYTES)
def test_garbage_costs_only_the_session_that_sent_it(scene: Scene, kind: str, when: str) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    if when != "at once":
        rogue.write(EstablishConnection(EstablishHeader(rogue.identifier)))
    if when == "in the open session":
        rogue.write(ConnectionParameters(ParametersHeader(500, 20_000, 64)))
    assert rogue.is_open
    rogue.write(BAD_BYTES[kind])
    assert not rogue.is_open


@pytest.mark.parametrize("announced", [2_000, 4_194_304])
def test_a_packet_that_never_ends_holds_up_nobody_else(scene: Scene, announced: int) -> None:
    rogue = scene.rogue
    rogue.open_session(BETA)
    rogue.write(head(announced) + bytes(1_000))
    scene.talk()
    scene.network.run(299_000)
    scene.talk()
    scene.network.run(1_000)
    assert not rogue.is_open


def test_a_caller_who_sends_a_byte_now_and_then_does_not_get_more_time(scene: Scene) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    request = encode(EstablishConnection(EstablishHeader(rogue.identifier)))
    for at in range(59):
        rogue.write(request[at : at + 1])
        scene.network.run(1_000)
    assert rogue.is_open
    scene.network.run(1_000)
    assert not rogue.is_open


def test_endless_greetings_are_not_kept_in_memory(scene: Scene) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    rogue.write(head(4_194_304) + bytes(3_000))
    assert rogue.is_open
    rogue.write(bytes(2_000))
    assert not rogue.is_open


def test_a_flood_beyond_the_window_is_taken_or_cut_but_never_in_the_way(scene: Scene) -> None:
    scene.rogue = rogue = Neighbour(scene.network, PEER, window=1)
    rogue.open(BETA)
    for _ in range(5):
        flood = [rogue.message(to_orders(BETA), b"flood", recoverable=False) for _ in range(500)]
        rogue.say(*flood)
        scene.talk()
    assert len([body for body in scene.beta.bodies(ORDERS) if body == b"flood"]) == 2_500
    assert rogue.headers[-1].received_count == 2_500


def test_a_flood_of_small_pieces_is_put_together(scene: Scene) -> None:
    scene.rogue = rogue = Neighbour(scene.network, PEER)
    rogue.open(BETA)
    rogue.say(*(rogue.message(to_orders(BETA), b"piece") for _ in range(20)), at_a_time=1)
    assert len([body for body in scene.beta.bodies(ORDERS) if body == b"piece"]) == 20


@pytest.mark.parametrize(
    "header",
    [
        SessionHeader(1),
        SessionHeader(0xFFFF),
        SessionHeader(0, 1, 1),
        SessionHeader(0, 0xFFFF, 0xFFFF_FFFF),
        SessionHeader(0, sent_count=1),
        SessionHeader(0, recoverable_sent_count=5),
    ],
    ids=str,
)
def test_acknowledgments_of_what_never_was_cost_the_session_and_delete_nothing(
    scene: Scene, header: SessionHeader
) -> None:
    rogue = scene.rogue
    rogue.open_session(BETA)
    rogue.write(SessionAck(header))
    assert not rogue.is_open


def test_an_acknowledgment_of_more_than_was_sent_deletes_nothing(scene: Scene) -> None:
    rogue = scene.rogue
    scene.beta.send(TO_PEER, *numbered(3))
    scene.network.run()
    rogue.accept_session()
    assert len(rogue.user_messages()) == 3
    rogue.write(SessionAck(SessionHeader(4, 1, 0b1111)))
    assert not rogue.is_open
    assert scene.beta.outgoing()[0].message_count == 3


@pytest.mark.parametrize("recoverable", [False, True])
def test_a_peer_that_never_acknowledges_is_given_up_and_its_messages_are_kept(
    scene: Scene, recoverable: bool
) -> None:
    rogue = scene.rogue
    scene.beta.send(TO_PEER, *numbered(100), recoverable=recoverable)
    scene.network.run()
    rogue.accept_session()
    assert len(rogue.user_messages()) == 64
    scene.network.run(79_999)
    assert rogue.is_open
    scene.talk()
    (queue,) = scene.beta.outgoing()
    assert "acknowledg" in queue.explanation
    scene.network.run(1)
    assert not rogue.is_open
    assert scene.beta.outgoing()[0].message_count == 100
    # Once it keeps the rules, it gets everything.
    honest = Neighbour(scene.network, PEER)
    scene.network.run(6_000)
    assert honest.bodies == numbered(100)


def test_a_peer_that_acknowledges_receipt_but_never_storage_is_given_up(scene: Scene) -> None:
    slow = Neighbour(scene.network, PEER)
    slow.acknowledges = False
    scene.beta.send(TO_PEER, *numbered(20_000))
    scene.network.run()
    while slow.is_open and len(slow.messages) < 20_000:
        before = len(slow.messages)
        slow.write(slow.ack(received=before & 0xFFFF))
        if len(slow.messages) == before:
            break
    assert not slow.is_open
    assert scene.beta.outgoing()[0].message_count == 20_000


@pytest.mark.parametrize(
    "packet",
    [
        EstablishConnection(EstablishHeader(Peer(Network(), PEER).identifier)),
        ConnectionParameters(ParametersHeader(500, 20_000, 64)),
    ],
    ids=["greeting", "parameters"],
)
def test_a_greeting_in_the_middle_of_a_session_ends_it(
    scene: Scene, packet: EstablishConnection | ConnectionParameters
) -> None:
    rogue = scene.rogue
    rogue.open_session(BETA)
    rogue.write(packet)
    assert not rogue.is_open


def test_extreme_parameters_are_brought_into_range(scene: Scene) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    rogue.write(EstablishConnection(EstablishHeader(rogue.identifier)))
    rogue.write(ConnectionParameters(ParametersHeader(0xFFFFFFFF, 0, 0)))
    assert rogue.is_open
    rogue.take()
    scene.beta.send(TO_PEER, *numbered(3), recoverable=False)
    scene.network.run()
    assert len(rogue.user_messages()) == 1


def test_many_callers_at_once_are_limited_and_the_sessions_that_are_there_go_on() -> None:
    network = Network()
    beta = network.manager("BETA", BETA, incoming_sessions_max=3)
    beta.create(ORDERS)
    callers = [Neighbour(network, f"127.0.1.{number}") for number in range(6)]
    for caller in callers:
        caller.open(BETA)
    assert [caller.is_open for caller in callers] == [True] * 3 + [False] * 3
    for caller in callers[:3]:
        caller.say(caller.message(to_orders(BETA)))
    assert len(beta.bodies(ORDERS)) == 3
    callers[0].close()
    callers[5].open(BETA)
    assert callers[5].is_open


@pytest.mark.spec("MQQB-2.2.1-06")
def test_one_caller_too_many_is_told_so_and_a_crowd_of_them_is_cut() -> None:
    network = Network()
    beta = network.manager("BETA", BETA, incoming_sessions_max=1)
    Neighbour(network, PEER).open(BETA)
    callers = [network.peer(f"127.0.1.{number}") for number in range(66)]
    for caller in callers:
        caller.connect(BETA)
    assert [caller.is_open for caller in callers] == [True] * 64 + [False] * 2
    for caller in callers[:64]:
        caller.write(EstablishConnection(EstablishHeader(caller.identifier, beta.identifier)))
        (answer,) = caller.take()
        assert isinstance(answer, EstablishConnection)
        assert answer.internal.refused
        assert not caller.is_open
    callers[65].connect(BETA)
    assert callers[65].is_open, "those who were told have made room"
    network.run(70_000)
    assert not callers[65].is_open, "nobody waits for ever to be turned away"


def test_a_request_for_somebody_else_is_refused_in_words(scene: Scene) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    rogue.write(EstablishConnection(EstablishHeader(rogue.identifier, rogue.identifier)))
    (answer,) = rogue.take()
    assert isinstance(answer, EstablishConnection)
    assert answer.internal.refused
    assert answer.establish.server == scene.beta.identifier
    assert not rogue.is_open


def test_a_refused_request_is_not_taken_for_one(scene: Scene) -> None:
    rogue = scene.rogue
    rogue.connect(BETA)
    request = EstablishConnection(EstablishHeader(rogue.identifier))
    rogue.write(msgspec.structs.replace(request, internal=InternalHeader(0x10)))
    assert not rogue.is_open


def test_two_neighbours_with_one_identity_do_not_lose_each_others_messages(scene: Scene) -> None:
    """As long as neither has a flow, and so nobody knows whose it is."""
    first, second = Neighbour(scene.network, "127.0.0.5"), Neighbour(scene.network, GAMMA)
    second.identifier = first.identifier
    # The same numbers do not make the messages of one look like those of the other.
    assert second.number == first.number
    scene.rogue = first
    for twin in (first, second):
        twin.open(BETA)
        twin.say(twin.message(to_orders(BETA), b"twin"))
    assert len([body for body in scene.beta.bodies(ORDERS) if body == b"twin"]) == 2
    first.close()
    second.say(second.message(to_orders(BETA), b"twin"))
    assert len([body for body in scene.beta.bodies(ORDERS) if body == b"twin"]) == 3


def test_a_full_store_costs_sessions_for_a_while_and_no_message(scene: Scene) -> None:
    scene.rogue = rogue = Neighbour(scene.network, PEER)
    rogue.open(BETA)
    scene.beta.fail_commits = 1
    message = rogue.message(to_orders(BETA), b"kept by its sender")
    rogue.say(message)
    assert not rogue.is_open
    assert rogue.headers == []
    rogue.open(BETA)
    assert not rogue.is_open
    scene.network.run(5_000)
    rogue.open(BETA)
    rogue.say(message)
    assert scene.beta.bodies(ORDERS).count(b"kept by its sender") == 1

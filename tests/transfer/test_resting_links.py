"""Links and sessions at rest: paused, offline; and packets that lack what they announce."""

from __future__ import annotations

import random

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.protocol.config import TransferConfig
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.packets import SessionAck, decode, encode
from tests.transfer.neighbour import ORDERS, Neighbour, asked_count, numbered, packets_in, to_orders
from tests.transfer.network import ALPHA, BETA, PEER, Computer, Network
from tests.transfer.test_hostile_peers import Scene

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"


@pytest.fixture
def alpha(network: Network) -> Computer:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ORDERS)
    return alpha


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def pause_with_something_owed(network: Network, alpha: Computer, peer: Neighbour) -> None:
    """Pause a queue while two messages that came over its session are not acknowledged."""
    alpha.send(TO_PEER, *numbered(3))
    alpha.send(TO_PEER, b"express", recoverable=False)
    network.run()
    peer.say(*(peer.message(to_orders(ALPHA), body) for body in numbered(2)))
    assert peer.headers == []
    alpha.ok(api.ControlOutgoing(TO_PEER, "pause"))
    network.run()


@pytest.mark.spec(
    "MQQB-3.1.7.13-01",
    "MQQB-3.1.7.13-02",
    "MQQB-3.1.7.13-09",
    "MQQB-3.1.7.13-10",
    "MQQB-3.1.7.13-11",
)
def test_pausing_acknowledges_what_came_once(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    pause_with_something_owed(network, alpha, peer)
    (header,) = peer.headers
    (packet,) = (p for p in packets_in(alpha.sent) if isinstance(p, SessionAck))
    assert packet.session == header
    # It is told once: the timer of the acknowledgment is stopped.
    network.run(20_000)
    assert len(peer.headers) == 1
    # The next message goes on where this one ended.
    peer.say(peer.message(to_orders(ALPHA)))
    network.run(10_000)
    assert (peer.headers[1].stored_base, peer.headers[1].stored_bits) == (3, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, id=field, marks=pytest.mark.spec(f"MQQB-3.1.7.13-{number:02}"))
        for number, field, value in (
            (3, "received_count", 2),
            (4, "stored_base", 1),
            (5, "sent_count", 4),
            (6, "recoverable_sent_count", 3),
            (7, "stored_bits", 0b11),
            (8, "window", 1),
        )
    ],
)
def test_pausing_says_what_came_and_asks_for_one_message_at_a_time(
    network: Network, alpha: Computer, peer: Neighbour, field: str, value: int
) -> None:
    pause_with_something_owed(network, alpha, peer)
    (header,) = peer.headers
    assert getattr(header, field) == value


def test_resuming_asks_for_the_full_window_again(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_PEER, b"before")
    network.run()
    alpha.ok(api.ControlOutgoing(TO_PEER, "pause"))
    alpha.ok(api.ControlOutgoing(TO_PEER, "resume"))
    network.run()
    assert [header.window for header in peer.headers] == [1, TransferConfig().window]


def test_an_offline_queue_manager_does_not_connect_for_what_waits(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, b"held")
    network.run(1_000)
    alpha.ok(api.SetOnline(False))
    network.down.clear()
    network.run(60_000)
    assert asked_count(alpha) == 0
    assert not peer.is_open


def test_an_offline_queue_manager_does_not_reconnect_for_what_was_in_flight(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    alpha.send(TO_PEER, b"in flight")
    network.run()
    alpha.ok(api.SetOnline(False))
    network.run(60_000)
    assert asked_count(alpha) == 1
    assert not peer.is_open


@pytest.mark.usefixtures("peer")
def test_nobody_connects_for_a_paused_queue(network: Network, alpha: Computer) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, b"held")
    network.run(1_000)
    alpha.ok(api.ControlOutgoing(TO_PEER, "pause"))
    network.down.clear()
    network.run(60_000)
    assert asked_count(alpha) == 0


# Packets whose first headers are good and whose other headers are not there.


def damaged(packet: bytes, offset: int, bits: int) -> bytes:
    changed = bytearray(packet)
    changed[offset] |= bits
    return bytes(changed)


@pytest.mark.parametrize(
    ("offset", "bits"),
    [(2, 0x20), (3, 0x01), (63, 0x10), (62, 0x80)],
    ids=["debug header", "debug header of a trace", "SOAP header", "multi-queue header"],
)
def test_a_message_that_lacks_a_header_it_announces_costs_its_session_and_is_not_stored(
    network: Network, alpha: Computer, peer: Neighbour, offset: int, bits: int
) -> None:
    packet = damaged(encode(peer.message(to_orders(ALPHA), b"damaged")), offset, bits)
    with pytest.raises(DecodeError):
        decode(packet)
    peer.open(ALPHA)
    peer.write(packet)
    network.run(1_000)
    assert not peer.is_open
    assert alpha.messages(ORDERS) == []


def test_a_good_message_does_not_vouch_for_the_headers_of_the_next(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    first, second = (
        msgspec.structs.replace(peer.message(to_orders(ALPHA)), debug=DebugHeader())
        for _ in range(2)
    )
    bad = bytearray(encode(second))
    bad[-4] |= 3
    with pytest.raises(DecodeError):
        decode(bytes(bad))
    peer.open(ALPHA)
    peer.write(first, bytes(bad))
    network.run(1_000)
    assert not peer.is_open
    assert len(alpha.messages(ORDERS)) == 1


@pytest.mark.parametrize("seed", range(8))
def test_damaged_messages_cost_at_most_the_session_that_sent_them(seed: int) -> None:
    scene = Scene()
    rogue = Neighbour(scene.network, PEER)
    rng = random.Random(seed)
    for _ in range(30):
        if not rogue.is_open:
            rogue.open(BETA)
        packet = bytearray(encode(rogue.message(to_orders(BETA), b"damaged")))
        for _ in range(rng.randrange(1, 6)):
            packet[rng.randrange(len(packet))] = rng.randrange(256)
        rogue.write(bytes(packet))
    scene.network.run(1_000)
    scene.check()

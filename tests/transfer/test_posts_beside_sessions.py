"""What comes over HTTP and what comes through sessions do not reach into each other's flows."""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.config import HttpConfig
from openmsmq.model.identity import MessageId, SequenceId
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.posts import ReceivedPost
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import Compound, write_compound
from openmsmq.wire.srmp.envelope import Envelope, Msmq, Services, Stream
from openmsmq.wire.srmp.writing import write_envelope
from tests.strategies.messages import Draft
from tests.transfer.letters import SEQUENCE, letter
from tests.transfer.network import BETA, PEER, ROUTING_PEER, START_S, Computer, Network, Peer

LEDGER = r"private$\ledger"
URL = f"http://{BETA}/msmq/private$/ledger"
ELSEWHERE = f"DIRECT=HTTP://{PEER}/msmq/private$/ledger"


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA, peers=ROUTING_PEER)
    beta.config = structs.replace(beta.config, http=HttpConfig(enabled=True))
    beta.start()
    beta.create(LEDGER, transactional=True)
    return beta


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    peer = network.peer()
    peer.open_session(BETA)
    return peer


def post(beta: Computer, peer: Peer, number: int, body: bytes) -> None:
    """Bring a message of a stream of the peer over HTTP."""
    receipts_to = "http://peer/msmq/private$/order_queue$" if number == 1 else ""
    envelope = Envelope(
        to=URL,
        sent_s=START_S,
        id=MessageId(peer.identifier, number),
        services=Services(durable=True),
        stream=Stream(peer.identifier, int(SEQUENCE), number, receipts_to=receipts_to),
        msmq=Msmq(0, 0, 0, peer.identifier, START_S + 3600),
    )
    kind, content = write_compound(
        Compound(write_envelope(envelope), body), peer.identifier, number
    )
    target, headers = "/msmq/private$/ledger", {"content-type": kind}
    received = ReceivedPost(number, LEDGER, target, BETA, headers, content, PEER)
    beta.manager.posts_received([received], beta.network.now)
    beta.pump()


def in_session(peer: Peer, number: int, body: bytes, *, flags: int = 0) -> UserMessage:
    """The message of that stream as packets of a session would bring it."""
    made = letter(
        peer.identifier, number, DirectName(URL), body, place=(SEQUENCE, number, number - 1)
    )
    return structs.replace(made, user=structs.replace(made.user, flags=made.user.flags | flags))


def test_a_session_does_not_go_on_with_a_stream(beta: Computer, peer: Peer) -> None:
    post(beta, peer, 1, b"1")
    peer.write(in_session(peer, 2, b"forged", flags=user.OVER_HTTP))
    assert beta.bodies(LEDGER) == [b"1"]
    post(beta, peer, 2, b"2")
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_a_stream_does_not_go_on_with_a_sequence(beta: Computer, peer: Peer) -> None:
    peer.write(in_session(peer, 1, b"1"))
    post(beta, peer, 2, b"forged")
    assert beta.bodies(LEDGER) == [b"1"]


def test_a_session_acknowledges_nothing_that_leaves_over_http(
    network: Network, beta: Computer
) -> None:
    peer = network.peer()
    # We have called there ourselves, so it is the listener of that address.
    beta.send(f"DIRECT=TCP:{PEER}\\private$\\other", b"anything")
    network.run()
    peer.accept_session()
    opened = beta.ok(api.OpenQueue(ELSEWHERE, AccessMode.SEND))
    packet = Draft(transactional=True).packet(ELSEWHERE.removeprefix("DIRECT="))
    beta.ok(api.Send(opened.handle, [packet], api.OWN_TRANSACTION))
    (shown,) = beta.outgoing(ELSEWHERE)
    sequence = SequenceId.from_int(shown.sequence)
    peer.write(
        order_packet(OrderAck.up_to(sequence, 1), source=peer.identifier, to=beta.identifier)
    )
    (after,) = beta.outgoing(ELSEWHERE)
    assert (after.message_count, after.last_acknowledged_number) == (1, 0)

"""Pings between queue managers: asked only when wanted, answered unless forbidden."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import SendDatagram
from openmsmq.model.identity import Guid
from openmsmq.model.queue import ConnectionStatus
from openmsmq.wire.datagrams import NOT_SERVER_CLASS, PingPacket
from openmsmq.wire.headers.establish import NO_PING
from tests.transfer.neighbour import ORDERS, Neighbour, asked_count
from tests.transfer.network import ALPHA, BETA, PEER, Computer, Network

TO_BETA = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
STRANGER = Guid(b"somebody asking!")


def pair(network: Network, **beta_options: object) -> tuple[Computer, Computer]:
    alpha = network.manager("ALPHA", ALPHA, ask_ping=True)
    beta = network.manager("BETA", BETA, **beta_options)
    beta.create(ORDERS)
    return alpha, beta


def ask(network: Network, computer: Computer, data: bytes, *, port: int = 45_678) -> list[bytes]:
    """Send a question from outside; gives the answers, which must go where it came from."""
    computer.manager.datagram_received(PEER, port, data, network.now, is_answer=False)
    outputs = computer.manager.take_outputs()
    answers = [output for output in outputs if isinstance(output, SendDatagram)]
    assert len(answers) == len(outputs)
    assert all((answer.address, answer.port) == (PEER, port) for answer in answers)
    return [answer.data for answer in answers]


@pytest.mark.spec(
    "MQQB-3.1.7.6-01",
    "MQQB-3.1.7.6-02",
    "MQQB-3.1.7.6-07",
    "MQQB-3.1.7.8-01",
    "MQQB-3.1.7.9-01",
    "MQQB-2.2.7-02",
)
def test_a_good_answer_leads_to_a_session_that_says_a_ping_was_sent(network: Network) -> None:
    alpha, beta = pair(network)
    alpha.send(TO_BETA, b"after the ping")
    assert asked_count(alpha) == 0
    network.run()
    asked, answered = network.datagrams
    assert asked[:2] == (ALPHA, BETA)
    assert answered[:2] == (BETA, ALPHA)
    assert PingPacket.decode(asked[2]).source == alpha.identifier
    assert PingPacket.decode(answered[2]).source == beta.identifier
    # Queue managers of ours are of the class of servers. [MQQB 2.2.7]
    assert not PingPacket.decode(asked[2]).flags & 1
    assert beta.bodies(ORDERS) == [b"after the ping"]
    request = alpha.sent[0]
    assert int.from_bytes(request[56:58], "little") & NO_PING == 0


@pytest.mark.spec("MQQB-3.1.7.6-03", "MQQB-3.1.3.2-35")
def test_cookies_count_from_one_over_all_neighbours(network: Network) -> None:
    alpha, _ = pair(network)
    for name in (TO_BETA, TO_PEER, r"DIRECT=TCP:127.0.0.77\private$\x"):
        alpha.send(name, b"hello")
    cookies = [PingPacket.decode(data).cookie for source, _, data in network.datagrams]
    assert cookies == [1, 2, 3]


def test_without_an_answer_the_attempt_fails_after_a_second_and_the_next_does_without_ping(
    network: Network,
) -> None:
    peer = Neighbour(network, PEER)
    alpha, _ = pair(network)
    alpha.send(TO_PEER, b"late")
    network.run(999)
    assert alpha.outgoing()[0].history == []
    network.run(1)
    (attempt,) = alpha.outgoing()[0].history
    assert attempt.status == ConnectionStatus.PING_FAILURE
    assert peer.requests == []
    network.run(5_000)
    assert len(network.datagrams) == 1
    assert peer.bodies == [b"late"]
    assert peer.requests[0].establish.system & NO_PING


@pytest.mark.spec("MQQB-3.1.7.7-03", "MQQB-2.2.7-04")
def test_an_answer_says_whether_a_session_would_be_accepted(network: Network) -> None:
    alpha, _ = pair(network, incoming_sessions_max=0)
    alpha.send(TO_BETA, b"kept")
    network.run()
    assert [PingPacket.decode(data).refused for _, _, data in network.datagrams] == [False, True]
    (attempt,) = alpha.outgoing()[0].history
    assert attempt.status == ConnectionStatus.PING_FAILURE
    assert asked_count(alpha) == 0
    free = network.manager("FREE", "127.0.0.5")
    (answer,) = ask(network, free, PingPacket(STRANGER, 9).encode())
    assert not PingPacket.decode(answer).refused


@pytest.mark.spec("MQQB-2.1.2-02", "MQQB-3.1.7.7-01", "MQQB-3.1.7.7-08")
@pytest.mark.parametrize("flags", [0, NOT_SERVER_CLASS])
def test_an_answer_goes_to_the_port_of_the_question(network: Network, flags: int) -> None:
    _, beta = pair(network)
    (answer,) = ask(network, beta, PingPacket(STRANGER, 77, flags).encode(), port=1_234)
    assert PingPacket.decode(answer) == PingPacket(beta.identifier, 77, flags)


@pytest.mark.spec("MQQB-2.2.7-21")
@pytest.mark.parametrize("data", [b"", b"x" * 24, b"\0\0\x48\x55" + b"\0" * 19, b"\xff" * 1400])
def test_what_is_no_ping_is_not_answered(network: Network, data: bytes) -> None:
    _, beta = pair(network)
    assert ask(network, beta, data) == []


@pytest.mark.parametrize("options", [{"answer_ping": False}, {"hardened": True}])
def test_nobody_answers_who_is_told_not_to(network: Network, options: dict[str, bool]) -> None:
    _, beta = pair(network, **options)
    assert ask(network, beta, PingPacket(STRANGER, 1).encode()) == []


def test_an_offline_queue_manager_does_not_answer(network: Network) -> None:
    _, beta = pair(network)
    beta.ok(api.SetOnline(False))
    assert ask(network, beta, PingPacket(STRANGER, 1).encode()) == []
    beta.ok(api.SetOnline(True))
    assert len(ask(network, beta, PingPacket(STRANGER, 1).encode())) == 1


def test_nobody_asks_who_is_not_told_to(network: Network) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    alpha = network.manager("ALPHA", ALPHA)
    alpha.send(TO_BETA, b"no ping")
    network.run()
    assert network.datagrams == []
    assert beta.bodies(ORDERS) == [b"no ping"]
    assert int.from_bytes(alpha.sent[0][56:58], "little") & NO_PING


@pytest.mark.spec("MQQB-2.2.7-23")
def test_forged_answers_do_not_open_or_refuse_anything(network: Network) -> None:
    alpha, _ = pair(network)
    network.down.add(BETA)
    alpha.send(TO_BETA, b"hello")
    cookie = PingPacket.decode(network.datagrams[0][2]).cookie
    for forged in (PingPacket(STRANGER, cookie + 1).encode(), b"junk", b"\0" * 24):
        alpha.manager.datagram_received(PEER, 3527, forged, network.now, is_answer=True)
        alpha.pump()
    assert asked_count(alpha) == 0
    assert alpha.outgoing()[0].history == []

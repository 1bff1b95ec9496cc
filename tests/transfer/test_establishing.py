"""From a format name to an open session: names, hosts, attempts and what is told about them."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.message import MessageClass
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.queue import AccessMode, ConnectionStatus
from openmsmq.wire.headers.message_properties import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, asked_count, numbered, to_ledger
from tests.transfer.network import ALPHA, BETA, GAMMA, KNOWN_PEER, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
BY_NAME = rf"DIRECT=OS:elsewhere\{ORDERS}"
SIX = "2001:db8::9"
GOOD = [
    ConnectionStatus.IN_PROCESS,
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
    ConnectionStatus.ESTABLISHED,
]


def statuses(queue: api.OutgoingStatus) -> list[int]:
    return [attempt.status for attempt in queue.history]


# Names and addresses.


@pytest.mark.spec(
    "MQQB-3.1.5.2.1-01",
    "MQQB-3.1.5.2.1-02",
    "MQQB-3.1.5.2.1-03",
    "MQQB-3.1.5.2.1-04",
    "MQQB-3.1.5.2.1-05",
    "MQQB-3.1.5.2.1-06",
    "MQQB-3.1.5.2.3-02",
    "MQQB-3.1.7.12-02",
)
def test_the_first_message_to_a_name_leads_to_a_session_with_its_host(
    network: Network, alpha: Computer
) -> None:
    network.hosts["elsewhere"] = (PEER,)
    peer = Neighbour(network, PEER)
    network.run(123_456)
    alpha.ok(api.OpenQueue(BY_NAME, AccessMode.SEND))
    network.run(1_000)
    assert peer.requests == []
    alpha.send(BY_NAME, b"hello")
    network.run()
    (request,) = peer.requests
    assert request.establish.client == alpha.identifier
    assert request.establish.server == NIL_GUID
    (queue,) = alpha.outgoing()
    assert queue.format_name.lower() == BY_NAME.lower()
    assert (queue.state, queue.address, queue.next_hops) == ("CONNECTED", PEER, [f"IP={PEER}"])
    assert statuses(queue) == GOOD
    assert peer.bodies == [b"hello"]


@pytest.mark.spec("MQQB-3.1.5.2.3-10")
def test_a_session_begins_with_the_time_of_the_clock_that_never_goes_back(
    network: Network, alpha: Computer
) -> None:
    peer = Neighbour(network, PEER)
    network.run(123_456)
    alpha.send(TO_PEER, b"hello")
    network.run()
    (request,) = peer.requests
    assert request.establish.ticks_ms == network.now.ticks_ms == 123_456


def test_a_host_that_is_not_found_is_looked_up_again_after_a_pause(
    network: Network, alpha: Computer
) -> None:
    peer = Neighbour(network, PEER)
    alpha.send(BY_NAME, b"hello")
    network.run()
    (queue,) = alpha.outgoing()
    assert queue.state == "NEED VALIDATION"
    assert statuses(queue) == [ConnectionStatus.DNS_FAILURE]
    network.hosts["elsewhere"] = (PEER,)
    network.run(4_999)
    assert peer.requests == []
    network.run(1)
    assert peer.bodies == [b"hello"]


@pytest.mark.spec("MQQB-3.1.5.2.1-08", "MQQB-3.1.5.2.1-09")
def test_a_queue_manager_that_is_not_named_by_address_is_reached_by_its_next_hops(
    network: Network,
) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    name = gamma.ok(api.GetNames(ORDERS)).private_name
    peer = Neighbour(network, PEER)
    alpha = network.manager("ALPHA", ALPHA, next_hops={str(gamma.identifier): ("127.0.0.77", PEER)})
    alpha.send(name, b"by way of the peer")
    network.run()
    (message,) = peer.messages
    assert message.user.destination_manager == gamma.identifier
    assert isinstance(message.user.destination, PrivateOnDestination)
    (queue,) = alpha.outgoing()
    assert queue.address == PEER
    assert statuses(queue) == [ConnectionStatus.SOCKET_CONNECT_FAILURE, *GOOD]


def test_without_a_route_messages_wait_and_the_history_says_why(
    network: Network, alpha: Computer
) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    alpha.send(gamma.ok(api.GetNames(ORDERS)).private_name, b"nowhere")
    network.run(11_000)
    (queue,) = alpha.outgoing()
    assert queue.state == "NEED VALIDATION"
    assert set(statuses(queue)) == {ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE}
    assert len(queue.history) == 3
    assert queue.message_count == 1


@pytest.mark.spec("MQQB-3.1.5.2.1-07")
def test_a_computer_that_nobody_can_tell_the_way_to_is_tried_again_and_again(
    network: Network, alpha: Computer
) -> None:
    name = str(PrivateFormatName(Guid(b"somewhere else!!"), 17))
    alpha.send(name, b"to pass on")
    (queue,) = alpha.outgoing()
    assert (queue.state, queue.message_count) == ("NEED VALIDATION", 1)
    for count in (1, 2, 3):
        assert len(alpha.outgoing()[0].history) == count
        network.run(5_000)


def test_what_only_passes_through_and_has_no_way_is_refused(
    network: Network, alpha: Computer
) -> None:
    peer = Neighbour(network, PEER)
    peer.open(ALPHA)
    public = PublicName(Guid(b"a public queue!!"))
    peer.say(peer.message(public, b"to pass on", manager=Guid(b"somewhere else!!")))
    assert alpha.outgoing() == []
    assert peer.is_open


def test_hosts_of_the_configuration_need_nobody_to_look_them_up(network: Network) -> None:
    peer = Neighbour(network, PEER)
    alpha = network.manager("ALPHA", ALPHA, hosts={"Elsewhere": ("127.0.0.77", PEER)})
    network.hosts["elsewhere"] = (GAMMA,)
    alpha.send(BY_NAME.upper().replace("PRIVATE$", "private$"), b"hello")
    network.run()
    assert peer.bodies == [b"hello"]


@pytest.mark.spec("MQQB-3.1.1.3.1-11", "MQQB-3.1.1.3.1.3-01")
@pytest.mark.parametrize(
    ("address", "hop"), [(PEER, f"IP={PEER}"), (SIX, f"IPv6={SIX}")], ids=["IPv4", "IPv6"]
)
def test_addresses_of_both_kinds_are_used_and_shown_as_text(
    network: Network, alpha: Computer, address: str, hop: str
) -> None:
    network.hosts["elsewhere"] = (address,)
    peer = Neighbour(network, address)
    alpha.send(BY_NAME, b"by name")
    network.run()
    (queue,) = alpha.outgoing()
    assert (queue.address, queue.next_hops) == (address, [hop])
    assert {tuple(attempt.addresses) for attempt in queue.history} == {(address,)}
    assert peer.bodies == [b"by name"]


def test_an_ipv6_address_in_a_direct_name_shares_the_session_however_it_is_written(
    network: Network,
) -> None:
    beta = network.manager("BETA", SIX)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    alpha = network.manager("ALPHA", "2001:db8::2")
    alpha.send(rf"DIRECT=TCP:{SIX}\{ORDERS}", b"short")
    network.run()
    alpha.send(rf"DIRECT=TCP:2001:0DB8:0:0::9\{LEDGER}", b"long", transactional=True)
    network.run(1_000)
    assert (beta.bodies(ORDERS), beta.bodies(LEDGER)) == ([b"short"], [b"long"])
    assert [queue.message_count for queue in alpha.outgoing()] == [0, 0]
    assert asked_count(alpha) == 1


def test_all_addresses_of_a_host_are_tried_before_there_is_a_pause(
    network: Network, alpha: Computer
) -> None:
    network.hosts["elsewhere"] = ("127.0.0.71", "127.0.0.72", PEER)
    peer = Neighbour(network, PEER)
    alpha.send(BY_NAME, b"third time lucky")
    network.run()
    assert peer.bodies == [b"third time lucky"]
    assert statuses(alpha.outgoing()[0]) == [ConnectionStatus.SOCKET_CONNECT_FAILURE] * 2 + GOOD


# Direct names, from the request to the acknowledgments.


@pytest.mark.spec("MQQB-3.1.3.2-29", "MQQB-3.1.6.9-01")
def test_order_acknowledgments_go_back_by_address_exactly_to_those_who_sent_by_address(
    network: Network,
) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(LEDGER, transactional=True)
    number = int(beta.ok(api.GetNames(LEDGER)).private_name.rpartition("\\")[2], 16)
    peer = Neighbour(network, PEER)
    peer.open(BETA)
    first, second = SequenceId(1, 1), SequenceId(2, 1)
    private = PrivateOnDestination(number)
    peer.say(peer.message(private, b"1", manager=beta.identifier, place=(first, 1, 0)))
    network.run(499)
    assert peer.messages == []
    network.run(1)
    (ack,) = peer.messages
    assert ack.user.destination_manager == peer.identifier
    assert ack.user.destination == PrivateOnDestination(4)
    peer.say(peer.message(to_ledger(BETA), b"2", place=(second, 1, 0)))
    network.run(500)
    ack = peer.messages[-1]
    assert ack.user.destination_manager == NIL_GUID
    assert ack.user.destination == DirectName(rf"TCP:{PEER}\PRIVATE$\order_queue$")
    assert ack.properties.message_class == MessageClass.ORDER_ACK
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_a_direct_name_is_checked_at_its_computer_and_both_kinds_of_reports_come_back(
    network: Network, alpha: Computer
) -> None:
    beta = network.manager("BETA", BETA, permit_insecure_nacks=True)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    alpha.create(r"private$\admin")
    wishes: dict[str, Any] = {
        "acknowledge": POSITIVE_ARRIVAL | NEGATIVE_ARRIVAL,
        "admin_queue": rf"TCP:{ALPHA}\private$\admin",
    }
    for queue in (ORDERS, LEDGER, r"private$\none"):
        alpha.send(rf"DIRECT=TCP:{BETA}\{queue}", b"asks", **wishes)
    alpha.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", b"entry", transactional=True)
    network.run(2_000)
    assert sorted(alpha.classes(r"private$\admin")) == [
        MessageClass.ACK_REACH_QUEUE,
        MessageClass.NACK_BAD_DESTINATION_QUEUE,
        MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE,
    ]
    assert beta.bodies(ORDERS) == [b"asks"]
    assert beta.bodies(LEDGER) == [b"entry"]
    assert {queue.message_count for queue in alpha.outgoing()} == {0}
    # One session carries all of it; reports go to the listener that their queue names.
    assert (asked_count(alpha), asked_count(beta)) == (1, 1)


# Attempts and their ends.


@pytest.mark.spec("MQQB-3.1.5.2.3-01", "MQQB-3.1.6.6-01", "MQQB-3.1.2-01")
def test_every_attempt_has_its_full_time_to_open(network: Network, alpha: Computer) -> None:
    peer = network.peer()
    alpha.send(TO_PEER, b"patient")
    network.run(59_999)
    assert peer.is_open
    network.run(1)
    assert not peer.is_open
    assert statuses(alpha.outgoing()[0])[-1] == ConnectionStatus.CONNECTION_NOT_READY
    network.run(5_000)
    assert peer.is_open
    network.run(59_999)
    assert peer.is_open
    network.run(1)
    assert not peer.is_open


@pytest.mark.spec("MQQB-3.1.5.10-03", "MQQB-3.1.6.6-01")
@pytest.mark.usefixtures("alpha")
def test_a_caller_who_does_not_open_a_session_is_cut_even_while_others_call(
    network: Network,
) -> None:
    silent, honest = network.peer(), Neighbour(network, GAMMA)
    silent.connect(ALPHA)
    network.run(40_000)
    honest.open(ALPHA)
    network.run(19_999)
    assert silent.is_open
    network.run(1)
    assert not silent.is_open
    assert honest.is_open


@pytest.mark.spec("MQQB-3.1.3.2-22")
def test_what_one_session_did_not_deliver_is_sent_again_in_the_next_from_the_start(
    network: Network, alpha: Computer
) -> None:
    peer = Neighbour(network, PEER)
    peer.acknowledges = False
    alpha.send(TO_PEER, *numbered(5))
    network.run()
    peer.write(peer.ack(received=4, base=1, bits=0b11))
    peer.close()
    assert alpha.outgoing()[0].message_count == 3
    peer.acknowledges = True
    network.run(5_000)
    assert peer.opened_count == 2
    assert peer.bodies == numbered(5) + numbered(3, 2)
    assert alpha.outgoing()[0].message_count == 0


def test_a_session_that_the_other_side_opened_carries_our_messages_too(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA, peers=KNOWN_PEER)
    peer = Neighbour(network, PEER)
    peer.open(ALPHA)
    alpha.send(TO_PEER, b"back")
    network.run()
    assert peer.bodies == [b"back"]
    assert peer.opened_count == 1
    assert alpha.outgoing()[0].state == "CONNECTED"


def test_who_answers_with_another_identity_than_ours_is_not_believed(
    network: Network, alpha: Computer
) -> None:
    peer = network.peer()
    alpha.send(TO_PEER, b"hello")
    network.run()
    (request,) = peer.take()
    assert isinstance(request, EstablishConnection)
    stranger = EstablishConnection(type(request.establish)(peer.identifier, peer.identifier))
    peer.write(stranger)
    assert not peer.is_open
    assert not any(isinstance(packet, ConnectionParameters) for packet in peer.take())
    queue = alpha.outgoing()[0]
    assert statuses(queue)[-1] == ConnectionStatus.CONNECTION_REFUSED
    assert queue.message_count == 1

"""What strangers and bad luck may not do: fill tables, hold memory, take what others sent."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.transfer.outgoing_sweep import SWEEP_MS
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.queue import AccessMode
from openmsmq.storage import records
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from tests.transfer.letters import letter
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, numbered
from tests.transfer.network import ALPHA, BETA, PEER, ROUTING_PEER, Computer, Network

TO_LEDGER_AT_PEER = rf"DIRECT=TCP:{PEER}\{LEDGER}"
TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"


@pytest.fixture
def alpha(network: Network) -> Computer:
    return network.manager("ALPHA", ALPHA, peers=ROUTING_PEER).with_queues(ORDERS, LEDGER)


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def test_a_peer_that_stores_nothing_does_not_fill_our_memory(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    for _ in range(30):
        alpha.send(TO_PEER, *(bytes(1_000_000) for _ in range(4)))
    network.run(100)
    for _ in range(200):
        peer.write(peer.ack(received=peer.received_count))
    assert sum(map(len, peer.bodies)) <= 70_000_000


def test_links_go_with_the_last_queue_that_needed_them(network: Network, alpha: Computer) -> None:
    for number in range(5):
        name = rf"DIRECT=TCP:10.0.0.{number}\{ORDERS}"
        alpha.send(name, b"expires", time_to_reach_queue_s=20)
    network.run(3 * SWEEP_MS)
    assert alpha.outgoing() == []
    assert alpha.manager.transfer.link_count == 0


def test_an_operator_and_an_acknowledgment_do_not_both_remove_a_message(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_LEDGER_AT_PEER, b"1", b"2", transactional=True)
    network.run(100)
    first, second = peer.messages
    network.down.add(PEER)
    network.cut(PEER)
    network.run(40_000)
    opened = alpha.ok(api.OpenQueue(TO_LEDGER_AT_PEER, AccessMode.RECEIVE_ADMIN))
    (entry,) = alpha.ok(api.Receive(opened.handle, 1, 0, lock=True)).entries
    peer.open(ALPHA)
    peer.say(peer.order_ack(second))
    network.run(1_000)
    alpha.ask(api.EndReceive(opened.handle, entry.lookup_id, remove=True))
    alpha.ok(api.CloseQueue(opened.handle))
    network.run(1_000)
    del first
    assert alpha.outgoing(TO_LEDGER_AT_PEER)[0].message_count == 0


def test_acknowledgments_for_a_stranger_who_cannot_be_reached_do_not_pile_up(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    ledger = alpha.ok(api.GetNames(LEDGER)).private_name
    number = int(ledger.rpartition("\\")[2], 16)
    source = Guid(b"nobody knows me!")
    sequence = SequenceId(1, 1_600_000_000)
    for turn in range(150):
        peer.open(ALPHA)
        peer.say(
            letter(
                source,
                turn + 1,
                PrivateOnDestination(number),
                manager=alpha.identifier,
                place=(sequence, 1, 0),
            )
        )
        network.run(1_000)
        peer.close()
    (queue,) = (q for q in alpha.outgoing() if str(source).upper() in q.format_name.upper())
    assert queue.message_count <= 100


def test_a_final_ack_finds_its_way_through_a_session_opened_for_something_else(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    ledger = alpha.ok(api.GetNames(LEDGER)).private_name
    number = int(ledger.rpartition("\\")[2], 16)
    peer.open(ALPHA)
    peer.say(
        letter(
            peer.identifier,
            1,
            PrivateOnDestination(number),
            manager=alpha.identifier,
            place=(SequenceId(1, 1_600_000_000), 1, 0),
            final_ack=True,
        )
    )
    network.run(1_000)
    peer.close()
    alpha.messages(LEDGER, take=True)
    network.run(10_000)
    peer.arrived.clear()
    alpha.send(TO_PEER, b"direct")
    network.run(60_000)
    assert len(peer.bodies) == 2


def test_a_refused_purge_in_slices_loses_nothing(network: Network, alpha: Computer) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(LEDGER, transactional=True)
    name = rf"DIRECT=TCP:{BETA}\{LEDGER}"
    bodies = numbered(3000)
    network.down.add(BETA)
    for start in range(0, 3000, 500):
        alpha.send(name, *bodies[start : start + 500], transactional=True)
    # The session is open, and everything waits for the disk's answer to the purge.
    opened = alpha.ok(api.OpenQueue(name, AccessMode.RECEIVE_ADMIN))
    alpha.ok(api.ControlOutgoing(name, "pause"))
    network.down.clear()
    network.run(10_000)
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"opens the session")
    network.run(1_000)
    alpha.manager.request(1, 9_999, api.Purge(opened.handle), network.now)
    alpha.fail_commits = 1
    alpha.ask(api.ControlOutgoing(name, "resume"))
    network.run(10_000)
    alpha.ok(api.ControlOutgoing(name, "resume"))
    network.run(60_000)
    reply = alpha.answers[9_999]
    assert isinstance(reply, api.Failed)
    assert beta.bodies(LEDGER) == bodies


def test_sequences_of_strangers_to_queues_that_are_not_there_leave_nothing_behind(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.open(ALPHA)
    for number in range(20):
        name = rf"TCP:{ALPHA}\private$\none{number}"
        peer.say(peer.message(name, place=(SequenceId(1, 1_600_000_000), 1, 0)))
    network.run(100_000_000)
    start, stop = records.kind_range(b"I")
    assert alpha.store.scan(start, stop, 100) == []


def test_a_message_to_oneself_by_another_name_ends_once(network: Network, alpha: Computer) -> None:
    network.hosts["alias"] = (ALPHA,)
    alpha.send(rf"DIRECT=OS:alias\{LEDGER}", b"me", transactional=True, journal_on_success=True)
    network.run(10_000)
    assert alpha.bodies(LEDGER, take=True) == [b"me"]
    network.run(60_000)
    (status,) = (q for q in alpha.outgoing() if "ledger" in q.format_name.lower())
    assert (status.message_count, status.unread_count) == (0, 0)
    assert alpha.bodies(r"DIRECT=OS:.\SYSTEM$;JOURNAL") == [b"me"]


def test_a_stranger_does_not_get_what_is_for_another_queue_manager_whose_place_is_known(
    network: Network,
) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    name = beta.ok(api.GetNames(ORDERS)).private_name
    alpha = network.manager("ALPHA", ALPHA, next_hops={str(beta.identifier): (BETA,)})
    stranger = Neighbour(network, PEER)
    stranger.identifier = beta.identifier
    stranger.open(ALPHA)
    network.down.add(BETA)
    alpha.send(name, b"for beta")
    network.run(1_000)
    network.down.clear()
    network.run(60_000)
    assert stranger.bodies == []
    assert beta.bodies(ORDERS) == [b"for beta"]

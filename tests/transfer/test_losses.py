"""Ways in which messages could get lost between two queue managers, or stay for ever."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.transfer.outgoing_sweep import SWEEP_MS
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.queue import AccessMode, ConnectionStatus
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from tests.strategies.messages import Draft
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, to_orders
from tests.transfer.network import (
    ALPHA,
    BETA,
    KNOWN_PEER,
    PEER,
    START_S,
    Computer,
    Network,
    addressed,
)

TO_BETA = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_LEDGER = rf"DIRECT=TCP:{BETA}\{LEDGER}"
TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"


def test_plain_messages_without_room_are_taken_when_there_is_room_again(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    beta.config = msgspec.structs.replace(beta.config, quota_kb=10)
    beta.start()
    beta.send(ORDERS, bytes(6000))
    bodies = [b"%d" % number + bytes(2000) for number in range(3)]
    alpha.send(TO_BETA, *bodies)
    network.run(1_000)
    found = beta.bodies(ORDERS, take=True)
    for _ in range(3):
        network.run(60_000)
        found += beta.bodies(ORDERS, take=True)
    assert found == [bytes(6000), *bodies]


def test_transactional_messages_of_any_priority_arrive_in_the_order_of_their_sequence(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    network.down.add(BETA)
    for number, priority in enumerate((0, 7, 3)):
        alpha.send(TO_LEDGER, b"%d" % number, transactional=True, priority=priority)
    network.down.clear()
    network.run(60_000)
    assert beta.bodies(LEDGER) == [b"0", b"1", b"2"]


def test_a_prepared_transaction_keeps_the_outgoing_queue_it_sends_to(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    begun = alpha.ok(api.Begin())
    opened = alpha.ok(api.OpenQueue(TO_LEDGER, AccessMode.SEND))
    packet = addressed(Draft(body=b"prepared", transactional=True).packet(), opened)
    alpha.ok(api.Send(opened.handle, [packet], begun.transaction))
    alpha.ok(api.Prepare(begun.transaction))
    alpha.crash()
    network.run(60_000)
    alpha.ok(api.Resolve(begun.unit_of_work, commit=True))
    network.run(60_000)
    assert beta.bodies(LEDGER) == [b"prepared"]


def test_an_active_transaction_keeps_the_outgoing_queue_it_sends_to(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    begun = alpha.ok(api.Begin())
    opened = alpha.ok(api.OpenQueue(TO_LEDGER, AccessMode.SEND))
    packet = addressed(Draft(body=b"late", transactional=True).packet(), opened)
    alpha.ok(api.Send(opened.handle, [packet], begun.transaction))
    alpha.ok(api.CloseQueue(opened.handle))
    network.run(2 * SWEEP_MS)
    alpha.ok(api.Commit(begun.transaction))
    network.run(60_000)
    assert beta.bodies(LEDGER) == [b"late"]


def test_a_list_of_queues_stays_open_however_long_it_is_not_used(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    beta.create(r"private$\other")
    name = rf"{TO_BETA},DIRECT=TCP:{BETA}\private$\other"
    alpha.send(name, b"early")
    network.run(60_000)
    assert beta.bodies(ORDERS, take=True) == [b"early"]
    assert beta.bodies(r"private$\other", take=True) == [b"early"]
    opened = alpha.ok(api.OpenQueue(name, AccessMode.SEND))
    network.run(2 * SWEEP_MS)
    alpha.ok(api.Send(opened.handle, [Draft(body=b"late").packet()], 0))
    network.run(60_000)
    assert beta.bodies(ORDERS) == [b"late"]
    assert beta.bodies(r"private$\other") == [b"late"]


@pytest.mark.parametrize("how", ["receive", "range", "lock"])
def test_what_an_operator_takes_out_does_not_hold_up_what_follows(
    network: Network, alpha: Computer, beta: Computer, how: str
) -> None:
    peer_like = Neighbour(network, BETA)  # takes what comes and says nothing about sequences
    alpha.send(TO_LEDGER, b"1", transactional=True)
    network.run(1_000)
    assert peer_like.bodies == [b"1"]
    network.computers[BETA] = beta
    network.down.add(BETA)
    network.cut(ALPHA)
    network.run(40_000)  # the message is free again
    opened = alpha.ok(api.OpenQueue(TO_LEDGER, AccessMode.RECEIVE_ADMIN))
    if how == "receive":
        assert len(alpha.ok(api.Receive(opened.handle, 1, 0)).entries) == 1
    elif how == "range":
        assert alpha.ok(api.RemoveRange(opened.handle, 0, 1 << 55)).count == 1
    else:
        (entry,) = alpha.ok(api.Receive(opened.handle, 1, 0, lock=True)).entries
        alpha.ok(api.EndReceive(opened.handle, entry.lookup_id, remove=True))
    alpha.ok(api.CloseQueue(opened.handle))
    alpha.send(TO_LEDGER, b"2", b"3", transactional=True)
    network.down.clear()
    network.run(600_000)
    assert beta.bodies(LEDGER) == [b"2", b"3"]


def test_a_queue_asks_for_a_session_again_when_both_ways_have_failed(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA, peers=KNOWN_PEER)
    alpha.create(ORDERS)
    peer = Neighbour(network, PEER)
    manager = alpha.manager
    # Our own connection is on its way and takes long.
    connect, network.connect = network.connect, lambda *_: None  # type: ignore[method-assign]
    alpha.send(TO_PEER, b"waits")
    network.run(100)
    network.connect = connect  # type: ignore[method-assign]
    # Meanwhile the other one connects, and goes before anything is acknowledged.
    peer.acknowledges = False
    peer.open(ALPHA)
    network.run(100)
    assert peer.bodies == [b"waits"]
    peer.close()
    peer.acknowledges = True
    network.run(100)
    manager.session_failed(1, ConnectionStatus.SOCKET_CONNECT_FAILURE, network.now)
    alpha.pump()
    network.run(60_000)
    assert peer.bodies == [b"waits", b"waits"]
    assert alpha.outgoing(TO_PEER)[0].message_count == 0


def test_a_pause_that_the_disk_refused_pauses_nothing(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    network.down.add(PEER)
    peer = Neighbour(network, PEER)
    alpha.send(TO_PEER, b"waits")
    network.run(1_000)
    alpha.fail_commits = 1
    reply = alpha.ask(api.ControlOutgoing(TO_PEER, "pause"))
    assert isinstance(reply, api.Failed)
    network.down.clear()
    network.run(60_000)
    assert peer.bodies == [b"waits"]


def test_nobody_connects_for_what_has_expired(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    network.down.add(PEER)
    peer = Neighbour(network, PEER)
    alpha.send(TO_PEER, b"waits", time_to_reach_queue_s=20)
    network.run(30_000)
    assert alpha.outgoing(TO_PEER)[0].message_count == 0
    network.down.clear()
    network.run(60_000)
    assert peer.opened_count == 0


def test_a_full_disk_does_not_make_an_expired_message_busy(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    peer = Neighbour(network, PEER)
    network.down.add(PEER)
    alpha.send(TO_PEER, b"waits", time_to_reach_queue_s=8000)
    network.run(100)
    network.now = Instant(network.now.ticks_ms, network.now.unix_s + 9000)
    network.down.clear()
    alpha.fail_commits = 500
    network.run(8_000)
    assert alpha.fail_commits > 450
    assert peer.bodies == []


def test_a_full_disk_does_not_make_the_sender_repeat_itself_without_pause(
    network: Network,
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    peer = Neighbour(network, PEER)
    peer.acknowledges = False
    alpha.send(TO_PEER, b"waits")
    network.run(100)
    assert peer.bodies == [b"waits"]
    alpha.fail_commits = 500
    peer.acknowledges = True
    peer.write(peer.ack(received=1, base=1, bits=1))
    network.run(5_000)
    assert len(peer.bodies) < 20, (len(peer.bodies), alpha.fail_commits)


def test_dead_letters_of_strangers_stay_within_the_quota(network: Network) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.config = msgspec.structs.replace(alpha.config, quota_kb=20)
    alpha.start()
    alpha.create(ORDERS)
    peer = Neighbour(network, PEER)
    network.run(1_000_000)
    for _ in range(10):
        peer.open(ALPHA)
        peer.say(
            *(
                peer.message(
                    to_orders(ALPHA),
                    bytes(4000),
                    flags=user.JOURNAL_ON_FAILURE,
                    time_to_reach_queue_s=1,
                )
                for _ in range(10)
            )
        )
        network.run(10_000)
    count = len(alpha.messages(r"DIRECT=OS:.\SYSTEM$;DEADLETTER"))
    assert count <= 5


def test_an_outgoing_queue_that_never_came_to_be_takes_no_other_queue_with_it(
    network: Network,
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    peer = Neighbour(network, PEER)
    alpha.send(TO_BETA, b"elsewhere")
    network.run(1_000)
    peer.open(ALPHA)
    alpha.fail_commits = 1
    passing = peer.message(
        PrivateOnDestination(7),
        manager=Guid(b"somebody else---"),
        place=(SequenceId(1, START_S), 1, 0),
    )
    peer.say(passing)
    network.run(1_000)
    assert len(alpha.outgoing()) == 1
    network.down.add(PEER)
    alpha.send(TO_PEER, b"waits")
    network.run(2 * SWEEP_MS)
    network.down.clear()
    network.run(60_000)
    assert peer.bodies == [b"waits"]

"""What a queue manager still knows after it lost power, shown by what it does then."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.identity import MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.protocol.config import TransferConfig
from openmsmq.wire.bodies.acknowledgments import FinalAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers.message_properties import NEGATIVE_ARRIVAL
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.packets import UserMessage
from tests.transfer.neighbour import (
    LEDGER,
    ORDERS,
    Neighbour,
    asked_count,
    numbered,
    to_ledger,
    to_orders,
)
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
TO_PEER_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def places(peer: Neighbour) -> list[tuple[SequenceId, int]]:
    return [
        (message.transaction.sequence, message.transaction.number)
        for message in peer.messages
        if message.transaction is not None
    ]


@pytest.mark.spec("MQQB-3.1.3.2-34")
def test_every_queue_manager_is_somebody_and_stays_it(network: Network, beta: Computer) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    known = beta.identifier
    assert alpha.identifier != known
    beta.crash()
    assert beta.identifier == known


@pytest.mark.spec("MQQB-3.1.1.3-08", "MQQB-3.1.1.3-09")
def test_message_numbers_count_from_one_and_none_comes_twice(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    assert beta.send(TO_PEER, *numbered(3)) == [1, 2, 3]
    assert beta.send(TO_PEER, b"next", recoverable=False) == [4]
    network.run()
    beta.crash()
    after = beta.send(TO_PEER, *numbered(3))
    assert min(after) > 4
    assert after == list(range(after[0], after[0] + 3))
    network.run(10_000)
    sent = [message.user.message_number for message in peer.messages]
    assert sent == [1, 2, 3, 4, *after]


@pytest.mark.spec(
    "MQQB-3.1.1.3.1-10",
    "MQQB-3.1.1.3.1-12",
    "MQQB-3.1.1.3.2-01",
    "MQQB-3.1.1.3.2-02",
    "MQQB-3.1.4.1-01",
    "MQQB-3.1.4.1-02",
)
def test_what_was_not_delivered_is_sent_after_a_start_in_its_order_without_being_asked(
    network: Network, beta: Computer
) -> None:
    assert beta.outgoing() == []
    for number in range(10):
        beta.send(TO_PEER, b"%d" % number, recoverable=number % 3 != 0)
    beta.send(TO_PEER_LEDGER, *numbered(4), transactional=True)
    network.run(2_000)
    peer = Neighbour(network, PEER)
    beta.crash()
    network.run()
    assert peer.bodies == [b"1", b"2", b"4", b"5", b"7", b"8", *numbered(4)]
    assert len(beta.outgoing()) == 2


@pytest.mark.spec(
    "MQQB-3.1.1.3.1-04", "MQQB-3.1.1.3.1-06", "MQQB-3.1.1.3.1.2-01", "MQMQ-2.2.20.5-16"
)
def test_a_sequence_goes_on_with_its_numbers_after_a_restart(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.send(TO_PEER_LEDGER, *numbered(3), transactional=True)
    network.run(1_000)
    sequence = places(peer)[0][0]
    assert places(peer) == [(sequence, 1), (sequence, 2), (sequence, 3)]
    assert beta.outgoing()[0].next_number == 4
    peer.arrived.clear()
    beta.crash()
    assert beta.outgoing()[0].next_number == 4
    beta.send(TO_PEER_LEDGER, b"3", transactional=True)
    network.run(1_000)
    assert places(peer) == [(sequence, number) for number in (1, 2, 3, 4)]
    assert peer.bodies == numbered(4)


@pytest.mark.spec("MQQB-3.1.1.5-03", "MQQB-3.1.3.2-16")
def test_when_all_is_acknowledged_the_next_message_begins_the_next_sequence(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.send(TO_PEER_LEDGER, *numbered(2), transactional=True)
    assert beta.outgoing()[0].last_acknowledged_number == 0
    network.run(1_000)
    peer.say(peer.order_ack(peer.messages[-1]))
    assert beta.outgoing()[0].message_count == 0
    assert beta.outgoing()[0].last_acknowledged_number == 2
    beta.crash()
    beta.send(TO_PEER_LEDGER, b"anew", transactional=True)
    network.run(6_000)
    first, *_, (second, number) = places(peer)
    assert number == 1
    assert (second.ordinal, second > first[0]) == (first[0].ordinal + 1, True)


@pytest.mark.spec("MQQB-3.1.1.3.1-07", "MQQB-3.1.1.3.1-08", "MQQB-3.1.1.3.1-09")
def test_how_far_a_sender_has_come_is_known_after_a_restart(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    sequence = SequenceId(1, 1)

    def entry(number: int, previous: int) -> UserMessage:
        return peer.message(to_ledger(BETA), b"%d" % number, place=(sequence, number, previous))

    peer.open(BETA)
    # Nothing has come yet: a message that follows another one cannot be taken, nor acknowledged.
    peer.say(entry(2, 1))
    network.run(2_000)
    assert (beta.bodies(LEDGER), peer.messages) == ([], [])
    peer.say(entry(1, 0), entry(2, 1))
    network.run(2_000)
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    beta.crash()
    peer.arrived.clear()
    peer.open(BETA)
    peer.say(entry(1, 0), entry(2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    peer.say(entry(4, 3))
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    peer.say(entry(3, 2))
    network.run(2_000)
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    assert peer.messages[-1].properties.message_class == MessageClass.ORDER_ACK


@pytest.mark.spec("MQQB-3.1.1.3.1-13")
@pytest.mark.parametrize("good", [True, False])
def test_messages_that_wait_for_their_end_still_do_after_a_restart(
    network: Network, beta: Computer, peer: Neighbour, good: bool
) -> None:
    wishes = {"journal_on_success": True, "journal_on_failure": True}
    (number,) = beta.send(TO_PEER_LEDGER, b"entry", transactional=True, **wishes)
    assert beta.outgoing()[0].unread_count == 0
    network.run(1_000)
    peer.say(peer.order_ack(peer.messages[0]))
    beta.crash()
    assert (beta.outgoing()[0].message_count, beta.outgoing()[0].unread_count) == (0, 1)
    peer.open(BETA)
    sequence, place = places(peer)[0]
    ack = FinalAck(sequence, place, 0, MessageId(beta.identifier, number))
    reason = MessageClass.ACK_RECEIVE if good else MessageClass.NACK_QUEUE_PURGED
    peer.say(
        order_packet(
            ack,
            reason,
            source=peer.identifier,
            to=beta.identifier,
            message_number=77,
            sent_time_s=network.now.unix_s,
            time_to_reach_queue_s=INFINITE_S,
        )
    )
    assert beta.outgoing()[0].unread_count == 0
    assert beta.bodies("system$;journal") == ([b"entry"] if good else [])
    assert beta.bodies("system$;deadxact") == ([] if good else [b"entry"])


@pytest.mark.spec("MQQB-3.1.1.3-06", "MQQB-3.1.1.3-07")
def test_a_recoverable_message_is_known_again_after_a_restart_until_its_time_is_over(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    message = peer.message(to_orders(BETA), b"once")
    for _ in range(3):
        peer.open(BETA)
        peer.say(message)
        network.run(600)
        assert peer.headers[-1].stored_bits == 1
        beta.crash()
    assert beta.bodies(ORDERS) == [b"once"]
    network.run(2 * 1_800_000)
    peer.open(BETA)
    peer.say(message)
    assert beta.bodies(ORDERS) == [b"once", b"once"]


@pytest.mark.spec("MQQB-3.1.1.3-11")
@pytest.mark.parametrize("permitted", [None, True])
def test_strangers_are_told_of_missing_queues_only_when_that_is_permitted(
    network: Network, peer: Neighbour, permitted: bool | None
) -> None:
    options = {} if permitted is None else {"permit_insecure_nacks": permitted}
    gamma = network.manager("GAMMA", GAMMA, **options)
    for round_number in range(2):
        peer.open(GAMMA)
        peer.say(
            peer.message(
                rf"TCP:{GAMMA}\private$\none",
                admin=DirectName(rf"TCP:{PEER}\private$\admin"),
                acknowledge=NEGATIVE_ARRIVAL,
            )
        )
        network.run(1_000)
        assert len(peer.messages) == (round_number + 1 if permitted else 0)
        gamma.crash()


@pytest.mark.spec("MQQB-3.1.1.5-06", "MQQB-3.1.1.5-07")
def test_a_computer_between_passes_sequences_on_without_taking_part_in_them(
    network: Network, peer: Neighbour
) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(LEDGER, transactional=True)
    target = str(gamma.identifier)
    beta = network.manager(
        "BETA", BETA, next_hops={target: (GAMMA,), str(peer.identifier): (PEER,)}
    )
    back = TransferConfig(next_hops={str(peer.identifier): (BETA,)})
    gamma.config = msgspec.structs.replace(gamma.config, transfer=back)
    gamma.crash()
    number = int(gamma.ok(api.GetNames(LEDGER)).private_name.rpartition("\\")[2], 16)
    peer.open(BETA)
    sequence = SequenceId(9, 9)
    # Out of order: somebody who took part would not pass the second one on.
    for place, previous in ((2, 1), (1, 0), (2, 1)):
        peer.say(
            peer.message(
                PrivateOnDestination(number),
                b"%d" % place,
                manager=gamma.identifier,
                place=(sequence, place, previous),
            )
        )
        network.run(400)
    network.run(2_000)
    assert gamma.bodies(LEDGER) == [b"1", b"2"]
    transactions = [message.transaction for message in gamma.messages(LEDGER)]
    assert [(t.sequence, t.number, t.previous_number) for t in transactions if t] == [
        (sequence, 1, 0),
        (sequence, 2, 1),
    ]
    acks = peer.messages
    assert {ack.user.source for ack in acks} == {gamma.identifier}
    assert {ack.properties.message_class for ack in acks} == {MessageClass.ORDER_ACK}
    # What passed through waits for nobody's order acknowledgment there.
    assert {queue.message_count for queue in beta.outgoing()} == {0}
    assert {queue.sequence for queue in beta.outgoing()} == {0}
    assert asked_count(beta) == 1

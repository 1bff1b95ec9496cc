"""Strangers move nothing: what they say in the name of others counts for nothing.

The stranger of these tests knows all that was ever on the wire between the others.
"""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.errors import AccessDenied
from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.model.limits import INCOMING_SEQUENCE_BYTES
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.storage import records
from openmsmq.wire.bodies.acknowledgments import ORDER_LABEL, FinalAck
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.packets import UserMessage
from tests.transfer.letters import (
    RECEIVE_NACK,
    SEQUENCE,
    by_number,
    direct,
    final_ack,
    final_acks,
    letter,
    order_ack,
    order_acks,
)
from tests.transfer.neighbour import LEDGER, ORDERS, Gateway, Neighbour, numbered
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network

JOURNAL = r"DIRECT=OS:.\SYSTEM$;JOURNAL"
STRANGER = "127.0.0.66"
DEAD_LETTERS = "system$;deadxact"
ORDER_QUEUE = r"private$\order_queue$"
TO_LEDGER = direct(BETA, LEDGER)
TO_ORDERS = direct(BETA, ORDERS)
YOUNGER = SequenceId(1, 0xFFFF_FFFF)


@pytest.fixture
def beta(network: Network) -> Computer:
    """A queue manager that knows nobody by configuration or directory."""
    return network.manager("BETA", BETA).with_queues(ORDERS, LEDGER)


@pytest.fixture
def peer(network: Network) -> Neighbour:
    """An honest queue manager."""
    return Neighbour(network, PEER)


@pytest.fixture
def stranger(network: Network) -> Neighbour:
    """Somebody at another address."""
    return Neighbour(network, STRANGER)


def told(computer: Computer, kind: NoticeKind) -> list[dict[str, Any]]:
    """What the operator of a queue manager has heard of one kind."""
    return [dict(notice.facts) for notice in computer.notices if notice.kind is kind]


def entry(source: Guid, number: int, previous: int = 0, **other: Any) -> UserMessage:
    """A transactional message to BETA."""
    body, place = b"%d" % number, (other.pop("sequence", SEQUENCE), number, previous)
    return letter(source, number, TO_LEDGER, body, place=place, **other)


# Acknowledgments at the source.


def sent_to_peer(alpha: Computer, peer: Neighbour, **wishes: bool) -> UserMessage:
    name = rf"DIRECT=TCP:{PEER}\{LEDGER}"
    alpha.send(name, b"precious", transactional=True, **wishes)
    alpha.network.run()
    return peer.messages[-1]


@pytest.mark.parametrize("claims", [False, True], ids=["as himself", "as the destination"])
def test_an_order_acknowledgment_from_another_address_releases_nothing(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour, claims: bool
) -> None:
    message = sent_to_peer(alpha, peer)
    if claims:
        stranger.identifier = peer.identifier
    stranger.open(ALPHA)
    forged = stranger.order_ack(message)
    assert forged.user.source == stranger.identifier
    stranger.say(forged)
    network.run(1_000)
    assert alpha.outgoing()[0].message_count == 1
    assert stranger.is_open is not claims
    peer.say(peer.order_ack(message))
    assert alpha.outgoing()[0].message_count == 0


def test_an_order_acknowledgment_in_the_name_of_the_destination_releases_nothing(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    message = sent_to_peer(alpha, peer)
    stranger.open(ALPHA)
    stranger.say(peer.order_ack(message))
    network.run(1_000)
    assert alpha.outgoing()[0].message_count == 1
    (refused,) = told(alpha, NoticeKind.ACKNOWLEDGMENT_REFUSED)
    assert refused["peer"] == STRANGER
    assert refused["source"] == str(peer.identifier)


def test_a_final_acknowledgment_of_a_stranger_ends_no_message(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    message = sent_to_peer(alpha, peer, journal_on_success=True, journal_on_failure=True)
    stranger.open(ALPHA)
    for source in (stranger.identifier, peer.identifier, alpha.identifier):
        forged = final_ack(message, alpha.identifier, MessageClass.ACK_RECEIVE, source=source)
        stranger.say(forged)
    network.run(1_000)
    assert alpha.outgoing()[0].message_count == 1
    assert alpha.bodies(JOURNAL) == []
    assert len(told(alpha, NoticeKind.ACKNOWLEDGMENT_REFUSED)) == 3
    honest = final_ack(message, alpha.identifier, MessageClass.ACK_RECEIVE, source=peer.identifier)
    peer.say(honest)
    assert alpha.bodies(JOURNAL) == [b"precious"]


def test_a_stranger_has_no_final_acknowledgment_sent_by_the_destination(
    network: Network, alpha: Computer, beta: Computer, stranger: Neighbour
) -> None:
    """An acknowledgment to an administration queue has the label and the body that he wrote."""
    ack = ack_of_first_message(alpha, beta)
    forged = letter(
        stranger.identifier,
        1,
        TO_ORDERS,
        ack.encode(),
        label=ORDER_LABEL,
        acknowledge=RECEIVE_NACK,
        admin_queue=direct(ALPHA, ORDER_QUEUE),
        time_to_be_received_s=0,
    )
    stranger.open(BETA)
    stranger.say(forged)
    network.run(5_000)
    assert alpha.outgoing()[0].unread_count == 1
    assert alpha.bodies(DEAD_LETTERS) == []
    dropped = told(beta, NoticeKind.REPORT_DROPPED)
    assert [notice["reason"] for notice in dropped] == ["order queue"]


def test_no_application_at_the_destination_acknowledges_messages(
    alpha: Computer, beta: Computer
) -> None:
    """What it sends to an order queue would come from the queue manager to whom the flow goes."""
    ack_of_first_message(alpha, beta)
    names = (
        rf"DIRECT=TCP:{ALPHA}\{ORDER_QUEUE}",
        rf"DIRECT=OS:ALPHA\{ORDER_QUEUE.upper()}",
        rf"ALPHA\{ORDER_QUEUE}",
        rf"DIRECT=TCP:{ALPHA}\{ORDER_QUEUE}.{alpha.identifier}",
        rf"PRIVATE={alpha.identifier}\4",
        rf"DIRECT=OS:GAMMA\{ORDERS},DIRECT=TCP:{ALPHA}\{ORDER_QUEUE}",
    )
    for name in names:
        reply = beta.ask(api.OpenQueue(name, AccessMode.SEND))
        assert isinstance(reply, api.Failed)
        assert reply.code == AccessDenied.code, name


def ack_of_first_message(alpha: Computer, beta: Computer) -> FinalAck:
    """Have ALPHA send a message to BETA; give what would end it there."""
    name = rf"DIRECT=TCP:{BETA}\{LEDGER}"
    alpha.send(name, b"precious", transactional=True, journal_on_failure=True)
    alpha.network.run(15_000)
    message = beta.messages(LEDGER)[0]
    place = message.transaction
    assert place is not None
    identifier = MessageId(alpha.identifier, message.user.message_number)
    return FinalAck(place.sequence, place.number, place.previous_number, identifier)


@pytest.mark.parametrize("wrong", ["sequence", "number", "message"])
def test_a_final_acknowledgment_must_fit_in_all_it_says(
    alpha: Computer, peer: Neighbour, wrong: str
) -> None:
    message = sent_to_peer(alpha, peer, journal_on_success=True)
    place = message.transaction
    assert place is not None
    sequence, number, message_number = place.sequence, place.number, message.user.message_number
    ack = FinalAck(
        SequenceId(1, 1) if wrong == "sequence" else sequence,
        number + 1 if wrong == "number" else number,
        0,
        MessageId(alpha.identifier, message_number + (wrong == "message")),
    )
    peer.say(peer.carrying(ack, MessageClass.ACK_RECEIVE, alpha.identifier))
    assert alpha.bodies(JOURNAL) == []
    assert alpha.outgoing()[0].message_count == 1


def test_a_refused_message_in_our_own_name_ends_none_of_ours(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    """The destination of a refused message tells its source; the source was us, he said."""
    message = sent_to_peer(alpha, peer, journal_on_failure=True)
    assert message.transaction is not None
    stranger.open(ALPHA)
    forged = letter(
        alpha.identifier,
        message.user.message_number,
        direct(ALPHA, r"private$\none"),
        place=(message.transaction.sequence, message.transaction.number, 0),
        final_ack=True,
    )
    stranger.say(forged)
    network.run(2_000)
    assert alpha.outgoing()[0].message_count == 1
    assert alpha.outgoing()[0].unread_count == 0


def test_nobody_else_is_this_queue_manager(alpha: Computer, stranger: Neighbour) -> None:
    stranger.identifier = alpha.identifier
    stranger.open(ALPHA)
    assert not stranger.is_open
    (refused,) = told(alpha, NoticeKind.IDENTITY_REFUSED)
    assert refused["reason"] == "own-identifier"


def test_acknowledgments_count_after_a_restart_and_those_of_strangers_do_not(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    message = sent_to_peer(alpha, peer)
    network.down.add(PEER)
    alpha.crash()
    stranger.identifier = peer.identifier
    stranger.open(ALPHA)
    assert not stranger.is_open
    peer.open(ALPHA)
    peer.say(peer.order_ack(message))
    assert alpha.outgoing()[0].message_count == 0


@pytest.mark.parametrize("begins", [False, True], ids=["at once", "after a flow of his own"])
def test_after_a_long_silence_nobody_else_acknowledges_what_was_sent_before(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour, begins: bool
) -> None:
    """Silence sets a name free for a new flow; what waits for the old one goes on waiting."""
    alpha.create(LEDGER, transactional=True)
    message = sent_to_peer(alpha, peer)
    network.down.add(PEER)
    network.cut(PEER)
    network.run(3_700_000)
    stranger.identifier = peer.identifier
    stranger.open(ALPHA)
    assert stranger.is_open
    if begins:
        stranger.say(letter(peer.identifier, 1, direct(ALPHA, LEDGER), place=(SEQUENCE, 1, 0)))
    stranger.say(stranger.order_ack(message))
    network.run(1_000)
    assert alpha.outgoing()[0].message_count == 1


# Sequences at the destination.


@pytest.mark.parametrize("sequence", [SEQUENCE, YOUNGER], ids=["jump", "younger"])
@pytest.mark.parametrize("claims", [False, True], ids=["as himself", "as the sender"])
def test_a_stranger_moves_no_sequence_of_another(
    beta: Computer,
    peer: Neighbour,
    stranger: Neighbour,
    sequence: SequenceId,
    claims: bool,
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    if claims:
        stranger.identifier = peer.identifier
    stranger.open(BETA)
    assert stranger.is_open is not claims
    stranger.say(entry(peer.identifier, 1_000, sequence=sequence))
    peer.say(entry(peer.identifier, 2, 1), entry(peer.identifier, 3, 2))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    beta.crash()
    stranger.open(BETA)
    stranger.say(entry(peer.identifier, 2_000, sequence=sequence))
    peer.open(BETA)
    peer.say(entry(peer.identifier, 3, 2), entry(peer.identifier, 4, 3))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3", b"4"]


def test_a_message_that_its_queue_refuses_takes_a_place_only_if_it_is_its_senders(
    network: Network, peer: Neighbour, stranger: Neighbour
) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(LEDGER, transactional=True)
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    beta.ok(api.ChangeQueue(LEDGER, authentication_required=True))
    stranger.open(BETA)
    stranger.say(entry(peer.identifier, 1_000))
    (refused,) = told(beta, NoticeKind.SEQUENCE_REFUSED)
    assert (refused["reason"], refused["peer"]) == ("foreign-source", STRANGER)
    peer.say(entry(peer.identifier, 2, 1))
    beta.ok(api.ChangeQueue(LEDGER, authentication_required=False))
    peer.say(entry(peer.identifier, 3, 2))
    assert beta.bodies(LEDGER) == [b"1", b"3"]


def test_who_comes_through_a_known_way_is_not_replaced_by_one_who_comes_himself(
    network: Network, stranger: Neighbour
) -> None:
    source = Guid(b"far away and ok!")
    beta = network.manager("BETA", BETA, next_hops={str(source): (PEER,)})
    beta.create(LEDGER, transactional=True)
    router = Neighbour(network, PEER)
    router.open(BETA)
    router.say(entry(source, 1))
    stranger.identifier = source
    stranger.open(BETA)
    stranger.say(entry(source, 1_000, sequence=YOUNGER))
    router.say(entry(source, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    assert told(beta, NoticeKind.SEQUENCE_REFUSED)[0]["reason"] == "foreign-sequence"


# The history of messages that are not transactional.


@pytest.mark.parametrize("claims", [False, True], ids=["as himself", "as the sender"])
def test_nobody_makes_the_messages_of_another_look_like_ones_that_came_already(
    beta: Computer, peer: Neighbour, stranger: Neighbour, claims: bool
) -> None:
    if claims:
        stranger.identifier = peer.identifier
    stranger.open(BETA)
    forged = [letter(peer.identifier, number, TO_ORDERS, b"forged") for number in range(1, 9)]
    stranger.say(*forged)
    beta.crash()
    peer.open(BETA)
    peer.say(*(letter(peer.identifier, number, TO_ORDERS, b"true") for number in range(1, 9)))
    assert beta.bodies(ORDERS).count(b"true") == 8
    # What comes again of him himself is still known.
    peer.open(BETA)
    peer.say(letter(peer.identifier, 8, TO_ORDERS, b"true"))
    assert beta.bodies(ORDERS).count(b"true") == 8


def test_what_a_stranger_says_in_the_name_of_others_is_not_passed_on(
    network: Network, peer: Neighbour, stranger: Neighbour
) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    router = network.manager("BETA", BETA, next_hops={str(gamma.identifier): (GAMMA,)})
    number, manager = by_number(gamma, ORDERS)
    stranger.open(BETA)
    stranger.say(letter(peer.identifier, 1, number, b"forged", manager=manager))
    network.run(1_000)
    assert router.outgoing() == []
    assert told(router, NoticeKind.MESSAGE_DROPPED)[0]["reason"] == "foreign-source"
    peer.open(BETA)
    peer.say(letter(peer.identifier, 1, number, b"true", manager=manager))
    network.run(1_000)
    assert gamma.bodies(ORDERS) == [b"true"]


# Who is who.


def test_who_says_he_is_somebody_with_a_flow_elsewhere_is_refused_and_told_of(
    beta: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    stranger.identifier = peer.identifier
    stranger.open(BETA)
    assert not stranger.is_open
    (refused,) = told(beta, NoticeKind.IDENTITY_REFUSED)
    assert refused["reason"] == "known-elsewhere"
    assert (refused["peer"], refused["known"]) == (STRANGER, PEER)
    assert refused["claimed"] == str(peer.identifier)
    assert "[peers]" in refused["advice"]


def test_a_computer_that_was_silent_for_long_may_have_another_address(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    moved = Neighbour(network, GAMMA)
    moved.identifier = peer.identifier
    # As long as it has a session it is there, however silent.
    network.run(100_000)
    peer.say(entry(peer.identifier, 2, 1))
    peer.close()
    network.run(3_599_000)
    moved.open(BETA)
    assert not moved.is_open
    network.run(2_000)
    moved.open(BETA)
    # Its sequence goes on: nothing comes twice.
    moved.say(entry(peer.identifier, 2, 1), entry(peer.identifier, 3, 2))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    peer.open(BETA)
    assert not peer.is_open


def test_ipv4_within_ipv6_is_the_same_address(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    peer.close()
    other = Neighbour(network, f"::ffff:{PEER}")
    other.identifier = peer.identifier
    other.open(BETA)
    other.say(entry(peer.identifier, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_who_answers_where_we_call_gets_the_messages_but_speaks_for_nobody_else(
    network: Network, beta: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    stranger.identifier = peer.identifier
    beta.send(rf"DIRECT=TCP:{STRANGER}\{ORDERS}", b"for whoever is there")
    network.run()
    assert stranger.bodies == [b"for whoever is there"]
    stranger.say(entry(peer.identifier, 1_000))
    peer.say(entry(peer.identifier, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    assert told(beta, NoticeKind.IDENTITY_REFUSED)[0]["reason"] == "known-elsewhere"


def test_who_is_not_believed_where_we_call_keeps_what_must_not_be_lost(
    network: Network, beta: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    """He may be the true one, and the first who came under his name a squatter."""
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    stranger.identifier = peer.identifier
    beta.send(rf"DIRECT=TCP:{STRANGER}\{ORDERS}", b"for whoever is there")
    network.run()
    express = letter(peer.identifier, 7, TO_ORDERS, b"express", recoverable=False)
    stranger.say(express)
    assert stranger.is_open
    stranger.say(letter(peer.identifier, 8, TO_ORDERS, b"to be kept"))
    network.run(1_000)
    assert not stranger.is_open
    assert beta.bodies(ORDERS) == []
    for kind in (NoticeKind.MESSAGE_DROPPED, NoticeKind.MESSAGE_LEFT):
        assert [facts["reason"] for facts in told(beta, kind)] == ["foreign-source"]


def test_two_who_say_they_are_one_do_not_get_each_others_messages_by_identifier(
    network: Network, beta: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    """A flow goes on where it began."""
    name = rf"PRIVATE={peer.identifier}\1f"
    peer.open(BETA)
    beta.send(name, b"first")
    network.run()
    stranger.identifier = peer.identifier
    stranger.open(BETA)
    assert not stranger.is_open
    peer.close()
    stranger.open(BETA)
    beta.send(name, b"second")
    network.run(10_000)
    assert stranger.bodies == []
    peer.open(BETA)
    network.run(10_000)
    assert peer.bodies == [b"first", b"second"]


def test_who_is_reached_through_another_address_acknowledges_from_his_own(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    """As through a relay or a tunnel: its listener says who is behind it."""
    peer.open(ALPHA)
    alpha.create(LEDGER, transactional=True)
    own = letter(peer.identifier, 1, direct(ALPHA, LEDGER), place=(SEQUENCE, 1, 0))
    peer.say(own)
    relay = Neighbour(network, GAMMA)
    relay.identifier = peer.identifier
    alpha.send(rf"DIRECT=TCP:{GAMMA}\{LEDGER}", b"around", transactional=True)
    network.run(100)
    (message,) = relay.messages
    stranger = Neighbour(network, STRANGER)
    stranger.open(ALPHA)
    stranger.say(peer.order_ack(message))
    (queue,) = (q for q in alpha.outgoing() if GAMMA in q.format_name)
    assert queue.message_count == 1
    peer.say(peer.order_ack(message))
    (queue,) = (q for q in alpha.outgoing() if GAMMA in q.format_name)
    assert queue.message_count == 0


def test_a_report_before_a_message_does_not_keep_its_acknowledgment_from_counting(
    network: Network, alpha: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    """A stranger chooses where reports go: he must not block with one what applications send."""
    alpha.with_queues(ORDERS, LEDGER)
    peer.open(ALPHA)
    peer.say(letter(peer.identifier, 1, direct(ALPHA, LEDGER), place=(SEQUENCE, 1, 0)))
    relay = Neighbour(network, GAMMA)
    relay.identifier = peer.identifier
    stranger.open(ALPHA)
    stranger.say(
        letter(
            stranger.identifier,
            1,
            direct(ALPHA, ORDERS),
            acknowledge=0x01,
            admin_queue=direct(GAMMA, LEDGER),
        )
    )
    network.run(100)
    alpha.send(rf"DIRECT=TCP:{GAMMA}\{LEDGER}", b"precious", transactional=True)
    network.run(100)
    report, message = relay.messages
    assert report.properties.message_class == MessageClass.ACK_REACH_QUEUE
    assert message.properties.body == b"precious"
    peer.say(peer.order_ack(message))
    (queue,) = (q for q in alpha.outgoing() if GAMMA in q.format_name)
    assert queue.message_count == 0


# Addresses with several queue managers behind them.


def test_what_goes_to_an_address_goes_to_its_listener_and_to_nobody_who_called_from_there(
    network: Network, alpha: Computer
) -> None:
    gateway = Gateway(network, PEER)
    listener, caller = gateway.add(b"the listener 000"), gateway.add(b"only a caller 00")
    caller.open(ALPHA)
    network.down.add(PEER)
    alpha.send(rf"DIRECT=TCP:{PEER}\{ORDERS}", b"for the listener")
    network.run(10_000)
    assert caller.bodies == []
    gateway.listener = listener
    network.down.clear()
    network.run(10_000)
    assert (listener.bodies, caller.bodies) == ([b"for the listener"], [])
    # Once he was reached there, he may fetch it by a session of his own.
    listener.close()
    network.down.add(PEER)
    alpha.send(rf"DIRECT=TCP:{PEER}\{ORDERS}", b"fetched")
    network.run(1_000)
    assert caller.is_open
    listener.open(ALPHA)
    network.run(1_000)
    assert (listener.bodies[1:], caller.bodies) == ([b"fetched"], [])


def test_each_of_two_senders_behind_one_address_gets_his_own_acknowledgments(
    network: Network, beta: Computer
) -> None:
    gateway = Gateway(network, PEER)
    senders = [gateway.add(b"first sender 000"), gateway.add(b"second sender 00")]
    for count, sender in enumerate(senders, 1):
        sender.open(BETA)
        for number in range(1, count + 1):
            sender.say(entry(sender.identifier, number, number - 1, final_ack=True))
    network.run(1_000)
    beta.messages(LEDGER, take=True)
    network.run(1_000)
    for count, sender in enumerate(senders, 1):
        acks = order_acks(sender.messages, sender.identifier)
        assert [ack.number for ack in acks] == [count]
        ends = final_acks(sender.messages, sender.identifier)
        assert [number for _, number in ends] == list(range(1, count + 1))


def test_acknowledgments_for_one_who_is_gone_wait_for_him_and_for_nobody_else(
    network: Network, beta: Computer
) -> None:
    gateway = Gateway(network, PEER)
    gone, other = gateway.add(b"who goes away 00"), gateway.add(b"who stays here 0")
    gateway.listener = other
    gone.open(BETA)
    gone.say(entry(gone.identifier, 1, final_ack=True))
    gone.close()
    other.open(BETA)
    beta.messages(LEDGER, take=True)
    network.run(20_000)
    assert other.messages == []
    beta.crash()
    gone.open(BETA)
    network.run(10_000)
    assert final_acks(gone.messages, gone.identifier) == [(MessageClass.ACK_RECEIVE, 1)]


# What is remembered of senders.


def remembered_count(computer: Computer) -> int:
    """How many sequences of senders a queue manager has on its disk."""
    return len(computer.store.scan(*records.kind_range(b"I"), 1_000))


def test_invented_senders_leave_only_so_much_behind(network: Network, peer: Neighbour) -> None:
    beta = network.manager("BETA", BETA, quota_kb=40)
    beta.create(LEDGER, transactional=True)
    limit = 40 * 1024 // 8 // INCOMING_SEQUENCE_BYTES
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    for number in range(3 * limit):
        invented = Neighbour(network, f"127.1.0.{number % 2}")
        invented.identifier = Guid(b"invented %07d" % number)
        invented.open(BETA)
        invented.say(entry(invented.identifier, 1))
        invented.close()
    assert remembered_count(beta) == limit
    peer.say(entry(peer.identifier, 2, 1))
    assert beta.bodies(LEDGER)[-1] == b"2"
    # A newcomer is taken in, and one of those with most of them gives way.
    newcomer = Neighbour(network, "127.2.0.1")
    newcomer.open(BETA)
    newcomer.say(entry(newcomer.identifier, 7))
    assert beta.bodies(LEDGER)[-1] == b"7"
    assert remembered_count(beta) == limit
    assert told(beta, NoticeKind.SEQUENCE_REFUSED)[0]["reason"] == "too-many-sequences"


def test_sequences_that_nobody_uses_any_more_are_forgotten(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    network.run(80 * 86_400_000)
    assert remembered_count(beta) == 1
    peer.open(BETA)
    peer.say(entry(peer.identifier, 2, 1))
    network.run(80 * 86_400_000)
    assert remembered_count(beta) == 1
    network.run(11 * 86_400_000)
    assert remembered_count(beta) == 0
    beta.crash()
    assert remembered_count(beta) == 0


# Sent again, and not delivered here.


def test_what_was_stored_but_not_acknowledged_in_order_is_sent_again_after_a_reconnection(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    name = rf"DIRECT=TCP:{PEER}\{LEDGER}"
    alpha.send(name, *numbered(3), transactional=True)
    network.run(100)
    assert peer.bodies == numbered(3)
    peer.close()
    alpha.send(name, b"3", transactional=True)
    network.run(6_000)
    assert peer.bodies == [*numbered(3), *numbered(4)]


@pytest.mark.parametrize("queue", [ORDERS, r"PRIVATE$\order_queue$"])
def test_a_direct_name_for_another_queue_manager_is_not_delivered_here(
    network: Network, beta: Computer, peer: Neighbour, queue: str
) -> None:
    peer.open(BETA)
    elsewhere = letter(
        peer.identifier, 1, direct(BETA, queue), b"lost", manager=Guid(b"somebody else 00")
    )
    peer.say(elsewhere)
    network.run(1_000)
    assert beta.bodies(ORDERS) == []
    assert peer.is_open


def test_an_order_queue_of_another_queue_manager_is_not_ours(
    alpha: Computer, peer: Neighbour
) -> None:
    message = sent_to_peer(alpha, peer)
    assert message.transaction is not None
    elsewhere = order_ack(message, Guid(b"somebody else 00"), source=peer.identifier)
    assert isinstance(elsewhere.user.destination, PrivateOnDestination)
    peer.say(elsewhere)
    assert alpha.outgoing()[0].message_count == 1

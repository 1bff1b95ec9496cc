"""Faults at the moments at which messages are most easily lost, or doubled."""

from __future__ import annotations

import pytest

from openmsmq.model.limits import INFINITE_S
from openmsmq.protocol.config import TransferConfig
from openmsmq.sim.checks.facts import Kind
from tests.scenarios.stage import Stage, acknowledged

CERTAIN = pytest.mark.parametrize("kind", [Kind.RECOVERABLE, Kind.TRANSACTIONAL])


def send(stage, kind, count=3, **wishes):
    alpha, bravo = stage.nodes[0], stage.nodes[-1]
    sent = stage.act(alpha, lambda actor: actor.send(bravo, kind, count, **wishes))
    assert acknowledged(sent)
    return sent


def on_disk(node, messages):
    return lambda: all(node.index in message.durable_at for message in messages)


@pytest.mark.parametrize("kind", Kind)
def test_messages_reach_another_node_once(kind):
    stage = Stage()
    sent = send(stage, kind)
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


@CERTAIN
def test_a_receiver_that_crashes_between_storing_and_acknowledging_gets_no_second_copy(kind):
    stage = Stage()
    bravo = stage.nodes[1]
    sent = send(stage, kind)
    stage.until(on_disk(bravo, sent))
    assert stage.outgoing_count(stage.nodes[0]) == 3
    stage.restart(bravo)
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


@CERTAIN
def test_a_receiver_that_crashes_before_storing_gets_the_messages_again(kind):
    stage = Stage(flush_ms=50)
    bravo = stage.nodes[1]
    sent = send(stage, kind)
    stage.until(lambda: bravo.disk.writing is not None and sent[0].on_wire)
    bravo.crash(reached=False)
    assert not on_disk(bravo, sent)()
    stage.world.power_returns(bravo)
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


@CERTAIN
def test_a_sender_that_crashes_after_sending_does_not_send_a_second_copy(kind):
    stage = Stage()
    alpha, bravo = stage.nodes
    sent = send(stage, kind)
    stage.until(on_disk(bravo, sent))
    stage.restart(alpha)
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


@CERTAIN
def test_bytes_of_an_old_connection_that_come_late_make_no_second_copy(kind):
    stage = Stage()
    sent = send(stage, kind)
    stage.until(lambda: sent[0].on_wire)
    (connection,) = stage.network.open_connections
    connection.broken = True
    connection.late_until_ms = stage.world.timeline.now_ms + 9_000
    first = connection.ends[0]
    first.node.input("session_lost", first.session, first.node.clock.now())
    first.open = False
    stage.pass_time(20_000)
    assert on_disk(stage.nodes[1], sent)()
    stage.finish()
    assert [message.arrivals for message in sent] == [1, 1, 1]


@CERTAIN
def test_a_receiver_without_room_on_its_disk_gets_the_messages_later(kind):
    stage = Stage()
    bravo = stage.nodes[1]
    bravo.disk.full_until_ms = stage.world.timeline.now_ms + 30_000
    sent = send(stage, kind)
    stage.pass_time(20_000)
    assert stage.outgoing_count(stage.nodes[0]) == 3
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


def test_a_partition_only_delays():
    stage = Stage()
    alpha, bravo = stage.nodes
    stage.network.part(alpha, bravo, stage.world.timeline.now_ms + 60_000)
    sent = send(stage, Kind.TRANSACTIONAL)
    stage.pass_time(50_000)
    assert not sent[0].arrivals
    stage.finish()


def test_messages_for_an_identifier_go_through_a_router_that_crashes():
    stage = Stage(3, routers=(1,), names=("identifier",))
    router = stage.nodes[1]
    sent = send(stage, Kind.TRANSACTIONAL)
    stage.until(on_disk(router, sent))
    stage.restart(router)
    stage.finish()
    assert [message.consumed for message in sent] == [1, 1, 1]


def test_the_copy_of_a_transactional_message_is_in_the_journal_when_it_was_received():
    stage = Stage()
    sent = send(stage, Kind.TRANSACTIONAL, journal_on_success=True)
    stage.settle()
    assert [message.journal_copies for message in sent] == [0, 0, 0]
    stage.finish()
    assert [message.journal_copies for message in sent] == [1, 1, 1]


def test_a_message_that_expires_on_its_way_is_a_dead_letter_of_its_sender():
    stage = Stage()
    alpha, bravo = stage.nodes
    stage.network.part(alpha, bravo, stage.world.timeline.now_ms + 60_000)
    sent = send(
        stage,
        Kind.TRANSACTIONAL,
        journal_on_failure=True,
        time_to_reach_queue_s=5,
        time_to_be_received_s=INFINITE_S,
    )
    stage.finish()
    assert [message.dead_letters for message in sent] == [{0}, {0}, {0}]
    assert [message.arrivals for message in sent] == [0, 0, 0]


def test_a_prepared_transaction_to_another_node_survives_a_restart():
    stage = Stage()
    alpha, bravo = stage.nodes

    def steps(actor):
        if not actor.sent:
            yield from actor.prepare(bravo, 2)
            yield 60_000
        else:
            yield from actor.resolve()

    actor = stage.begin(alpha, steps)
    stage.until(lambda: bool(actor.sent) and actor.sent[0].group.prepared)
    stage.restart(alpha)
    stage.until(lambda: actor.done)
    assert acknowledged(actor.sent)
    stage.finish()
    assert [message.consumed for message in actor.sent] == [1, 1]


def test_a_session_that_rests_more_often_than_messages_are_sent_again_delays_them_not_for_ever():
    stage = Stage(
        transfer=TransferConfig(session_idle_ms=2_000, resend_first_s=5, retry_connect_ms=1_000)
    )
    bravo = stage.nodes[1]
    sent = send(stage, Kind.TRANSACTIONAL)
    stage.until(on_disk(bravo, sent))
    # The acknowledgment of the order is made and lost with the disk that has no room for it.
    bravo.disk.full_until_ms = stage.world.timeline.now_ms + 2_000
    stage.pass_time(120_000)
    assert stage.outgoing_count(stage.nodes[0]) == 0
    stage.finish()

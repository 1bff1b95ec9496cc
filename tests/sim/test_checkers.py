"""Each promise has a checker that notices when it is broken: here each is broken by hand."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.client.formatters.plain import BytesFormatter
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.queue import QueueKind, QueueProperties, QueueRole
from openmsmq.sim.checks import endings
from openmsmq.sim.checks.books import PURGING, READING
from openmsmq.sim.checks.facts import Fate, Kind
from openmsmq.sim.checks.wire_watch import Flow, join
from openmsmq.sim.runner import make_world
from openmsmq.sim.scenarios.scenario import ADMIN, PLAIN, TRANSACTIONAL, Options
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from openmsmq.storage.records import EntryFacts, QueueRecord
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.packets import SessionAck, decode, encode

QUEUES = {PLAIN: 16, TRANSACTIONAL: 18, ADMIN: 20, "direct=os:bravo\\x": 30, "plain;journal": 17}
ROLES = {30: QueueRole.OUTGOING, 17: QueueRole.JOURNAL}
JOURNAL, DEAD_LETTER = 1, 2


class Scene:
    """Two nodes that never start, and books that are written by hand."""

    def __init__(self):
        doing = ("recoverable", "transaction", "purge")
        self.world = make_world(0, Options(managers=2, faults=False, doing=doing))
        self.books = self.world.books
        self.alpha, self.bravo = self.world.nodes
        self._lookup = 0
        self._numbers = 0
        for node in self.world.nodes:
            changes = []
            for path, number in QUEUES.items():
                properties = QueueProperties(
                    identifier=Guid(bytes(16)), path_name=path, kind=QueueKind.PRIVATE
                )
                record = QueueRecord(properties, ROLES.get(number, QueueRole.APPLICATION))
                changes.append((records.queue_key(number), records.encode_record(record)))
            self.books.disks.stored(node, Batch(changes))

    def message(self, kind=Kind.RECOVERABLE, target=None, group=None, **wishes):
        group = group or self.books.new_group(self.alpha)
        queue = TRANSACTIONAL if kind is Kind.TRANSACTIONAL else PLAIN
        message = self.books.new_message(kind, group, target or self.alpha, queue)
        for name, value in wishes.items():
            setattr(message, name, value)
        group.messages.append(message)
        return message

    def sent(self, *arguments, **wishes):
        """A message whose sending is under way."""
        message = self.message(*arguments, **wishes)
        self.books.commits(message.group)
        return message

    def packet(self, message, *, sequence=None, message_class=0):
        self._numbers += 1
        message.message_id = message.message_id or bytes(
            message.source.identifier
        ) + self._numbers.to_bytes(4, "little")
        built = PacketBuilder("OS:X\\y", "X").build(
            OutgoingMessage(
                body=message.body,
                recoverable=message.certain,
                correlation_id=message.message_id,
            ),
            BytesFormatter(),
            message.kind is Kind.TRANSACTIONAL,
        )
        sender, number = message.message_id[:16], message.message_id[16:]
        built = message_bytes.stamped(built, sender, 0, int.from_bytes(number, "little"))
        built = message_bytes.with_class(built, message_class)
        if sequence is None:
            return built
        whole = decode(built)
        return encode(
            type(whole)(whole.user, whole.properties, whole.base, TransactionHeader(*sequence))
        )

    def put(self, node, queue, *messages, volatile=False, message_class=0):
        """Store messages in a queue, in one batch; gives their keys."""
        changes = []
        for message in messages:
            self._lookup += 1
            number = QUEUES.get(queue, queue)
            packet = self.packet(message, message_class=message_class)
            value = records.encode_entry(EntryFacts(0), packet)
            changes.append((records.entry_key(number, self._lookup), value))
        self.books.disks.stored(node, Batch([], changes) if volatile else Batch(changes))
        return [key for key, _ in changes]

    def remove(self, node, *keys):
        self.books.disks.stored(node, Batch([(key, None) for key in keys]))

    def give(self, node, queue, message, key, group=None):
        entry = api.Entry(records.lookup_of(key), 0, 0, 0, self.packet(message))
        self.books.given(node, queue, [entry], group)

    def read(self, message, key):
        """Receive a message as it should be."""
        errand = self.books.errand(message.target, message.queue, READING)
        self.remove(message.target, key)
        self.give(message.target, message.queue, message, key)
        self.books.errand_ends(errand, message.target)


@pytest.fixture
def scene():
    return Scene()


def broken(match):
    return pytest.raises(Violation, match=match)


def test_a_message_that_is_sent_stored_acknowledged_and_received_breaks_nothing(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.acknowledged(message.group)
    scene.read(message, key)
    endings.check(scene.world)


# What applications are told.


def test_an_acknowledgment_before_the_disk_is_noticed(scene):
    message = scene.sent()
    with broken("m1 was acknowledged to its sender before ALPHA had it on its disk"):
        scene.books.acknowledged(message.group)


def test_an_express_message_needs_no_disk(scene):
    scene.books.acknowledged(scene.sent(Kind.EXPRESS).group)


def test_a_refused_message_that_is_stored_is_noticed(scene):
    message = scene.sent()
    scene.put(scene.alpha, PLAIN, message)
    with broken("m1 was refused, and is in a queue of ALPHA"):
        scene.books.failed(message.group)


def test_a_refused_message_that_comes_later_is_noticed(scene):
    message = scene.sent()
    scene.books.failed(message.group)
    with broken("its sending failed"):
        scene.put(scene.alpha, PLAIN, message)


def test_a_message_of_a_transaction_that_nobody_committed_is_noticed(scene):
    with broken("its sending staged"):
        scene.put(scene.alpha, TRANSACTIONAL, scene.message(Kind.TRANSACTIONAL))


def test_a_message_given_out_before_its_removal_is_durable_is_noticed(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    with broken("was given to its receiver while ALPHA still had it"):
        scene.give(scene.alpha, PLAIN, message, key)


def test_a_recoverable_message_that_is_given_out_without_a_disk_is_noticed(scene):
    message = scene.sent()
    with broken("m1 .* was given to its receiver and was never on the disk of ALPHA"):
        scene.give(scene.alpha, PLAIN, message, records.entry_key(16, 5))


def test_an_express_message_may_be_handed_to_a_reader_again_after_a_loss_of_power(scene):
    message = scene.sent(Kind.EXPRESS)
    key = records.entry_key(16, 5)
    scene.give(scene.alpha, PLAIN, message, key)
    with broken("came into its queue 2 times"):
        scene.give(scene.alpha, PLAIN, message, key)
    scene.books.disks.crashed(scene.alpha)
    scene.give(scene.alpha, PLAIN, message, key)


def test_a_message_received_twice_is_noticed(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.read(message, key)
    with broken("m1 was received 2 times"):
        scene.give(scene.alpha, PLAIN, message, key)


def test_a_message_in_the_hands_of_two_transactions_is_noticed(scene):
    message = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, message)
    one, other = scene.books.new_group(scene.alpha), scene.books.new_group(scene.alpha)
    scene.give(scene.alpha, TRANSACTIONAL, message, key, one)
    with broken(f"m1 was given to {other} while {one} holds it"):
        scene.give(scene.alpha, TRANSACTIONAL, message, key, other)


# What disks have.


def test_a_message_that_comes_twice_is_noticed(scene):
    message = scene.sent()
    scene.put(scene.alpha, PLAIN, message)
    with broken("came into its queue 2 times"):
        scene.put(scene.alpha, PLAIN, message)


def test_an_express_message_may_come_again_after_a_loss_of_power(scene):
    message = scene.sent(Kind.EXPRESS)
    scene.put(scene.alpha, PLAIN, message, volatile=True)
    scene.books.disks.crashed(scene.alpha)
    scene.put(scene.alpha, PLAIN, message, volatile=True)
    assert message.arrivals == 2


def test_a_message_in_the_wrong_place_is_noticed(scene):
    message = scene.sent()
    with broken("m1 for ALPHA .* came into .* of BRAVO"):
        scene.put(scene.bravo, PLAIN, message)


def test_a_message_that_nobody_sent_is_noticed(scene):
    message = scene.sent()
    del scene.books.messages[message.number]
    with broken("has a message that nobody sent"):
        scene.put(scene.alpha, PLAIN, message)


def test_a_recoverable_message_only_in_memory_is_noticed(scene):
    with broken("only in memory"):
        scene.put(scene.alpha, PLAIN, scene.sent(), volatile=True)


def test_transactional_messages_in_another_order_are_noticed(scene):
    first, second = scene.sent(Kind.TRANSACTIONAL), scene.sent(Kind.TRANSACTIONAL)
    scene.put(scene.alpha, TRANSACTIONAL, second)
    with broken("m1 came into its queue after a message that was sent later"):
        scene.put(scene.alpha, TRANSACTIONAL, first)


def test_half_a_transaction_on_the_disk_is_noticed(scene):
    group = scene.books.new_group(scene.alpha)
    first = scene.message(Kind.TRANSACTIONAL, group=group)
    scene.message(Kind.TRANSACTIONAL, group=group)
    scene.books.commits(group)
    with broken("half of t1 is on the disk of ALPHA: m2 is missing"):
        scene.put(scene.alpha, TRANSACTIONAL, first)


def test_a_transaction_that_sends_and_does_not_receive_is_noticed(scene):
    taken = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, taken)
    group = scene.books.new_group(scene.alpha)
    scene.give(scene.alpha, TRANSACTIONAL, taken, key, group)
    message = scene.message(Kind.TRANSACTIONAL, group=group)
    scene.books.commits(group)
    with broken("half of t2 .* m1 is still in its queue"):
        scene.put(scene.alpha, TRANSACTIONAL, message)


def test_a_message_that_vanishes_is_noticed(scene):
    (key,) = scene.put(scene.alpha, PLAIN, scene.sent())
    with broken("m1 was removed from .* and nobody had asked for that"):
        scene.remove(scene.alpha, key)


def test_a_purge_may_remove_a_message(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.acknowledged(message.group)
    errand = scene.books.errand(scene.alpha, PLAIN, PURGING)
    scene.remove(scene.alpha, key)
    scene.books.errand_ends(errand, scene.alpha)
    endings.check(scene.world)


def test_a_reader_that_is_given_what_a_transaction_holds_is_noticed(scene):
    message = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, message)
    group = scene.books.new_group(scene.alpha)
    scene.give(scene.alpha, TRANSACTIONAL, message, key, group)
    with broken(f"m1 was given to a reader while {group} holds it"):
        scene.read(message, key)


def purged(scene, message):
    """Let a queue be purged, and what a transaction holds stay in it."""
    scene.world.timeline.now_ms += 1
    errand = scene.books.errand(scene.alpha, message.queue, PURGING)
    scene.books.errand_ends(errand, scene.alpha)
    scene.books.purged(errand, scene.alpha, message.queue)


def test_a_purged_message_that_is_given_to_somebody_is_noticed(scene):
    message = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, message)
    group = scene.books.new_group(scene.alpha)
    scene.give(scene.alpha, TRANSACTIONAL, message, key, group)
    purged(scene, message)
    scene.books.failed(group)
    with broken("m1 was given to a reader, though it had been purged"):
        scene.read(message, key)


@pytest.mark.parametrize("fault", ["crashed", "refused"])
def test_a_purge_of_what_was_held_may_be_forgotten(scene, fault):
    message = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, message)
    purged(scene, message)
    getattr(scene.books.disks, fault)(scene.alpha)
    scene.read(message, key)


def test_a_message_that_came_after_a_purge_breaks_nothing(scene):
    message = scene.sent()
    errand = scene.books.errand(scene.alpha, PLAIN, PURGING)
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.purged(errand, scene.alpha, PLAIN)
    scene.books.errand_ends(errand, scene.alpha)
    scene.read(message, key)


def test_what_stays_aside_when_its_transaction_is_over_is_noticed(scene):
    name = b"T" + bytes(16)
    scene.books.disks.stored(scene.alpha, Batch([(name, b"prepared")], aside=[(name, [b"a"])]))
    with broken("keeps what is aside for a transaction that is over"):
        scene.books.disks.stored(scene.alpha, Batch([(name, None)]))


def test_a_message_that_is_reserved_read_and_completed_breaks_nothing(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.acknowledged(message.group)
    scene.books.reserved([message], "stream")
    errand = scene.books.errand(scene.alpha, PLAIN, READING)
    scene.books.reserved([message], "")
    scene.remove(scene.alpha, key)
    scene.books.errand_ends(errand, scene.alpha)
    scene.books.processed(scene.alpha, PLAIN, {records.lookup_of(key): message})
    endings.check(scene.world)


@pytest.mark.parametrize("kind", [READING, PURGING])
def test_a_reserved_message_that_another_takes_is_noticed(scene, kind):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.reserved([message], "stream")
    scene.books.errand(scene.alpha, PLAIN, kind)
    with broken("removed .* while stream has it reserved"):
        scene.remove(scene.alpha, key)


def test_a_reserved_message_in_the_hands_of_a_transaction_is_noticed(scene):
    message = scene.sent(Kind.TRANSACTIONAL)
    (key,) = scene.put(scene.alpha, TRANSACTIONAL, message)
    scene.books.reserved([message], "stream")
    with broken("while stream has it reserved"):
        scene.give(scene.alpha, TRANSACTIONAL, message, key, scene.books.new_group(scene.alpha))


def test_a_completed_message_that_is_still_there_is_noticed(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    with broken("was completed, and ALPHA still has it"):
        scene.books.processed(scene.alpha, PLAIN, {records.lookup_of(key): message})


def test_a_message_that_is_processed_twice_is_noticed(scene):
    message = scene.sent()
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.read(message, key)
    with broken("received 2 times"):
        scene.books.processed(scene.alpha, PLAIN, {records.lookup_of(key): message})


def test_a_message_in_a_queue_without_a_record_is_noticed(scene):
    with broken("ALPHA stored a message in queue 99, which it has no record of"):
        scene.put(scene.alpha, 99, scene.sent())


def test_two_messages_with_one_identifier_are_noticed(scene):
    first, second = scene.sent(), scene.sent()
    scene.put(scene.alpha, PLAIN, first)
    second.message_id = first.message_id
    with broken("m2 and m1 have the same message identifier"):
        scene.put(scene.alpha, PLAIN, second)


def test_a_sender_that_forgets_what_nobody_else_has_is_noticed(scene):
    message = scene.sent(Kind.RECOVERABLE, scene.bravo)
    (key,) = scene.put(scene.alpha, "direct=os:bravo\\x", message)
    with broken("ALPHA let go of m1 .*, which no other disk has"):
        scene.remove(scene.alpha, key)


def test_a_sender_may_forget_what_the_receiver_has(scene):
    message = scene.sent(Kind.RECOVERABLE, scene.bravo)
    (key,) = scene.put(scene.alpha, "direct=os:bravo\\x", message)
    scene.put(scene.bravo, PLAIN, message)
    scene.remove(scene.alpha, key)
    assert message.durable_at == {0, 1}


# What is on the wire.


def flows(scene):
    there, back = Flow(scene.alpha), Flow(scene.bravo)
    join(there, back)
    return there, back


def stored_ack(count):
    return encode(SessionAck(SessionHeader(count, 1, (1 << count) - 1)))


def test_a_message_that_leaves_before_it_is_on_the_disk_is_noticed(scene):
    there, _ = flows(scene)
    message = scene.sent(Kind.RECOVERABLE, scene.bravo)
    with broken("ALPHA sent m1 .* before it was on its disk"):
        scene.books.wire.leaves(there, scene.packet(message))


def test_an_acknowledgment_of_what_is_not_on_the_disk_is_noticed(scene):
    there, back = flows(scene)
    message = scene.sent(Kind.RECOVERABLE, scene.bravo)
    scene.put(scene.alpha, "direct=os:bravo\\x", message)
    scene.books.wire.leaves(there, scene.packet(message))
    with broken("BRAVO acknowledged m1 .* before it was on its disk"):
        scene.books.wire.leaves(back, stored_ack(1))


def test_an_acknowledgment_of_what_is_on_the_disk_is_right(scene):
    there, back = flows(scene)
    message = scene.sent(Kind.RECOVERABLE, scene.bravo)
    scene.put(scene.alpha, "direct=os:bravo\\x", message)
    data = scene.packet(message)
    scene.books.wire.leaves(there, data[:20])
    scene.books.wire.leaves(there, data[20:])
    scene.put(scene.bravo, PLAIN, message)
    scene.books.wire.leaves(back, stored_ack(1))
    assert scene.books.wire.packet_count == 2


def test_an_acknowledgment_of_packets_that_were_never_sent_is_noticed(scene):
    _, back = flows(scene)
    with broken("BRAVO is no honest peer: .* acknowledged more messages than .* has sent"):
        scene.books.wire.leaves(back, stored_ack(1))


def test_two_messages_under_one_number_are_noticed(scene):
    there, _ = flows(scene)
    messages = [scene.sent(Kind.TRANSACTIONAL, scene.bravo) for _ in range(2)]
    point = (SequenceId(1, 5), 1)
    scene.put(scene.alpha, "direct=os:bravo\\x", messages[0])
    scene.put(scene.alpha, "direct=os:bravo\\x", messages[1])
    scene.books.wire.leaves(there, scene.packet(messages[0], sequence=point))
    with broken("m2 and m1 were sent under the same number 1"):
        scene.books.wire.leaves(there, scene.packet(messages[1], sequence=point))


def test_an_order_acknowledgment_before_the_disk_is_noticed(scene):
    there, back = flows(scene)
    message = scene.sent(Kind.TRANSACTIONAL, scene.bravo)
    sequence = SequenceId(1, 5)
    scene.put(scene.alpha, "direct=os:bravo\\x", message)
    scene.books.wire.leaves(there, scene.packet(message, sequence=(sequence, 1)))
    ack = order_packet(
        OrderAck.up_to(sequence, 1),
        source=scene.bravo.identifier,
        to=scene.alpha.address,
        message_number=1,
        sent_time_s=0,
        time_to_reach_queue_s=60,
    )
    with broken("BRAVO acknowledged the order up to 1, and m1 with number 1 is not on its disk"):
        scene.books.wire.leaves(back, encode(ack))


def test_bytes_that_nobody_can_read_are_noticed(scene):
    there, _ = flows(scene)
    with broken("ALPHA sent bytes that nobody can read"):
        scene.books.wire.leaves(there, b"\xff" * 64)


# Copies and acknowledgments.


def test_a_journal_copy_that_nobody_asked_for_is_noticed(scene):
    message = scene.sent()
    scene.put(scene.alpha, PLAIN, message)
    with broken("ALPHA has 1 journal copies of m1"):
        scene.put(scene.alpha, JOURNAL, message)


def test_a_journal_copy_before_the_delivery_is_noticed(scene):
    message = scene.sent(Kind.RECOVERABLE, scene.bravo, journal_on_success=True)
    scene.put(scene.alpha, "direct=os:bravo\\x", message)
    with broken("m1 is in the journal of ALPHA before it was delivered"):
        scene.put(scene.alpha, JOURNAL, message)


def test_a_missing_journal_copy_is_noticed(scene):
    message = scene.sent(journal_on_success=True)
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.acknowledged(message.group)
    scene.read(message, key)
    with broken("m1 asked for a copy in the journal of ALPHA and has none"):
        endings.check(scene.world)


def test_a_dead_letter_of_a_message_that_lives_is_noticed(scene):
    message = scene.sent(journal_on_failure=True)
    scene.put(scene.alpha, PLAIN, message)
    with broken("m1 is a dead letter at ALPHA, and nothing had happened to it"):
        scene.put(scene.alpha, DEAD_LETTER, message, message_class=0xC002)


def test_a_dead_letter_of_a_message_that_was_received_is_noticed(scene):
    message = scene.sent(journal_on_failure=True)
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.read(message, key)
    with broken("m1 was received, and is a dead letter at ALPHA"):
        scene.put(scene.alpha, DEAD_LETTER, message, message_class=0xC002)


def test_a_second_acknowledgment_is_noticed(scene):
    message = scene.sent(acknowledge=1)
    scene.put(scene.alpha, PLAIN, message)
    scene.put(scene.alpha, ADMIN, message, message_class=2)
    with broken("m1 got acknowledgment 0x0002 twice"):
        scene.put(scene.alpha, ADMIN, message, message_class=2)


def test_an_acknowledgment_for_which_nobody_asked_is_noticed(scene):
    message = scene.sent()
    scene.put(scene.alpha, PLAIN, message)
    with broken("m1 asked for no acknowledgment and got one"):
        scene.put(scene.alpha, ADMIN, message, message_class=2)


def test_a_sender_that_never_hears_of_the_arrival_is_noticed(scene):
    message = scene.sent(acknowledge=1)
    (key,) = scene.put(scene.alpha, PLAIN, message)
    scene.books.acknowledged(message.group)
    scene.read(message, key)
    with broken("m1 came into its queue, and its sender never heard of it"):
        endings.check(scene.world)


# The end.


def test_an_acknowledged_message_that_never_came_is_noticed(scene):
    message = scene.sent(Kind.TRANSACTIONAL, scene.bravo)
    message.durable_at.add(0)
    scene.books.acknowledged(message.group)
    with broken("m1 .* was acknowledged to its sender and never came into its queue"):
        endings.check(scene.world)


def test_a_message_that_nobody_can_receive_is_noticed(scene):
    message = scene.sent()
    scene.put(scene.alpha, PLAIN, message)
    with broken("ALPHA has m1 in .* and gives it to nobody"):
        endings.check(scene.world)


def test_a_message_of_unknown_fate_may_be_lost(scene):
    scene.books.unknown(scene.sent().group)
    endings.check(scene.world)


def test_what_is_not_on_the_disk_when_the_power_goes_never_happened(scene):
    message = scene.sent(Kind.TRANSACTIONAL)
    scene.books.unknown(message.group)
    assert message.group.fate is Fate.FAILED

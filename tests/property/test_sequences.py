"""A sender and a receiver of transactional messages, with a network and disks that fail.

The model is the list of what was sent. Packets and acknowledgments are lost, repeated and
reordered at will; both sides crash and are rebuilt from what was on their disks; disks refuse;
messages expire. When all that stops, the receiver must have everything that did not expire.
`OPENMSMQ_MODEL_EXAMPLES=10000` looks much longer than the default.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId, SequencePoint
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.incoming_sequence import IncomingSequence, Verdict
from openmsmq.protocol.outgoing_sequence import SEQUENCE_MAX_NUMBER, OutgoingSequence

EXAMPLES = int(os.environ.get("OPENMSMQ_MODEL_EXAMPLES", "200"))
STEPS = 60
NOTHING = SequenceId(0, 0)
CONFIG = TransferConfig()

# One drawn number chooses among what there is: simple, and it shrinks to the first.
choices = st.integers(0, 1_000)
counts = st.integers(1, 5)


class Trouble(Enum):
    EXPIRY = auto()
    LOST_PACKETS = auto()
    LOST_ACKS = auto()
    NEW_SESSION = auto()
    SENDER_CRASH = auto()
    RECEIVER_CRASH = auto()
    RECEIVER_DISK = auto()


class Sender:
    """An outgoing queue: its disk, and the sequence that is lost in a crash."""

    def __init__(self, id: SequenceId | None, last_number: int) -> None:
        self.disk: dict[int, SequencePoint] = {}
        self.disk_position = (id, last_number)
        # Removed in memory, and on disk with the next write.
        self.removed: set[int] = set()
        self.ids_given = 10
        self.restart()

    def restart(self) -> None:
        self.sequence = OutgoingSequence(CONFIG, *self.disk_position)
        self.removed.clear()
        self.unsent = list(self.disk)

    def remove(self, entry: int) -> None:
        self.removed.add(entry)
        if entry in self.unsent:
            self.unsent.remove(entry)

    def sync(self) -> None:
        for entry in self.removed:
            self.disk.pop(entry, None)
        self.removed.clear()

    @property
    def is_empty(self) -> bool:
        return self.disk.keys() == self.removed


class Receiver:
    """A queue: what is on disk, and what was accepted and is on its way there."""

    def __init__(self) -> None:
        self.disk: list[int] = []
        self.disk_position = (NOTHING, 0)
        self.restart()

    def restart(self) -> None:
        self.sequence = IncomingSequence(CONFIG, *self.disk_position)
        self.on_the_way: list[tuple[SequencePoint, int]] = []

    @property
    def accepted(self) -> list[int]:
        return self.disk + [entry for _, entry in self.on_the_way]


class Transfer(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = Instant(1_000, 1_000_000)
        self.receiver = Receiver()
        self.sent_count = 0
        self.expired: set[int] = set()
        # What is under way, and everything that ever was: copies of it may come at any time.
        self.packets: list[tuple[SequencePoint, int]] = []
        self.acks: list[SequencePoint] = []
        self.old_packets: list[tuple[SequencePoint, int]] = []
        self.old_acks: list[SequencePoint] = []

    @initialize(left_count=st.none() | st.integers(0, 8))
    def start(self, left_count: int | None) -> None:
        """Begin with nothing, or with one message near the end of a sequence."""
        if left_count is None:
            self.sender = Sender(None, 0)
            return
        point = SequencePoint(SequenceId(9, 1), SEQUENCE_MAX_NUMBER - left_count, 0)
        self.sender = Sender(point.id, point.number)
        self.sender.disk[0] = point
        self.sender.restart()
        self.sent_count = 1

    # The sender.

    @rule(count=counts, disk_works=st.booleans() | st.just(True))
    def put(self, count: int, disk_works: bool) -> None:
        sender, sequence = self.sender, self.sender.sequence
        before = (sequence.id, sequence.last_number)
        points = []
        for _ in range(count):
            if sequence.needs_renewal(sender.is_empty and not points):
                sender.ids_given += 1
                sequence.renew(SequenceId(sender.ids_given, 1))
            points.append(sequence.take_number())
        if not disk_works:
            sequence.restore(*before)
            return
        sender.sync()
        for point in points:
            sender.disk[self.sent_count] = point
            sender.unsent.append(self.sent_count)
            self.sent_count += 1
        sender.disk_position = (sequence.id, sequence.last_number)

    def transmit(self, entry: int) -> None:
        id, number = self.sender.disk[entry].id, self.sender.disk[entry].number
        point = SequencePoint(id, number, self.sender.sequence.previous_of(number))
        self.sender.sequence.sent(point, entry, self.now)
        self.packets.append((point, entry))
        self.old_packets.append((point, entry))

    @rule(count=counts)
    def send(self, count: int) -> None:
        unsent = self.sender.unsent
        while count and unsent and self.sender.sequence.can_send:
            self.transmit(unsent.pop(0))
            count -= 1

    def send_again_in_a_new_session(self) -> None:
        for entry in self.sender.sequence.outstanding():
            self.transmit(entry)
        self.sender.sequence.reconnected(self.now)

    def expire(self, choice: int) -> None:
        alive = [entry for entry in self.sender.disk if entry not in self.sender.removed]
        if alive:
            entry = alive[choice % len(alive)]
            self.expired.add(entry)
            self.sender.remove(entry)
            self.sender.sequence.gone(entry)

    @rule(choice=choices)
    def ack_arrives(self, choice: int) -> None:
        if self.acks:
            self.hear(self.acks.pop(choice % len(self.acks)))

    @rule(choice=choices)
    def old_ack_arrives(self, choice: int) -> None:
        if self.old_acks:
            self.hear(self.old_acks[choice % len(self.old_acks)])

    def hear(self, ack: SequencePoint) -> None:
        released = self.sender.sequence.order_acked(ack.id, ack.number, self.now)
        assert released == sorted(released)
        assert set(released) <= {*self.receiver.disk, *self.expired}
        for entry in released:
            self.sender.remove(entry)

    # The network.

    def packets_are_lost(self, choice: int, count: int) -> None:
        for _ in range(min(count, len(self.packets))):
            self.packets.pop(choice % len(self.packets))

    # The receiver.

    @rule(choice=choices)
    def packet_arrives(self, choice: int) -> None:
        if self.packets:
            self.receive(*self.packets.pop(choice % len(self.packets)))

    @rule(choice=choices)
    def old_packet_arrives(self, choice: int) -> None:
        if self.old_packets:
            self.receive(*self.old_packets[choice % len(self.old_packets)])

    @rule(count=st.integers(1, 20))
    def packets_arrive_in_order(self, count: int) -> None:
        for point, entry in self.packets[:count]:
            self.receive(point, entry)
        del self.packets[:count]

    def receive(self, point: SequencePoint, entry: int) -> None:
        sequence = self.receiver.sequence
        verdict = sequence.judge(point.id, point.number, point.previous)
        if verdict is Verdict.ACCEPT:
            sequence.assume(point.id, point.number)
            self.receiver.on_the_way.append((point, entry))
        elif verdict is Verdict.GAP:
            sequence.reject()
        sequence.heard(self.now)

    @rule(count=counts | st.just(100))
    def receiver_writes(self, count: int) -> None:
        written = self.receiver.on_the_way[:count]
        for point, entry in written:
            self.receiver.disk.append(entry)
            self.receiver.disk_position = (point.id, point.number)
            self.receiver.sequence.settle(point.id, point.number)
        del self.receiver.on_the_way[:count]

    def receiver_cannot_write(self) -> None:
        self.receiver.on_the_way.clear()
        self.receiver.sequence.forget_assumed()

    # What goes wrong is one rule, so that it does not outweigh what goes well.

    @rule(trouble=st.sampled_from(Trouble), choice=choices, count=counts)
    def trouble_comes(self, trouble: Trouble, choice: int, count: int) -> None:
        match trouble:
            case Trouble.EXPIRY:
                self.expire(choice)
            case Trouble.LOST_PACKETS:
                self.packets_are_lost(choice, count)
            case Trouble.LOST_ACKS:
                self.acks.clear()
            case Trouble.NEW_SESSION:
                self.send_again_in_a_new_session()
            case Trouble.SENDER_CRASH:
                self.sender.restart()
            case Trouble.RECEIVER_CRASH:
                self.receiver.restart()
            case Trouble.RECEIVER_DISK:
                self.receiver_cannot_write()

    # Time.

    @rule(pause_ms=st.sampled_from([100, 499, 500, 1_000, 30_000, 300_000]))
    def time_passes(self, pause_ms: int) -> None:
        self.now = Instant(self.now.ticks_ms + pause_ms, self.now.unix_s + pause_ms // 1000)
        ack = self.receiver.sequence.order_ack_due(self.now)
        if ack is not None:
            self.acks.append(ack)
            self.old_acks.append(ack)
        if self.sender.sequence.resend_due(self.now):
            for entry in self.sender.sequence.outstanding():
                self.transmit(entry)

    @rule(count=counts, stop=st.sampled_from(["", "", "", "writing", "acknowledging"]))
    def things_go_well(self, count: int, stop: str) -> None:
        """Do what usually follows each other, so that long histories come far."""
        self.put(count, disk_works=True)
        self.send(1_000)
        self.packets_arrive_in_order(1_000)
        if stop == "writing":
            return
        self.receiver_writes(1_000)
        self.time_passes(500)
        if stop != "acknowledging":
            self.ack_arrives(len(self.acks) - 1)

    # What always holds, and what holds in the end.

    @invariant()
    def what_is_accepted_is_in_order_and_there_once(self) -> None:
        accepted = self.receiver.accepted
        assert all(earlier < later for earlier, later in pairwise(accepted))

    @invariant()
    def what_was_passed_over_had_expired(self) -> None:
        accepted = self.receiver.accepted
        if accepted:
            assert set(range(accepted[-1])) - set(accepted) <= self.expired

    def teardown(self) -> None:
        if not hasattr(self, "sender"):
            return
        self.packets.clear()
        self.acks.clear()
        for _ in range(30):
            self.send(1_000)
            self.packets_arrive_in_order(1_000)
            self.receiver_writes(1_000)
            wakes = [self.sender.sequence.next_wake_ms, self.receiver.sequence.next_wake_ms]
            due = [wake for wake in wakes if wake is not None]
            self.time_passes(max(0, min(due, default=0) - self.now.ticks_ms))
            while self.acks:
                self.ack_arrives(0)
        assert self.sender.is_empty
        assert self.sender.sequence.next_wake_ms is None
        kept = [entry for entry in self.receiver.disk if entry not in self.expired]
        assert kept == [entry for entry in range(self.sent_count) if entry not in self.expired]


TestTransfer = Transfer.TestCase
TestTransfer.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
TestTransfer.pytestmark = [
    pytest.mark.spec(
        "MQQB-3.1.1.6.2-03",  # acknowledged in order, and only what is on disk
        "MQQB-3.1.1.6.2-10",  # kept by the sender until then
        "MQQB-3.1.6.5-01",  # everything unacknowledged goes again
    )
]

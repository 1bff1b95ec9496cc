"""Two sessions that talk: whatever happens on the way, each message arrives once and in order."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session import SessionState
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import SessionAck, UserMessage, decode
from tests.unit.protocol.session_checks import Conversation, Side, message

SMALL = message(0, body=b"")
DURABLE = message(0, recoverable=True, body=b"")


class Witness:
    """Reads along what one side receives, with the codec alone, and knows what it may send."""

    def __init__(self, side: Side, limit: int, negotiated: int) -> None:
        self.side = side
        self.limit = limit
        self.negotiated = negotiated
        self.covered = 0
        self.window = negotiated
        self.window_since_ms = 0
        self._unread = bytearray()

    def read(self, data: bytes, now_ms: int) -> None:
        self._unread += data
        for raw in take_packets(self._unread):
            packet = decode(raw)
            assert isinstance(packet, SessionAck | UserMessage)
            if packet.session is not None:
                self._note(packet.session, now_ms)

    def _note(self, header: SessionHeader, now_ms: int) -> None:
        self.covered += (header.received_count - self.covered) & 0xFFFF
        self.window, self.window_since_ms = header.window, now_ms

    def allowed(self, now_ms: int) -> int:
        """How many packets may be in flight: the last window, doubled each 30 s."""
        doublings = (now_ms - self.window_since_ms) // 30_000
        grown = min(self.negotiated, self.window << doublings)
        return min(self.limit, max(self.window, grown))

    @property
    def in_flight(self) -> int:
        return len(self.side.sent) - self.covered


class Play:
    """A conversation driven by drawn steps, with the promises checked after each."""

    def __init__(self, left_window: int, right_window: int) -> None:
        never = 10**9
        self.talk = Conversation(
            TransferConfig(window=left_window, session_idle_ms=never),
            TransferConfig(window=right_window, session_idle_ms=never),
        )
        self.witnesses = {
            id(self.talk.left): Witness(self.talk.left, left_window, right_window),
            id(self.talk.right): Witness(self.talk.right, right_window, left_window),
        }
        self.numbers = 0

    def step(self, kind: str, which: int, amount: int) -> None:
        side = self.talk.sides[which]
        now = self.talk.now
        if kind == "send":
            count = min(amount % 80, side.session.room)
            side.send([self.next_message(amount + k) for k in range(count)], now)
        elif kind == "deliver":
            self.deliver(side, amount)
        elif kind == "settle":
            side.settle(min(amount, side.unsettled_count), now)
        elif kind == "advertise":
            side.session.advertise(amount % 70, now)
            side.drain()
        else:
            self.pass_time(amount * 10)
        self.check()

    def next_message(self, seed: int) -> bytes:
        self.numbers += 1
        body = bytes(seed % 7 * 40)
        return message(self.numbers, recoverable=seed % 3 != 0, body=body)

    def deliver(self, sender: Side, count: int | None = None) -> None:
        receiver = self.talk.other(sender)
        data = self.talk.deliver(sender, count)
        self.witnesses[id(receiver)].read(data, self.talk.now_ms)

    def pass_time(self, milliseconds: int) -> None:
        """Time passes, but no longer than a sender waits without hearing anything."""
        self.talk.advance(milliseconds)
        for side in self.talk.sides:
            self.deliver(side)

    def check(self) -> None:
        for side in self.talk.sides:
            other = self.talk.other(side)
            assert side.reason is None
            assert other.arrived == side.sent[: len(other.arrived)]
            assert len(set(side.acknowledged)) == len(side.acknowledged)
            assert all(token < other.settled_count for token in side.acknowledged)
            waiting = side.session.unacknowledged()
            assert sorted(side.acknowledged + waiting) == list(range(len(side.sent)))
            assert waiting == sorted(waiting)
            witness = self.witnesses[id(side)]
            assert side.session.in_flight_count == witness.in_flight
            room = side.session.room
            assert room == max(0, witness.allowed(self.talk.now_ms) - witness.in_flight)
            assert room > 0 or witness.in_flight > 0

    def finish(self) -> None:
        """Once everything is delivered and settled, everything is acknowledged."""
        self.talk.settle_everything()
        for side in self.talk.sides:
            assert side.session.state is SessionState.OPEN
            assert self.talk.other(side).arrived == side.sent
            assert sorted(side.acknowledged) == list(range(len(side.sent)))
            assert side.session.in_flight_count == 0


steps = st.tuples(
    st.sampled_from(
        ["send", "send", "deliver", "deliver", "settle", "settle", "time", "advertise"]
    ),
    st.integers(0, 1),
    st.integers(0, 1500),
)


@settings(max_examples=150)
@given(st.integers(1, 70), st.integers(1, 70), st.lists(steps, min_size=15, max_size=80))
def test_every_packet_arrives_once_in_order_and_is_acknowledged_once_after_it_is_settled(
    left: int, right: int, drawn: list[tuple[str, int, int]]
) -> None:
    play = Play(left, right)
    for kind, which, amount in drawn:
        play.step(kind, which, amount)
    play.finish()


def test_70_000_messages_go_both_ways_through_one_session() -> None:
    talk = Conversation()
    chance = random.Random(7)
    total = 70_000
    while any(len(side.sent) < total for side in talk.sides):
        for side in talk.sides:
            count = min(side.session.room, total - len(side.sent))
            side.send([DURABLE if chance.random() < 0.6 else SMALL for _ in range(count)], talk.now)
            data_left = len(side.wire)
            talk.deliver(side, chance.randint(data_left // 2, data_left))
            other = talk.other(side)
            other.settle(
                chance.randint(other.unsettled_count // 2, other.unsettled_count), talk.now
            )
        talk.advance(20)
    talk.settle_everything()
    for side in talk.sides:
        assert side.reason is None
        assert len(talk.other(side).arrived) == total
        assert sorted(side.acknowledged) == list(range(total))


def test_a_long_way_of_recoverable_messages_wraps_every_counter_more_than_once() -> None:
    talk = Conversation()
    total = 140_000
    while len(talk.left.sent) < total:
        room = talk.left.session.room
        assert room > 0
        talk.left.send([DURABLE] * room, talk.now)
        talk.deliver(talk.left)
        talk.right.settle(talk.right.unsettled_count, talk.now)
        talk.deliver(talk.right)
    talk.settle_everything()
    assert talk.left.acknowledged == list(range(len(talk.left.sent)))


def test_what_was_not_acknowledged_when_the_connection_broke_goes_again_and_nothing_else() -> None:
    first = Conversation()
    first.left.send([message(n, recoverable=n % 2 == 0) for n in range(20)], first.now)
    first.deliver(first.left, len(first.left.wire) * 2 // 3)
    first.right.settle(8, first.now)
    first.advance(500)
    first.deliver(first.right)
    first.left.session.connection_lost(first.now)
    first.left.drain()
    again = first.left.session.unacknowledged()
    assert again == [token for token in range(20) if token not in first.left.acknowledged]
    assert set(first.left.acknowledged) == set(range(8))

    second = Conversation()
    duplicates = [first.left.sent[token] for token in again]
    second.left.send(duplicates, second.now)
    second.settle_everything()
    assert second.right.arrived == duplicates
    assert sorted(second.left.acknowledged) == list(range(len(again)))
    assert second.left.reason is second.right.reason is None

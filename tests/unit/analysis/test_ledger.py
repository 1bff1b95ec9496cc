"""What waits for the acknowledgment of a session, and when it no longer does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.kinds import Fate
from openmsmq.analysis.ledger import WAITING_MAX_COUNT, Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol.session_windows import ReceiveWindow, SendWindow
from openmsmq.wire import packets
from openmsmq.wire.headers import session as session_header
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

PACKETS_OF = {
    recoverable: packets.encode(
        UserMessage(
            UserHeader(Guid(16), flags=user.RECOVERABLE if recoverable else 0),
            MessageProperties.of(b"body"),
        )
    )
    for recoverable in (False, True)
}


@given(
    st.lists(
        st.one_of(st.booleans(), st.tuples(st.integers(0, 40), st.just("settle"))), max_size=200
    )
)
def test_a_ledger_says_acknowledged_when_the_sender_of_a_session_would(steps):
    now = Instant(0, 0)
    sender, receiver = SendWindow(0x3FFF), ReceiveWindow(0x3FFF)
    ledger: Ledger[int] = Ledger(from_start=True)
    token = 0
    for step in steps:
        if isinstance(step, bool):
            token += 1
            sender.sent([token], [PACKETS_OF[step]])
            receiver.arrived([PACKETS_OF[step]], now)
            ledger.sent(token, token, recoverable=step)
        else:
            receiver.settle(min(step[0], receiver.unsettled_count), now)
            header, _ = session_header.read(receiver.header(0, 0, now), 0)
            done = sender.acknowledge(header)
            assert done is not None
            ledger.acknowledged(header, token)
            assert sorted(one.message for one in ledger.take()) == sorted(done)
            assert not ledger.is_over_acknowledged
    assert len(ledger) == len(sender.unacknowledged())


@pytest.mark.parametrize(
    ("header", "is_over"),
    [
        (SessionHeader(2, stored_base=1, stored_bits=1), False),
        (SessionHeader(), False),
        (SessionHeader(3), True),
        (SessionHeader(2, stored_base=1, stored_bits=0b11), True),
        (SessionHeader(2, stored_base=0, stored_bits=1), True),
    ],
)
def test_an_acknowledgment_of_what_was_never_sent_is_known(header, is_over):
    ledger: Ledger[int] = Ledger(from_start=True)
    ledger.sent(1, 0, recoverable=True)
    ledger.sent(2, 0, recoverable=False)
    ledger.acknowledged(header, 0)
    assert ledger.is_over_acknowledged == is_over
    # Who did not see all messages cannot tell.
    ledger.lose_count()
    assert not ledger.is_over_acknowledged


def test_a_ledger_counts_beyond_sixteen_bits():
    ledger: Ledger[int] = Ledger(from_start=False)
    for number in range(6):
        ledger.sent(number, number, recoverable=number % 2 == 1)
    assert ledger.counted(SessionHeader(sent_count=2, recoverable_sent_count=1))
    ledger.acknowledged(SessionHeader(0, stored_base=0xFFFF, stored_bits=0b110), 9)
    # Messages 0xFFFD to 2 were sent; up to 0 they are received, and 0 and 1 of half are stored.
    done = [(one.message, one.fate, one.sent_ns, one.acknowledged_ns) for one in ledger.take()]
    assert done == [(number, Fate.ACKNOWLEDGED, number, 9) for number in (0, 2, 3, 5)]
    assert not ledger.counted(SessionHeader(sent_count=3, recoverable_sent_count=1))


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_ledger_keeps_no_more_than_numbers_can_tell_apart(recoverable, known):
    ledger: Ledger[int] = Ledger(from_start=known)
    for number in range(WAITING_MAX_COUNT + 3):
        ledger.sent(number, 0, recoverable=recoverable)
    assert len(ledger) == WAITING_MAX_COUNT
    assert [(one.message, one.fate) for one in ledger.take()] == [
        (number, Fate.UNKNOWN) for number in range(3)
    ]

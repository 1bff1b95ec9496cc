"""One line says what matters about each packet."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.wire.bodies.notifications import Command, DirectoryNotification, Update
from openmsmq.wire.datagrams import (
    REFUSED,
    DirectoryAnswer,
    DirectoryQuery,
    PingPacket,
    ServerEntry,
)
from openmsmq.wire.headers import user
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import REFUSED as REFUSED_SESSION
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    UserMessage,
)
from openmsmq.wire.text import summaries

ONE = Guid.parse("11111111-1111-1111-1111-111111111111")
TWO = Guid.parse("22222222-2222-2222-2222-222222222222")
TO = DirectName(r"OS:beta\q")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (EstablishConnection(EstablishHeader(ONE, TWO)), f"client {ONE}, server {TWO}"),
        (
            EstablishConnection(EstablishHeader(ONE), InternalHeader(REFUSED_SESSION)),
            f"refused, client {ONE}, server {NIL_GUID}",
        ),
        (
            ConnectionParameters(ParametersHeader(1496, 120_000, 64)),
            "window 64, ack after 120000 ms, recoverable after 1496 ms",
        ),
        (
            ConnectionParameters(ParametersHeader(1, 2, 3), InternalHeader(REFUSED_SESSION)),
            "refused, window 3, ack after 2 ms, recoverable after 1 ms",
        ),
        (SessionAck(SessionHeader(5)), "received 5, window 64"),
        (SessionAck(SessionHeader(5, 2, 0b101)), "received 5, stored 2 + 0x5, window 64"),
        (
            UserMessage(UserHeader(ONE, destination=TO), MessageProperties.of(b"abc", "a\nb")),
            r'to DIRECT=OS:beta\q, express, #0, "a\nb", body 3 bytes',
        ),
        (
            UserMessage(
                UserHeader(ONE, message_number=9, flags=user.RECOVERABLE, destination=TO),
                MessageProperties.of(message_class=0x8004),
                session=SessionHeader(1),
            ),
            r"to DIRECT=OS:beta\q, recoverable, #9, NACK_ACCESS_DENIED, body 0 bytes, "
            "received 1, window 64",
        ),
        (
            UserMessage(
                UserHeader(ONE, flags=user.RECOVERABLE),
                MessageProperties.of(message_class=0x1234),
                transaction=TransactionHeader(SequenceId(1, 2), 3),
            ),
            "to none, transactional 0x200000001/3, #0, 0x1234, body 0 bytes",
        ),
        (PingPacket(ONE, 4), f"cookie 4, from {ONE}"),
        (PingPacket(ONE, 4, REFUSED), f"refused, cookie 4, from {ONE}"),
        (DirectoryQuery(NIL_GUID, ONE, TWO), f"request {ONE}, site {TWO}"),
        (DirectoryAnswer(ONE, (TWO,)), f"request {ONE}, same site"),
        (
            DirectoryAnswer(ONE, (TWO,), TWO, (ServerEntry("a"), ServerEntry("b"))),
            f"request {ONE}, a,b",
        ),
        (
            DirectoryNotification((Update(Command.DELETE, ONE), Update(Command.CHANGE, r"a\b"))),
            rf"DELETE {ONE}, CHANGE a\b",
        ),
        (b"anything else", ""),
    ],
)
def test_a_summary_says_what_matters(value, line):
    assert summaries.summary(value) == line

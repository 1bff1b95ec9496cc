from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.manager.incoming.traces import arrival_report, departure_report
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import LABEL_MAX_CHARACTERS
from openmsmq.model.message import MessageClass
from openmsmq.model.names import PublicFormatName
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode

SOURCE = Guid.parse("1f2e3d4c-1111-2222-3333-444455556666")
TARGET = Guid.parse("99999999-8888-7777-6666-555544443333")
OWN = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeffff0000")
QUEUE = Guid.parse("01020304-0506-0708-090a-0b0c0d0e0f10")
OWNER = Guid(bytes([0xAB]) * 16)
AFTERNOON = Instant(0, 1_700_000_000)
"""Tuesday, 14 November 2023, 22:13:20."""


ORDERS = DirectName(r"OS:BETA\private$\orders")


def owner_of(name: PublicFormatName) -> Guid:
    assert name == PublicFormatName(QUEUE)
    return OWNER


def traced(destination: QueueName = ORDERS, **changes: object) -> UserMessage:
    message = UserMessage(
        UserHeader(
            SOURCE,
            TARGET,
            message_number=0xBEEF,
            flags=user.RECOVERABLE | 7,
            destination=destination,
        ),
        MessageProperties.of(b"body", "label", acknowledge=0x0F),
        BaseHeader(flags=3 | base.TRACE),
        debug=DebugHeader(QUEUE),
    )
    return msgspec.structs.replace(message, **changes)


def reported(made: tuple[object, bytes] | None) -> UserMessage:
    assert made is not None
    name, packet = made
    report = decode(packet)
    assert isinstance(report, UserMessage)
    assert name == PublicFormatName(QUEUE)
    return report


def body_of(report: UserMessage) -> str:
    return report.properties.body.decode("utf-16-le")


@pytest.mark.spec("MQQB-3.1.5.8.9-03", "MQQB-3.1.5.8.9-04")
def test_an_arrival_says_which_message_came_where_and_when() -> None:
    report = reported(arrival_report(encode(traced()), OWN, AFTERNOON, owner_of))
    assert report.properties.label_text == (
        "1F2E:0000BEEF:07 received by AAAAAAAA-BBBB-CCCC-DDDD-EEEEFFFF0000 "
        "at 10:13:20 PM Tue,Nov 14 23"
    )
    assert report.properties.label.endswith(b"\0\0")


@pytest.mark.spec("MQQB-3.1.7.1.7-05", "MQQB-3.1.7.1.7-06")
def test_a_departure_says_that_it_was_sent() -> None:
    report = reported(departure_report(encode(traced()), "10.1.2.3", OWN, AFTERNOON, owner_of))
    assert report.properties.label_text == (
        "1F2E:0000BEEF:07 sent by AAAAAAAA-BBBB-CCCC-DDDD-EEEEFFFF0000 at 10:13:20 PM Tue,Nov 14 23"
    )


@pytest.mark.spec("MQQB-3.1.5.8.9-06", "MQQB-3.1.5.8.9-07")
def test_the_body_of_an_arrival_names_message_and_queue() -> None:
    report = reported(arrival_report(encode(traced()), OWN, AFTERNOON, owner_of))
    assert body_of(report) == (
        "<MESSAGE ID>0000BEEF</MESSAGE ID>\r\n"
        "<TARGET QUEUE>DIRECT=OS:BETA\\private$\\orders</TARGET QUEUE>\r\n"
    )


@pytest.mark.spec(
    "MQQB-3.1.7.1.7-08",
    "MQQB-3.1.7.1.7-09",
    "MQQB-3.1.7.1.7-10",
    "MQQB-3.1.7.1.7-11",
    "MQQB-3.1.7.1.7-12",
)
def test_the_body_of_a_departure_names_the_next_hop_too() -> None:
    report = reported(departure_report(encode(traced()), "fe80::1", OWN, AFTERNOON, owner_of))
    assert body_of(report) == (
        "<MESSAGE ID>0000BEEF</MESSAGE ID>\r\n"
        "<TARGET QUEUE>DIRECT=OS:BETA\\private$\\orders</TARGET QUEUE>\r\n"
        "<NEXT HOP>fe80::1</NEXT HOP>\r\n"
        "<HOP COUNT>07 </HOP COUNT>\r\n"
    )


@pytest.mark.parametrize(
    ("destination", "shown"),
    [
        (PrivateOnDestination(0x1F), f"PRIVATE={TARGET}\\1f"),
        (PublicName(TARGET), f"PUBLIC={TARGET}"),
    ],
)
def test_a_queue_is_shown_as_a_format_name(destination: QueueName, shown: str) -> None:
    packet = encode(traced(destination))
    report = reported(arrival_report(packet, OWN, AFTERNOON, owner_of))
    assert f"<TARGET QUEUE>{shown}</TARGET QUEUE>" in body_of(report)


@pytest.mark.spec("MQQB-3.1.5.8.9-02", "MQQB-3.1.7.1.7-03")
def test_a_report_is_an_express_message_that_asks_for_nothing() -> None:
    packet = encode(traced())
    for made in (
        arrival_report(packet, OWN, AFTERNOON, owner_of),
        departure_report(packet, "10.1.2.3", OWN, AFTERNOON, owner_of),
    ):
        report = reported(made)
        assert report.properties.message_class == MessageClass.REPORT
        assert report.user.destination == PublicName(QUEUE)
        assert report.user.source == OWN
        assert report.user.flags == 0
        assert report.user.admin_queue is None
        assert report.properties.acknowledge == 0


def test_reports_are_not_reported() -> None:
    packet = encode(traced())
    made = arrival_report(packet, OWN, AFTERNOON, owner_of)
    assert made is not None
    assert arrival_report(made[1], OWN, AFTERNOON, owner_of) is None
    again = msgspec.structs.replace(traced(), properties=reported(made).properties)
    assert arrival_report(encode(again), OWN, AFTERNOON, owner_of) is None


@pytest.mark.parametrize(
    "packet",
    [
        encode(traced(base=BaseHeader(flags=3))),
        encode(traced(base=BaseHeader(flags=3), debug=None)),
        encode(traced(debug=DebugHeader())),
        encode(traced())[:70],
    ],
    ids=["tracing off", "no debug header", "no queue", "cut off"],
)
def test_who_did_not_ask_gets_no_report(packet: bytes) -> None:
    assert arrival_report(packet, OWN, AFTERNOON, owner_of) is None
    assert departure_report(packet, "10.1.2.3", OWN, AFTERNOON, owner_of) is None


LABEL = re.compile(
    r"[0-9A-F]{4}:[0-9A-F]{8}:[0-9A-F]{2} received by "
    r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12} at "
    r"(0[1-9]|1[0-2]):[0-5]\d:[0-5]\d (AM|PM) "
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun),"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-3]\d \d\d"
)


@given(
    st.binary(min_size=16, max_size=16),
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 29),
    st.integers(0, 0xFFFFFFFF),
)
def test_every_label_has_the_same_form(source: bytes, number: int, hops: int, unix_s: int) -> None:
    header = UserHeader(
        Guid(source), message_number=number, flags=hops, destination=DirectName(r"OS:B\private$\q")
    )
    made = arrival_report(encode(traced(user=header)), OWN, Instant(0, unix_s), owner_of)
    text = reported(made).properties.label_text
    assert LABEL.fullmatch(text)
    assert len(text) <= LABEL_MAX_CHARACTERS


@pytest.mark.parametrize(
    ("unix_s", "shown"),
    [
        (1_699_920_000, "12:00:00 AM Tue,Nov 14 23"),
        (1_699_963_199, "11:59:59 AM Tue,Nov 14 23"),
        (1_699_963_200, "12:00:00 PM Tue,Nov 14 23"),
        (1_700_006_399, "11:59:59 PM Tue,Nov 14 23"),
        (946_684_800, "12:00:00 AM Sat,Jan 01 00"),
    ],
)
def test_the_clock_has_twelve_hours(unix_s: int, shown: str) -> None:
    report = reported(arrival_report(encode(traced()), OWN, Instant(0, unix_s), owner_of))
    assert report.properties.label_text.endswith(f" at {shown}")

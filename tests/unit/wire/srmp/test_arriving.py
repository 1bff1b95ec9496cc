"""What comes is read element by element, and says in a packet what it says in the envelope."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from openmsmq.wire.headers.queue_names import DirectName, PublicName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.srmp.arriving import arrived_message, arrived_packet
from openmsmq.wire.srmp.compound import Compound
from openmsmq.wire.srmp.envelope import Envelope, Provider
from openmsmq.wire.srmp.reading import read_envelope
from tests.conformance.marks import shows
from tests.unit.wire.srmp.full_envelope import (
    CONNECTOR,
    CONNECTOR_MANAGER,
    MESSAGE,
    RECEIPTS,
    SENDER,
    SENT_S,
    TEXT,
    changed,
)

READ = "MQSRM-3.1.5.1.1"
OTHER = Guid.parse("4a85b192-3ccd-4ba2-a0ac-7f0a11be1b08")
NOW_S = 1_700_000_000


def arrived(data: bytes) -> UserMessage:
    return arrived_message(read_envelope(data), Compound(b"", b"body"), NOW_S)


def place(message: UserMessage) -> TransactionHeader:
    assert message.transaction is not None
    return message.transaction


def names(listed: str) -> Callable[[UserMessage], object]:
    """Find the texts of a list of queues."""

    def find(message: UserMessage) -> object:
        assert message.multi_queue is not None
        elements = getattr(message.multi_queue, listed).elements
        return [each.text if isinstance(each, DirectName) else each for each in elements]

    return find


@shows(READ, 1, 2, 8)
def test_a_message_is_what_its_envelope_says() -> None:
    packet = arrived_packet(read_envelope(TEXT.encode()), Compound(b"", b"body"), NOW_S)
    found = decode(packet)
    assert isinstance(found, UserMessage)
    # A name in an envelope has its scheme in lower case, and the packet tells how it came.
    destination = DirectName("https://b:8443/msmq/private$/orders")
    assert found.user.destination == destination
    flags = MESSAGE.user.flags | user.OVER_HTTP
    assert found.user.flags & flags == flags
    assert found.properties == MESSAGE.properties
    assert (found.base.priority, found.base.traced) == (5, True)
    assert (found.user.time_to_be_received_s, found.base.time_to_reach_queue_s) == (60, 30)
    assert (found.transaction, found.multi_queue) == (MESSAGE.transaction, MESSAGE.multi_queue)


def says(
    old: str, new: str, find: Callable[[UserMessage], object], value: object, *numbers: int
) -> object:
    """A change of the text, and what then is found in the message."""
    return pytest.param(old, new, find, value, id=new[:40] or old[:30], marks=shows(READ, *numbers))


EOD = f"<Eod><First/><Last/><ConnectorId>{CONNECTOR_MANAGER}</ConnectorId></Eod>"


@pytest.mark.parametrize(
    ("old", "new", "find", "value"),
    [
        says("MSMQ:a label", "MSMQ:MSMQ:b", lambda m: m.properties.label_text, "MSMQ:b", 9, 10, 11),
        says("MSMQ:a label", "a label", lambda m: m.properties.label_text, "", 12),
        says(
            "<to>https://b:8443/msmq/private$/orders",
            "<to>http://c/msmq/q",
            lambda m: m.user.destination,
            DirectName("http://c/msmq/q"),
            *(13, 14),
        ),
        says("uuid:26626@", "uuid:7@", lambda m: m.user.message_number, 7, 16, 17, 18, 20),
        says(
            "<via>http://a/msmq/private$/answers",
            "<via>https://c/msmq/q",
            lambda m: m.user.response_queue,
            DirectName("https://c/msmq/q"),
            *(21, 22),
        ),
        says(
            "<via>http://a/msmq/private$/answers",
            rf"<via>MSMQ:PUBLIC={OTHER}",
            lambda m: m.user.response_queue,
            PublicName(OTHER),
            23,
        ),
        says(
            "<via>http://a/msmq/private$/answers",
            r"<via>MSMQ:DIRECT=OS:c\q",
            lambda m: m.user.response_queue,
            DirectName(r"OS:c\q"),
            23,
        ),
        says(
            "<sentAt>20070619T165958",
            "<sentAt>20070619T170000",
            lambda m: m.user.sent_time_s,
            SENT_S + 2,
            *(24, 26),
        ),
        says("<durable/>", "<durable/>", lambda m: m.user.recoverable, True, 27, 28),
        says(
            "<deliveryReceiptRequest><sendTo>http://a/msmq/private$/told</sendTo>"
            "</deliveryReceiptRequest>",
            "",
            lambda m: m.properties.acknowledge & POSITIVE_ARRIVAL,
            0,
            *(29, 30),
        ),
        says(
            "<commitmentReceiptRequest><sendTo>http://a/msmq/private$/told</sendTo>"
            "<positiveOnly/><negativeOnly/></commitmentReceiptRequest>",
            "",
            lambda m: (m.properties.acknowledge, m.user.admin_queue),
            (POSITIVE_ARRIVAL, DirectName("http://a/msmq/private$/told")),
            *(30, 31),
        ),
        says(
            "<commitmentReceiptRequest><sendTo>http://a/",
            "<commitmentReceiptRequest><sendTo>https://c/",
            lambda m: m.user.admin_queue,
            DirectName("https://c/msmq/private$/told"),
            *(32, 34),
        ),
        says(
            "<positiveOnly/>",
            "",
            lambda m: m.properties.acknowledge,
            POSITIVE_ARRIVAL | NEGATIVE_RECEIVE | NEGATIVE_ARRIVAL,
            *(35, 36),
        ),
        says(
            "<negativeOnly/>",
            "",
            lambda m: m.properties.acknowledge,
            POSITIVE_ARRIVAL | POSITIVE_RECEIVE,
            *(35, 36),
        ),
        says(
            f"uid:{SENDER}\\4839986701558349830",
            f"uid:{OTHER}\\25769803783",
            lambda m: (m.user.source, place(m).sequence),
            (OTHER, SequenceId.from_int(25769803783)),
            *(37, 38, 39),
        ),
        says("<current>1<", "<current>42<", lambda m: place(m).number, 42, 40),
        says("<previous>9<", "<previous>41<", lambda m: place(m).previous_number, 41, 41),
        says("<Class>0<", "<Class>16384<", lambda m: m.properties.message_class, 16384, 44, 45),
        says("<Priority>5<", "<Priority>7<", lambda m: m.base.priority, 7, 46),
        says("<Journal/>", "", lambda m: m.user.flags & user.JOURNAL_ON_SUCCESS, 0, 47),
        says("<DeadLetter/>", "", lambda m: m.user.flags & user.JOURNAL_ON_FAILURE, 0, 48),
        says("<Trace/>", "", lambda m: m.base.traced, False, 50),
        says("<Trace/>", "<Trace/>", lambda m: m.base.traced, True, 50),
        says(
            "<Correlation>AQIDBAUGBwgJCgsMDQ4PEBESExQ=",
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=",
            lambda m: m.properties.correlation_id,
            bytes(16) + b"\1" + bytes(3),
            49,
        ),
        says(
            f"<ConnectorType>{CONNECTOR}",
            f"<ConnectorType>{OTHER}",
            lambda m: m.user.connector_type,
            OTHER,
            51,
        ),
        says("<App>36<", "<App>37<", lambda m: m.properties.application_tag, 37, 52),
        says("<BodyType>8<", "<BodyType>31<", lambda m: m.properties.body_type, 31, 53),
        says(
            "<HashAlgorithm>32772<",
            "<HashAlgorithm>9<",
            lambda m: m.properties.hash_algorithm,
            9,
            54,
        ),
        says("<First/>", "", lambda m: place(m).first_in_transaction, False, 55, 56),
        says("<First/>", "<First/>", lambda m: place(m).first_in_transaction, True, 56),
        says("<Last/>", "", lambda m: place(m).last_in_transaction, False, 57),
        says("<Last/>", "<Last/>", lambda m: place(m).last_in_transaction, True, 57),
        says(
            f"<ConnectorId>{CONNECTOR_MANAGER}",
            f"<ConnectorId>{OTHER}",
            lambda m: place(m).connector_manager,
            OTHER,
            58,
        ),
        says(EOD, "", lambda m: place(m).connector_manager, None, 58),
        says(
            "<DestinationMqf>http://b/msmq/q1\nhttp://b/msmq/q2\n",
            "<DestinationMqf>http://b/msmq/q1\nhttps://c/msmq/q\r\nMSMQ:DIRECT=OS:d\\q\n",
            names("destinations"),
            ["http://b/msmq/q1", "https://c/msmq/q", r"OS:d\q"],
            *(63, 64, 65, 66, 67),
        ),
        says(
            "<AdminMqf>http://a/msmq/q3\n",
            "<AdminMqf>https://c/msmq/q\n",
            names("administration"),
            ["https://c/msmq/q", "http://a/msmq/q4"],
            *(68, 69, 70, 71, 72),
        ),
        says(
            "<ResponseMqf>http://a/msmq/q5\n",
            "<ResponseMqf>https://c/msmq/q\n",
            names("responses"),
            ["https://c/msmq/q", "http://a/msmq/q6"],
            *(73, 74, 75, 76, 77),
        ),
        says(
            "<TTrq>20070619T170028",
            "<TTrq>20070619T170100",
            lambda m: m.base.time_to_reach_queue_s,
            62,
            78,
        ),
    ],
)
def test_an_element_becomes_what_it_stands_for(
    old: str, new: str, find: Callable[[UserMessage], object], value: object
) -> None:
    assert find(arrived(changed(old, new))) == value


STREAM = TEXT[TEXT.index("<stream ") : TEXT.index("<Msmq ")]
MSMQ = TEXT[TEXT.index("<Msmq ") : TEXT.index("</se:Header>")]


@shows(READ, 28, 62)
def test_without_a_stream_what_is_not_durable_is_express() -> None:
    express = TEXT.replace(STREAM, "").replace("<durable/>", "")
    message = arrived(express.encode())
    assert not message.user.recoverable
    assert message.user.source == SENDER
    assert arrived(TEXT.replace(STREAM, "").encode()).user.recoverable
    named = express.replace(f"<SourceQmGuid>{SENDER}", f"<SourceQmGuid>{OTHER}")
    assert arrived(named.encode()).user.source == OTHER


@shows(READ, 18, 25)
def test_without_a_part_of_message_queuing_it_expires_by_its_properties() -> None:
    foreign = arrived(TEXT.replace(STREAM, "").replace(MSMQ, "").encode())
    assert (foreign.base.time_to_reach_queue_s, foreign.user.time_to_be_received_s) == (
        60,
        INFINITE_S,
    )
    assert (foreign.user.message_number, foreign.user.source) == (1, NIL_GUID)
    late = TEXT.replace(STREAM, "").replace(MSMQ, "").replace("170058", "170000")
    assert arrived(late.encode()).base.time_to_reach_queue_s == 2


def _envelope(old: str, new: str) -> Envelope:
    return read_envelope(changed(old, new))


@shows(READ, 33)
def test_whether_its_end_is_asked_for_is_known() -> None:
    for text, expected in ((TEXT, True), (TEXT.replace("commitmentReceiptRequest", "x"), False)):
        services = read_envelope(text.encode()).services
        assert services is not None
        assert services.commitment is expected


@shows(READ, 42)
def test_where_receipts_of_a_stream_go_is_said_at_its_start() -> None:
    stream = _envelope(RECEIPTS, "https://c/msmq/q?x").stream
    assert stream is not None
    assert stream.receipts_to == "https://c/msmq/q?x"
    later = _envelope(f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>", "").stream
    assert later is not None
    assert later.receipts_to == ""


@shows(READ, 59, 60, 61)
def test_who_has_signed_is_read() -> None:
    signed = "<Provider><Type>1234</Type><Name>ProviderName</Name></Provider><SourceQmGuid>"
    msmq = _envelope("<SourceQmGuid>", signed).msmq
    assert msmq is not None
    assert msmq.provider == Provider(1234, "ProviderName")


def test_the_identity_of_a_message_is_of_the_source_that_is_named() -> None:
    assert _envelope("uuid:26626@", "uuid:3@").id == MessageId(SENDER, 3)
    # Who differs from itself is the one that the part of message queuing names (S-23).
    assert _envelope(f"uuid:26626@{SENDER}", f"uuid:26626@{OTHER}").id == MessageId(SENDER, 26626)


def test_what_is_traced_and_names_nobody_is_a_message_all_the_same() -> None:
    packet = arrived_packet(read_envelope(TEXT.encode()), Compound(b"", b""), NOW_S)
    found = decode(packet)
    assert isinstance(found, UserMessage)
    assert found.debug is not None
    assert found.debug.queue is None
    assert found.base.traced

"""Each property of a message by itself: what it changes in the envelope, and nothing else.

`tests/unit/wire/srmp/test_departing.py` has a message with all of them at once.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.base import TRACE, BaseHeader
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
)
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.departing import departing, envelope_of
from openmsmq.wire.srmp.envelope import Provider
from openmsmq.wire.srmp.writing import write_envelope
from tests.conformance.marks import shows

SECTION = "MQSRM-3.1.7.2.4"
SENDER = Guid.parse("32221eda-9376-46df-b6ed-783091123831")
OTHER = Guid.parse("ac678228-2dd6-418b-b31f-0539ffeea853")
SENT_S = 1_182_272_398
"""2007-06-19 16:59:58"""
RECEIPTS = "http://a/msmq/private$/order_queue$?SenderStream=7"
TOLD = "http://a/msmq/private$/told"
SERVICES = '<services se:mustUnderstand="1">'

PLAIN = UserMessage(
    UserHeader(
        SENDER, sent_time_s=SENT_S, message_number=2, destination=DirectName("http://b/msmq/q")
    ),
    MessageProperties.of(b""),
    BaseHeader(3, time_to_reach_queue_s=INFINITE_S),
)
TEXT = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:</action><to>http://b/msmq/q</to>"
    "<id>uuid:2@32221eda-9376-46df-b6ed-783091123831</id></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
    "<sentAt>20070619T165958</sentAt></properties>"
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
    "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>"
    "<BodyType>0</BodyType><HashAlgorithm>32772</HashAlgorithm>"
    "<SourceQmGuid>32221eda-9376-46df-b6ed-783091123831</SourceQmGuid>"
    "<TTrq>20380119T031407</TTrq></Msmq>"
    "</se:Header><se:Body></se:Body></se:Envelope>"
)


def written(message: UserMessage) -> str:
    """Return the envelope of a message as text."""
    request = departing(message, RECEIPTS if is_first(message) else "")
    return read_compound(dict(request.headers)["Content-Type"], request.content).envelope.decode()


def is_first(message: UserMessage) -> bool:
    return message.transaction is not None and message.transaction.number == 1


def with_user(**changes: Any) -> UserMessage:
    return msgspec.structs.replace(PLAIN, user=msgspec.structs.replace(PLAIN.user, **changes))


def with_properties(**changes: Any) -> UserMessage:
    changed = msgspec.structs.replace(PLAIN.properties, **changes)
    return msgspec.structs.replace(PLAIN, properties=changed)


def wanting(acknowledge: int) -> UserMessage:
    """Ask for receipts at one place."""
    message = with_user(admin_queue=DirectName(TOLD))
    changed = msgspec.structs.replace(message.properties, acknowledge=acknowledge)
    return msgspec.structs.replace(message, properties=changed)


def placed(
    number: int, previous: int, flags: int = 0, connector: Guid | None = None
) -> UserMessage:
    """Give it a place in a stream."""
    place = TransactionHeader(
        SequenceId.from_int(4839986701558349830), number, previous, flags, connector
    )
    return msgspec.structs.replace(PLAIN, transaction=place)


def listed(**lists: tuple[str, ...]) -> UserMessage:
    """Name queues in lists."""
    destinations, administration, responses = (
        AddressList(tuple(map(DirectName, lists.get(name, ()))))
        for name in ("destinations", "administration", "responses")
    )
    header = MultiQueueFormatHeader(destinations, administration, responses)
    return msgspec.structs.replace(PLAIN, multi_queue=header)


def case(name: str, message: UserMessage, before: str, after: str, *numbers: int) -> Any:
    """A message, what it writes in another way than the plain one, and what says so."""
    return pytest.param(message, before, after, id=name, marks=shows(SECTION, *numbers))


def added(name: str, message: UserMessage, place: str, text: str, *numbers: int) -> Any:
    """A message that has one thing more, before some place."""
    return case(name, message, place, text + place, *numbers)


def requested(*kinds: str) -> str:
    """Ask for the end of a message to be told."""
    wishes = "".join(f"<{kind}/>" for kind in kinds)
    return (
        f"{SERVICES}<commitmentReceiptRequest><sendTo>{TOLD}</sendTo>{wishes}"
        "</commitmentReceiptRequest></services>"
    )


def streamed(current: int, rest: str = "") -> str:
    """A place in a stream, whose messages are durable."""
    return (
        f'{SERVICES}<durable/></services><stream se:mustUnderstand="1">'
        "<streamId>uid:32221eda-9376-46df-b6ed-783091123831\\4839986701558349830</streamId>"
        f"<current>{current}</current>{rest}</stream>"
    )


START = f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>"
HEAD = '<Msmq xmlns="msmq.namespace.xml"><Class>'
"""What stands behind services and stream."""
SOURCE = "<SourceQmGuid>"


def test_the_plain_message_has_what_every_message_has() -> None:
    assert written(PLAIN) == TEXT


@pytest.mark.parametrize(
    ("message", "before", "after"),
    [
        case(
            "label",
            with_properties(label="été <1>\0".encode("utf-16-le")),
            *("<action>MSMQ:</action>", "<action>MSMQ:été &lt;1&gt;</action>"),
            *(10, 11, 12, 13),
        ),
        case(
            "destination",
            with_user(destination=DirectName("https://c/msmq/private$/other")),
            *("<to>http://b/msmq/q</to>", "<to>https://c/msmq/private$/other</to>"),
            *(14, 15, 17),
        ),
        case(
            "number",
            with_user(message_number=4_294_967_295),
            *("<id>uuid:2@", "<id>uuid:4294967295@"),
            *(18, 19, 20, 21, 22),
        ),
        added(
            "response queue",
            with_user(response_queue=DirectName("http://a/msmq/private$/answers")),
            *("</path>", "<rev><via>http://a/msmq/private$/answers</via></rev>"),
            *range(25, 32),
        ),
        case(
            "sent",
            with_user(sent_time_s=SENT_S + 86_402),
            *("<sentAt>20070619T165958</sentAt>", "<sentAt>20070620T170000</sentAt>"),
            *range(38, 43),
        ),
        case(
            "reach",
            msgspec.structs.replace(PLAIN, base=BaseHeader(3, time_to_reach_queue_s=3_602)),
            *("<TTrq>20380119T031407</TTrq>", "<TTrq>20070619T180000</TTrq>"),
            *range(157, 162),
        ),
        added(
            "recoverable",
            with_user(flags=user.RECOVERABLE),
            *(HEAD, f"{SERVICES}<durable/></services>"),
            *(43, 44, 45, 60),
        ),
        added(
            "arrival",
            wanting(POSITIVE_ARRIVAL),
            HEAD,
            f"{SERVICES}<deliveryReceiptRequest><sendTo>{TOLD}</sendTo></deliveryReceiptRequest>"
            "</services>",
            *(43, *range(46, 52), 60),
        ),
        added(
            "received",
            wanting(POSITIVE_RECEIVE),
            *(HEAD, requested("positiveOnly")),
            *range(52, 58),
        ),
        added(
            "not received",
            wanting(NEGATIVE_RECEIVE),
            *(HEAD, requested("negativeOnly")),
            *(43, 52, 58, 59),
        ),
        added(
            "either",
            wanting(POSITIVE_RECEIVE | NEGATIVE_RECEIVE),
            *(HEAD, requested("positiveOnly", "negativeOnly")),
            *(57, 58),
        ),
        added("not arrived", wanting(NEGATIVE_ARRIVAL), HEAD, "", 43, 46),
        added("first", placed(1, 0), HEAD, streamed(1, START), *range(61, 69)),
        added("the start", placed(1, 0), HEAD, streamed(1, START), 78, 79, 80, 84, 85, 86, 87),
        added(
            "second",
            placed(2, 1),
            *(HEAD, streamed(2, "<previous>1</previous>")),
            *range(69, 77),
        ),
        added("later", placed(9, 5), HEAD, streamed(9, "<previous>5</previous>"), 74, 77, 78),
        case(
            "class and priority",
            msgspec.structs.replace(PLAIN, base=BaseHeader(7, time_to_reach_queue_s=INFINITE_S)),
            *("<Class>0</Class><Priority>3</Priority>", "<Class>0</Class><Priority>7</Priority>"),
            *range(90, 98),
        ),
        case(
            "correlation",
            with_properties(correlation_id=b"\xff" * 20),
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation>",
            "<Correlation>//////////////////////////8=</Correlation>",
            *range(100, 104),
        ),
        added(
            "traced",
            msgspec.structs.replace(
                PLAIN, base=BaseHeader(3 | TRACE, time_to_reach_queue_s=INFINITE_S)
            ),
            *("<App>", "<Trace/>"),
            104,
        ),
        added(
            "connector type",
            with_user(connector_type=OTHER),
            *("<App>", "<ConnectorType>ac678228-2dd6-418b-b31f-0539ffeea853</ConnectorType>"),
            *range(105, 109),
        ),
        case(
            "application tag",
            with_properties(application_tag=4_294_967_295),
            *("<App>0</App>", "<App>4294967295</App>"),
            *range(109, 113),
        ),
        case(
            "body type",
            with_properties(body_type=8),
            *("<BodyType>0</BodyType>", "<BodyType>8</BodyType>"),
            *range(113, 117),
        ),
        case(
            "hash algorithm",
            with_properties(hash_algorithm=0x8003),
            *("<HashAlgorithm>32772<", "<HashAlgorithm>32771<"),
            *range(117, 121),
        ),
        added(
            "destinations",
            listed(destinations=("http://b/msmq/q1", "https://c/msmq/q2")),
            "<TTrq>",
            "<DestinationMqf>http://b/msmq/q1\nhttps://c/msmq/q2\n</DestinationMqf>",
            *range(145, 149),
        ),
        added(
            "administration",
            listed(administration=("http://b/msmq/q1", "https://c/msmq/q2")),
            *("<TTrq>", "<AdminMqf>http://b/msmq/q1\nhttps://c/msmq/q2\n</AdminMqf>"),
            *range(149, 153),
        ),
        added(
            "responses",
            listed(responses=("http://b/msmq/q1", "https://c/msmq/q2")),
            *("<TTrq>", "<ResponseMqf>http://b/msmq/q1\nhttps://c/msmq/q2\n</ResponseMqf>"),
            *range(153, 157),
        ),
    ],
)
def test_one_property_makes_one_difference(message: UserMessage, before: str, after: str) -> None:
    assert TEXT.count(before) == 1
    assert written(message) == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("flags", "connector", "ends"),
    [
        pytest.param(0, None, "", marks=shows(SECTION, 121), id="none"),
        pytest.param(
            transaction.FIRST, None, "<First/>", marks=shows(SECTION, 121, 122, 123), id="first"
        ),
        pytest.param(
            transaction.LAST, None, "<Last/>", marks=shows(SECTION, 121, 124, 129), id="last"
        ),
        pytest.param(
            transaction.FIRST | transaction.LAST,
            None,
            "<First/><Last/>",
            marks=shows(SECTION, 123, 124),
            id="both",
        ),
        pytest.param(
            0,
            OTHER,
            "<ConnectorId>ac678228-2dd6-418b-b31f-0539ffeea853</ConnectorId>",
            marks=shows(SECTION, 121, *range(125, 129)),
            id="connector",
        ),
    ],
)
def test_the_ends_of_a_transaction_are_said(flags: int, connector: Guid | None, ends: str) -> None:
    plain = TEXT.replace(HEAD, streamed(1, START) + HEAD)
    expected = plain.replace(SOURCE, f"<Eod>{ends}</Eod>{SOURCE}") if ends else plain
    assert written(placed(1, 0, flags, connector)) == expected


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        pytest.param(None, "", marks=shows(SECTION, 130), id="none"),
        pytest.param(
            Provider(24, ""),
            "<Provider><Type>24</Type><Name></Name></Provider>",
            marks=shows(SECTION, *range(130, 136)),
            id="type",
        ),
        pytest.param(
            Provider(0, "A & B"),
            "<Provider><Type>0</Type><Name>A &amp; B</Name></Provider>",
            marks=shows(SECTION, 130, *range(136, 141)),
            id="name",
        ),
    ],
)
def test_a_provider_is_said_with_both_of_its_parts(
    provider: Provider | None, expected: str
) -> None:
    # Who reads it must find both [MQSRM 2.2.6.12].
    envelope = envelope_of(PLAIN, "")
    assert envelope.msmq is not None
    msmq = msgspec.structs.replace(envelope.msmq, provider=provider)
    found = write_envelope(msgspec.structs.replace(envelope, msmq=msmq)).decode()
    assert found == TEXT.replace(SOURCE, expected + SOURCE)


@shows(SECTION, 21, 23, 66, 141, 142, 143, 144)
def test_its_sender_stands_in_three_places() -> None:
    message = placed(2, 1)
    sent = msgspec.structs.replace(
        message, user=msgspec.structs.replace(message.user, source=OTHER)
    )
    other = "ac678228-2dd6-418b-b31f-0539ffeea853"
    expected = written(message).replace("32221eda-9376-46df-b6ed-783091123831", other)
    assert written(sent) == expected
    for place in (f"<id>uuid:2@{other}</id>", f"<streamId>uid:{other}\\", f"{SOURCE}{other}</"):
        assert expected.count(place) == 1

"""A row of messages is read and written as each of them alone would be."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, encode
from openmsmq.wire.srmp import alike
from openmsmq.wire.srmp.alike import ArrivingRow, DepartingRow
from openmsmq.wire.srmp.arriving import arrived_packet
from openmsmq.wire.srmp.compound import Compound, read_compound
from openmsmq.wire.srmp.departing import departing
from openmsmq.wire.srmp.envelope import Envelope
from openmsmq.wire.srmp.reading import read_envelope
from tests.unit.wire.srmp.full_envelope import MESSAGE, RECEIPTS, SENDER, SENT_S

PLAIN = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:{label}</action><to>http://a/msmq/q</to><id>uuid:{number}@{source}</id></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>{properties}'
    '</properties><Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
    "<BodyType>0</BodyType><SourceQmGuid>{manager}</SourceQmGuid>"
    "<TTrq>20380119T031407</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
)
SENT = "<sentAt>20070619T165958</sentAt>"


def plain(number: object, **parts: object) -> bytes:
    filled = {"label": "x", "source": SENDER, "manager": SENDER, "properties": SENT} | parts
    return PLAIN.format(number=number, **filled).encode()


def envelope_or_none(read: object, data: bytes) -> Envelope | None:
    try:
        return read(data)  # type: ignore[operator, no-any-return]
    except DecodeError:
        return None


def packet(number: int, body: bytes = b"body", *, sent_s: int = SENT_S, label: str = "") -> bytes:
    header = UserHeader(
        SENDER,
        time_to_be_received_s=INFINITE_S,
        sent_time_s=sent_s,
        message_number=number,
        flags=user.RECOVERABLE,
        destination=DirectName("HTTP://b/msmq/q"),
    )
    return encode(UserMessage(header, MessageProperties.of(body, label), BaseHeader()))


# What comes.


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, 7, 9, 10, 99, 0xFFFF_FFFF, 1 << 32, "007", "", "x", "&#x37;"]),
            st.sampled_from(["", "uuid:7@", "uuid:8@", "<![CDATA[<id>uuid:7@]]>"]),
            st.sampled_from([SENDER, NIL_GUID]),
        ),
        max_size=12,
    )
)
def test_a_row_of_envelopes_is_read_as_each_alone(
    parts: list[tuple[object, str, Guid]],
) -> None:
    row = ArrivingRow()
    for number, label, source in parts:
        data = plain(number, label=label, source=source)
        assert envelope_or_none(row.envelope, data) == envelope_or_none(read_envelope, data)


def test_two_show_what_the_digits_say_and_the_third_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[bytes] = []

    def read(data: bytes) -> Envelope:
        reads.append(data)
        return read_envelope(data)

    monkeypatch.setattr(alike, "read_envelope", read)
    row = ArrivingRow()
    for number in (11, 12, 13, 14):
        assert row.envelope(plain(number)).id == MessageId(SENDER, number)
    assert reads == [plain(11), plain(12)]
    # One of another length, or about something else, is read.
    assert row.envelope(plain(100)).id.number == 100
    assert row.envelope(plain(101, label="y")).action == "MSMQ:y"
    assert reads[2:] == [plain(100), plain(101, label="y")]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            [plain(7, label=f"<![CDATA[<id>uuid:{each}@]]>") for each in (11, 12, 13)],
            id="in a label",
        ),
        pytest.param([plain(f"3&#x{each};") for each in (35, 36, 41)], id="in a reference"),
        pytest.param([plain(each, source=NIL_GUID) for each in (3, 2, 1)], id="of nobody, last"),
        pytest.param([plain(each, source=NIL_GUID) for each in (3, 1, 5)], id="of nobody, before"),
    ],
)
def test_digits_that_say_something_else_are_read(row: list[bytes]) -> None:
    it = ArrivingRow()
    for data in row:
        assert envelope_or_none(it.envelope, data) == envelope_or_none(read_envelope, data)


@pytest.mark.parametrize("properties", [SENT, ""])
def test_packets_of_a_row_are_those_of_each_alone(properties: str) -> None:
    row, number = ArrivingRow(), itertools.count(1000)
    for body, extension, arrived_s in (
        (b"one", b"", 5),
        (b"two", b"", 5),
        (b"six", b"", 5),
        (b"ten", b"", 6),
        (b"four", b"", 6),
        (b"five", b"more", 6),
        (b"nine", b"less", 6),
        (b"zero", b"less", 6),
    ):
        data = plain(next(number), properties=properties)
        envelope, parts = row.envelope(data), Compound(data, body, extension)
        expected = arrived_packet(read_envelope(data), parts, arrived_s)
        assert row.packet(envelope, parts, arrived_s) == (expected, outline(expected))


def test_an_envelope_of_before_makes_its_own_packet() -> None:
    data = [plain(10, label="y"), *(plain(number) for number in (11, 12, 13, 14))]
    row = ArrivingRow()
    envelopes = [row.envelope(each) for each in data]
    for envelope, each in [*zip(envelopes, data, strict=True)][::-1]:
        parts = Compound(each, b"body")
        assert row.packet(envelope, parts, 0)[0] == arrived_packet(envelope, parts, 0)


# What leaves.


@given(
    st.lists(
        st.tuples(
            st.integers(0, 0xFFFF_FFFF),
            st.one_of(st.binary(max_size=3), st.just(b"MSMQ - SOAP boundary, 96922")),
            st.sampled_from([SENT_S, SENT_S + 1]),
            st.sampled_from(["", "uuid:5@", "<id>uuid:5@"]),
        ),
        max_size=8,
    )
)
def test_a_row_of_messages_is_written_as_each_alone(
    parts: list[tuple[int, bytes, int, str]],
) -> None:
    row = DepartingRow()
    for number, body, sent_s, label in parts:
        data = packet(number, body, sent_s=sent_s, label=label)
        request = row.request(data, lambda _: "")
        properties = MessageProperties.of(body, label)
        header = UserHeader(
            SENDER,
            time_to_be_received_s=INFINITE_S,
            sent_time_s=sent_s,
            message_number=number,
            flags=user.RECOVERABLE,
            destination=DirectName("HTTP://b/msmq/q"),
        )
        assert request == departing(UserMessage(header, properties, BaseHeader()), "")
        kind = dict(request.headers)["Content-Type"]
        assert read_compound(kind, request.content).body == body


def test_the_second_of_a_row_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    decode = packets.decode

    def counted(data: bytes) -> object:
        decoded.append(data)
        return decode(data)

    monkeypatch.setattr(alike, "decode", counted)
    row = DepartingRow()
    for number in (7, 8, 100_000):
        request = row.request(packet(number), lambda _: "")
        assert f"<id>uuid:{number}@{SENDER}</id>".encode() in request.content
    assert decoded == [packet(7)]


def test_messages_of_a_stream_are_each_written_alone() -> None:
    row, asked = DepartingRow(), []
    for number in (1, 2):
        header = msgspec.structs.replace(MESSAGE.user, message_number=number)
        message = msgspec.structs.replace(MESSAGE, user=header)

        def receipts_to(each: UserMessage) -> str:
            asked.append(each.user.message_number)
            return RECEIPTS

        assert row.request(encode(message), receipts_to) == departing(message, RECEIPTS)
    assert asked == [1, 2]

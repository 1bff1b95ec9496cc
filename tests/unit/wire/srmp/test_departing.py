"""What leaves is written element by element as the specification assembles it."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.departing import departing, envelope_of
from openmsmq.wire.srmp.envelope import Provider
from openmsmq.wire.srmp.writing import write_envelope
from tests.conformance.marks import shows
from tests.unit.wire.srmp.full_envelope import MESSAGE, RECEIPTS, SENDER, SENT_S, TEXT

ASSEMBLED = "MQSRM-3.1.7.2.4"


def written(message: UserMessage, receipts_to: str = "") -> str:
    """Return the envelope of a message as text."""
    request = departing(message, receipts_to)
    return read_compound(dict(request.headers)["Content-Type"], request.content).envelope.decode()


@shows(ASSEMBLED, 1, 2, 3)
def test_everything_a_message_has_stands_in_its_envelope_in_one_order() -> None:
    assert written(MESSAGE, RECEIPTS) == TEXT


def part(text: str, *numbers: int) -> object:
    """A part of the text, and the statements that say how it is assembled."""
    return pytest.param(text, id=text.strip("</")[:24], marks=shows(ASSEMBLED, *numbers))


@pytest.mark.parametrize(
    "text",
    [
        part(
            '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
            'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header><path',
            *(4, 5, 6, 7),
        ),
        part(
            '<se:Header><path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
            "<action>",
            *(8, 9),
        ),
        part("<action>MSMQ:a label</action><to>", 10, 11, 12, 13),
        part("</action><to>https://b:8443/msmq/private$/orders</to><id>", 14, 15, 17),
        part(f"</to><id>uuid:26626@{SENDER}</id><rev>", *range(18, 25)),
        part("<rev><via>http://a/msmq/private$/answers</via></rev></path>", *range(25, 32)),
        part('</path><properties se:mustUnderstand="1"><expiresAt>', 32, 33),
        part("<expiresAt>20070619T170058</expiresAt><sentAt>", 34, 35, 37),
        part("<sentAt>20070619T165958</sentAt></properties><services", *range(38, 43)),
        part('</properties><services se:mustUnderstand="1"><durable/><deli', 43, 44, 45),
        part(
            "<durable/><deliveryReceiptRequest><sendTo>http://a/msmq/private$/told</sendTo>"
            "</deliveryReceiptRequest>",
            *range(46, 52),
        ),
        part(
            "</deliveryReceiptRequest><commitmentReceiptRequest>"
            "<sendTo>http://a/msmq/private$/told</sendTo>"
            "<positiveOnly/><negativeOnly/></commitmentReceiptRequest>",
            *range(52, 60),
        ),
        part("</commitmentReceiptRequest></services><stream", 60),
        part('</services><stream se:mustUnderstand="1"><streamId>', 61, 62),
        part(f"<streamId>uid:{SENDER}\\4839986701558349830</streamId><current", *range(63, 70)),
        part("</streamId><current>1</current><previous>", *range(70, 74)),
        part("</current><previous>9</previous><start>", *range(74, 78)),
        part(f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>", *range(78, 81), 84),
        part("</sendReceiptsTo></start></stream><Msmq", 85, 86, 87),
        part('</stream><Msmq xmlns="msmq.namespace.xml"><Class>', 88, 89),
        part("<Class>0</Class><Priority>", *range(90, 94)),
        part("</Class><Priority>5</Priority><Journal/>", *range(94, 98)),
        part("<Correlation>AQIDBAUGBwgJCgsMDQ4PEBESExQ=</Correlation>", *range(100, 104)),
        part("</Correlation><Trace/><ConnectorType>", 104),
        part(
            "<Trace/><ConnectorType>fd74b8eb-2af7-4ac5-9405-074e315df392</ConnectorType>",
            *range(105, 109),
        ),
        part("</ConnectorType><App>36</App><BodyType>", *range(109, 113)),
        part("</App><BodyType>8</BodyType><HashAlgorithm>", *range(113, 117)),
        part("</BodyType><HashAlgorithm>32772</HashAlgorithm><Eod>", *range(117, 121)),
        part("<Eod><First/><Last/><ConnectorId>", *range(121, 125)),
        part(
            "<ConnectorId>ac678228-2dd6-418b-b31f-0539ffeea853</ConnectorId></Eod>",
            *range(125, 130),
        ),
        part(f"<SourceQmGuid>{SENDER}</SourceQmGuid><Dest", *range(141, 145)),
        part(
            "<DestinationMqf>http://b/msmq/q1\nhttp://b/msmq/q2\n</DestinationMqf><Ad",
            *range(145, 149),
        ),
        part("<AdminMqf>http://a/msmq/q3\nhttp://a/msmq/q4\n</AdminMqf><R", *range(149, 153)),
        part("<ResponseMqf>http://a/msmq/q5\nhttp://a/msmq/q6\n</ResponseMqf>", *range(153, 157)),
        part("</ResponseMqf><TTrq>20070619T170028</TTrq></Msmq>", *range(157, 162)),
        part("</Msmq></se:Header><se:Body></se:Body></se:Envelope>", 196, 197, 198),
    ],
)
def test_an_element_is_assembled_as_it_is_said(text: str) -> None:
    assert written(MESSAGE, RECEIPTS).count(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        part("</Eod><Provider><Type>7</Type><Name>A &amp; B</Name></Provider><S", 130, 131, 140),
        part("<Provider><Type>7</Type><Name>", *range(132, 136)),
        part("</Type><Name>A &amp; B</Name></Provider>", *range(136, 140)),
    ],
)
def test_who_has_signed_is_said_if_somebody_has(text: str) -> None:
    envelope = envelope_of(MESSAGE, RECEIPTS)
    assert envelope.msmq is not None
    signed = msgspec.structs.replace(envelope.msmq, provider=Provider(7, "A & B"))
    found = write_envelope(msgspec.structs.replace(envelope, msmq=signed)).decode()
    assert found.count(text) == 1


BARE = UserMessage(
    UserHeader(
        SENDER,
        sent_time_s=SENT_S,
        message_number=2,
        destination=DirectName("http://b/msmq/q"),
    ),
    MessageProperties.of(b""),
    BaseHeader(3, time_to_reach_queue_s=INFINITE_S),
)


def test_what_a_message_does_not_have_is_not_written() -> None:
    assert written(BARE, RECEIPTS) == (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:</action><to>http://b/msmq/q</to><id>uuid:2@{SENDER}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        "<sentAt>20070619T165958</sentAt></properties>"
        '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>"
        "<BodyType>0</BodyType><HashAlgorithm>32772</HashAlgorithm>"
        f"<SourceQmGuid>{SENDER}</SourceQmGuid><TTrq>20380119T031407</TTrq></Msmq>"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    )


@shows("MQSRM-2.2.5.3", 3)
@shows("MQSRM-2.2.5.2.1", 1)
def test_a_message_of_a_stream_is_durable() -> None:
    express = msgspec.structs.replace(MESSAGE.user, flags=MESSAGE.user.flags & ~user.RECOVERABLE)
    message = msgspec.structs.replace(MESSAGE, user=express)
    assert "<durable/>" in written(message, RECEIPTS)


# What the elements of section 2.2 say.


@pytest.mark.parametrize("scheme", ["http", "https"])
@shows("MQSRM-2.2.4.2", 2, 3, 4)
def test_a_queue_is_its_url_and_the_scheme_is_that_of_the_way(scheme: str) -> None:
    name = DirectName(f"{scheme.upper()}://B.example:81/msmq/private$/Orders")
    message = msgspec.structs.replace(
        BARE, user=msgspec.structs.replace(BARE.user, destination=name)
    )
    request = departing(message, "")
    url = f"{scheme}://B.example:81/msmq/private$/Orders"
    assert (envelope_of(message, "").to, request.url) == (url, url)


@shows("MQSRM-2.2.4.1", 2)
@shows("MQSRM-2.2.4.3", 3, 4)
@shows("MQSRM-2.2.4.4", 2)
def test_label_identity_and_response_queue_are_those_of_the_message() -> None:
    envelope = envelope_of(MESSAGE, "")
    assert envelope.action == "MSMQ:a label"
    assert envelope.msmq is not None
    assert (envelope.id.source, envelope.id.number) == (envelope.msmq.source, 26626)
    assert envelope.via == "http://a/msmq/private$/answers"


@shows("MQSRM-2.2.5.2.2", 2, 3)
@shows("MQSRM-2.2.5.2.3", 2, 3)
@shows("MQSRM-2.2.5.3.4", 2, 3)
def test_receipts_are_wanted_at_urls() -> None:
    text = written(MESSAGE, RECEIPTS)
    assert text.count("<sendTo>http://a/msmq/private$/told</sendTo>") == 2
    assert text.count(f"<sendReceiptsTo>{RECEIPTS}</sendReceiptsTo>") == 1
    # Who can only be told through a session is not asked to be told.
    elsewhere = msgspec.structs.replace(MESSAGE.user, admin_queue=DirectName(r"OS:a\q"))
    assert "sendTo" not in written(msgspec.structs.replace(MESSAGE, user=elsewhere))


@shows("MQSRM-2.2.2", 7)
def test_a_body_is_a_part_behind_the_envelope() -> None:
    request = departing(MESSAGE, "")
    kind = dict(request.headers)["Content-Type"]
    boundary = "MSMQ - SOAP boundary, 96922"
    assert kind == f'multipart/related; boundary="{boundary}"; type=text/xml'
    assert read_compound(kind, request.content).body == b"body"
    assert request.content.endswith(f"\r\n\r\nbody--{boundary}--\r\n".encode())

"""Envelopes of the specification are read, and what is none is refused."""

from __future__ import annotations

import gc

import pytest

from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.envelope import (
    NO_ID,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Provider,
    Services,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.reading import read_envelope
from tests.golden import golden_post
from tests.unit.wire.srmp import full_envelope as full

LATE = Guid.parse("ac678228-2dd6-418b-b31f-0539ffeea853")
SENDER = Guid.parse("2744e4e1-2b48-43e8-b441-42745f280d53")
SIMPLE = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>{extra}'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:</action><to>http://a/msmq/q</to><id>uuid:7@{id}</id>{path}</path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>{properties}'
    "</properties>{blocks}</se:Header><se:Body></se:Body></se:Envelope>"
)
MSMQ = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>{more}'
    "<BodyType>0</BodyType><SourceQmGuid>" + str(SENDER) + "</SourceQmGuid>"
    "<TTrq>20380119T031407</TTrq></Msmq>"
)


def simple(**parts: str) -> bytes:
    filled = {"id": str(LATE), "extra": "", "path": "", "properties": "", "blocks": ""} | parts
    return SIMPLE.format(**filled).encode()


def envelope_in(name: str) -> Envelope:
    headers, content = golden_post(name)
    assert len(content) == int(headers["content-length"])
    return read_envelope(read_compound(headers["content-type"], content).envelope)


def test_the_simple_message_is_read() -> None:
    assert envelope_in("mqsrm-4.1-simple") == Envelope(
        to="http://machine2/msmq/private$/simpleq",
        expires_s=1181407459,
        sent_s=1181321059,
        action="MSMQ:mqsender label",
    )


def test_the_message_with_a_part_of_message_queuing_is_read() -> None:
    found = envelope_in("mqsrm-4.2-msmq-element")
    source = Guid.parse("caf195ea-615c-4264-ae08-11a4e60194c0")
    assert (found.id, found.expires_s) == (MessageId(source, 20503), INFINITE_S)
    assert found.msmq == Msmq(
        message_class=0,
        priority=3,
        body_type=0,
        source=source,
        reach_by_s=1185160300,
        hash_algorithm=32772,
    )


def test_receipts_that_are_asked_for_are_read() -> None:
    found = envelope_in("mqsrm-4.3-both-receipts-wanted")
    assert found.id == NO_ID
    assert found.action == "Generic label"
    assert found.via == "http://machine1/MSMQ/private$/Q1"
    assert found.services == Services(
        delivery=True,
        commitment=True,
        positive=True,
        negative=True,
        send_to="http://machine1/MSMQ/private$/receipts",
    )


def test_receipts_are_read() -> None:
    delivery = envelope_in("mqsrm-4.3-delivery-receipt")
    assert delivery.delivery_receipt == DeliveryReceipt(1184815494, MessageId(NIL_GUID, 1))
    assert delivery.id == MessageId(LATE, 34826)
    commitment = envelope_in("mqsrm-4.3-commitment-receipt")
    assert commitment.commitment_receipt == CommitmentReceipt(
        1184815641, True, MessageId(NIL_GUID, 1)
    )
    stream = envelope_in("mqsrm-4.4-stream-receipt-1")
    assert stream.stream_receipt == StreamReceipt(SENDER, 4839986701558349830, 1)
    assert stream.action == "MSMQ:QM Ordering Ack"


@pytest.mark.parametrize(
    ("number", "receipts_to"),
    [(1, "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"), (2, ""), (3, "")],
)
def test_messages_of_a_stream_are_read_as_the_examples_write_them(
    number: int, receipts_to: str
) -> None:
    found = envelope_in(f"mqsrm-4.4-stream-{number}").stream
    assert found == Stream(SENDER, 4839986701558349830, number, receipts_to=receipts_to)


@pytest.mark.spec("MQSRM-2.2.4.3-02")
def test_without_a_part_of_message_queuing_the_identity_says_nothing() -> None:
    assert read_envelope(simple()).id == NO_ID
    assert read_envelope(simple(id="nobody")).id == NO_ID


def test_an_identity_is_of_the_source_that_the_other_part_names() -> None:
    found = read_envelope(simple(blocks=MSMQ.format(more="")))
    assert found.id == MessageId(SENDER, 7)


@pytest.mark.spec("MQSRM-2.2.4.5-01")
def test_elements_that_nobody_needs_are_passed_over() -> None:
    path = "<fwd><via>x</via></fwd><from>you</from><relatesTo>x</relatesTo><fault/>"
    properties = "<inReplyTo>uuid:1@x</inReplyTo>"
    plain = read_envelope(simple())
    assert read_envelope(simple(path=path, properties=properties)) == plain


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"", "no XML", id="nothing"),
        pytest.param(b"<a>", "no XML", id="no end"),
        pytest.param(b"<a/>", "not a SOAP envelope", id="something else"),
        pytest.param(simple()[:-20], "no XML", id="cut"),
        pytest.param(b"\xff\xfe" + simple().decode().encode("utf-16-le"), "not UTF-8", id="UTF-16"),
        pytest.param(
            b'<?xml version="1.0" encoding="latin-1"?>' + simple(), "encoding", id="encoding"
        ),
        pytest.param(
            b'<!DOCTYPE a [<!ENTITY b "c">]>' + simple(), "document type", id="document type"
        ),
        pytest.param(
            b'<!DOCTYPE a SYSTEM "http://127.0.0.1/x">' + simple(), "document type", id="external"
        ),
        pytest.param(simple(path="&b;"), "no XML: undefined entity", id="entity"),
        pytest.param(b"<?xml-stylesheet a?>" + simple(), "instruction", id="instruction"),
        pytest.param(b"<a>" * 17 + b"</a>" * 17, "deep", id="deep"),
        pytest.param(b"<a>" + b"<b/>" * 300 + b"</a>", "elements", id="many"),
        pytest.param(b"<a>" + b"<!---->" * 511 + b"</a>", "512 tags", id="comments"),
        pytest.param(b'<a xmlns="' + b"b" * 1025 + b'"/>', "of 1025 characters", id="namespace"),
        pytest.param(
            b"<a " + b" ".join(b'b%d="c"' % at for at in range(17)) + b"/>", "attributes", id="attr"
        ),
        pytest.param(
            b"<a " + b" ".join(b'xmlns:b%d="c"' % at for at in range(65)) + b"/>",
            "namespaces",
            id="namespaces",
        ),
        pytest.param(b" " * 65_537, "at most", id="long"),
        pytest.param(simple(path="<to>http://b/msmq/q</to>"), "two elements to", id="twice"),
        pytest.param(simple(blocks=MSMQ.format(more="") * 2), "two elements Msmq", id="two parts"),
        pytest.param(
            simple(blocks='<x xmlns="y" se:mustUnderstand="1"/>'), "must be understood", id="must"
        ),
        pytest.param(
            simple(blocks='<msmq xmlns="other" se:mustUnderstand="1"/>'),
            "must be understood",
            id="another namespace",
        ),
        pytest.param(simple(path="<rev/>"), "0 elements via", id="no via"),
        pytest.param(
            simple(blocks=MSMQ.format(more="<Correlation>AAAA</Correlation>")), "3 bytes", id="id"
        ),
        pytest.param(
            simple(blocks=MSMQ.format(more="<App>4294967296</App>")), "no number", id="number"
        ),
        pytest.param(
            simple(blocks=MSMQ.format(more="<App>-1</App>")), "no number", id="negative number"
        ),
        pytest.param(
            simple(blocks="<stream se:mustUnderstand='1'/>"), "no element Msmq", id="whose stream"
        ),
        pytest.param(
            simple().replace(b"20380119T031407", b"20380119T251407"), "no such moment", id="date"
        ),
        pytest.param(simple().replace(b"MSMQ:", b"MSMQ:" + b"x" * 250), "a label", id="label"),
        pytest.param(simple().replace(b"/q<", b"/" + b"q" * 1024 + b"<"), "a name of", id="name"),
    ],
)
@pytest.mark.spec("MQSRM-3.1.5.1.2-01")
def test_what_is_no_envelope_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        read_envelope(data)


def test_as_many_as_may_be_are_read() -> None:
    more = '<b c="d"/>' * 200 + "<!---->" * 50
    spaces = "".join(f' xmlns:n{at}="{"n" * 1024}"' for at in range(4))
    attributes = "".join(f' a{at}="b"' for at in range(16))
    found = read_envelope(simple(extra=f"<x{spaces}{attributes}>{more}</x>"))
    assert found == read_envelope(simple())


def test_text_is_all_that_stands_right_in_an_element() -> None:
    found = read_envelope(simple(path="<rev><via>http://<x>no</x>a/<!-- -->msmq<x/>/q</via></rev>"))
    assert found.via == "http://a/msmq/q"


def test_a_text_leaves_nothing_to_the_collector_of_garbage() -> None:
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            read_envelope(simple())
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_namespace_need_not_be_written_as_in_the_examples() -> None:
    text = simple().decode()
    prefixed = text.replace("<se:", "<s:").replace("</se:", "</s:").replace("se:must", "s:must")
    assert read_envelope(prefixed.replace(":se=", ":s=").encode()) == read_envelope(simple())


# Section 2.2, element by element.


def required(cut: str, *statements: str) -> object:
    """An element that must be there, and the statements that say so."""
    return pytest.param(cut, id=cut.strip("</")[:30], marks=pytest.mark.spec(*statements))


STREAM_ID = f"<streamId>uid:{full.SENDER}\\4839986701558349830</streamId>"


@pytest.mark.parametrize(
    "cut",
    [
        required("<se:Body></se:Body>", "MQSRM-2.2.2-04"),
        required("<action>MSMQ:a label</action>", "MQSRM-2.2.4.1-01"),
        required("<to>https://b:8443/msmq/private$/orders</to>", "MQSRM-2.2.4.2-01"),
        required(f"<id>uuid:26626@{full.SENDER}</id>", "MQSRM-2.2.4.3-01"),
        required("<via>http://a/msmq/private$/answers</via>", "MQSRM-2.2.4.4-01"),
        required("<expiresAt>20070619T170058</expiresAt>", "MQSRM-2.2.5.1.1-01"),
        required(STREAM_ID, "MQSRM-2.2.5.3.1-01"),
        required("<current>1</current>", "MQSRM-2.2.5.3.2-01"),
        required(f"<sendReceiptsTo>{full.RECEIPTS}</sendReceiptsTo>", "MQSRM-2.2.5.3.4-01"),
        required("<Class>0</Class>", "MQSRM-2.2.6.1-01"),
        required("<Priority>5</Priority>", "MQSRM-2.2.6.2-01"),
        required("<BodyType>8</BodyType>", "MQSRM-2.2.6.9-01"),
        required(f"<SourceQmGuid>{full.SENDER}</SourceQmGuid>", "MQSRM-2.2.6.13-01"),
        required("<TTrq>20070619T170028</TTrq>", "MQSRM-2.2.6.17-01"),
    ],
)
def test_an_element_that_must_be_there_is_missed(cut: str) -> None:
    assert read_envelope(full.TEXT.encode())
    with pytest.raises(DecodeError):
        read_envelope(full.changed(cut, ""))


SEND_TO = "<sendTo>http://a/msmq/private$/told</sendTo>"
RECEIPT = full.TEXT.replace(
    "<Msmq ",
    f"<streamReceipt><streamId>uid:{full.SENDER}\\7</streamId><lastOrdinal>2</lastOrdinal>"
    "</streamReceipt><deliveryReceipt><receivedAt>20070618T210655</receivedAt>"
    f"<id>uuid:3@{full.SENDER}</id></deliveryReceipt>"
    "<commitmentReceipt><decidedAt>20070618T210908</decidedAt>"
    f"<decision>positive</decision><id>uuid:4@{full.SENDER}</id></commitmentReceipt><Msmq ",
)
"""All receipts in one, which nobody sends."""


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        pytest.param(
            full.TEXT,
            f"<deliveryReceiptRequest>{SEND_TO}",
            marks=pytest.mark.spec("MQSRM-2.2.5.2.2-01"),
            id="delivery",
        ),
        pytest.param(
            full.TEXT,
            f"<commitmentReceiptRequest>{SEND_TO}",
            marks=pytest.mark.spec("MQSRM-2.2.5.2.3-01"),
            id="commitment",
        ),
        pytest.param(
            RECEIPT,
            f"<streamReceipt><streamId>uid:{full.SENDER}\\7</streamId>",
            marks=pytest.mark.spec("MQSRM-2.2.5.6-01"),
            id="streamId",
        ),
        pytest.param(
            RECEIPT,
            "<lastOrdinal>2</lastOrdinal>",
            marks=pytest.mark.spec("MQSRM-2.2.5.6-03"),
            id="lastOrdinal",
        ),
        pytest.param(
            RECEIPT,
            "<receivedAt>20070618T210655</receivedAt>",
            marks=pytest.mark.spec("MQSRM-2.2.5.4-02"),
            id="receivedAt",
        ),
        pytest.param(
            RECEIPT,
            f"<id>uuid:3@{full.SENDER}</id>",
            marks=pytest.mark.spec("MQSRM-2.2.5.4-04"),
            id="of the delivered",
        ),
        pytest.param(
            RECEIPT,
            "<decidedAt>20070618T210908</decidedAt>",
            marks=pytest.mark.spec("MQSRM-2.2.5.5-02"),
            id="decidedAt",
        ),
        pytest.param(
            RECEIPT,
            "<decision>positive</decision>",
            marks=pytest.mark.spec("MQSRM-2.2.5.5-04"),
            id="decision",
        ),
        pytest.param(
            RECEIPT,
            f"<id>uuid:4@{full.SENDER}</id>",
            marks=pytest.mark.spec("MQSRM-2.2.5.5-06"),
            id="of the decided",
        ),
    ],
)
def test_what_must_be_in_a_wish_or_a_receipt_is_missed(text: str, cut: str) -> None:
    assert read_envelope(text.encode())
    assert text.count(cut) == 1
    # The beginning tags of wishes stay; what is in them goes.
    kept = cut[: cut.index(">") + 1] if cut.count("<") == 3 else ""
    with pytest.raises(DecodeError):
        read_envelope(text.replace(cut, kept).encode())


@pytest.mark.parametrize(
    ("cut", "more"),
    [
        pytest.param("path", "", marks=pytest.mark.spec("MQSRM-2.2.4-01"), id="path"),
        pytest.param("properties", "", marks=pytest.mark.spec("MQSRM-2.2.5.1-01"), id="properties"),
        pytest.param("Msmq", "", marks=pytest.mark.spec("MQSRM-2.2.5.3-02"), id="Msmq of a stream"),
        pytest.param("se:Header", "", marks=pytest.mark.spec("MQSRM-2.2.2-03"), id="header"),
        pytest.param(
            "se:Header", "<x/>", marks=pytest.mark.spec("MQSRM-2.2.2-03"), id="not the first"
        ),
        pytest.param("se:Body", "<x/>", marks=pytest.mark.spec("MQSRM-2.2.2-05"), id="not behind"),
    ],
)
def test_a_block_that_must_be_there_is_missed(cut: str, more: str) -> None:
    begins, end = full.TEXT.index(f"<{cut}"), f"</{cut}>"
    ends = full.TEXT.index(end) + len(end)
    kept = full.TEXT[begins:ends] if more else ""
    with pytest.raises(DecodeError):
        read_envelope((full.TEXT[:begins] + more + kept + full.TEXT[ends:]).encode())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param(right, wrong, id=wrong[:40], marks=pytest.mark.spec(*statements))
        for right, wrong, *statements in (
            ("<id>uuid:26626@", "<id>26626@", "MQSRM-2.2.4.3-03"),
            ("<id>uuid:26626@", "<id>uuid:x@", "MQSRM-2.2.4.3-03"),
            (f"26626@{full.SENDER}", "26626@me", "MQSRM-2.2.4.3-03"),
            ("<expiresAt>20070619T170058", "<expiresAt>2007-06-19T17:00:58", "MQSRM-2.2.5.1.1-02"),
            ("<sentAt>20070619T165958", "<sentAt>20070619T165960", "MQSRM-2.2.5.1.2-01"),
            ("<streamId>uid:", "<streamId>uuid:", "MQSRM-2.2.5.3.1-02"),
            ("\\4839986701558349830", "", "MQSRM-2.2.5.3.1-03"),
            ("\\4839986701558349830", "/4839986701558349830", "MQSRM-2.2.5.3.1-03"),
            ("\\4839986701558349830", "\\18446744073709551616", "MQSRM-2.2.5.3.1-03"),
            ("<current>1<", "<current>one<", "MQSRM-2.2.5.3.2-02"),
            ("<previous>9<", "<previous>-1<", "MQSRM-2.2.5.3.3-01"),
            ("<Class>0<", "<Class>NORMAL<", "MQSRM-2.2.6.1-02"),
            ("<Priority>5<", "<Priority>8<", "MQSRM-2.2.6.2-02"),
            ("<Priority>5<", "<Priority>high<", "MQSRM-2.2.6.2-02"),
            ("<Correlation>AQID", "<Correlation>AQ*D", "MQSRM-2.2.6.5-01"),
            (f"<ConnectorType>{full.CONNECTOR}", "<ConnectorType>7", "MQSRM-2.2.6.7-01"),
            ("<App>36<", "<App>x<", "MQSRM-2.2.6.8-01"),
            ("<BodyType>8<", "<BodyType>text<", "MQSRM-2.2.6.9-02"),
            ("<HashAlgorithm>32772<", "<HashAlgorithm>SHA1<", "MQSRM-2.2.6.10-01"),
            (f"<ConnectorId>{full.CONNECTOR_MANAGER}", "<ConnectorId>7", "MQSRM-2.2.6.11-01"),
            (f"<SourceQmGuid>{full.SENDER}", "<SourceQmGuid>ALPHA", "MQSRM-2.2.6.13-02"),
            ("<TTrq>20070619T170028", "<TTrq>4 days", "MQSRM-2.2.6.17-02"),
            (
                "<SourceQmGuid>",
                "<Provider><Name>a</Name></Provider><SourceQmGuid>",
                "MQSRM-2.2.6.12-01",
            ),
            (
                "<SourceQmGuid>",
                "<Provider><Type>a</Type><Name>b</Name></Provider><SourceQmGuid>",
                "MQSRM-2.2.6.12-02",
            ),
            (
                "<SourceQmGuid>",
                "<Provider><Type>1</Type></Provider><SourceQmGuid>",
                "MQSRM-2.2.6.12-03",
            ),
            ('xmlns="msmq.namespace.xml"', 'xmlns="another"', "MQSRM-2.2.6-02"),
            (
                'xmlns="http://schemas.xmlsoap.org/srmp/"',
                'xmlns="another"',
                "MQSRM-2.2.5-01",
                "MQSRM-2.2.5.1-01",
            ),
            (
                'xmlns="http://schemas.xmlsoap.org/rp/"',
                'xmlns="http://schemas.xmlsoap.org/rp"',
                "MQSRM-2.2.4-02",
            ),
            (
                "http://schemas.xmlsoap.org/soap/envelope/",
                "http://www.w3.org/2003/05/soap-envelope",
                "MQSRM-2.2.2-01",
                "MQSRM-2.2.2-02",
            ),
        )
    ],
)
def test_what_an_element_cannot_say_is_refused(right: str, wrong: str) -> None:
    with pytest.raises(DecodeError):
        read_envelope(full.changed(right, wrong))


@pytest.mark.parametrize("wrong", ["<receivedAt>now<", "<decidedAt>never<", "<decision>maybe<"])
@pytest.mark.spec("MQSRM-2.2.5.4-03", "MQSRM-2.2.5.5-03", "MQSRM-2.2.5.5-05")
def test_a_receipt_has_a_date_and_one_of_two_decisions(wrong: str) -> None:
    name = wrong[: wrong.index(">") + 1]
    begins = RECEIPT.index(name)
    ends = RECEIPT.index("<", begins + 1)
    with pytest.raises(DecodeError):
        read_envelope((RECEIPT[:begins] + wrong + RECEIPT[ends + 1 :]).encode())
    for decision in ("positive", "negative"):
        told = RECEIPT.replace(">positive<", f">{decision}<")
        receipt = read_envelope(told.encode()).commitment_receipt
        assert receipt is not None
        assert receipt.positive is (decision == "positive")


@pytest.mark.spec("MQSRM-2.2.2-06", "MQSRM-2.2.5.1.3-01")
def test_what_stands_in_the_body_or_answers_something_is_ignored() -> None:
    plain = read_envelope(full.TEXT.encode())
    for old, new in (
        ("<se:Body></se:Body>", "<se:Body>text<order se:mustUnderstand='1'/></se:Body>"),
        ("<sentAt>", "<inReplyTo>uuid:1@x</inReplyTo><sentAt>"),
    ):
        assert read_envelope(full.changed(old, new)) == plain


@pytest.mark.spec("MQSRM-2.2.5-01")
def test_a_namespace_is_declared_for_all_or_for_each() -> None:
    declared = ' xmlns="http://schemas.xmlsoap.org/srmp/"'
    text = full.TEXT.replace(declared, "", 1)
    for name in ("properties", "services", "stream"):
        text = text.replace(f"<{name} ", f"<{name}{declared} ")
    assert read_envelope(text.encode()) == read_envelope(full.TEXT.encode())


@pytest.mark.spec("MQSRM-2.2.6.14-01", "MQSRM-2.2.6.15-01", "MQSRM-2.2.6.16-01")
def test_names_in_a_list_have_white_space_between_them() -> None:
    spread = full.TEXT.replace("q1\n", "q1 \t\r\n ").replace("q3\n", "q3 ").replace("q5\n", "q5\t")
    found, plain = (read_envelope(text.encode()).msmq for text in (spread, full.TEXT))
    assert found is not None
    assert found == plain
    assert found.destinations == ("http://b/msmq/q1", "http://b/msmq/q2")
    assert found.administration == ("http://a/msmq/q3", "http://a/msmq/q4")
    assert found.responses == ("http://a/msmq/q5", "http://a/msmq/q6")


@pytest.mark.spec("MQSRM-2.2.6.12-04")
def test_a_provider_is_any_text() -> None:
    named = "<Provider><Type>1</Type><Name>A provider, v1.0</Name></Provider><SourceQmGuid>"
    msmq = read_envelope(full.changed("<SourceQmGuid>", named)).msmq
    assert msmq is not None
    assert msmq.provider == Provider(1, "A provider, v1.0")

"""Envelopes of the specification are read, and what is none is refused."""

from __future__ import annotations

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
    Services,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.reading import read_envelope
from tests.golden import golden_post

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


@pytest.mark.spec("MQSRM-2.2.4-01", "MQSRM-2.2.4.1-01", "MQSRM-2.2.4.2-01")
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


def test_a_namespace_need_not_be_written_as_in_the_examples() -> None:
    text = simple().decode()
    prefixed = text.replace("<se:", "<s:").replace("</se:", "</s:").replace("se:must", "s:must")
    assert read_envelope(prefixed.replace(":se=", ":s=").encode()) == read_envelope(simple())

"""Envelopes are written as the specification prints them: where in one line, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import EncodeError
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.envelope import Envelope, Services
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope
from tests.golden import golden_post
from tests.strategies.envelopes import envelopes
from tests.unit.wire.srmp.full_envelope import TEXT


@pytest.mark.parametrize(
    "name",
    [
        "mqsrm-4.2-msmq-element",
        "mqsrm-4.3-delivery-receipt",
        "mqsrm-4.3-commitment-receipt",
        "mqsrm-4.4-stream-receipt-1",
        "mqsrm-4.5-multicast",
    ],
)
@pytest.mark.spec("MQSRM-2.2.2-01", "MQSRM-2.2.5-01", "MQSRM-2.2.6-01")
def test_an_envelope_that_is_printed_in_one_line_is_written_so(name: str) -> None:
    headers, content = golden_post(name)
    text = read_compound(headers["content-type"], content).envelope
    assert write_envelope(read_envelope(text)) == text


@given(envelopes)
def test_what_is_written_is_read_as_it_was(envelope: Envelope) -> None:
    assert read_envelope(write_envelope(envelope)) == envelope


@given(st.text(max_size=200))
def test_a_label_is_written_whatever_is_in_it(label: str) -> None:
    written = write_envelope(Envelope(to="http://a/msmq/q", action="MSMQ:" + label))
    legal = "\t\n\r"
    read = read_envelope(written).action.removeprefix("MSMQ:")
    assert len(read) == len(label)
    for before, after in zip(label, read, strict=True):
        assert after == before or (after == "\ufffd" and before not in legal)


def test_a_queue_whose_name_no_xml_can_have_is_refused() -> None:
    with pytest.raises(EncodeError, match="no XML can carry"):
        write_envelope(Envelope(to="http://a/msmq/\x07"))
    with pytest.raises(EncodeError, match="no XML can carry"):
        write_envelope(
            Envelope(to="http://a/msmq/q", services=Services(delivery=True, send_to="\x01"))
        )


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block[1:10], marks=pytest.mark.spec(*statements))
        for block, *statements in (
            (
                '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">',
                "MQSRM-2.2.4-02",
                "MQSRM-2.2.4-03",
            ),
            ('<properties se:mustUnderstand="1">', "MQSRM-2.2.5.1-02"),
            ('<services se:mustUnderstand="1">', "MQSRM-2.2.5.2-01"),
            ('<stream se:mustUnderstand="1">', "MQSRM-2.2.5.3-01"),
            ('<Msmq xmlns="msmq.namespace.xml">', "MQSRM-2.2.6-02"),
        )
    ],
)
def test_a_block_is_marked_as_it_has_to_be(block: str) -> None:
    assert write_envelope(read_envelope(TEXT.encode())).decode().count(block) == 1

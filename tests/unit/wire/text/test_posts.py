"""Requests over HTTP are shown: their envelopes in words, and every byte once."""

from __future__ import annotations

import pytest

from openmsmq.wire.text.tree import Kind, Node, guess_kind, view
from tests.golden import golden_request


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        (
            "mqsrm-4.1-simple",
            "message {00000000-0000-0000-0000-000000000000}\\1 to "
            "http://machine2/msmq/private$/simpleq, body 13 bytes",
        ),
        (
            "mqsrm-4.4-stream-2",
            "message {6a74a825-57b2-43e5-9d34-f1d8b2b8950a}\\1 to "
            "http://machine2/msmq/private$/tsimpleq, number 2 of a stream, body 9 bytes",
        ),
        (
            "mqsrm-4.4-stream-receipt-1",
            "receipt for a stream up to 1, to "
            "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV",
        ),
        (
            "mqsrm-4.3-delivery-receipt",
            "receipt: {00000000-0000-0000-0000-000000000000}\\1 has arrived, to "
            "http://machine1/MSMQ/private$/receipts",
        ),
        (
            "mqsrm-4.3-commitment-receipt",
            "receipt: {00000000-0000-0000-0000-000000000000}\\1 has ended, positive, to "
            "http://machine1/MSMQ/private$/receipts",
        ),
    ],
)
def test_a_request_is_shown_in_one_line_and_in_full(name: str, summary: str) -> None:
    data = golden_request(name)
    assert guess_kind(data) is Kind.POST
    shown = view(data, Kind.POST)
    assert (shown.name, shown.summary, shown.problem) == ("Post", summary, "")
    assert sum(node.size for node in shown.nodes) == len(data)


def test_what_an_envelope_says_stands_below_it() -> None:
    (envelope,) = (
        node
        for node in view(golden_request("mqsrm-4.2-msmq-element"), Kind.POST).nodes
        if node.name == "Envelope"
    )
    said = {child.name: child for child in envelope.children}
    assert said["TTrq"].meaning == "2007-07-23 03:11:40 UTC"
    assert said["expiresAt"].meaning == "never"
    assert said["Class"] == Node("Class", envelope.offset, 0, 0, "NORMAL")


@pytest.mark.parametrize(
    "data",
    [
        b"POST ",
        b"POST / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>",
    ],
)
def test_what_is_no_message_is_shown_as_bytes(data: bytes) -> None:
    shown = view(data, Kind.POST)
    assert shown.problem
    assert sum(node.size for node in shown.nodes) == len(data)

"""Messages of multicast: the example of the specification, and ours read again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.multicast import read_multicast, write_multicast

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "mqsrm-4.5-multicast.http"
GROUP: Final = "234.1.1.1:8001"


def test_the_example_of_the_specification_is_read() -> None:
    text = GOLDEN.read_bytes().replace(b"\n", b"\r\n")
    envelope, parts = read_multicast(text)
    assert envelope.to == f"MSMQ:MULTICAST={GROUP}"
    assert envelope.action == "MSMQ:mqsender label"
    assert parts.body == "ardenwhite".encode("utf-16-le")
    with pytest.raises(DecodeError):
        read_multicast(text[:-80])


@given(st.binary(max_size=200), st.text("abc <&>\u00e4", max_size=20))
def test_what_is_written_is_read(body: bytes, label: str) -> None:
    message = UserMessage(
        UserHeader(Guid(b"q" * 16), message_number=7, sent_time_s=1_700_000_000),
        MessageProperties.of(body, label),
    )
    payload = write_multicast(message, GROUP)
    assert payload.startswith(f"POST {GROUP} HTTP/1.1\r\nHost: {GROUP}\r\n".encode())
    envelope, parts = read_multicast(payload)
    assert (envelope.to, envelope.services, envelope.stream) == (
        f"MSMQ:MULTICAST={GROUP}",
        None,
        None,
    )
    assert envelope.action == f"MSMQ:{label}"
    assert (envelope.id.number, parts.body) == (7, body)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_message_or_none(data: bytes) -> None:
    for each in (data, b"POST x HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n" + data):
        try:
            read_multicast(each)
        except DecodeError:
            continue

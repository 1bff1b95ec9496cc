"""Messages in several parts are cut by the lengths they state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.compound import Compound, read_compound, write_compound
from tests.golden import golden_post

TYPE = 'multipart/related; boundary="B"; type=text/xml'
XML = b"Content-Type: text/xml; charset=UTF-8\r\n"
MANAGER = Guid(bytes(range(16)))


def part(header: bytes, content: bytes) -> bytes:
    return b"--B\r\n%sContent-Length: %d\r\n\r\n%s" % (header, len(content), content)


ENVELOPE = part(XML, b"<e/>")
BODY = part(b"Content-Id: body@x\r\n", b"--B--")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("mqsrm-4.1-simple", b"First Message"),
        ("mqsrm-4.3-both-receipts-wanted", b"Both delivery and commitment receipt requests"),
        ("mqsrm-4.4-stream-3", b"Last Message"),
        ("mqsrm-4.5-multicast", "ardenwhite".encode("utf-16-le")),
    ],
)
def test_the_parts_of_the_examples_are_found(name: str, body: bytes) -> None:
    headers, content = golden_post(name)
    found = read_compound(headers["content-type"], content)
    assert found.envelope.startswith(b"<se:Envelope")
    assert found.envelope.endswith(b"</se:Envelope>")
    assert (found.body, found.extension) == (body, b"")


@pytest.mark.parametrize(
    ("name", "number", "manager"),
    [
        ("mqsrm-4.1-simple", 53287, "ff3af301-3196-497a-a918-72147c871a13"),
        ("mqsrm-4.2-msmq-element", 26500, "caf195ea-615c-4264-ae08-11a4e60194c0"),
        ("mqsrm-4.4-stream-1", 1672, "ff3af301-3196-497a-a918-72147c871a13"),
        ("mqsrm-4.5-multicast", 292, "32221eda-9376-46df-b6ed-783091123831"),
    ],
)
@pytest.mark.spec("MQSRM-2.2.2-07")
def test_the_examples_are_put_together_as_they_are_printed(
    name: str, number: int, manager: str
) -> None:
    headers, content = golden_post(name)
    parts = read_compound(headers["content-type"], content)
    assert write_compound(parts, Guid.parse(manager), number) == (headers["content-type"], content)


@given(st.binary(), st.binary(), st.binary(), st.integers(0, 99_999))
def test_parts_are_found_again(envelope: bytes, body: bytes, more: bytes, number: int) -> None:
    whole = Compound(envelope, body, more)
    kind, content = write_compound(whole, MANAGER, number)
    assert read_compound(kind, content) == whole


def test_no_boundary_stands_in_a_part() -> None:
    body = b"--MSMQ - SOAP boundary, 7--MSMQ - SOAP boundary, 8"
    kind, content = write_compound(Compound(b"<e/>", body), MANAGER, 7)
    assert "boundary, 9" in kind
    assert read_compound(kind, content).body == body


def test_a_line_break_before_a_boundary_is_understood_too() -> None:
    found = read_compound(TYPE, ENVELOPE + b"\r\n" + BODY + b"\r\n--B--")
    assert found == Compound(b"<e/>", b"--B--")


def test_an_envelope_may_come_alone() -> None:
    assert read_compound("text/xml; charset=utf-8", b"<e/>") == Compound(b"<e/>")


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("text/plain", b"<e/>", "content of type"),
        ("multipart/related", ENVELOPE, "content of type"),
        (f"multipart/related; boundary={'B' * 71}", ENVELOPE, "content of type"),
        ("x" * 401, ENVELOPE, "401 characters"),
        (TYPE, b"", "without a boundary"),
        (TYPE, b"--B--", "neither a part"),
        (TYPE, ENVELOPE, "without a boundary"),
        (TYPE, ENVELOPE + b"--C--", "without a boundary"),
        (TYPE, ENVELOPE + b"--B--x", "behind the last part"),
        (TYPE, ENVELOPE + BODY + b"--B--\r\nmore", "behind the last part"),
        (TYPE, ENVELOPE + BODY + BODY + b"--B--", "two parts body"),
        (TYPE, ENVELOPE + BODY + BODY + BODY + b"--B--", "neither a part"),
        (TYPE, BODY + b"--B--", "no envelope"),
        (TYPE, b"--B\r\n" + XML + b"Content-Length: 5\r\n\r\nabcd", "not there"),
        (TYPE, b"--B\r\n" + XML + b"Content-Length: 99999999999\r\n\r\n", "how long"),
        (TYPE, b"--B\r\n" + XML + b"Content-Length: -1\r\n\r\n", "how long"),
        (TYPE, b"--B\r\n" + XML + b"\r\n", "how long"),
        (TYPE, b"--B\r\n" + XML + XML + b"Content-Length: 1\r\n\r\n ", "cannot be read"),
        (TYPE, b"--B\r\nnothing\r\n\r\n", "cannot be read"),
        (TYPE, b"--B\r\n" + b"a: b\r\n" * 200 + b"\r\n", "1 KiB"),
        ("text/xml", b" " * 65_537, "an envelope of"),
    ],
)
def test_what_cannot_be_cut_is_refused(kind: str, data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        read_compound(kind, data)

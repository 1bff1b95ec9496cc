"""Requests and answers are found in a stream, however it is cut and whatever else is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.http_scanner import HEAD_BYTES_MAX, KEPT_BYTES_MAX, FoundHttp, HttpScanner
from openmsmq.analysis.packet_scanner import FoundTrouble
from tests.golden import golden_request

FIRST = golden_request("mqsrm-4.4-stream-1")
SECOND = golden_request("mqsrm-4.4-stream-2")
SIMPLE = golden_request("mqsrm-4.1-simple")
RECEIPT = golden_request("mqsrm-4.4-stream-receipt-1")
OTHER = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@given(st.data())
def test_wherever_a_stream_is_cut_the_same_is_found(data: st.DataObject) -> None:
    parts = data.draw(
        st.lists(st.sampled_from([FIRST, SECOND, OTHER, RECEIPT, SIMPLE]), max_size=5)
    )
    stream = b"".join(parts)
    scanner = HttpScanner(of_client=True)
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += scanner.feed(stream[:size])
        stream = stream[size:]
    found += scanner.finish("closed")
    assert [each.data for each in found] == parts
    assert all(isinstance(each, FoundHttp) for each in found)
    assert len(scanner) == 0


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([FIRST, OK, OTHER[:30], b"GET / HTTP/1.1\r\n"])
    )
)
def test_every_byte_is_somewhere_once(pieces: list[bytes]) -> None:
    for of_client in (True, False):
        scanner = HttpScanner(of_client=of_client)
        found = [each for piece in pieces for each in scanner.feed(piece)]
        found += scanner.finish("closed")
        at = 0
        for each in found:
            assert each.offset == at
            at += each.size if isinstance(each, FoundTrouble) else len(each.data)
        assert at == sum(map(len, pieces))


def test_a_request_that_lies_about_its_length_holds_no_more_than_a_message_may_have() -> None:
    scanner = HttpScanner(of_client=True)
    assert scanner.feed(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n") == []
    for _ in range(100):
        assert scanner.feed(bytes(65_536)) == []
        assert len(scanner) <= KEPT_BYTES_MAX
    (trouble,) = scanner.finish("closed")
    assert isinstance(trouble, FoundTrouble)
    assert trouble.size > 100 * 65_536


def test_a_longer_request_than_a_message_is_passed_over_and_the_next_one_read() -> None:
    size = KEPT_BYTES_MAX + 1
    scanner = HttpScanner(of_client=True)
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size
    trouble, request = scanner.feed(head + bytes(size) + OTHER)
    assert isinstance(trouble, FoundTrouble)
    assert trouble.size == len(head) + size
    assert isinstance(request, FoundHttp)
    assert request.data == OTHER


def test_a_head_without_an_end_is_given_up() -> None:
    scanner = HttpScanner(of_client=True)
    found = scanner.feed(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * HEAD_BYTES_MAX)
    assert found == []
    assert len(scanner) < HEAD_BYTES_MAX
    trouble, request = scanner.feed(b"\r\n\r\n" + OTHER)
    assert isinstance(trouble, FoundTrouble)
    assert "no request or answer of HTTP" in trouble.problem
    assert isinstance(request, FoundHttp)

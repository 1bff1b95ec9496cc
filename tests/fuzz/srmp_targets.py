"""What must hold for whatever is posted to us."""

from __future__ import annotations

from itertools import product
from typing import Final

from openmsmq.analysis.http_scanner import FoundHttp, FoundInHttp, HttpScanner
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.message import MessageClass
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.srmp.arriving import arrived_packet, final_class_in, order_ack_in
from openmsmq.wire.srmp.compound import Compound, read_compound, write_compound
from openmsmq.wire.srmp.departing import departing
from openmsmq.wire.srmp.envelope import Envelope
from openmsmq.wire.srmp.kinds import ABOUT_STREAMS, Kind, kind_of
from openmsmq.wire.srmp.limits import ENVELOPE_MAX_BYTES
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope
from openmsmq.wire.text.tree import view
from tests.fuzz.registry import Target

NOW_S: Final = 1_700_000_000


def envelopes(data: bytes) -> None:
    """A text is an envelope or refused; what is written of one is read as the same."""
    found = _envelope(data)
    if found is None:
        return
    assert len(data) <= ENVELOPE_MAX_BYTES
    written = write_envelope(found)
    if len(written) <= ENVELOPE_MAX_BYTES:
        assert write_envelope(read_envelope(written)) == written
    kind = kind_of(found)
    if kind in ABOUT_STREAMS:
        order_ack_in(found)
    if kind is Kind.FINAL_STREAM_RECEIPT:
        assert final_class_in(found) >= MessageClass.ACK_RECEIVE


def posts(data: bytes) -> None:
    """A post, behind a line with its type, is a packet or refused, and can be posted on."""
    kind, _, content = data.partition(b"\n")
    try:
        parts = read_compound(kind.decode("latin-1"), content)
    except DecodeError:
        return
    assert len(parts.envelope) + len(parts.body) + len(parts.extension) <= len(content)
    whole = Compound(parts.envelope, parts.body, parts.extension)
    assert read_compound(*write_compound(whole, NIL_GUID, 1)) == whole
    envelope = _envelope(parts.envelope)
    if envelope is None:
        return
    try:
        packet = arrived_packet(envelope, parts, NOW_S)
    except DecodeError:
        return
    assert outline(packet).packet_size == len(packet)
    message = decode(packet)
    assert isinstance(message, UserMessage)
    assert message.properties.body == parts.body
    _posted_on(message)


def _posted_on(message: UserMessage) -> None:
    try:
        request = departing(message, "")
    except EncodeError:
        return
    parts = read_compound(dict(request.headers)["Content-Type"], request.content)
    if len(parts.envelope) <= ENVELOPE_MAX_BYTES:
        read_envelope(parts.envelope)


def _envelope(data: bytes) -> Envelope | None:
    try:
        return read_envelope(data)
    except DecodeError:
        return None


def http_captures(data: bytes) -> None:
    """What a stream is cut into has every byte of it once, whatever it is."""
    for of_client, size in product((True, False), (len(data) or 1, 7)):
        found = _cut(data, size, of_client=of_client)
        if of_client:
            assert sum(_size(each) for each in found) == len(data)
        for each in found:
            if isinstance(each, FoundHttp):
                view(each.data, each.kind)


def _cut(data: bytes, size: int, *, of_client: bool) -> list[FoundInHttp]:
    scanner = HttpScanner(of_client=of_client)
    found: list[FoundInHttp] = []
    for start in range(0, len(data), size):
        found += scanner.feed(data[start : start + size])
    found += scanner.finish("closed")
    assert len(scanner) == 0
    return found


def _size(found: FoundInHttp) -> int:
    return len(found.data) if isinstance(found, FoundHttp) else found.size


TARGETS: Final[dict[str, Target]] = {
    "envelopes": envelopes,
    "posts": posts,
    "http-captures": http_captures,
}

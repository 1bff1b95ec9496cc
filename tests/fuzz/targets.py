"""What must hold for any bytes at all: one function per family of decoders.

A target takes bytes and raises something only when a promise is broken. Decoders may refuse with
their own error; every other exception is a finding, and so is a failed assertion. Nothing here
needs the fuzzer, so the same functions run as ordinary tests.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

import msgspec

from openmsmq.analysis.events import Anomaly, Event, PacketItem
from openmsmq.analysis.kinds import OF_BYTES
from openmsmq.analysis.traffic import follow
from openmsmq.capture.frames import read_frames
from openmsmq.capture.source import CaptureError
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.model.names import IllegalName, PathName, parse_format_name
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import base, user
from openmsmq.wire.keys import PublishedKeys, RsaPublicKey, SessionKeyBlob, UserCertificates
from openmsmq.wire.message_bytes import hop_counted
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode, headers_end, packet_fields
from openmsmq.wire.text.tree import Kind, Node, View, guess_kind, view
from tests.fuzz.registry import Target

T = TypeVar("T")


class Shown(Protocol):
    """A decoded value that encodes itself and shows its fields."""

    def encode(self) -> bytes: ...

    def fields(self) -> Iterable[Field]: ...


def packets(data: bytes) -> None:
    """A packet that decodes is its own encoding, is shown in full, and is outlined alike."""
    packet = _or_refused(decode, data)
    outlined = _or_refused(outline, data)
    if outlined is not None:
        assert outlined.properties_offset < outlined.body_start <= outlined.body_end <= len(data)
        _or_refused(lambda _: outlined.destination_name, data)
    if packet is None:
        return
    assert encode(packet) == data
    _covers(packet_fields(packet), len(data))
    assert list(take_packets(bytearray(data))) == [data]
    if isinstance(packet, UserMessage):
        _agrees_with_outline(packet, data)
        acknowledgment_in(packet, NIL_GUID)
    else:
        assert outlined is None


def frames(data: bytes) -> None:
    """However a stream is cut, the same packets come out of it, or the same refusal."""
    if len(data) < 2:
        return
    chunk, stream = 1 + int.from_bytes(data[:2], "little") % 700, data[2:]
    whole = _framed([stream])
    cut = _framed([stream[at : at + chunk] for at in range(0, len(stream), chunk)])
    assert cut == whole
    found, left, _ = whole
    assert sum(map(len, found)) + left == len(stream)
    assert stream.startswith(b"".join(found))
    for packet in found:
        decoded = _or_refused(decode, packet)
        assert decoded is None or encode(decoded) == packet


def datagrams(data: bytes) -> None:
    """Datagrams of discovery: each decodes to its own encoding, shown in full."""
    for read in (PingPacket.decode, DirectoryQuery.decode, DirectoryAnswer.decode):
        _is_its_own_encoding(read, data)


def keys(data: bytes) -> None:
    """Key and certificate blobs; the keys inside a list may be bad, the list is not."""
    for read in (RsaPublicKey.decode, SessionKeyBlob.decode, UserCertificates.decode):
        _is_its_own_encoding(read, data)
    listed = _is_its_own_encoding(PublishedKeys.decode, data)
    for published in listed.keys if listed is not None else ():
        _is_its_own_encoding(RsaPublicKey.decode, published.blob)


def change_notifications(data: bytes) -> None:
    """The bodies of change notifications of both versions."""
    _is_its_own_encoding(notifications.decode, data)


def acknowledgments(data: bytes) -> None:
    """The bodies of OrderAck and FinalAck."""
    _is_its_own_encoding(OrderAck.decode, data)
    _is_its_own_encoding(FinalAck.decode, data)


def names(data: bytes) -> None:
    """A text is a name or is refused at a place inside it; a name survives being printed."""
    text = data.decode("utf-8", "surrogateescape")
    parsers: tuple[Callable[[str], object], ...] = (parse_format_name, PathName.parse)
    for parse in parsers:
        name = _name_or_flaw(parse, text)
        if isinstance(name, IllegalName):
            assert 0 <= name.position <= len(text)
            assert name.text == text
            assert name.problem in str(name)
        else:
            printed = str(name)
            assert parse(printed) == name
            assert str(parse(printed)) == printed


def captures(data: bytes) -> None:
    """A capture gives its items in order and the same however it is read, damaged or not."""
    items = _followed(io.BytesIO(data).read)
    slowly = io.BytesIO(data)
    assert _followed(lambda size: slowly.read(min(size, 7))) == items
    packets = [item for item in items[0] if isinstance(item, PacketItem)]
    # What is wrong with a whole session comes at its end.
    unread = [item for item in items[0] if isinstance(item, Anomaly) and item.kind in OF_BYTES]
    for some in (packets, unread):
        assert [item.frame for item in some] == sorted(item.frame for item in some)
        assert all(str(item.source) and str(item.destination) for item in some)
    for item in packets:
        assert (item.packet is None) == bool(item.problem)


def views(data: bytes) -> None:
    """Showing never fails, shows every byte once, and what is shown can be sent as JSON."""
    guess_kind(data)
    for kind in Kind:
        shown = view(data, kind)
        assert _placed(shown.nodes, 0) == len(data)
        assert msgspec.json.decode(msgspec.json.encode(shown), type=View) == shown
    assert (view(data).name == "malformed") == (_or_refused(decode, data) is None)


TARGETS: Final[dict[str, Target]] = {
    "packets": packets,
    "frames": frames,
    "datagrams": datagrams,
    "keys": keys,
    "notifications": change_notifications,
    "acknowledgments": acknowledgments,
    "names": names,
    "captures": captures,
    "views": views,
}


def _or_refused(read: Callable[[bytes], T], data: bytes) -> T | None:
    try:
        return read(data)
    except DecodeError:
        return None


def _name_or_flaw(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except IllegalName as flaw:
        return flaw


S = TypeVar("S", bound=Shown)


def _is_its_own_encoding(read: Callable[[bytes], S], data: bytes) -> S | None:
    value = _or_refused(read, data)
    if value is not None:
        assert value.encode() == data
        _covers(value.fields(), len(data))
    return value


def _covers(shown: Iterable[Field], size: int) -> None:
    """Fields and the fields inside them each add up to what they are part of."""
    total = 0
    for field in shown:
        assert field.size >= 0
        total += field.size
        if isinstance(field.value, list):
            _covers(field.value, field.size)
    assert total == size


def _placed(nodes: Iterable[Node], offset: int) -> int:
    """Nodes stand behind each other from `offset` on, at each level; give where they end."""
    for node in nodes:
        if node.size:
            assert node.offset == offset
            if any(child.size for child in node.children):
                assert _placed(node.children, offset) == offset + node.size
            offset += node.size
    return offset


def _agrees_with_outline(packet: UserMessage, data: bytes) -> None:
    found = outline(data)
    assert found.packet_size == int.from_bytes(data[8:12], "little")
    assert found.base_flags & ~base.STRUCTURAL == packet.base.flags
    assert found.flags & ~user.STRUCTURAL == packet.user.flags
    assert found.destination_name == packet.user.destination
    assert data[found.body_start : found.body_end] == packet.properties.body
    behind = 16 if packet.session is not None else 0
    inside = data[: found.packet_size]
    assert headers_end(inside) == len(data) - behind - len(packet.tail)
    try:
        forwarded = hop_counted(data)
    except EncodeError:
        assert packet.user.hop_count >= HOP_MAX_COUNT
    else:
        passed_on = decode(forwarded)
        assert isinstance(passed_on, UserMessage)
        assert passed_on.user.hop_count == packet.user.hop_count + 1


def _framed(chunks: list[bytes]) -> tuple[list[bytes], int, str]:
    """The packets in the chunks, how many bytes are left, and the refusal if there was one."""
    buffer = bytearray()
    found: list[bytes] = []
    given = 0
    for chunk in chunks:
        buffer += chunk
        given += len(chunk)
        try:
            found.extend(take_packets(buffer))
        except DecodeError as error:
            return found, sum(map(len, chunks)) - sum(map(len, found)), str(error)
        assert len(buffer) == given - sum(map(len, found))
    return found, len(buffer), ""


def _followed(read: Callable[[int], bytes]) -> tuple[list[Event], str]:
    items: list[Event] = []
    try:
        for item in follow(read_frames(read)):
            items.append(item)  # noqa: PERF402 -- what came before an error counts
    except CaptureError as error:
        return items, str(error)
    return items, ""

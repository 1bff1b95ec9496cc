"""The parts of packets and the datagrams, drawn so that each layout occurs often."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import (
    Command,
    DirectoryNotification,
    Event,
    ManagerNotification,
    Property,
    Update,
)
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket, ServerEntry
from openmsmq.wire.fields.variants import PROPERTIES, PropertyValue, VariantType
from openmsmq.wire.headers.debug import QUEUE_TYPE, DebugHeader
from openmsmq.wire.headers.multi_queue import (
    DIRECT_MIN_CHARACTERS,
    AddressList,
    DistributionListName,
    ListId,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName
from openmsmq.wire.headers.security import SENDER_KIND, SecurityHeader
from openmsmq.wire.headers.soap import BODY_SECTION, SoapHeader
from openmsmq.wire.keys import (
    KeyUse,
    ProviderType,
    PublishedKey,
    PublishedKeys,
    RsaPublicKey,
    SessionAlgorithm,
    SessionKeyBlob,
    UserCertificate,
    UserCertificates,
)

_u8 = st.integers(0, 0xFF)
_u16 = st.integers(0, 0xFFFF)
_u32 = st.integers(0, 0xFFFF_FFFF)
_guids = st.binary(min_size=16, max_size=16).map(Guid)
_items = st.binary(max_size=13)


def utf16_texts(min_size: int = 0, without: str = "") -> SearchStrategy[str]:
    """Draw texts that UTF-16 can hold, without NUL."""
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0" + without)
    return st.text(letters, min_size=min_size, max_size=12)


def _said(draw: st.DrawFn, size: int) -> bytes:
    """Padding as a header keeps it: nothing when it is all zeros."""
    padding = draw(st.binary(min_size=size, max_size=size))
    return padding if padding.strip(b"\0") and draw(st.booleans()) else b""


@st.composite
def security_headers(draw: st.DrawFn) -> SecurityHeader:
    """Draw a header with any of its items, but at least one."""
    flags = draw(_u16) & ~SENDER_KIND
    kind = draw(st.integers(0, 2))
    items = draw(
        st.tuples(_items if kind else st.just(b""), _items, _items, _items, _items).filter(any)
    )
    padding = _said(draw, sum(-len(item) & 3 for item in items))
    return SecurityHeader(*items, flags | kind, padding)


def debug_headers() -> SearchStrategy[DebugHeader]:
    """Draw a header with or without a queue."""
    return st.builds(
        DebugHeader, st.none() | _guids, _u16.map(lambda flags: flags & ~QUEUE_TYPE), _u16
    )


@st.composite
def soap_headers(draw: st.DrawFn) -> SoapHeader:
    """Draw a padded header, or an unpadded one that nobody could take for padded."""
    units = st.binary(max_size=12).map(lambda raw: raw[: len(raw) & ~1])
    header, body = draw(units), draw(units)
    reserved, body_reserved = draw(_u16), draw(_u16)
    unpadded = len(header) & 2 and body_reserved != BODY_SECTION and draw(st.booleans())
    if unpadded:
        return SoapHeader(header, body, reserved, body_reserved, padded=False)
    padding = _said(draw, (-len(header) & 3) + (-len(body) & 3))
    return SoapHeader(header, body, reserved, body_reserved, True, padding)


multi_queue_elements = st.one_of(
    st.builds(PublicName, _guids),
    st.builds(PrivateName, _guids, _u32),
    st.builds(DirectName, utf16_texts(min_size=DIRECT_MIN_CHARACTERS)),
    st.builds(DistributionListName, _guids),
)


@st.composite
def address_lists(draw: st.DrawFn, list_id: ListId) -> AddressList:
    """Draw a list as we write it, or one whose last padding its size does not count."""
    elements = tuple(draw(st.lists(multi_queue_elements, max_size=4)))
    plain = AddressList(elements, draw(_u16))
    if not elements or not isinstance(elements[-1], DirectName) or draw(st.booleans()):
        return plain
    raw = plain.write(list_id)
    counted = int.from_bytes(raw[:4], "little")
    # A terminator of 2 zero bytes and nothing else before the end: no padding to leave out.
    text_end = len(raw) if raw[-4:] != bytes(4) else len(raw) - 2
    if text_end == counted:
        return plain
    raw = (
        text_end.to_bytes(4, "little")
        + raw[4:text_end]
        + draw(st.binary(min_size=counted - text_end, max_size=counted - text_end))
    )
    return AddressList(elements, plain.reserved, raw)


def multi_queue_headers() -> SearchStrategy[MultiQueueFormatHeader]:
    """Draw a header with any elements in its lists."""
    return _multi_queue_headers()


@st.composite
def _multi_queue_headers(draw: st.DrawFn) -> MultiQueueFormatHeader:
    lists = [draw(address_lists(list_id)) for list_id in ListId]
    signature = draw(_items)
    padding = _said(draw, -len(signature) & 3)
    return MultiQueueFormatHeader(*lists, signature, draw(_u16), padding)


def ping_packets() -> SearchStrategy[PingPacket]:
    """Draw a ping or its answer."""
    return st.builds(PingPacket, _guids, _u32, _u16)


def _ipx_tail(networks: list[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in (len(networks), *networks))


def directory_queries() -> SearchStrategy[DirectoryQuery]:
    """Draw a query, over IP or IPX, or with a tail too short to mean anything."""
    tails = st.one_of(
        st.just(b""),
        st.binary(max_size=7),
        st.lists(_u32, min_size=1, max_size=32).map(_ipx_tail),
    )
    return st.builds(DirectoryQuery, _guids, _guids, _guids, _u8, _u16, tails)


server_entries = st.builds(
    ServerEntry, utf16_texts(min_size=1, without=","), st.booleans(), st.booleans()
)


@st.composite
def directory_answers(draw: st.DrawFn) -> DirectoryAnswer:
    """Draw an answer of the same or of another site."""
    servers = tuple(draw(st.lists(server_entries, max_size=4)))
    return DirectoryAnswer(
        draw(_guids),
        tuple(draw(st.lists(_guids, min_size=1, max_size=5))),
        draw(_guids) if servers else None,
        servers,
        draw(_u32),
        draw(_u8),
        draw(_u16),
    )


@st.composite
def rsa_public_keys(draw: st.DrawFn) -> RsaPublicKey:
    """Draw a key of a few whole bytes; the wire does not care that it is weak."""
    size = draw(st.integers(1, 20))
    modulus = draw(st.integers(0, (1 << 8 * size) - 1))
    return RsaPublicKey(8 * size, draw(_u32), modulus, draw(st.sampled_from(KeyUse)))


def session_key_blobs() -> SearchStrategy[SessionKeyBlob]:
    """Draw a session key for any algorithm."""
    return st.builds(
        SessionKeyBlob, st.sampled_from(SessionAlgorithm), st.binary(min_size=1, max_size=70)
    )


def published_keys() -> SearchStrategy[PublishedKeys]:
    """Draw the keys of a queue manager, among them some that are none."""
    blobs = rsa_public_keys().map(RsaPublicKey.encode) | st.binary(max_size=8)
    entries = st.builds(PublishedKey, st.sampled_from(ProviderType), utf16_texts(), blobs)
    return st.builds(PublishedKeys, st.lists(entries, max_size=4).map(tuple))


def user_certificates() -> SearchStrategy[UserCertificates]:
    """Draw the certificates of a user."""
    digests = st.binary(min_size=16, max_size=16)
    entries = st.builds(UserCertificate, digests, _guids, st.binary(max_size=20))
    return st.builds(UserCertificates, st.lists(entries, max_size=4).map(tuple))


sequences = st.builds(SequenceId, _u32, _u32)


@st.composite
def order_acks(draw: st.DrawFn) -> OrderAck:
    """Draw an OrderAck, sometimes with what Windows leaves in its reserved bytes."""
    return OrderAck(draw(sequences), draw(_u32), draw(_u32), _said(draw, 20))


def final_acks() -> SearchStrategy[FinalAck]:
    """Draw a FinalAck."""
    return st.builds(FinalAck, sequences, _u32, _u32, st.builds(MessageId, _guids, _u32))


def _signed(bits: int) -> SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _unsigned(bits: int) -> SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


_VALUES: dict[VariantType, SearchStrategy[PropertyValue]] = {
    VariantType.I1: _signed(8),
    VariantType.I2: _signed(16),
    VariantType.I4: _signed(32),
    VariantType.I8: _signed(64),
    VariantType.UI1: _unsigned(8),
    VariantType.UI2: _unsigned(16),
    VariantType.UI4: _unsigned(32),
    VariantType.UI8: _unsigned(64),
    VariantType.BOOL: st.booleans(),
    VariantType.LPWSTR: utf16_texts(),
    VariantType.BLOB: st.binary(max_size=20),
    VariantType.CLSID: _guids,
    VariantType.UI1_VECTOR: st.binary(max_size=20),
    VariantType.UI4_VECTOR: st.lists(_u32, max_size=4).map(tuple),
    VariantType.LPWSTR_VECTOR: st.lists(utf16_texts(), max_size=4).map(tuple),
    VariantType.CLSID_VECTOR: st.lists(_guids, max_size=4).map(tuple),
}


def property_values(kind: VariantType) -> SearchStrategy[PropertyValue]:
    """Draw a value of that type."""
    return _VALUES[kind]


@st.composite
def properties(draw: st.DrawFn) -> Property:
    """Draw any known property with a value of its type."""
    identifier = draw(st.sampled_from(sorted(PROPERTIES)))
    return Property(identifier, draw(property_values(PROPERTIES[identifier][1])))


@st.composite
def updates(draw: st.DrawFn) -> Update:
    """Draw the change of an object, named by identifier or path."""
    return Update(
        draw(st.sampled_from(Command)),
        draw(_guids | utf16_texts()),
        draw(_guids),
        tuple(draw(st.lists(properties(), max_size=4))),
        _said(draw, 24),
    )


_tails = st.binary(max_size=3)


def directory_notifications() -> SearchStrategy[DirectoryNotification]:
    """Draw what a directory service sends."""
    return st.builds(DirectoryNotification, st.lists(updates(), max_size=3).map(tuple), _tails)


@st.composite
def manager_notifications(draw: st.DrawFn) -> ManagerNotification:
    """Draw what a queue manager sends, in either spelling."""
    letters = st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="<>")
    plain = ManagerNotification(
        draw(st.sampled_from(Event)),
        draw(_guids),
        draw(st.text(letters, min_size=1, max_size=20)),
        draw(_tails),
    )
    text = draw(
        st.sampled_from([plain.text, plain.text.replace("</ObjectGuid>", "</ObjectGuid >")])
    )
    if text == plain.text:
        return plain
    return ManagerNotification(
        plain.event, plain.object_id, plain.directory_server, plain.tail, text
    )

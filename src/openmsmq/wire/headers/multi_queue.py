"""MultiQueueFormatHeader: all queues that got a copy of a message. [MQMQ 2.2.20.1-3]

Three lists of queue names and a signature, always all four. A list can be laid out in more ways
than one: with any bytes as padding, with or without the padding at its end counted in its size,
and with the identifier of a public queue aligned or not (C-13). We write one of them; a list that
came in another keeps its bytes beside its elements.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import (
    Field,
    Pads,
    group,
    hex_field,
    keep_padding,
    need,
    padding_size,
)
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName

LIST_LAYOUT: Final = struct.Struct("<IHHI")
LIST_MIN_BYTES: Final = LIST_LAYOUT.size
SIGNATURE_LAYOUT: Final = struct.Struct("<HHI")
SIGNATURE_MIN_BYTES: Final = SIGNATURE_LAYOUT.size
SIGNATURE_ID: Final = 0x015E
DIRECT_MIN_CHARACTERS: Final = len(r"OS:a\q")
"""No direct format name is shorter. Without this bound, a packet could turn into many times its
size of tiny elements."""
ELEMENT_MIN_BYTES: Final = 2 + 2 * DIRECT_MIN_CHARACTERS + 2

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_WHERE: Final = "MultiQueueFormatHeader"

_PUBLIC: Final = 1
_PRIVATE: Final = 2
_DIRECT: Final = 3
_DISTRIBUTION_LIST: Final = 6
_PAYLOAD_SIZES: Final = {_PUBLIC: 16, _PRIVATE: 20, _DISTRIBUTION_LIST: 16}


class DistributionListName(msgspec.Struct, frozen=True, gc=False):
    """A distribution list of the directory. [MQMQ 2.2.18.1.4.2]"""

    distribution_list: Guid


Element: TypeAlias = PublicName | PrivateName | DirectName | DistributionListName
"""A name in a list. [MQMQ 2.2.18.1.7, 2.2.18.1.4.1]

Whether `DIRECT=` stands before a direct name is not specified; its text is kept as it came.
"""


class ListId(enum.IntEnum):
    """Which list a list is (HeaderID)."""

    DESTINATION = 0x0064
    ADMINISTRATION = 0x00C8
    RESPONSE = 0x012C


class AddressList(msgspec.Struct, frozen=True, gc=False):
    """Queue names (MQFAddressHeader). [MQMQ 2.2.20.2]"""

    elements: tuple[Element, ...] = ()
    reserved: int = 0
    raw: bytes = b""
    """The list as it came, when that is not how we write it."""

    def write(self, list_id: ListId) -> bytes:
        """Return the bytes of the list, padded to a multiple of 4."""
        if not self.raw:
            return self._canonical(list_id)
        try:
            found = _read_list(self.raw, 0, list_id)
        except DecodeError as error:
            raise EncodeError(_WHERE, f"the bytes kept are no list: {error}") from None
        if found != (self, len(self.raw)):
            raise EncodeError(_WHERE, "the bytes kept say something else than the elements")
        return self.raw

    def _canonical(self, list_id: ListId) -> bytes:
        raw = bytearray(LIST_MIN_BYTES)
        for element in self.elements:
            code, payload = _element_parts(element)
            raw += _U16.pack(code)
            if code != _DIRECT:
                raw += bytes(-len(raw) & 3)
            raw += payload
        raw += bytes(-len(raw) & 3)
        LIST_LAYOUT.pack_into(raw, 0, len(raw), list_id, self.reserved, len(self.elements))
        return bytes(raw)

    def fields(self, list_id: ListId) -> Iterator[Field]:
        """Show the list, field by field."""
        data = self.write(list_id)
        size = LIST_LAYOUT.unpack_from(data)[0]
        yield Field("HeaderSize", 4, size)
        yield Field("HeaderID", 2, int(list_id), list_id.name)
        yield Field("Reserved", 2, self.reserved)
        yield Field("ElementCount", 4, len(self.elements))
        at = LIST_MIN_BYTES
        count = len(self.elements)
        public_aligned = _all_elements(data, 0, size, count)[1]
        for element, payload, end in _elements(data, 0, size, count, public_aligned):
            yield Field("FormatType", 2, _U16.unpack_from(data, at)[0])
            yield from hex_field("padding", data[at + 2 : payload])
            yield Field("FormatName", end - payload, describe(element))
            at = end
        yield from hex_field("padding", data[at:])


class MultiQueueFormatHeader(msgspec.Struct, frozen=True, gc=False):
    """Where the copies of a message went, and where their answers go."""

    destinations: AddressList = AddressList()
    administration: AddressList = AddressList()
    responses: AddressList = AddressList()
    signature: bytes = b""
    signature_reserved: int = 0
    padding: bytes = b""
    """What stands behind the signature."""

    def write(self) -> bytes:
        """Return the bytes of the four parts."""
        pads = Pads(self.padding, _WHERE)
        parts = (
            self.destinations.write(ListId.DESTINATION),
            self.administration.write(ListId.ADMINISTRATION),
            self.responses.write(ListId.RESPONSE),
            SIGNATURE_LAYOUT.pack(SIGNATURE_ID, self.signature_reserved, len(self.signature)),
            self.signature,
            pads.take(padding_size(len(self.signature))),
        )
        pads.finish()
        return b"".join(parts)

    def fields(self) -> Iterator[Field]:
        """Show the header, one field per part."""
        for name, addresses, list_id in (
            ("Destination", self.destinations, ListId.DESTINATION),
            ("Administration", self.administration, ListId.ADMINISTRATION),
            ("Response", self.responses, ListId.RESPONSE),
        ):
            yield group(name, addresses.fields(list_id))
        yield group("Signature", self._signature_fields())

    def _signature_fields(self) -> Iterator[Field]:
        yield Field("ID", 2, SIGNATURE_ID)
        yield Field("Reserved", 2, self.signature_reserved)
        yield Field("Size", 4, len(self.signature))
        yield from hex_field("Signature", self.signature)
        padding = Pads(self.padding, _WHERE).take(padding_size(len(self.signature)))
        yield from hex_field("padding", padding)


def describe(element: Element) -> str:
    """Say an element for people."""
    match element:
        case DistributionListName(distribution_list):
            return f"DL={distribution_list}"
        case DirectName(text) if text[:7].casefold() == "direct=":
            return text
        case _:
            return queue_names.describe(element)


def _element_parts(element: Element) -> tuple[int, bytes]:
    match element:
        case DirectName(text):
            if len(text) < DIRECT_MIN_CHARACTERS:
                raise EncodeError(_WHERE, f"{text!r} is too short for a direct name")
            return _DIRECT, utf16.write(text, _WHERE)
        case DistributionListName(distribution_list):
            return _DISTRIBUTION_LIST, distribution_list
        case PublicName() | PrivateName():
            code = _PUBLIC if isinstance(element, PublicName) else _PRIVATE
            return code, queue_names.write(element, _WHERE)
        case _:
            assert_never(element)


def _read_element(
    data: bytes, start: int, at: int, end: int, public_aligned: bool
) -> tuple[Element, int, int]:
    """Read the element at `at`; give it, where its name starts, and the offset behind it."""
    if end - at < ELEMENT_MIN_BYTES:
        raise DecodeError(_WHERE, at, "the list ends inside an element")
    code = _U16.unpack_from(data, at)[0]
    payload = at + 2
    if code == _DIRECT:
        text, behind = utf16.read(data, payload, end, _WHERE)
        if len(text) < DIRECT_MIN_CHARACTERS:
            raise DecodeError(_WHERE, payload, f"{text!r} is too short for a direct name")
        return DirectName(text), payload, behind
    size = _PAYLOAD_SIZES.get(code)
    if size is None:
        raise DecodeError(_WHERE, at, f"format type {code}, not 1, 2, 3 or 6")
    if code != _PUBLIC or public_aligned:
        payload += start - payload & 3
    behind = payload + size
    if behind > end:
        raise DecodeError(_WHERE, at, "the list ends inside an element")
    identifier = Guid(data[payload : payload + 16])
    if code == _PRIVATE:
        number = _U32.unpack_from(data, payload + 16)[0]
        return PrivateName(identifier, number), payload, behind
    if code == _PUBLIC:
        return PublicName(identifier), payload, behind
    return DistributionListName(identifier), payload, behind


def _elements(
    data: bytes, start: int, end: int, count: int, public_aligned: bool
) -> Iterator[tuple[Element, int, int]]:
    """Read all elements of the list at `start`; they must fill it up to `end`."""
    at = start + LIST_MIN_BYTES
    for _ in range(count):
        element, payload, behind = _read_element(data, start, at, end, public_aligned)
        yield element, payload, behind
        at = behind
    if end not in (at, at + (start - at & 3)):
        raise DecodeError(_WHERE, at, f"{end - at} bytes behind the last element of a list")


def _all_elements(
    data: bytes, start: int, end: int, count: int
) -> tuple[tuple[Element, ...], bool]:
    """Read the elements with public queues aligned, or else unaligned; say which."""
    try:
        return tuple(found[0] for found in _elements(data, start, end, count, True)), True
    except DecodeError as error:
        try:
            return tuple(found[0] for found in _elements(data, start, end, count, False)), False
        except DecodeError:
            raise error from None


def _measure_list(data: bytes, offset: int, list_id: ListId) -> tuple[int, int, int]:
    """Check the size of the list at `offset`; give it, the element count and what follows."""
    need(data, offset, LIST_MIN_BYTES, _WHERE)
    size, found, _, count = LIST_LAYOUT.unpack_from(data, offset)
    if found != list_id:
        raise DecodeError(_WHERE, offset + 4, f"list {found:#06x}, not {int(list_id):#06x}")
    if size < LIST_MIN_BYTES:
        raise DecodeError(_WHERE, offset, f"a list of {size} bytes; at least {LIST_MIN_BYTES}")
    following = offset + size + (-size & 3)
    need(data, following, 0, _WHERE)
    if count * ELEMENT_MIN_BYTES > size - LIST_MIN_BYTES:
        raise DecodeError(_WHERE, offset + 8, f"{count} elements in a list of {size} bytes")
    return size, count, following


def _read_list(data: bytes, offset: int, list_id: ListId) -> tuple[AddressList, int]:
    size, count, following = _measure_list(data, offset, list_id)
    reserved = LIST_LAYOUT.unpack_from(data, offset)[2]
    elements, _ = _all_elements(data, offset, offset + size, count)
    addresses = AddressList(elements, reserved)
    raw = data[offset:following]
    if addresses.write(list_id) != raw:
        addresses = AddressList(elements, reserved, raw)
    return addresses, following


def _signature_end(data: bytes, offset: int) -> tuple[int, int]:
    """Check the signature at `offset`; give where it ends and what follows."""
    need(data, offset, SIGNATURE_MIN_BYTES, _WHERE)
    found, _, size = SIGNATURE_LAYOUT.unpack_from(data, offset)
    if found != SIGNATURE_ID:
        raise DecodeError(_WHERE, offset, f"part {found:#06x}, not {SIGNATURE_ID:#06x}")
    end = offset + SIGNATURE_MIN_BYTES + int(size)
    following = end + (-size & 3)
    need(data, following, 0, _WHERE)
    return end, following


def skip(data: bytes, offset: int) -> int:
    """Pass over the header at `offset`, its sizes checked; give the offset behind it."""
    for list_id in ListId:
        offset = _measure_list(data, offset, list_id)[2]
    return _signature_end(data, offset)[1]


def read(data: bytes, offset: int) -> tuple[MultiQueueFormatHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    destinations, offset = _read_list(data, offset, ListId.DESTINATION)
    administration, offset = _read_list(data, offset, ListId.ADMINISTRATION)
    responses, offset = _read_list(data, offset, ListId.RESPONSE)
    end, following = _signature_end(data, offset)
    header = MultiQueueFormatHeader(
        destinations,
        administration,
        responses,
        data[offset + SIGNATURE_MIN_BYTES : end],
        SIGNATURE_LAYOUT.unpack_from(data, offset)[1],
        keep_padding(data[end:following]),
    )
    return header, following

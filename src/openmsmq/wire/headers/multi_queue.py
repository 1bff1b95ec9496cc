"""MultiQueueFormatHeader: all queues that got a copy of a message. [MQMQ 2.2.20.1-3]

Three lists of queue names and a signature, always all four. A list can be laid out in more ways
than one: with any bytes as padding, with or without the padding at its end counted in its size,
and with the identifier of a public queue aligned or not (C-13). We write one of them; a list that
came in another keeps its bytes beside its elements.

A list has as many names as a list of format names may have (C-160), and whoever only wants to know
whether a header can be read makes no object of any.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, TypeVar, assert_never

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import FORMAT_NAME_MAX_COUNT
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

T = TypeVar("T")

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
        if len(self.elements) > FORMAT_NAME_MAX_COUNT:
            raise EncodeError(_WHERE, _too_many(len(self.elements)))
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
        places = _aligned_or_not(data, 0, size, len(self.elements), list)
        for (code, payload, behind, _), element in zip(places, self.elements, strict=True):
            yield Field("FormatType", 2, code)
            yield from hex_field("padding", data[at + 2 : payload])
            yield Field("FormatName", behind - payload, describe(element))
            at = behind
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


_Place: TypeAlias = tuple[int, int, int, str]
"""An element of a list: its type, where its name starts and ends, and the text of a direct name."""


def _places(
    data: bytes, start: int, end: int, count: int, public_aligned: bool
) -> Iterator[_Place]:
    """Find all elements of the list at `start`, checked; they must fill it up to `end`."""
    at = start + LIST_MIN_BYTES
    for _ in range(count):
        if end - at < ELEMENT_MIN_BYTES:
            raise DecodeError(_WHERE, at, "the list ends inside an element")
        code = data[at] | data[at + 1] << 8
        payload = at + 2
        text = ""
        if code == _DIRECT:
            text, behind = utf16.read(data, payload, end, _WHERE)
            if len(text) < DIRECT_MIN_CHARACTERS:
                raise DecodeError(_WHERE, payload, f"{text!r} is too short for a direct name")
        else:
            size = _PAYLOAD_SIZES.get(code)
            if size is None:
                raise DecodeError(_WHERE, at, f"format type {code}, not 1, 2, 3 or 6")
            if code != _PUBLIC or public_aligned:
                payload += start - payload & 3
            behind = payload + size
            if behind > end:
                raise DecodeError(_WHERE, at, "the list ends inside an element")
        yield code, payload, behind, text
        at = behind
    if end not in (at, at + (start - at & 3)):
        raise DecodeError(_WHERE, at, f"{end - at} bytes behind the last element of a list")


def _aligned_or_not(
    data: bytes, start: int, end: int, count: int, use: Callable[[Iterator[_Place]], T]
) -> T:
    """Use the places of the elements with public queues aligned, or else unaligned."""
    try:
        return use(_places(data, start, end, count, True))
    except DecodeError as error:
        try:
            return use(_places(data, start, end, count, False))
        except DecodeError:
            raise error from None


def _pass_over(places: Iterator[_Place]) -> None:
    for _ in places:
        pass


def _element_at(data: bytes, place: _Place) -> Element:
    """Read the element at a place."""
    code, payload, _, text = place
    if code == _DIRECT:
        return DirectName(text)
    identifier = Guid(data[payload : payload + 16])
    if code == _PRIVATE:
        return PrivateName(identifier, _U32.unpack_from(data, payload + 16)[0])
    return PublicName(identifier) if code == _PUBLIC else DistributionListName(identifier)


def _too_many(count: int) -> str:
    return f"{count} names in a list; at most {FORMAT_NAME_MAX_COUNT}"


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
    if count > FORMAT_NAME_MAX_COUNT:
        raise DecodeError(_WHERE, offset + 8, _too_many(count))
    return size, count, following


def _read_list(data: bytes, offset: int, list_id: ListId) -> tuple[AddressList, int]:
    size, count, following = _measure_list(data, offset, list_id)
    reserved = LIST_LAYOUT.unpack_from(data, offset)[2]
    elements = _aligned_or_not(
        data,
        offset,
        offset + size,
        count,
        lambda places: tuple([_element_at(data, place) for place in places]),
    )
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


def count_names(data: bytes, offset: int) -> int:
    """Return how many names the lists of the header at `offset` say they have."""
    total = 0
    for list_id in ListId:
        _, count, offset = _measure_list(data, offset, list_id)
        total += count
    return total


def has_signature(data: bytes, offset: int) -> bool:
    """Whether the header at `offset` is signed."""
    for list_id in ListId:
        offset = _measure_list(data, offset, list_id)[2]
    return _signature_end(data, offset)[0] > offset + SIGNATURE_MIN_BYTES


def check(data: bytes, offset: int) -> int:
    """Refuse a header that cannot be read; give the offset behind it. No name becomes an object."""
    for list_id in ListId:
        size, count, following = _measure_list(data, offset, list_id)
        _aligned_or_not(data, offset, offset + size, count, _pass_over)
        offset = following
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

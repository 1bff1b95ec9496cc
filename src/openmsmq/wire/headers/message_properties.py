"""MessagePropertiesHeader: label, body and what applications say about them. [MQMQ 2.2.19.3]

Label and body are opaque here. The label keeps its UTF-16 code units as they came, because a
queue manager must pass on a label it cannot read; `label_text` is the readable form.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.limits import IDENTIFIER_BYTES, LABEL_MAX_CHARACTERS
from openmsmq.model.message import (
    NO_CORRELATION,
    EncryptionAlgorithm,
    HashAlgorithm,
    message_class_name,
)
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import (
    Field,
    Pads,
    bits,
    hex_field,
    keep_padding,
    need,
    padding_size,
    utf16_text,
)

LAYOUT: Final = struct.Struct("<BBH20sIIIIIIII")
FIXED_SIZE: Final = LAYOUT.size
_SIZES: Final = struct.Struct("<xB30xII12xI")
_BODY_FACTS: Final = struct.Struct("<24xI4xI")
_WHERE: Final = "MessagePropertiesHeader"

POSITIVE_ARRIVAL: Final = 0x01
POSITIVE_RECEIVE: Final = 0x02
NEGATIVE_ARRIVAL: Final = 0x04
NEGATIVE_RECEIVE: Final = 0x08
ACKNOWLEDGMENTS: Final = POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE

LABEL_MAX_UNITS: Final = LABEL_MAX_CHARACTERS + 1


class MessageProperties(msgspec.Struct, frozen=True, gc=False):
    """What the applications see of a message."""

    body: bytes = b""
    """The bytes the body occupies in the packet: ciphertext when it is encrypted."""
    label: bytes = b""
    """UTF-16 code units with their terminator; empty when there is no label."""
    message_class: int = 0
    correlation_id: bytes = NO_CORRELATION
    body_type: int = 0
    application_tag: int = 0
    body_size: int = 0
    """The length of the plaintext (MessageSize)."""
    allocated_size: int = 0
    """The length the sender set aside (AllocationBodySize)."""
    privacy_level: int = 0
    hash_algorithm: int = 0
    encryption_algorithm: int = 0
    extension: bytes = b""
    acknowledge: int = 0
    """The flags byte: which acknowledgments are wanted, and reserved bits."""
    padding: bytes = b""

    @classmethod
    def of(
        cls,
        body: bytes = b"",
        label: str = "",
        *,
        body_type: int = 0,
        acknowledge: int = 0,
        message_class: int = 0,
        correlation_id: bytes = NO_CORRELATION,
        application_tag: int = 0,
        extension: bytes = b"",
    ) -> Self:
        """Make the properties of a plain message: sizes and label follow from what is given.

        It is neither signed nor encrypted, but names the algorithms that Windows names then.
        """
        return cls(
            body=body,
            label=label_bytes(label),
            message_class=message_class,
            correlation_id=correlation_id,
            body_type=body_type,
            application_tag=application_tag,
            body_size=len(body),
            allocated_size=len(body),
            hash_algorithm=HashAlgorithm.SHA1,
            encryption_algorithm=EncryptionAlgorithm.RC4,
            extension=extension,
            acknowledge=acknowledge,
        )

    @property
    def label_text(self) -> str:
        """The label up to its terminator, with what is not UTF-16 replaced."""
        return utf16_text(self.label)

    def write(self) -> bytes:
        """Return the bytes of the header, label, extension, body and padding."""
        units, odd = divmod(len(self.label), 2)
        if odd or units > LABEL_MAX_UNITS:
            raise EncodeError(
                _WHERE, f"a label of {len(self.label)} bytes; even, at most {2 * LABEL_MAX_UNITS}"
            )
        if len(self.body) not in (max(self.body_size, self.allocated_size), self.body_size):
            raise EncodeError(
                _WHERE,
                f"a body of {len(self.body)} bytes, but sizes {self.body_size} and "
                f"{self.allocated_size}",
            )
        if len(self.correlation_id) != IDENTIFIER_BYTES:
            raise EncodeError(
                _WHERE, f"a correlation id of {len(self.correlation_id)} bytes, not 20"
            )
        fixed = LAYOUT.pack(
            self.acknowledge,
            units,
            self.message_class,
            self.correlation_id,
            self.body_type,
            self.application_tag,
            self.body_size,
            self.allocated_size,
            self.privacy_level,
            self.hash_algorithm,
            self.encryption_algorithm,
            len(self.extension),
        )
        size = FIXED_SIZE + len(self.label) + len(self.extension) + len(self.body)
        pads = Pads(self.padding, _WHERE)
        padding = pads.take(padding_size(size))
        pads.finish()
        return b"".join((fixed, self.label, self.extension, self.body, padding))

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("Flags", 1, self.acknowledge)
        yield from bits(
            self.acknowledge,
            ("PA positive arrival", POSITIVE_ARRIVAL),
            ("PR positive receive", POSITIVE_RECEIVE),
            ("NA negative arrival", NEGATIVE_ARRIVAL),
            ("NR negative receive", NEGATIVE_RECEIVE),
        )
        yield Field("LabelLength", 1, len(self.label) // 2)
        yield Field("MessageClass", 2, self.message_class, message_class_name(self.message_class))
        yield Field("CorrelationID", 20, self.correlation_id.hex())
        yield Field("BodyType", 4, self.body_type)
        yield Field("ApplicationTag", 4, self.application_tag)
        yield Field("MessageSize", 4, self.body_size)
        yield Field("AllocationBodySize", 4, self.allocated_size)
        yield Field("PrivacyLevel", 4, self.privacy_level)
        yield Field("HashAlgorithm", 4, self.hash_algorithm)
        yield Field("EncryptionAlgorithm", 4, self.encryption_algorithm)
        yield Field("ExtensionSize", 4, len(self.extension))
        if self.label:
            yield Field("Label", len(self.label), self.label_text)
        yield from hex_field("ExtensionData", self.extension)
        yield from hex_field("MessageBody", self.body)
        size = FIXED_SIZE + len(self.label) + len(self.extension) + len(self.body)
        yield from hex_field("padding", Pads(self.padding, _WHERE).take(padding_size(size)))


def label_bytes(text: str) -> bytes:
    """Return the wire form of a label: nothing for no label, else UTF-16 with its terminator."""
    if not text:
        return b""
    if "\0" in text:
        raise EncodeError(_WHERE, "a label with a NUL inside")
    try:
        raw = text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise EncodeError(_WHERE, f"the label {text!r} cannot be written in UTF-16") from None
    if len(raw) > 2 * (LABEL_MAX_CHARACTERS):
        raise EncodeError(
            _WHERE,
            f"a label of {len(raw) // 2} UTF-16 units; at most {LABEL_MAX_CHARACTERS}",
        )
    return raw + b"\0\0"


def _body_region(
    data: bytes, offset: int, start: int, units: int, body_size: int, allocated: int
) -> tuple[int, int]:
    """Where the body ends and where the next header starts; both are inside the data.

    The body occupies the larger of its two sizes, or its own if only that fits.
    """
    if units > LABEL_MAX_UNITS:
        raise DecodeError(_WHERE, offset + 1, f"a label of {units} units; at most 250")
    end = start + (allocated if allocated > body_size else body_size)
    following = end + (offset - end & 3)
    if following > len(data):
        end = start + body_size
        following = end + (offset - end & 3)
        need(data, offset, following - offset, _WHERE)
    return end, following


def body_facts(data: bytes, offset: int) -> tuple[int, int]:
    """Return the body type and the body size that the header at `offset` states."""
    return _BODY_FACTS.unpack_from(data, offset)


def skip(data: bytes, offset: int) -> tuple[int, int, int]:
    """Pass over the header at `offset`; give where its body starts and ends, and what follows."""
    if offset + FIXED_SIZE > len(data):
        need(data, offset, FIXED_SIZE, _WHERE)
    units, body_size, allocated, extension_size = _SIZES.unpack_from(data, offset)
    start: int = offset + FIXED_SIZE + 2 * units + extension_size
    end, following = _body_region(data, offset, start, units, body_size, allocated)
    return start, end, following


def read(data: bytes, offset: int) -> tuple[MessageProperties, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    if offset + FIXED_SIZE > len(data):
        need(data, offset, FIXED_SIZE, _WHERE)
    (
        acknowledge,
        units,
        message_class,
        correlation_id,
        body_type,
        application_tag,
        body_size,
        allocated,
        privacy_level,
        hash_algorithm,
        encryption_algorithm,
        extension_size,
    ) = LAYOUT.unpack_from(data, offset)
    label_end = offset + FIXED_SIZE + 2 * units
    body_start = label_end + extension_size
    body_end, following = _body_region(data, offset, body_start, units, body_size, allocated)
    header = MessageProperties(
        data[body_start:body_end],
        data[offset + FIXED_SIZE : label_end],
        message_class,
        correlation_id,
        body_type,
        application_tag,
        body_size,
        allocated,
        privacy_level,
        hash_algorithm,
        encryption_algorithm,
        data[label_end:body_start],
        acknowledge,
        keep_padding(data[body_end:following]) if following > body_end else b"",
    )
    return header, following

"""Where the parts of many packets stand, found for all packets at once. [MQMQ 2.2.19, 2.2.20]

It knows the headers that nearly all messages have. A packet with others, or with anything that
the scalar codec might refuse, is not `good`: the scalar codec has the say about it.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.spark.decode.alike import Fields, alike, each
from openmsmq.spark.decode.packed import PLACE_BYTES, Flags, Numbers, Packed, Records
from openmsmq.wire.headers import base, message_properties, security, transaction, user

Part: TypeAlias = tuple[Numbers, Numbers]
"""Where a part of each packet begins and ends in it: one place if it is the same in all of them."""

ALL: Final = slice(None)
"""All packets of an answer."""

START: Final = np.dtype(
    [
        ("arrived_time_s", "<u4"),
        ("unused", "V4"),
        ("moved_time_s", "<u4"),
        ("abort_count", "<u2"),
        ("move_count", "u1"),
        ("unused_too", "V1"),
        ("version", "u1"),
        ("reserved", "u1"),
        ("base_flags", "<u2"),
        ("signature", "<u4"),
        ("size", "<u4"),
        ("time_to_reach_queue_s", "<u4"),
        ("source", "u1", (16,)),
        ("destination_manager", "u1", (16,)),
        ("time_to_be_received_s", "<u4"),
        ("sent_time_s", "<u4"),
        ("message_number", "<u4"),
        ("flags", "<u4"),
    ]
)
"""The place of a message, its BaseHeader, and the UserHeader up to the names."""

PROPERTIES: Final = np.dtype(
    [
        ("acknowledge", "u1"),
        ("label_units", "u1"),
        ("message_class", "<u2"),
        ("correlation_source", "u1", (16,)),
        ("correlation_number", "<u4"),
        ("body_type", "<u4"),
        ("application_tag", "<u4"),
        ("body_size", "<u4"),
        ("allocated_size", "<u4"),
        ("unused", "V12"),
        ("extension_size", "<u4"),
    ]
)
"""The fixed part of a MessagePropertiesHeader."""

GUID: Final = np.dtype([("octets", "u1", (16,))])

_TRANSACTION: Final = np.dtype([("flags", "<u4"), ("unused", "V16")])
_ITEM_SIZES: Final = (
    ("sender_id", "<u2"),
    ("encryption_key", "<u2"),
    ("signature", "<u2"),
    ("sender_certificate", "<u4"),
    ("provider_info", "<u4"),
)
_SECURITY: Final = np.dtype([("flags", "<u2"), *_ITEM_SIZES])
_NAME_SIZE: Final = np.dtype([("size", "<u2")])
_NAME_SIZES: Final = np.array([0, 0, 4, 4, 4, 16, 20, 2])
_DIRECT: Final = 7
_SHIFTS: Final = (user.DESTINATION_SHIFT, user.ADMIN_SHIFT, user.RESPONSE_SHIFT)
_NAMES_START: Final = base.SIZE + user.FIXED_SIZE
_NOTHING: Final[Numbers] = np.asarray(0)
_RARE_BASE_BITS: Final = base.INTERNAL | base.SESSION | base.DEBUG | base.TRACE
_RARE_HEADERS: Final = user.SOAP | user.MULTI_QUEUE


class Layout(msgspec.Struct, frozen=True):
    """The parts of packets, a column each. Where a packet is not `good` they mean nothing."""

    good: Flags
    start: Fields
    packets: Numbers
    """Where each packet begins. Parts are counted from there."""
    names: tuple[Part, Part, Part]
    """The destination, the administration queue and the response queue, without padding."""
    connector_types: Numbers
    transaction_flags: Numbers
    security_flags: Numbers
    sender_id: Part
    sender_certificate: Part
    properties: Fields
    label: Part
    extension: Part
    body: Part
    """What it occupies if it is ciphertext, otherwise what it is."""
    tail: Part
    """What stands behind all headers."""

    def has(self, bits: int) -> Flags:
        """Return which packets have any of these bits in the flags of their UserHeader."""
        found: Flags = np.asarray(self.start["flags"] & np.uint32(bits) != 0)
        return found

    def places(self, part: Part) -> tuple[Numbers, Numbers]:
        """Return where a part of each packet begins and ends in the bytes of all."""
        return self.packets + part[0], self.packets + part[1]


def lay_out(packed: Packed, rows: Numbers | slice = ALL) -> Layout:
    """Find the parts of some packets."""
    starts = packed.starts[rows]
    packets = starts + PLACE_BYTES
    sizes = alike(packed.ends[rows] - packets)
    start = Fields(packed.records(START, starts))
    flags = start.wide("flags")
    walk = _Walk(packed, packets, sizes, _begins_well(start, sizes))
    names = (walk.name(flags, 0), walk.name(flags, 1), walk.name(flags, 2))
    connector_types = walk.at
    walk.skip(np.where(flags & user.CONNECTOR, 16, 0))
    transaction_flags = walk.transaction(flags & user.TRANSACTION != 0)
    security_flags, sender_id, certificate = walk.security(flags & user.SECURITY != 0)
    encrypted = security_flags & security.BODY_ENCRYPTED != 0
    properties, label, extension, body = walk.properties(encrypted)
    return Layout(
        good=each(walk.good, len(packets)),
        start=start,
        packets=packets,
        names=names,
        connector_types=connector_types,
        transaction_flags=transaction_flags,
        security_flags=security_flags,
        sender_id=sender_id,
        sender_certificate=certificate,
        properties=properties,
        label=label,
        extension=extension,
        body=body,
        tail=(walk.at, sizes),
    )


def _begins_well(start: Fields, sizes: Numbers) -> Flags:
    """Return which packets are whole, and have headers and flags that are legal and not rare."""
    return np.asarray(
        _are_legal(start["flags"])
        & (start["version"] == base.VERSION)
        & (start["signature"] == base.SIGNATURE)
        & (start["base_flags"] & _RARE_BASE_BITS == 0)
        & (start["size"] == sizes)
        & (sizes <= PACKET_MAX_BYTES)
    )


def _are_legal(flags: Records) -> Flags:
    """Return which flags of UserHeaders are legal and announce no rare header."""
    if flags.ndim == 0:
        return np.asarray(_is_legal(int(flags)))
    different, inverse = np.unique(flags, return_inverse=True)
    return np.array([_is_legal(word) for word in different.tolist()], bool)[inverse]


def _is_legal(flags: int) -> bool:
    return not flags & _RARE_HEADERS and not user.flags_problem(flags)


class _Walk:
    """A place in each packet that moves from header to header, and whether all was good so far."""

    def __init__(self, packed: Packed, packets: Numbers, sizes: Numbers, good: Flags) -> None:
        self.at: Numbers = np.asarray(_NAMES_START)
        self.good = good
        self._packed = packed
        self._packets = packets
        self._sizes = sizes

    def skip(self, sizes: Numbers) -> None:
        """Move on, but not beyond the end."""
        self.at = np.asarray(self.at + sizes)
        self.good = np.asarray(self.good & (self.at <= self._sizes))

    def name(self, flags: Numbers, number: int) -> Part:
        """Pass a queue name and its padding."""
        forms = flags >> _SHIFTS[number] & 7
        sizes = _NAME_SIZES[forms]
        direct = forms == _DIRECT
        if direct.any():
            said = self._read(_NAME_SIZE)["size"]
            sizes = sizes + np.where(direct, said, 0)
        begin = self.at
        self.skip(sizes + (-sizes & 3))
        return begin, np.asarray(begin + sizes)

    def transaction(self, there: Flags) -> Numbers:
        """Pass the TransactionHeaders, where they are there; give their flags."""
        if not there.any():
            return _NOTHING
        flags = np.where(there, self._read(_TRANSACTION).wide("flags"), 0)
        connector = np.where(flags & transaction.CONNECTOR, 16, 0)
        self.skip(np.where(there, transaction.FIXED_SIZE + connector, 0))
        return flags

    def security(self, there: Flags) -> tuple[Numbers, Part, Part]:
        """Pass the SecurityHeaders, where they are there; give flags, sender and certificate."""
        if not there.any():
            nothing = self.at, self.at
            return _NOTHING, nothing, nothing
        records = self._read(_SECURITY)
        flags = np.where(there, records.wide("flags"), 0)
        begin = self.at + np.where(there, security.FIXED_SIZE, 0)
        total = _NOTHING
        parts: dict[str, Part] = {}
        for item, _ in _ITEM_SIZES:
            size = np.where(there, records.wide(item), 0)
            parts[item] = np.asarray(begin), np.asarray(begin + size)
            begin = begin + size + (-size & 3)
            total = total + size
        kind = flags & security.SENDER_KIND
        sender_size = parts["sender_id"][1] - parts["sender_id"][0]
        certificate_size = parts["sender_certificate"][1] - parts["sender_certificate"][0]
        legal = (
            (kind <= security.SenderKind.QUEUE_MANAGER)
            & ((kind != security.SenderKind.NONE) | (sender_size == 0))
            & (certificate_size <= security.ITEM_MAX_BYTES)
            & (total > 0)
        )
        self.good = self.good & (~there | legal)
        self.skip(begin - self.at)
        return flags, parts["sender_id"], parts["sender_certificate"]

    def properties(self, encrypted: Flags) -> tuple[Fields, Part, Part, Part]:
        """Pass the MessagePropertiesHeaders; give their fixed parts, label, extension and body."""
        begin = self.at
        records = self._read(PROPERTIES)
        label = np.asarray(begin + PROPERTIES.itemsize)
        extension = np.asarray(label + 2 * records.wide("label_units"))
        body = np.asarray(extension + records.wide("extension_size"))
        own_end = body + records.wide("body_size")
        end = np.maximum(own_end, body + records.wide("allocated_size"))
        # The body occupies the larger of its two sizes, or its own if only that fits.
        end = np.where(end + (begin - end & 3) > self._sizes, own_end, end)
        self.good = self.good & (records["label_units"] <= message_properties.LABEL_MAX_UNITS)
        self.skip(end + (begin - end & 3) - begin)
        body_end = np.where(encrypted, end, own_end)
        return records, (label, extension), (extension, body), (body, body_end)

    def _read(self, layout: np.dtype[Any]) -> Fields:
        """Read a structure at each place. To `skip` it then finds out whether it was all there."""
        return Fields(self._packed.records(layout, self._packets + self.at))

"""The pcapng format: blocks, in sections, with several interfaces. [draft-ietf-opsawg-pcapng]

Reading takes every section of either byte order and passes over blocks it has no use for. Writing
gives one section with one interface, in little-endian order and nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.capture.source import CaptureError, Source

MAGIC: Final = b"\x0a\x0d\x0d\x0a"
BLOCK_BYTES_MAX: Final = 16 * 1024 * 1024
"""A block that holds a frame is not longer; blocks that are passed over may be."""
INTERFACES_MAX: Final = 65_536

_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_OLD_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
_USED: Final = frozenset({_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET})

_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_OPTION_END: Final = 0
_OPTION_RESOLUTION: Final = 9
_OPTION_OFFSET: Final = 14
_MICROSECONDS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


class _Interface(msgspec.Struct, frozen=True, gc=False):
    link_type: int
    frame_bytes_max: int
    ticks_per_s: int
    offset_s: int

    def time_ns(self, ticks: int) -> int:
        return ticks * _NS_PER_S // self.ticks_per_s + self.offset_s * _NS_PER_S


class _Block(msgspec.Struct, frozen=True, gc=False):
    kind: int
    offset: int
    body: bytes

    def unpack(self, layout: str, what: str) -> tuple[int, ...]:
        if struct.calcsize(layout) > len(self.body):
            raise CaptureError(self.offset, f"{what} of {len(self.body)} bytes is too short")
        return struct.unpack_from(layout, self.body)


def read(source: Source) -> Iterator[tuple[int, int, bytes, int]]:
    """Yield link type, time, bytes and original size of each frame."""
    order = "<"
    interfaces: list[_Interface] = []
    while source.peek(1):
        if source.peek(4) == MAGIC:
            order = _read_section(source)
            interfaces = []
            continue
        block = _read_block(source, order)
        if block is None:
            continue
        if block.kind != _INTERFACE:
            yield _frame(block, order, interfaces)
        elif len(interfaces) < INTERFACES_MAX:
            interfaces.append(_read_interface(block, order))
        else:
            raise CaptureError(block.offset, f"more than {INTERFACES_MAX} interfaces")


def _read_section(source: Source) -> str:
    start = source.offset
    head = source.take(12, "a section header")
    order = _ORDERS.get(head[8:])
    if order is None:
        raise CaptureError(start + 8, f"byte-order mark {head[8:].hex(' ')}")
    size = _block_size(head[4:8], order, start, 28)
    rest = source.take(size - 12, "a section header")
    major, minor = struct.unpack_from(order + "HH", rest)
    if major != 1:
        raise CaptureError(start + 12, f"pcapng version {major}.{minor}, not 1")
    _check_trailer(rest[-4:], order, size, source.offset - 4)
    return order


def _read_block(source: Source, order: str) -> _Block | None:
    start = source.offset
    head = source.take(8, "a block header")
    kind: int = struct.unpack_from(order + "I", head)[0]
    if kind not in _USED:
        size = _block_size(head[4:], order, start, 12, limit=0xFFFF_FFFF)
        source.skip(size - 12, f"a block of {size} bytes")
        body = b""
    else:
        size = _block_size(head[4:], order, start, 12)
        body = source.take(size - 12, f"a block of {size} bytes")
    _check_trailer(source.take(4, "a block trailer"), order, size, source.offset - 4)
    return _Block(kind, start, body) if kind in _USED else None


def _block_size(
    raw: bytes, order: str, start: int, minimum: int, limit: int = BLOCK_BYTES_MAX
) -> int:
    size: int = struct.unpack(order + "I", raw)[0]
    if not minimum <= size <= limit or size & 3:
        raise CaptureError(
            start + 4,
            f"a block of {size} bytes; a multiple of 4 from {minimum} to {limit} expected",
        )
    return size


def _check_trailer(raw: bytes, order: str, size: int, offset: int) -> None:
    trailer = struct.unpack(order + "I", raw)[0]
    if trailer != size:
        raise CaptureError(offset, f"a block starts with size {size} and ends with {trailer}")


def _read_interface(block: _Block, order: str) -> _Interface:
    link_type, frame_bytes_max = block.unpack(order + "HxxI", "an interface description")
    ticks_per_s, offset_s = _MICROSECONDS, 0
    for code, value in _options(block.body[8:], order):
        if code == _OPTION_RESOLUTION and len(value) == 1:
            exponent = value[0] & 0x7F
            ticks_per_s = 2**exponent if value[0] & 0x80 else 10**exponent
        elif code == _OPTION_OFFSET and len(value) == 8:
            offset_s = struct.unpack(order + "q", value)[0]
    return _Interface(link_type, frame_bytes_max, ticks_per_s, offset_s)


def _options(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the options up to the end mark; a list that is cut short ends where it is cut."""
    offset = 0
    while offset + 4 <= len(data):
        code, size = struct.unpack_from(order + "HH", data, offset)
        value = data[offset + 4 : offset + 4 + size]
        if code == _OPTION_END or len(value) != size:
            return
        yield code, value
        offset += 4 + size + (-size & 3)


def _frame(block: _Block, order: str, interfaces: list[_Interface]) -> tuple[int, int, bytes, int]:
    if block.kind == _SIMPLE_PACKET:
        (original,) = block.unpack(order + "I", "a simple packet")
        interface = _interface(block, interfaces, 0)
        size = min(original, interface.frame_bytes_max or original)
        return interface.link_type, 0, _frame_data(block, 4, size), original
    layout = "IIIII" if block.kind == _ENHANCED_PACKET else "HxxIIII"
    index, high, low, size, original = block.unpack(order + layout, "a packet")
    interface = _interface(block, interfaces, index)
    time_ns = interface.time_ns(high << 32 | low)
    return interface.link_type, time_ns, _frame_data(block, 20, size), original


def _interface(block: _Block, interfaces: list[_Interface], index: int) -> _Interface:
    if index >= len(interfaces):
        raise CaptureError(block.offset, f"a packet of interface {index}, which is not described")
    return interfaces[index]


def _frame_data(block: _Block, start: int, size: int) -> bytes:
    if start + size > len(block.body):
        raise CaptureError(
            block.offset, f"a frame of {size} bytes in a block with {len(block.body) - start}"
        )
    return block.body[start : start + size]


# Writing.


def file_start(link_type: int, application: str = "openmsmq") -> bytes:
    """Return the beginning of a file: its section header and its one interface."""
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _option(4, application.encode())
    interface = struct.pack("<HHI", link_type, 0, 0) + _option(_OPTION_RESOLUTION, b"\x09")
    return _block(_SECTION, section) + _block(_INTERFACE, interface)


def frame_block(data: bytes, time_ns: int) -> bytes:
    """Return the block of one frame, to be written behind `file_start` and those before it."""
    high, low = divmod(time_ns, 1 << 32)
    return _block(
        _ENHANCED_PACKET, struct.pack("<IIIII", 0, high, low, len(data), len(data)) + data
    )


def _option(code: int, value: bytes) -> bytes:
    """One option, followed by the end of options."""
    padding = bytes(-len(value) & 3)
    return struct.pack("<HH", code, len(value)) + value + padding + bytes(4)


def _block(kind: int, body: bytes) -> bytes:
    padded = body + bytes(-len(body) & 3)
    size = len(padded) + 12
    return struct.pack("<II", kind, size) + padded + struct.pack("<I", size)

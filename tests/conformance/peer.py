"""The other side of the wire: packets packed from the layouts of the specifications.

Nothing here comes from the codec under test, so that a mistake in it is not shared.
"""

from __future__ import annotations

import struct
from typing import Final

SOURCE: Final = bytes(range(0x10))
TARGET: Final = bytes(range(0x10, 0x20))
QUEUE: Final = bytes(range(0x20, 0x30))

IN: Final = 1 << 3
SH: Final = 1 << 4
DH: Final = 1 << 5
TR: Final = 1 << 8

RECOVERABLE: Final = 1 << 5
SECURITY: Final = 1 << 19
TRANSACTION: Final = 1 << 20
PROPERTIES: Final = 1 << 21
CONNECTOR: Final = 1 << 22
MULTI_QUEUE: Final = 1 << 23
SOAP: Final = 1 << 28
DQ: Final = 10
AQ: Final = 13
RQ: Final = 16

PLAIN_USER_FLAGS: Final = PROPERTIES | 7 << DQ
PLAIN_ALGORITHMS: Final = (0, 0x8004, 0x6801)
"""Privacy level, hash and encryption algorithm of a plain message."""


def align(data: bytes, fill: bytes = b"\0") -> bytes:
    """Pad to a multiple of 4."""
    return data + fill * (-len(data) % 4)


def text(characters: str) -> bytes:
    """UTF-16 with its terminator."""
    return characters.encode("utf-16-le") + b"\0\0"


def base_header(
    size: int,
    flags: int = 3,
    *,
    version: int = 0x10,
    reserved: int = 0,
    signature: int = 0x524F494C,
    lifetime: int = 0xFFFFFFFF,
) -> bytes:
    return struct.pack("<BBHIII", version, reserved, flags, signature, size, lifetime)


def internal_packet(
    packet_type: int,
    header: bytes,
    *,
    base_flags: int = 3 | IN,
    bits: int = 0,
    reserved: int = 0,
) -> bytes:
    """A packet of the session itself; its size counts everything."""
    internal = struct.pack("<HH", reserved, packet_type | bits)
    return base_header(20 + len(header), base_flags) + internal + header


def establish_header(
    server: bytes = TARGET,
    *,
    ticks_ms: int = 1000,
    system: int = 0x0310,
    reserved: int = 0,
    padding: bytes = b"\x5a" * 512,
) -> bytes:
    fixed = struct.pack("<16s16sIHH", SOURCE, server, ticks_ms, system, reserved)
    return fixed + padding


def parameters_header(*, reserved: int = 0) -> bytes:
    return struct.pack("<IIHH", 500, 20000, reserved, 64)


def session_header(*, window: int = 64, reserved: int = 0) -> bytes:
    return struct.pack("<HHIHHHH", 7, 5, 0b1011, 9, 6, window, reserved)


def direct_name(name: str = "OS:h\\q", fill: bytes = b"\0") -> bytes:
    raw = text(name)
    return align(struct.pack("<H", len(raw)) + raw, fill)


def user_header(
    flags: int = PLAIN_USER_FLAGS, names: bytes | None = None, *, manager: bytes = bytes(16)
) -> bytes:
    fixed = struct.pack("<16s16sIIII", SOURCE, manager, 0xFFFFFFFF, 0x60000000, 77, flags)
    return fixed + (direct_name() if names is None else names)


def properties_header(
    body: bytes = b"body",
    label: bytes = b"",
    extension: bytes = b"",
    *,
    flags: int = 0,
    label_units: int | None = None,
    message_class: int = 0,
    correlation: bytes = bytes(20),
    body_type: int = 0,
    tag: int = 0,
    body_size: int | None = None,
    allocated: int | None = None,
    algorithms: tuple[int, int, int] = PLAIN_ALGORITHMS,
    extension_size: int | None = None,
    fill: bytes = b"\0",
) -> bytes:
    fixed = struct.pack(
        "<BBH20sIIIIIIII",
        flags,
        len(label) // 2 if label_units is None else label_units,
        message_class,
        correlation,
        body_type,
        tag,
        len(body) if body_size is None else body_size,
        len(body) if allocated is None else allocated,
        *algorithms,
        len(extension) if extension_size is None else extension_size,
    )
    return align(fixed + label + extension + body, fill)


def transaction_header(flags: int = 0, connector: bytes = b"") -> bytes:
    return struct.pack("<IIIII", flags, 1, 0x5F000000, 3, 2) + connector


def sid() -> bytes:
    """S-1-5-18."""
    return struct.pack("<BB6sI", 1, 1, b"\0\0\0\0\0\5", 18)


def security_header() -> bytes:
    return struct.pack("<HHHHII", 1, 12, 0, 0, 0, 0) + sid()


def debug_header() -> bytes:
    return struct.pack("<HH", 1, 0) + QUEUE


def soap_header() -> bytes:
    first, second = text("abc"), text("x")
    return struct.pack("<HHI", 0x0320, 0, 4) + first + struct.pack("<HHI", 0x0384, 0, 2) + second


def multi_queue_header() -> bytes:
    lists = [struct.pack("<IHHI", 12, list_id, 0, 0) for list_id in (0x64, 0xC8, 0x12C)]
    return b"".join(lists) + struct.pack("<HHI", 0x15E, 0, 0)


def user_message(*inside: bytes, base_flags: int = 3, session: bytes = b"") -> bytes:
    """Headers behind a BaseHeader; the SessionHeader follows and is not counted in the size."""
    rest = b"".join(inside)
    return base_header(16 + len(rest), base_flags) + rest + session

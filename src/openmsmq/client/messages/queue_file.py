"""The file of `queue export` and `queue import`: the packets of a queue, one after the other.

    the line `OpenMSMQ queue 1`
    one line of JSON: where the messages come from
    for each message: size, CRC-32 of the packet (both 4 bytes, little-endian), the packet
    at the end: size 0, CRC-32 of the count, the count of messages (8 bytes)

A file without its end was cut; what is there can still be read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, Final
from zlib import crc32

import msgspec

from openmsmq.model.limits import PACKET_MAX_BYTES

MAGIC: Final = b"OpenMSMQ queue 1\n"
HEADER_MAX_BYTES: Final = 1 << 16

_RECORD: Final = struct.Struct("<II")
_COUNT: Final = struct.Struct("<Q")


class QueueFileError(Exception):
    """A file that is not what it should be; the sentence says where it stops being so."""


class FileCut(QueueFileError):
    """The file ends before its end."""


class Origin(msgspec.Struct, frozen=True):
    """Where the messages of a file come from."""

    queue: str
    manager_name: str
    manager_id: str
    transactional: bool


class QueueFileWriter:
    """Writes a file. What `write` was given is on the disk when the caller has synced the file."""

    def __init__(self, file: BinaryIO, origin: Origin) -> None:
        self._file = file
        self.count = 0
        self.size_bytes = 0
        file.write(MAGIC + msgspec.json.encode(origin) + b"\n")

    def write(self, packet: bytes) -> None:
        """Add a message."""
        self._file.write(_RECORD.pack(len(packet), crc32(packet)) + packet)
        self.count += 1
        self.size_bytes += len(packet)

    def finish(self) -> None:
        """Write the end, which says that nothing is missing."""
        count = _COUNT.pack(self.count)
        self._file.write(_RECORD.pack(0, crc32(count)) + count)


def read_origin(file: BinaryIO) -> Origin:
    """Read the start of a file."""
    if file.read(len(MAGIC)) != MAGIC:
        raise QueueFileError("this is no exported queue")
    line = file.readline(HEADER_MAX_BYTES)
    if not line.endswith(b"\n"):
        raise FileCut("the file is cut before its first message")
    try:
        return msgspec.json.decode(line, type=Origin)
    except msgspec.DecodeError as error:
        raise QueueFileError(f"its second line is damaged: {error}") from None


def read_packets(file: BinaryIO) -> Iterator[bytes]:
    """Read the messages behind the start; `FileCut` when the end is missing."""
    count = 0
    while True:
        size, checksum = _RECORD.unpack(_exactly(file, _RECORD.size, count))
        if size == 0:
            _check_end(_exactly(file, _COUNT.size, count), checksum, count)
            if file.read(1):
                raise QueueFileError("something follows behind the end of the file")
            return
        if size > PACKET_MAX_BYTES:
            raise QueueFileError(f"message {count + 1} is damaged: it has {size} bytes")
        packet = _exactly(file, size, count)
        if crc32(packet) != checksum:
            raise QueueFileError(f"message {count + 1} is damaged: its checksum is wrong")
        count += 1
        yield packet


def _check_end(data: bytes, checksum: int, count: int) -> None:
    if crc32(data) != checksum:
        raise QueueFileError("the end of the file is damaged: its checksum is wrong")
    (announced,) = _COUNT.unpack(data)
    if announced != count:
        raise QueueFileError(f"the file announces {announced} messages and has {count}")


def _exactly(file: BinaryIO, size: int, count: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise FileCut(f"the file is cut after {count} messages")
    return data

"""From capture files to what each file has: segments, datagrams, and what is wrong with the file.

Every file is read on its own, as a stream. Nothing that a file holds raises: a file that cannot be
read gives trouble as a row, behind all that could be read before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import pyarrow as pa

from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.analysis.transports import Ports, TransportReader
from openmsmq.capture.frames import Frame, read_frames
from openmsmq.capture.link_layers import (
    Endpoint,
    PgmDatagram,
    Protocol,
    TcpSegment,
    Transport,
    UdpDatagram,
)
from openmsmq.capture.source import CaptureError, Read

BATCH_ROWS_MAX: Final = 10_000
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
"""A batch may begin another row below it."""
_INT64_MAX: Final = (1 << 63) - 1
_PROTOCOLS: Final = {
    TcpSegment: Protocol.TCP,
    UdpDatagram: Protocol.UDP,
    PgmDatagram: Protocol.PGM,
}
_GSI: Final = slice(8, 14)


class Seen(msgspec.Struct, frozen=True, gc=False):
    """One thing that a file has: a segment, a datagram, or trouble with the file itself."""

    conversation: bytes
    """The same for all that the same two ports say to each other, and for all that is said of a
    source of multicast; empty for trouble."""
    file: str
    file_time_ns: int
    """When the first frame of the file was captured: the files are read in this order."""
    frame: int
    time_ns: int
    protocol: int
    """0 for trouble."""
    source: bytes
    source_port: int
    destination: bytes
    destination_port: int
    sequence: int = 0
    flags: int = 0
    payload: bytes = b""
    missing: int = 0
    """Bytes behind the payload that the capture left out."""
    trouble: str = ""
    """What kind of anomaly it is."""
    problem: str = ""

    @property
    def transport(self) -> Transport:
        """The segment or datagram."""
        source = Endpoint(self.source, self.source_port)
        destination = Endpoint(self.destination, self.destination_port)
        if self.protocol == Protocol.PGM:
            return PgmDatagram(source, destination, self.payload, self.missing)
        if self.protocol == Protocol.UDP:
            return UdpDatagram(source, destination, self.payload, self.missing)
        return TcpSegment(
            source, destination, self.sequence, self.flags, self.payload, self.missing
        )


_ARROW: Final = {bytes: pa.binary(), str: pa.string(), int: pa.int64()}
SEEN_SCHEMA: Final = pa.schema(
    [pa.field(field.name, _ARROW[field.type]) for field in msgspec.structs.fields(Seen)]
)
SEEN_ORDER: Final = ("conversation", "file_time_ns", "file", "frame")
"""In this order `conversations` wants to have them."""


def read_file(name: str, read: Read, ports: Ports) -> Iterator[Seen]:
    """Yield what a capture has, in its order; trouble comes behind all that could be read."""
    reader = _FileReader(name, ports)
    watched = _Watched(read)
    try:
        for frame in read_frames(watched.read):
            seen = reader.take(frame)
            if seen is not None:
                yield seen
    except CaptureError as error:
        yield reader.trouble(_kind_of(error, at_end=watched.at_end), _problem_of(error))
    except OSError as error:
        yield reader.trouble(AnomalyKind.UNREADABLE_FILE, _reason(error))
    yield from reader.finish()


def open_and_read(name: str, path: str, ports: Ports) -> Iterator[Seen]:
    """Yield what the capture at a path has, under the name by which people know it."""
    # Not every name of a file is text that programs can print.
    shown = name.encode("utf-8", "backslashreplace").decode()
    try:
        with open(path, "rb") as file:
            yield from read_file(shown, file.read, ports)
    except OSError as error:
        yield _FileReader(shown, ports).trouble(AnomalyKind.UNREADABLE_FILE, _reason(error))


def seen_batches(seen: Iterable[Seen]) -> Iterator[pa.RecordBatch]:
    """Yield what was seen as Arrow's batches of `SEEN_SCHEMA`."""
    rows: list[Seen] = []
    size_bytes = 0
    for one in seen:
        rows.append(one)
        size_bytes += len(one.payload)
        if len(rows) == BATCH_ROWS_MAX or size_bytes >= BATCH_BYTES_MAX:
            yield _batch(rows)
            rows, size_bytes = [], 0
    if rows:
        yield _batch(rows)


def seen_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Seen]:
    """Return what batches of `SEEN_SCHEMA` hold."""
    for batch in batches:
        yield from map(Seen, *(column.to_pylist() for column in batch.columns))


class _Watched:
    """Remembers whether the end of the file was reached."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.at_end = False

    def read(self, size: int) -> bytes:
        data = self._read(size)
        self.at_end = not data
        return data


class _FileReader:
    """Takes the frames of one file."""

    def __init__(self, name: str, ports: Ports) -> None:
        self._name = name
        self._transports = TransportReader(ports)
        self._start_ns: int | None = None
        self._last = (0, 0)

    def take(self, frame: Frame) -> Seen | None:
        """Return the segment or datagram of a queue manager that a frame has, if it has one."""
        # No capture was made so late: its clock, or its bytes, are wrong.
        time_ns = frame.time_ns if 0 < frame.time_ns <= _INT64_MAX else 0
        if self._start_ns is None:
            self._start_ns = time_ns
        self._last = (frame.number, time_ns)
        transport = self._transports.take(frame)
        return None if transport is None else self._seen(transport)

    def trouble(self, kind: AnomalyKind, problem: str) -> Seen:
        """Return what is wrong with the file, as far as it was read."""
        return Seen(
            b"",
            self._name,
            self._start_ns or 0,
            *self._last,
            0,
            b"",
            0,
            b"",
            0,
            trouble=kind,
            problem=problem,
        )

    def finish(self) -> Iterator[Seen]:
        """Yield what is wrong with frames all over the file."""
        for kind, problem in self._transports.finish():
            yield self.trouble(kind, problem)

    def _seen(self, transport: Transport) -> Seen:
        source, destination = transport.source, transport.destination
        protocol = _PROTOCOLS[type(transport)]
        if isinstance(transport, PgmDatagram):
            # Whoever asks for repairs has the ports the other way round.
            low, high = sorted((source.port, destination.port))
            first, second = transport.payload[_GSI], b"%04x%04x" % (low, high)
        else:
            first, second = sorted((_packed(source), _packed(destination)))
        return Seen(
            bytes((protocol,)) + first + second,
            self._name,
            self._start_ns or 0,
            *self._last,
            protocol,
            source.address,
            source.port,
            destination.address,
            destination.port,
            transport.sequence if isinstance(transport, TcpSegment) else 0,
            transport.flags if isinstance(transport, TcpSegment) else 0,
            transport.payload,
            transport.missing,
        )


def _packed(endpoint: Endpoint) -> bytes:
    return endpoint.address + endpoint.port.to_bytes(2, "big")


def _kind_of(error: CaptureError, *, at_end: bool) -> AnomalyKind:
    if error.offset == 0:
        return AnomalyKind.UNREADABLE_FILE
    return AnomalyKind.TRUNCATED_CAPTURE if at_end else AnomalyKind.DAMAGED_CAPTURE


def _problem_of(error: CaptureError) -> str:
    return error.problem if error.offset == 0 else str(error)


def _reason(error: OSError) -> str:
    return f"the file cannot be read: {(error.strerror or str(error)).lower()}"


def _batch(rows: list[Seen]) -> pa.RecordBatch:
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [
        pa.array(cells, field.type) for cells, field in zip(columns, SEEN_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SEEN_SCHEMA)

"""What `openmsmq packet decode` is given: a capture, hexadecimal text, or the bytes themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from openmsmq.analysis.events import Anomaly, DatagramItem, HttpItem, Item, PacketItem
from openmsmq.analysis.kinds import OF_BYTES, AnomalyKind, Severity, severity
from openmsmq.analysis.packet_scanner import FoundPacket, PacketScanner
from openmsmq.analysis.traffic import datagram_kind, follow
from openmsmq.analysis.transports import Ports
from openmsmq.capture.frames import MAGIC_BYTES, is_capture, read_frames
from openmsmq.cli.tools.hex_text import HexTextError, parse_hex
from openmsmq.cli.views.console import fail
from openmsmq.wire.text.tree import Kind, View, guess_kind, view

STANDARD_INPUT: Final = "-"
INPUT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Captures are read as they come and may be of any size; anything else is read at once."""
_BYTE_ORDER_MARKS: Final = {
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}


class Record(msgspec.Struct, frozen=True):
    """One thing to show: a packet, a datagram, or a problem; and where it comes from."""

    data: bytes
    view: View | None = None
    problem: str = ""
    frame: int | None = None
    time_ns: int | None = None
    source: str = ""
    destination: str = ""
    connection: int | None = None
    offset: int | None = None
    """Where in its stream it starts."""
    anomaly: AnomalyKind | None = None
    """What kind of problem it is, if it is one of the conversation and not of reading it."""

    @property
    def told(self) -> str:
        """What is wrong, in one line."""
        return self.problem if self.anomaly is None else f"{self.anomaly}: {self.problem}"

    @property
    def sound(self) -> bool:
        """Whether all of it could be read."""
        unread = self.problem and self.anomaly is None
        return not unread and (self.view is None or not self.view.problem)


def read_records(argument: str, kind: Kind | None, ports: Ports) -> Iterator[Record]:
    """Yield what the argument holds; stops with a sentence when that cannot be told."""
    if argument == STANDARD_INPUT:
        if sys.stdin is None:
            fail("the standard input is closed.")
        yield from _read(sys.stdin.buffer, "the standard input", kind, ports)
    elif os.path.isdir(argument):
        fail(f"{argument} is a directory; name a file in it.")
    elif os.path.exists(argument):
        try:
            with open(argument, "rb") as file:
                yield from _read(file, argument, kind, ports)
        except OSError as error:
            fail(f"{argument} cannot be read: {error.strerror}.")
    else:
        yield from _records_of_argument(argument, kind)


def _records_of_argument(argument: str, kind: Kind | None) -> Iterator[Record]:
    try:
        runs = parse_hex(argument)
    except HexTextError:
        shown = argument if len(argument) <= 60 else argument[:60] + "…"
        fail(
            f"{shown!r} is neither a file that exists nor hexadecimal digits; "
            "give a capture, a file with a packet, or the packet's bytes as 10 00 0b 00 …"
        )
    for run in runs:
        yield from _records_of_bytes(run, "the argument", kind)


def _read(file: BinaryIO, name: str, kind: Kind | None, ports: Ports) -> Iterator[Record]:
    start = file.read(MAGIC_BYTES)
    if is_capture(start):
        ahead = [start]

        def read(size: int) -> bytes:
            found = ahead[0][:size] or file.read(size)
            ahead[0] = ahead[0][size:]
            return found

        for event in follow(read_frames(read), ports):
            if isinstance(event, Item) and _is_shown(event):
                yield _record_of_item(event)
        return
    data = start + file.read(INPUT_BYTES_MAX)
    if not data:
        fail(f"{name} is empty.")
    if len(data) > INPUT_BYTES_MAX:
        fail(f"{name} has more than {INPUT_BYTES_MAX} bytes and is no capture in pcapng or pcap.")
    text = _text(data)
    try:
        is_post = guess_kind(data) is Kind.POST
        runs = [data] if text is None or is_post else parse_hex(text)
    except HexTextError as error:
        fail(f"{name} is no capture and no hexadecimal text: {error}.")
    for run in runs:
        yield from _records_of_bytes(run, name, kind)


def _text(data: bytes) -> str | None:
    """Read a file that is text; None when it is not."""
    encoding = next(
        (known for mark, known in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), "utf-8"
    )
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    is_text = all(letter.isprintable() or letter in "\t\r\n\f" for letter in text)
    return text if is_text else None


def _records_of_bytes(data: bytes, name: str, kind: Kind | None) -> Iterator[Record]:
    known = kind or guess_kind(data)
    if known is None:
        fail(
            f"{name} has no packet that can be recognised: a packet of a session has LIOR at byte "
            "4, a ping has 24 bytes with HU at byte 2, discovery has type 1 or 2 at byte 1. "
            "If you know what it is, say so with --kind."
        )
    if known is not Kind.SESSION:
        yield Record(data, view(data, known))
        return
    scanner = PacketScanner()
    for found in (*scanner.feed(data), *scanner.finish("the input is over")):
        if isinstance(found, FoundPacket):
            yield Record(found.data, view(found.data), offset=found.offset)
        else:
            yield Record(
                found.data, _unfinished_view(found.data), found.problem, offset=found.offset
            )


def _is_shown(item: Item) -> bool:
    """Leave out what a packet says of itself, and what is normal at the edges of a capture."""
    if not isinstance(item, Anomaly) or item.kind in OF_BYTES:
        return True
    return item.kind is not AnomalyKind.MALFORMED_PACKET and severity(item.kind) != Severity.INFO


def _record_of_item(item: Item) -> Record:
    source, destination = item.source, item.destination
    if isinstance(item, DatagramItem):
        record = Record(item.data, view(item.data, datagram_kind(item)))
    elif isinstance(item, HttpItem):
        record = Record(item.data, view(item.data, item.kind), offset=item.offset)
    elif isinstance(item, PacketItem):
        record = Record(item.data, view(item.data), offset=item.offset)
    else:
        kind = None if item.kind in OF_BYTES else item.kind
        record = Record(
            item.data,
            _unfinished_view(item.data),
            item.description,
            offset=item.offset,
            anomaly=kind,
        )
        if source is None and item.connection is not None:
            source, destination = item.connection.client, item.connection.server
    connection = None if isinstance(item, DatagramItem) else item.connection
    return msgspec.structs.replace(
        record,
        frame=item.frame,
        time_ns=item.time_ns,
        source="" if source is None else str(source),
        destination="" if destination is None else str(destination),
        connection=None if connection is None else connection.number,
    )


def _unfinished_view(data: bytes) -> View | None:
    """Show as much of a packet as there is, if that is how the bytes begin."""
    return view(data) if guess_kind(data) is Kind.SESSION else None

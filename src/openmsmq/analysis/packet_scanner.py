"""PacketScanner: finds MSMQ packets in a byte stream that may have holes.

A session loses its place at the first bad byte and closes; a capture goes on. After a gap, or when
the capture began in the middle, the scanner looks for the next BaseHeader. What it finds there may
be the body of a message that looks like one, so it is believed only when all of it decodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.framing import START_BYTES, check_start, find_header, packet_end
from openmsmq.wire.headers import base, session

SHOWN_BYTES_MAX: Final = 4_096
"""How many of the bytes that are no packet are kept to be looked at."""
EXAMINED_RATIO_MAX: Final = 8
"""How often bytes may be examined for packets that they turn out not to hold. Candidates can lie
inside each other by the thousand; beyond this, one that is refused is passed over as a whole."""


class FoundPacket(msgspec.Struct, frozen=True, gc=False):
    """The bytes of a packet, and where in the stream they start."""

    offset: int
    data: bytes


class FoundTrouble(msgspec.Struct, frozen=True, gc=False):
    """Bytes that are no packet, or that are missing, and why."""

    offset: int
    size: int
    problem: str
    data: bytes = b""
    """The first of those bytes."""


Found: TypeAlias = FoundPacket | FoundTrouble


class PacketScanner:
    """Takes the bytes of one direction in order and gives the packets in them."""

    def __init__(self, *, from_start: bool = True) -> None:
        self._data = bytearray()
        self._offset = 0
        self._searching = not from_start
        self._believed = from_start
        self._reason = "" if from_start else "the capture starts in the middle of the stream"
        self._skipped = bytearray()
        self._skipped_size = 0
        self._session_may_follow = False
        self._patience_bytes = 0

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._data) + len(self._skipped)

    def feed(self, data: bytes) -> Iterator[Found]:
        """Take the next bytes; give the packets they complete."""
        self._data += data
        self._patience_bytes += EXAMINED_RATIO_MAX * len(data)
        while not self._searching or self._search():
            found = self._next()
            if found is None:
                return
            yield from found

    def gap(self, size: int) -> Iterator[Found]:
        """Take note that `size` bytes are missing here."""
        yield from self._flush("the rest of it is missing in the capture")
        yield FoundTrouble(self._offset, size, f"{size} bytes are missing in the capture")
        self._offset += size
        self._lose_place("they follow a gap and belong to no whole packet")

    def finish(self, reason: str) -> Iterator[Found]:
        """Yield what is left: nothing more comes, for the reason given."""
        yield from self._flush(f"the stream ends before the rest of it ({reason})")

    # Internals.

    def _next(self) -> list[Found] | None:
        """Return what stands at the start of the data, or None when more must come first."""
        try:
            if not self._believed:
                # Refuse what cannot be a packet before waiting for the megabytes it announces.
                check_start(bytes(self._data[:START_BYTES]))
            end = packet_end(self._data)
            if end is None:
                return None
            packet = bytes(self._data[:end])
            if not self._believed:
                packets.decode(packet)
        except DecodeError as error:
            return self._malformed(error)
        found = self._report_skipped()
        found.append(FoundPacket(self._offset, packet))
        self._drop(len(packet))
        self._believed = True
        return found

    def _malformed(self, error: DecodeError) -> list[Found]:
        try:
            _, flags, size = base.read(bytes(self._data[: base.SIZE]))
        except DecodeError:
            flags = size = 0
        if not self._believed:
            examined = size if size <= len(self._data) else 0
            self._patience_bytes -= examined
            self._skip(1 if self._patience_bytes >= 0 else examined)
            self._patience_bytes = max(0, self._patience_bytes)
            self._searching = True
            return []
        if not size:
            self._lose_place(f"no packet starts here ({error})")
            return []
        # Its size is known, only its inside is broken: whoever shows it will say where.
        found: list[Found] = [FoundPacket(self._offset, bytes(self._data[:size]))]
        self._drop(size)
        self._lose_place("they follow a malformed packet and belong to no other")
        self._session_may_follow = flags & base.SESSION != 0
        return found

    def _search(self) -> bool:
        """Drop bytes up to the next that may be a BaseHeader; tell whether there is one."""
        at = find_header(self._data)
        if at < 0:
            # Keep what may be the start of a header whose signature is still to come.
            self._skip(max(0, len(self._data) - base.SIZE + 1))
            return False
        self._skip(at)
        self._searching = False
        return True

    def _flush(self, why_unfinished: str) -> Iterator[Found]:
        while self._data and not self._believed:
            # What we waited for was not a packet, or never will be: look at the bytes behind it.
            self._skip(1)
            self._searching = True
            yield from self.feed(b"")
            if self._searching:
                self._skip(len(self._data))
        yield from self._report_skipped()
        if self._data:
            size = len(self._data)
            yield FoundTrouble(
                self._offset,
                size,
                f"{size} bytes of a packet, but {why_unfinished}",
                bytes(self._data[:SHOWN_BYTES_MAX]),
            )
            self._drop(size)

    def _lose_place(self, reason: str) -> None:
        self._searching = True
        self._believed = False
        self._reason = reason
        self._session_may_follow = False

    def _skip(self, size: int) -> None:
        room = SHOWN_BYTES_MAX - len(self._skipped)
        self._skipped += self._data[: min(size, room)]
        self._skipped_size += size
        self._drop(size)

    def _drop(self, size: int) -> None:
        del self._data[:size]
        self._offset += size

    def _report_skipped(self) -> list[Found]:
        size, data = self._skipped_size, bytes(self._skipped)
        self._skipped_size = 0
        self._skipped.clear()
        if size == 0 or (self._session_may_follow and size == session.SIZE):
            return []
        problem = f"{size} bytes skipped: {self._reason}"
        return [FoundTrouble(self._offset - size, size, problem, data)]

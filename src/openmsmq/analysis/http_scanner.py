"""HttpScanner: finds requests or answers of HTTP in a byte stream that may have holes.

h11 says where each ends. After a gap, or where the capture began in the middle, the next line that
may be the first of one is looked for; so it is behind what h11 refuses.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import h11
import msgspec

from openmsmq.analysis.packet_scanner import SHOWN_BYTES_MAX, FoundTrouble
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire.srmp.limits import ENVELOPE_MAX_BYTES
from openmsmq.wire.text.tree import Kind

HEAD_BYTES_MAX: Final = 16_384
"""A longer head is none."""
KEPT_BYTES_MAX: Final = PACKET_MAX_BYTES + ENVELOPE_MAX_BYTES + HEAD_BYTES_MAX
"""No message is longer; of what is, only the first bytes are kept."""

_LINE_BYTES_MAX: Final = 8_192
_ANSWER_BYTES: Final = 13
_REQUEST: Final = re.compile(rb"(?:^|(?<=\n))[A-Z]{3,10} [^\s]{1,4096} HTTP/1\.[01]\r?\n")
_REQUEST_BEGINS: Final = re.compile(rb"[A-Z]{0,10}|[A-Z]{3,10} [^\s]{0,4096}(?: [HTP/1.0\r]{0,9})?")
_ANSWER: Final = re.compile(rb"(?:^|(?<=\n))HTTP/1\.[01] [1-5][0-9]{2}[ \r\n]")
_ANSWER_BEGINS: Final = re.compile(rb"[HTP/1.0 2-9]{0,%d}" % (_ANSWER_BYTES - 1))
_TLS: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")
_HEAD_END: Final = b"\r\n\r\n"


class FoundHttp(msgspec.Struct, frozen=True, gc=False):
    """A whole request or answer, and where in the stream it starts."""

    offset: int
    data: bytes
    kind: Kind
    status: int = 0
    """What an answer says."""


FoundInHttp: TypeAlias = FoundHttp | FoundTrouble


class HttpScanner:
    """Takes the bytes of one direction in order and gives what is in them."""

    def __init__(self, *, of_client: bool, from_start: bool = True) -> None:
        self._of_client = of_client
        self._first_line = _REQUEST if of_client else _ANSWER
        self._beginning = _REQUEST_BEGINS if of_client else _ANSWER_BEGINS
        self._offset = 0
        self._unread = bytearray()
        """Before a first line is found."""
        self._parser: h11.Connection | None = None
        self._head: h11.Request | h11.Response | None = None
        self._kept = bytearray()
        """What the parser was given."""
        self._given_size = 0
        self._is_lost = not from_start
        self._reason = "" if from_start else "the capture starts in the middle of the stream"
        self._skipped = bytearray()
        self._skipped_size = 0

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._kept) + len(self._unread) + len(self._skipped)

    def feed(self, data: bytes) -> list[FoundInHttp]:
        """Take the next bytes; return what they complete."""
        found: list[FoundInHttp] = []
        while data:
            if self._parser is None:
                data = self._seek(data, found)
            if data:
                data = self._read(data, found)
        return found

    def gap(self, size: int) -> list[FoundInHttp]:
        """Take note that `size` bytes are missing here."""
        found = self._flush("the rest of it is missing in the capture")
        found.append(FoundTrouble(self._offset, size, f"{size} bytes are missing in the capture"))
        self._offset += size
        self._lose("they follow a gap")
        return found

    def finish(self, reason: str) -> list[FoundInHttp]:
        """Return what is left: nothing more comes, for the reason given."""
        found: list[FoundInHttp] = []
        if self._parser is not None and isinstance(self._head, h11.Response):
            # An answer without a length ends with its connection.
            self._read(b"", found)
        return found + self._flush(f"the stream ends before the rest of it ({reason})")

    # Internals.

    def _lose(self, reason: str) -> None:
        self._is_lost = True
        self._reason = reason

    def _seek(self, data: bytes, found: list[FoundInHttp]) -> bytes:
        """Return what begins with a first line, if there is one; skip what does not."""
        self._unread += data
        if not self._is_lost and self._first_line.match(self._unread) is None:
            if self._beginning.fullmatch(self._unread) is not None:
                return b""
            is_tls = _TLS.match(self._unread) is not None
            self._lose(
                "they are TLS, which cannot be read without its keys"
                if is_tls
                else "they are no requests or answers of HTTP"
            )
        if self._is_lost:
            match = self._first_line.search(self._unread)
            if match is None:
                line = self._unread.rfind(b"\n") + 1
                self._skip(max(line, len(self._unread) - _LINE_BYTES_MAX))
                return b""
            self._skip(match.start())
            self._is_lost = False
        self._report_skipped(found)
        data = bytes(self._unread)
        self._unread.clear()
        self._parser = self._new_parser()
        return data

    def _new_parser(self) -> h11.Connection:
        if self._of_client:
            return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)
        parser.send(h11.Request(method="POST", target="/", headers=[("Host", "")]))
        parser.send(h11.EndOfMessage())
        return parser

    def _read(self, data: bytes, found: list[FoundInHttp]) -> bytes:
        """Read on; return what follows the end, if it is reached. No data is the very end."""
        parser = self._parser
        assert parser is not None
        self._kept += data[: max(0, KEPT_BYTES_MAX - len(self._kept))]
        self._given_size += len(data)
        try:
            parser.receive_data(data)
            while True:
                event = parser.next_event()
                if isinstance(event, h11.Request | h11.Response):
                    self._head = event
                elif isinstance(event, h11.InformationalResponse):
                    self._forget(self._kept.find(_HEAD_END) + len(_HEAD_END))
                elif isinstance(event, h11.EndOfMessage):
                    follows = bytes(parser.trailing_data[0])
                    found.append(self._whole(self._given_size - len(follows)))
                    return follows
                elif not isinstance(event, h11.Data):
                    return b""
        except h11.RemoteProtocolError as error:
            return self._refused(str(error))

    def _forget(self, size: int) -> None:
        """Pass over what stands before an answer and only announces it."""
        del self._kept[:size]
        self._given_size -= size
        self._offset += size

    def _whole(self, size: int) -> FoundInHttp:
        head, at, data = self._head, self._offset, bytes(self._kept[:size])
        self._clear()
        self._offset += size
        assert head is not None
        if len(data) < size:
            shown = data[:SHOWN_BYTES_MAX]
            return FoundTrouble(at, size, f"{size} bytes of HTTP: no message is so long", shown)
        if isinstance(head, h11.Response):
            return FoundHttp(at, data, Kind.ANSWER, head.status_code)
        return FoundHttp(at, data, Kind.POST if _is_message(head) else Kind.REQUEST)

    def _refused(self, problem: str) -> bytes:
        """What was taken for HTTP is none: look for the next first line behind its head."""
        self._unread += self._kept
        missing = self._given_size - len(self._kept)
        end = self._unread.find(_HEAD_END)
        has_head = self._head is not None
        self._clear()
        self._lose(f"no request or answer of HTTP ({problem})")
        self._skip(len(self._unread) if has_head or end < 0 else end + len(_HEAD_END))
        self._skipped_size += missing
        self._offset += missing
        follows = bytes(self._unread)
        self._unread.clear()
        return follows

    def _clear(self) -> None:
        self._parser = self._head = None
        self._kept = bytearray()
        self._given_size = 0

    def _skip(self, size: int) -> None:
        room = SHOWN_BYTES_MAX - len(self._skipped)
        self._skipped += self._unread[: min(size, room)]
        self._skipped_size += size
        self._offset += size
        del self._unread[:size]

    def _report_skipped(self, found: list[FoundInHttp]) -> None:
        size, data = self._skipped_size, bytes(self._skipped)
        self._skipped.clear()
        self._skipped_size = 0
        if size:
            found.append(
                FoundTrouble(self._offset - size, size, f"{size} bytes: {self._reason}", data)
            )

    def _flush(self, why_unfinished: str) -> list[FoundInHttp]:
        found: list[FoundInHttp] = []
        size = self._given_size
        if size:
            shown = bytes(self._kept[:SHOWN_BYTES_MAX])
            text = f"{size} bytes of a request or answer, but {why_unfinished}"
            found.append(FoundTrouble(self._offset, size, text, shown))
            self._offset += size
        if self._unread:
            if not self._is_lost:
                self._reason = f"a first line has begun, but {why_unfinished}"
            self._skip(len(self._unread))
        self._report_skipped(found)
        self._clear()
        return found


def _is_message(head: h11.Request) -> bool:
    """Whether a request is one that a queue manager posts. [MQSRM 2.1.1]"""
    named = dict(head.headers)
    kind = named.get(b"content-type", b"").partition(b";")[0].strip().lower()
    is_message = kind == b"multipart/related" or (kind == b"text/xml" and b"soapaction" in named)
    return head.method == b"POST" and b"content-length" in named and is_message

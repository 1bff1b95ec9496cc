"""Messages in a row that differ in their numbers and bodies only: the first is looked at closely.

Most messages of one sender to one queue within a second are such. Nothing is read or written by
other rules here: what stands around the number is, byte for byte, what was read or written as a
whole before, and digits within a text change nothing else of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from openmsmq.model.identity import NIL_GUID, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.message_bytes import NUMBER_START, STAMP_END
from openmsmq.wire.outline import Outline, outline
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.srmp.arriving import arrived_packet
from openmsmq.wire.srmp.compound import Compound
from openmsmq.wire.srmp.departing import Departing, envelope_of, put_together, request_of
from openmsmq.wire.srmp.envelope import Envelope
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope

_NUMBER: Final = struct.Struct("<I")
_NUMBER_MAX: Final = 0xFFFF_FFFF


class _Form:
    """A packet without its number and its body."""

    def __init__(self, packet: bytes, found: Outline) -> None:
        self.found = found
        self._size = len(packet)
        self._head = packet[:NUMBER_START]
        self._middle = packet[STAMP_END : found.body_start]
        self._tail = packet[found.body_end :]

    @property
    def body_size(self) -> int:
        """How long the body is."""
        return self.found.body_end - self.found.body_start

    def fits(self, packet: bytes) -> bool:
        """Whether a packet differs in nothing else."""
        return (
            len(packet) == self._size
            and packet.startswith(self._head)
            and packet[STAMP_END : self.found.body_start] == self._middle
            and packet.endswith(self._tail)
        )

    def number(self, packet: bytes) -> int:
        """Return the number of a packet that fits."""
        return int.from_bytes(packet[NUMBER_START:STAMP_END], "little")

    def body(self, packet: bytes) -> bytes:
        """Return the body of a packet that fits."""
        return packet[self.found.body_start : self.found.body_end]

    def filled(self, number: int, body: bytes) -> bytes:
        """Return a packet with a number and a body of the same size."""
        return b"".join((self._head, _NUMBER.pack(number), self._middle, body, self._tail))


class DepartingRow:
    """Packets as requests, one after the other."""

    def __init__(self) -> None:
        self._form: _Form | None = None
        self._before = b""
        """The envelope up to the number."""
        self._behind = b""
        self._extension = b""
        self._source = NIL_GUID
        self._url = ""

    def request(self, packet: bytes, receipts_to: Callable[[UserMessage], str]) -> Departing:
        """Return the request that brings a packet to its queue.

        `receipts_to` gives the URL for receipts of a stream. [MQSRM 3.1.7.2.4]
        """
        form = self._form
        if form is not None and form.fits(packet):
            number = b"%d" % form.number(packet)
            parts = Compound(
                b"".join((self._before, number, self._behind)), form.body(packet), self._extension
            )
            return put_together(parts, self._url, self._source)
        message = decode(packet)
        assert isinstance(message, UserMessage), "nothing else is in a queue"
        envelope = envelope_of(message, receipts_to(message))
        text = write_envelope(envelope)
        request = request_of(message, envelope, text)
        self._form = None
        if message.transaction is None and not envelope.is_receipt:
            self._learn(packet, message, text, request.url)
        return request

    def _learn(self, packet: bytes, message: UserMessage, text: bytes, url: str) -> None:
        """Remember a message for those like it."""
        # No other text has a beginning of an element in it.
        before, mark, behind = text.partition(b"<id>uuid:")
        digits, at, behind = behind.partition(b"@")
        assert int(digits) == message.user.message_number
        found = outline(packet)
        # What is set aside beyond the body does not leave.
        if message.properties.body_size == found.body_end - found.body_start:
            self._form = _Form(packet, found)
            self._before, self._behind = before + mark, at + behind
            self._extension = message.properties.extension
            self._source, self._url = message.user.source, url


class ArrivingRow:
    """Envelopes, and the packets that they become, one after the other.

    What digits at one place of an envelope say, two have shown that were read as a whole: they
    differ there and nowhere else, and their identities are what these digits say. So it is the
    identity that stands there, and one more with other digits there need not be read.
    """

    def __init__(self) -> None:
        self._before = b""
        """The last envelope that was read as a whole, up to the number."""
        self._digits_count = 0
        self._behind = b""
        self._last: Envelope | None = None
        self._is_shown = False
        """Whether it and the one before it have shown what the digits say."""
        self._like: Envelope | None = None
        """The last one, if others are like it."""
        self._form: _Form | None = None
        self._extension = b""
        self._arrived_s = 0

    def envelope(self, data: bytes) -> Envelope:
        """Read an envelope."""
        last = self._last
        if self._is_shown and last is not None:
            number = self._number(data)
            if number > 1:
                # The first message of nobody is read in its own way.
                self._like = replace(last, id=MessageId(last.id.source, number))
                return self._like
        found = read_envelope(data)
        self._learn(data, found)
        return found

    def packet(self, envelope: Envelope, parts: Compound, arrived_s: int) -> tuple[bytes, Outline]:
        """Return what the last envelope becomes, as `arrived_packet` does, and its outline."""
        form, body = self._form, parts.body
        if envelope is not self._like:
            packet = arrived_packet(envelope, parts, arrived_s)
            return packet, outline(packet)
        if (
            form is not None
            and len(body) == form.body_size
            and parts.extension == self._extension
            and (arrived_s == self._arrived_s or envelope.sent_s not in (None, INFINITE_S))
        ):
            return form.filled(envelope.id.number, body), form.found
        packet = arrived_packet(envelope, parts, arrived_s)
        found = outline(packet)
        self._form, self._extension, self._arrived_s = (
            _Form(packet, found),
            parts.extension,
            arrived_s,
        )
        return packet, found

    def _number(self, data: bytes) -> int:
        """Return the number of an envelope that differs in nothing else; 0 if it does."""
        before, behind = self._before, self._behind
        if (
            len(data) != len(before) + self._digits_count + len(behind)
            or not data.startswith(before)
            or not data.endswith(behind)
        ):
            return 0
        digits = data[len(before) : len(before) + self._digits_count]
        number = int(digits) if digits.isdigit() else 0
        return number if number <= _NUMBER_MAX else 0

    def _learn(self, data: bytes, found: Envelope) -> None:
        """Remember an envelope that was read as a whole."""
        before, mark, rest = data.partition(b"<id>uuid:")
        digits, at, behind = rest.partition(b"@")
        before, behind, last = before + mark, at + behind, self._last
        self._is_shown = (
            last is not None
            and before == self._before
            and behind == self._behind
            and len(digits) == self._digits_count
            and digits.isdigit()
            and found.id.number == int(digits) != last.id.number
            and found.id.source == last.id.source
            and found.stream is None
            and not found.is_receipt
        )
        self._before, self._behind, self._digits_count = before, behind, len(digits)
        self._last, self._form = found, None
        self._like = found if self._is_shown else None

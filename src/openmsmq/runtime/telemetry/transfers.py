"""Spans of transfers: a message left for another queue manager, which has acknowledged it.

A tap reads along what a session writes and hears, and counts with the same machine as the session
itself: it knows which acknowledgment is for which message. The queue manager knows nothing of it.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from openmsmq.protocol.session_windows import SendWindow
from openmsmq.runtime.clocks import unix_ns
from openmsmq.runtime.telemetry.messages import TracedMessage, traced
from openmsmq.runtime.telemetry.spans import SpanMaker
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packet_buffer import PacketBuffer

_ANY_WINDOW: Final = 0xFFFF
"""The session keeps to its window; who reads along need not."""


class _Sent(msgspec.Struct, frozen=True):
    """A message that is recorded, on its way."""

    message: TracedMessage
    began_ns: int


class SessionTap:
    """Reads one session along, from its first byte on."""

    def __init__(self, spans: SpanMaker, peer: str) -> None:
        self._spans = spans
        self._peer = peer
        self._window = SendWindow(_ANY_WINDOW)
        self._written = PacketBuffer()
        self._heard = PacketBuffer()
        self._is_lost = False
        """Whether it does not know any more what is acknowledged."""

    def sent(self, data: bytes) -> None:
        """Bytes leave; no error of ours may reach the session."""
        if not self._is_lost:
            with self._spans.guard():
                self._note_sent(data)

    def received(self, data: bytes) -> None:
        """Bytes came; the same holds."""
        if not self._is_lost:
            with self._spans.guard():
                self._note_received(data)

    def _note_sent(self, data: bytes) -> None:
        began_ns = unix_ns()
        for event in self._written.feed(data):
            if isinstance(event, list):
                found = [traced(packet) for packet in event]
                self._window.sent(
                    [None if each is None else _Sent(each, began_ns) for each in found], event
                )
        self._is_lost = bool(self._written.problem)

    def _note_received(self, data: bytes) -> None:
        for event in self._heard.feed(data):
            if isinstance(event, SessionHeader):
                done = self._window.acknowledge(event)
                if done is None:
                    self._is_lost = True
                    return
                for sent in cast("list[_Sent | None]", done):
                    if sent is not None:
                        self._tell(sent)
        self._is_lost = bool(self._heard.problem)

    def _tell(self, sent: _Sent) -> None:
        self._spans.make(
            "transfer",
            sent.message,
            sent.message.destination,
            (sent.began_ns, unix_ns()),
            peer=self._peer,
        )

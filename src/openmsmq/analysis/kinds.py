"""The closed sets of words about traffic: what can be wrong, and how things end.

What can be wrong, and how bad it is:

| Kind | Severity | Meaning |
|---|---|---|
| `unreadable-file` | error | The file cannot be opened, or is neither pcapng nor pcap. |
| `damaged-capture` | error | The file stops to make sense; what came before was read. |
| `truncated-capture` | warning | The file ends inside a frame, or frames were cut (snap length). |
| `unreadable-frames` | warning | Frames without sound headers, or fragments without the rest. |
| `missing-bytes` | warning | The capture does not have these bytes of a connection. |
| `stray-bytes` | warning | Bytes of a connection that belong to no packet. |
| `cut-packet` | info | The capture begins or ends inside a packet. |
| `malformed-packet` | error | A packet or datagram that does not decode. |
| `refused-connection` | error | A connection, a session or the answer to a ping was refused. |
| `unanswered-connection` | warning | Nobody answered when a connection was opened. |
| `connection-reset` | warning | A connection was reset instead of being closed. |
| `unfinished-handshake` | warning | A connection ended before its session was open. |
| `handshake-not-captured` | info | A session that was open before the capture began. |
| `silent-peer` | error | A session ended because its acknowledgments did not come in time. |
| `count-mismatch` | error | A side counts its messages differently from the capture. |
| `bad-acknowledgment` | error | More messages were acknowledged than were sent. |
| `resent-message` | warning | The same message was sent again between the same addresses. |
| `unacknowledged-message` | warning | A message whose last session ended without an answer. |
| `sequence-gap` | error | A transactional message whose predecessor was not seen before it. |
| `order-ack-back` | error | An order acknowledgment for less than an earlier one. |
| `rejected-message` | warning | A negative acknowledgment: a message was not delivered. |
| `refused-post` | warning | A message over HTTP was answered with an error. |
| `missing-packets` | warning | Packets of multicast that were seen neither first nor as repairs. |
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How much an anomaly matters."""

    INFO = "info"
    """Normal at the edges of a capture."""
    WARNING = "warning"
    """The transfer recovers from it, or the capture is not whole."""
    ERROR = "error"
    """Somebody should look at it."""


class AnomalyKind(StrEnum):
    """What can be wrong; the table above says what each means."""

    UNREADABLE_FILE = "unreadable-file"
    DAMAGED_CAPTURE = "damaged-capture"
    TRUNCATED_CAPTURE = "truncated-capture"
    UNREADABLE_FRAMES = "unreadable-frames"
    MISSING_BYTES = "missing-bytes"
    STRAY_BYTES = "stray-bytes"
    CUT_PACKET = "cut-packet"
    MALFORMED_PACKET = "malformed-packet"
    REFUSED_CONNECTION = "refused-connection"
    UNANSWERED_CONNECTION = "unanswered-connection"
    CONNECTION_RESET = "connection-reset"
    UNFINISHED_HANDSHAKE = "unfinished-handshake"
    HANDSHAKE_NOT_CAPTURED = "handshake-not-captured"
    SILENT_PEER = "silent-peer"
    COUNT_MISMATCH = "count-mismatch"
    BAD_ACKNOWLEDGMENT = "bad-acknowledgment"
    RESENT_MESSAGE = "resent-message"
    UNACKNOWLEDGED_MESSAGE = "unacknowledged-message"
    SEQUENCE_GAP = "sequence-gap"
    ORDER_ACK_BACK = "order-ack-back"
    REJECTED_MESSAGE = "rejected-message"
    REFUSED_POST = "refused-post"
    MISSING_PACKETS = "missing-packets"


OF_BYTES: Final = frozenset(
    {
        AnomalyKind.TRUNCATED_CAPTURE,
        AnomalyKind.UNREADABLE_FRAMES,
        AnomalyKind.MISSING_BYTES,
        AnomalyKind.STRAY_BYTES,
        AnomalyKind.CUT_PACKET,
    }
)
"""Those that say which bytes could not be read; the others are about what was."""

_INFO: Final = frozenset({AnomalyKind.CUT_PACKET, AnomalyKind.HANDSHAKE_NOT_CAPTURED})
_WARNINGS: Final = frozenset(
    {
        AnomalyKind.TRUNCATED_CAPTURE,
        AnomalyKind.UNREADABLE_FRAMES,
        AnomalyKind.MISSING_BYTES,
        AnomalyKind.STRAY_BYTES,
        AnomalyKind.UNANSWERED_CONNECTION,
        AnomalyKind.CONNECTION_RESET,
        AnomalyKind.UNFINISHED_HANDSHAKE,
        AnomalyKind.RESENT_MESSAGE,
        AnomalyKind.UNACKNOWLEDGED_MESSAGE,
        AnomalyKind.REJECTED_MESSAGE,
        AnomalyKind.REFUSED_POST,
        AnomalyKind.MISSING_PACKETS,
    }
)


def severity(kind: AnomalyKind) -> Severity:
    """Return how much a kind of anomaly matters."""
    if kind in _INFO:
        return Severity.INFO
    return Severity.WARNING if kind in _WARNINGS else Severity.ERROR


class Handshake(StrEnum):
    """How the handshake of a session went."""

    COMPLETE = "complete"
    REFUSED = "refused"
    UNFINISHED = "unfinished"
    """It began and did not get to its end, or packets came without it."""
    NOT_CAPTURED = "not captured"
    """The capture does not have the beginning of the connection."""
    NONE = "none"
    """No packet was seen at all."""
    HTTP = "http"
    """A connection of HTTP, which has none."""


class Fate(StrEnum):
    """What became of a message in its session."""

    ACKNOWLEDGED = "acknowledged"
    """Received, if it is express; stored, if it is recoverable, or came over HTTP."""
    REFUSED = "refused"
    """The other side answered that it does not take it: only over HTTP."""
    UNACKNOWLEDGED = "unacknowledged"
    """Its session ended before."""
    IN_FLIGHT = "in flight"
    """The capture ended before."""
    UNKNOWN = "unknown"
    """The capture has not all acknowledgments of the session."""

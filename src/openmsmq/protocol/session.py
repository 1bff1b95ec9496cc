"""Session: one connection between two queue managers, from the first packet to the last.

The engine opens the session, numbers what it sends, acknowledges what it receives and decides
when to give up. It knows nothing of queues: messages go in and come out as whole packets, in runs,
and a message that was sent is known by the token it came with. [MQQB 3.1.1.3.1, 3.1.5, 3.1.6]
"""

from __future__ import annotations

from typing import Final, assert_never

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol import session_handshake as handshake
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session_states import (
    NOBODY_CALLED,
    TRANSITIONS,
    Acknowledged,
    Arrived,
    Called,
    Closed,
    CloseReason,
    Gate,
    Opened,
    OpenGate,
    Role,
    SessionOutput,
    SessionState,
    Token,
    Written,
)
from openmsmq.protocol.session_windows import (
    STORED_LAG_MAX_COUNT,
    ReceiveWindow,
    RecoveringWindow,
    SendWindow,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.message_bytes import laden
from openmsmq.wire.packet_buffer import (
    INTERNAL_MAX_BYTES,
    PacketBuffer,
    StreamEvent,
    can_carry,
    session_ack,
)
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)

__all__ = [
    "NOBODY_CALLED",
    "TRANSITIONS",
    "Acknowledged",
    "Arrived",
    "Called",
    "CloseReason",
    "Closed",
    "Opened",
    "Role",
    "Session",
    "SessionOutput",
    "SessionState",
    "Token",
    "Written",
]

PACKET_MS: Final = 30_000
"""How long the bytes of one packet may take to come; its size adds. [ours]"""

PACKET_RATE_MIN_BYTES_PER_S: Final = 16 * 1024
"""At least so fast a long packet has to come. [ours]"""


class Session:
    """One transport connection between two queue managers. [MQQB 3.1.1.3.1]

    Whatever the peer does wrong ends its session and nothing else.
    """

    def __init__(
        self,
        local: Guid,
        role: Role,
        config: TransferConfig,
        *,
        address: str,
        called: Called = NOBODY_CALLED,
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate or OpenGate()
        self.role = role
        self.state = SessionState.CONNECTING
        self.address = address
        self.remote = called.manager
        """The other queue manager; nil until it is known."""
        self.direct = called.direct
        self._local = local
        self._config = config
        self._pinged = called.pinged
        window = handshake.clamped_window(config.window)
        self._outgoing = SendWindow(window)
        self._incoming = ReceiveWindow(window)
        self._incoming.ack_wait_ms = config.ack_wait_ms
        self._stream = PacketBuffer()
        self._handshake_due_ms: int | None = None
        self._packet_since_ms: int | None = None
        self._idle_due_ms: int | None = None
        self._ack_wait_due_ms: int | None = None
        self._is_active = False
        self._was_heard = False
        self._unheard_since_ms: int | None = None
        self._outputs: list[SessionOutput] = []
        self._arrived: list[bytes] = []
        self._acknowledged: list[Token] = []
        self._writes: list[bytes] = []
        self._closing: CloseReason | None = None
        self._is_turned_away = False

    # What others may ask.

    @property
    def room(self) -> int:
        """How many packets may be sent now."""
        return self._outgoing.room if self.state is SessionState.OPEN else 0

    @property
    def room_bytes(self) -> int:
        """How many bytes may be sent now; the last packet may go beyond."""
        return self._outgoing.room_bytes if self.state is SessionState.OPEN else 0

    @property
    def in_flight_count(self) -> int:
        """Packets sent that the peer has not said to have received."""
        return self._outgoing.in_flight_count

    @property
    def held_bytes(self) -> int:
        """How many bytes wait here for the rest of their packet."""
        return self._stream.held_bytes

    @property
    def next_wake_ms(self) -> int | None:
        """When to call `wake`, on the monotonic clock."""
        if self.state is SessionState.CLOSED:
            return None
        due = [
            due_ms
            for due_ms in (
                self._handshake_due_ms,
                self._packet_due_ms,
                self._idle_due_ms,
                self._ack_wait_due_ms,
                self._incoming.ack_due_ms,
                self._incoming.expected.recover_at_ms,
                self._outgoing.peer.recover_at_ms,
            )
            if due_ms is not None
        ]
        return min(due) if due else None

    def unacknowledged(self) -> list[Token]:
        """What was sent here and not reported as acknowledged, in the order of sending."""
        return self._outgoing.unacknowledged()

    def describe(self) -> dict[str, object]:
        """Return the facts that show why nothing moves."""
        return {
            "state": self.state.value,
            "role": self.role.value,
            "remote": str(self.remote),
            "address": self.address,
            "sent_count": self._outgoing.sent_count,
            "received_count": self._incoming.received_count,
            "in_flight_count": self._outgoing.in_flight_count,
            "unstored_count": self._outgoing.unstored_count,
            "unsettled_count": self._incoming.unsettled_count,
            "window": self._outgoing.limit,
            "peer_window": self._outgoing.peer.current,
            "own_window": self._incoming.own,
            "room": self.room,
            "unheard_since_ms": self._unheard_since_ms,
        }

    def take_outputs(self) -> list[SessionOutput]:
        """Return what is to be done, in order, once."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # Inputs.

    def connected(self, now: Instant, *, is_turned_away: bool = False) -> None:
        """The connection is there: ask for a session, or wait to be asked. [MQQB 3.1.5.2.3]

        Who is turned away is refused when he asks, so that he knows why. [MQQB 2.2.1]
        """
        if self.state is SessionState.CLOSED:
            return
        assert self.state is SessionState.CONNECTING, "connected twice"
        self._handshake_due_ms = now.ticks_ms + self._config.handshake_ms
        self._is_turned_away = is_turned_away
        if self.role is Role.ACCEPTOR:
            self.state = SessionState.AWAITING_ESTABLISH
            return
        self.state = SessionState.AWAITING_ESTABLISH_REPLY
        self._writes.append(
            handshake.establish_request(self._local, self.remote, pinged=self._pinged, now=now)
        )
        self._finish(now)

    def receive_data(self, data: bytes, now: Instant) -> None:
        """Take the next bytes of the peer, cut anywhere. [MQQB 3.1.5.1]"""
        if self.state is SessionState.CLOSED:
            return
        events = self._stream.feed(data)
        if events:
            self._was_heard = True
        if not self._stream.held_bytes:
            self._packet_since_ms = None
        elif events or self._packet_since_ms is None:
            self._packet_since_ms = now.ticks_ms
        for event in events:
            self._take(event, now)
            if self._closing is not None:
                break
        else:
            self._check_stream()
        self._finish(now)

    def send(self, tokens: list[Token], packets: list[bytes], now: Instant) -> None:
        """Send whole user messages, no more than there is `room`. [MQQB 3.1.7.1.3]"""
        if not packets:
            return
        assert len(packets) <= self.room, "sent more than there is room"
        self._outgoing.sent(tokens, packets)
        self._is_active = True
        if self._ack_wait_due_ms is None:
            self._restart_ack_wait(now)
        if self._unheard_since_ms is None:
            self._unheard_since_ms = now.ticks_ms
        if self._incoming.is_ack_nearly_due(now):
            packets = self._with_acknowledgment(packets, now)
        self._outputs.append(Written(b"".join(packets)))

    def settled(self, count: int, now: Instant) -> None:
        """The next `count` packets that arrived have their final fate, durably (C-42, C-49)."""
        if self.state is not SessionState.OPEN:
            return
        self._incoming.settle(count, now)
        if self._incoming.is_ack_worthwhile(self._outgoing.peer.current):
            self._write_acks(now)
        self._finish(now)

    def advertise(self, window: int, now: Instant) -> None:
        """Let the peer send less or more from now on; at most as configured. [MQQB 3.1.7.13]"""
        window = handshake.clamped_window(min(window, self._config.window))
        if window == self._incoming.own:
            return
        self._incoming.advertise(window, now)
        if self.state is SessionState.OPEN:
            self._write_acks(now)
            self._finish(now)

    def connection_lost(self, now: Instant, reason: CloseReason = CloseReason.PEER_CLOSED) -> None:
        """The connection is gone."""
        self.close(reason, now)

    def close(self, reason: CloseReason, now: Instant) -> None:
        """End the session. [MQQB 3.1.5.9]"""
        if self.state is not SessionState.CLOSED:
            self._closing = reason
            self._finish(now)

    def wake(self, now: Instant) -> None:
        """Do what is due by now."""
        if self.state is SessionState.CLOSED:
            return
        self._outgoing.peer.wake(now)
        self._incoming.expected.wake(now)
        if _is_due(self._handshake_due_ms, now):
            self._closing = CloseReason.HANDSHAKE_TIMEOUT
        elif _is_due(self._packet_due_ms, now):
            self._closing = CloseReason.TOO_SLOW
        if _is_due(self._incoming.ack_due_ms, now):
            self._write_acks(now)
        if _is_due(self._ack_wait_due_ms, now):
            self._ack_wait_over(now)
        if _is_due(self._idle_due_ms, now):
            self._idle_over(now)
        self._finish(now)

    # What arrives.

    def _take(self, event: StreamEvent, now: Instant) -> None:
        next_state = TRANSITIONS.get((self.state, _packet_type(event)))
        if next_state is None:
            self._closing = CloseReason.UNEXPECTED_PACKET
        elif isinstance(event, list):
            self._is_active = True
            self._arrived += event
            self._incoming.arrived(event, now)
            if self._incoming.is_overrun:
                self._closing = CloseReason.OVERRUN
        elif isinstance(event, SessionHeader):
            self._take_header(event, now)
        elif isinstance(event, EstablishConnection):
            self._take_establish(event, next_state, now)
        else:
            self._take_parameters(event, now)

    def _check_stream(self) -> None:
        """See whether the bytes so far are those of packets that we care to wait for."""
        is_opening = self.state is not SessionState.OPEN
        if self._stream.problem or (is_opening and self._stream.held_bytes > INTERNAL_MAX_BYTES):
            self._closing = CloseReason.MALFORMED

    def _take_header(self, header: SessionHeader, now: Instant) -> None:
        """Take an acknowledgment, alone or on the back of a message. [MQQB 3.1.5.5]"""
        done = self._outgoing.acknowledge(header)
        if done is None:
            self._closing = CloseReason.BAD_ACKNOWLEDGMENT
            return
        self._acknowledged += done
        self._outgoing.peer.adopt(handshake.clamped_window(header.window), now)
        if self._outgoing.in_flight_count:
            self._restart_ack_wait(now)
            self._unheard_since_ms = now.ticks_ms
        else:
            self._ack_wait_due_ms = self._unheard_since_ms = None
        if self._outgoing.stored_lag_count > STORED_LAG_MAX_COUNT:
            self._closing = CloseReason.NO_ACKNOWLEDGMENT
        counts_agree = (
            self._incoming.agrees(header) or not self._config.close_on_count_mismatch
        ) and self._incoming.agrees_on_recoverable(header)
        if not counts_agree:
            self._closing = CloseReason.COUNT_MISMATCH

    def _take_establish(
        self, packet: EstablishConnection, next_state: SessionState, now: Instant
    ) -> None:
        if self.role is Role.ACCEPTOR:
            if not handshake.is_asked_for(packet, self._local):
                self._closing = CloseReason.REFUSED_PEER
            elif self._is_turned_away:
                self._closing = CloseReason.CROWDED
            elif not self._gate.admits(packet.establish.client, now):
                self._closing = CloseReason.IDENTITY_REFUSED
            self.remote = packet.establish.client
            refused = self._closing is not None
            self._writes.append(handshake.establish_reply(packet, self._local, refused=refused))
        else:
            self._closing = handshake.judge_reply(packet, self._local, self.remote)
            if self._closing is None and not self._gate.admits(packet.establish.server, now):
                self._closing = CloseReason.IDENTITY_REFUSED
            if self._closing is None:
                self.remote = packet.establish.server
                recoverable_ms = handshake.recoverable_ack_ms(packet, now)
                self._incoming.recoverable_ack_ms = recoverable_ms
                self._writes.append(
                    handshake.parameters(
                        recoverable_ms, self._config.ack_wait_ms, self._incoming.own
                    )
                )
        if self._closing is None:
            self.state = next_state

    def _take_parameters(self, packet: ConnectionParameters, now: Instant) -> None:
        """Take the timeouts of the one who asked, and either side's window. [MQQB 3.1.5.4]"""
        if packet.internal.refused:
            self._closing = CloseReason.REFUSED
            return
        asked = packet.parameters
        if self.role is Role.ACCEPTOR:
            self._incoming.recoverable_ack_ms = handshake.clamped_recoverable_ms(
                asked.recoverable_ack_timeout_ms
            )
            self._incoming.ack_wait_ms = handshake.clamped_ack_wait_ms(
                asked.ack_timeout_ms, self._config.ack_wait_ms
            )
            self._writes.append(
                handshake.parameters(
                    asked.recoverable_ack_timeout_ms, asked.ack_timeout_ms, self._incoming.own
                )
            )
        self._outgoing.peer = RecoveringWindow(handshake.clamped_window(asked.window))
        self._handshake_due_ms = None
        self._idle_due_ms = now.ticks_ms + self._config.session_idle_ms
        self.state = SessionState.OPEN
        self._outputs.append(Opened(self.remote))

    # What leaves.

    def _with_acknowledgment(self, packets: list[bytes], now: Instant) -> list[bytes]:
        """Let what is owed ride on the last packet, or follow it. [MQQB 3.1.7.11]"""
        header = self._header(now)
        last = packets[-1]
        if can_carry(last):
            return [*packets[:-1], laden(last, header)]
        return [*packets, session_ack(header)]

    def _write_acks(self, now: Instant) -> None:
        """Acknowledge all that is settled, in as many packets as its bits need. [MQQB 3.1.6.4]"""
        self._writes.append(session_ack(self._header(now)))
        while self._incoming.has_more_stored:
            self._writes.append(session_ack(self._header(now)))

    def _header(self, now: Instant) -> bytes:
        outgoing = self._outgoing
        return self._incoming.header(outgoing.sent_count, outgoing.recoverable_sent_count, now)

    # Time.

    @property
    def _packet_due_ms(self) -> int | None:
        """When the packet that has come in part must be whole: a trickle is no progress.

        While the session opens, the time for that counts alone.
        """
        if self._packet_since_ms is None or self._handshake_due_ms is not None:
            return None
        allowed_ms = 1_000 * self._stream.wanted_bytes // PACKET_RATE_MIN_BYTES_PER_S
        return self._packet_since_ms + PACKET_MS + allowed_ms

    def _restart_ack_wait(self, now: Instant) -> None:
        factor = self._config.ack_wait_direct_factor if self.direct else 1
        self._ack_wait_due_ms = now.ticks_ms + self._incoming.ack_wait_ms * factor

    def _ack_wait_over(self, now: Instant) -> None:
        """No acknowledgment came; whoever says nothing at all is given up. [MQQB 3.1.6.3]"""
        if not self._was_heard:
            self._closing = CloseReason.NO_ACKNOWLEDGMENT
            return
        self._was_heard = False
        self._restart_ack_wait(now)

    def _idle_over(self, now: Instant) -> None:
        """Close when nothing happens and nothing is awaited. [MQQB 3.1.6.2]"""
        if self._is_active or self._outgoing.in_flight_count or self._incoming.unsettled_count:
            self._is_active = False
            self._idle_due_ms = now.ticks_ms + self._config.session_idle_ms
        elif self._closing is None:
            self._closing = CloseReason.IDLE

    def _finish(self, now: Instant) -> None:
        """Give out what this input led to, the end of the session last."""
        if self._acknowledged:
            self._outputs.append(Acknowledged(self._acknowledged))
            self._acknowledged = []
        if self._arrived:
            self._outputs.append(Arrived(self._arrived))
            self._arrived = []
        may_say = self.state is SessionState.OPEN and self._incoming.owes
        if self._closing is not None and self._closing.says_farewell and may_say:
            self._write_acks(now)
        if self._writes:
            self._outputs.append(Written(b"".join(self._writes)))
            self._writes = []
        if self._closing is not None:
            self.state = SessionState.CLOSED
            # Half a packet may be megabytes, and a session that is over waits for the collector.
            self._stream = PacketBuffer()
            self._outputs.append(Closed(self._closing))


def _is_due(due_ms: int | None, now: Instant) -> bool:
    return due_ms is not None and due_ms <= now.ticks_ms


def _packet_type(event: StreamEvent) -> type[Packet]:
    match event:
        case list():
            return UserMessage
        case SessionHeader():
            return SessionAck
        case EstablishConnection() | ConnectionParameters():
            return type(event)
        case _:
            assert_never(event)

"""What the tests of sessions share: peers' packets, time, and two engines that talk."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session import (
    Acknowledged,
    Arrived,
    Called,
    Closed,
    CloseReason,
    Role,
    Session,
    SessionState,
    Written,
)
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import internal, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
    encode,
)

LOCAL: Final = Guid(b"local queue mana")
PEER: Final = Guid(b"the other manage")
STRANGER: Final = Guid(b"somebody else!!!")
CONFIG: Final = TransferConfig(window=64)
ADDRESS: Final = "192.0.2.7"
REFUSED: Final = InternalHeader(internal.REFUSED)

OutputT = TypeVar("OutputT")


def at(milliseconds: int) -> Instant:
    """A moment, counted from the start of the test."""
    return Instant(1_000_000 + milliseconds, 1_700_000_000 + milliseconds // 1000)


def message(
    number: int = 1,
    *,
    recoverable: bool = False,
    body: bytes = b"hello",
    message_class: int = 0,
    session: SessionHeader | None = None,
    counted: bool = False,
    tail: bytes = b"",
) -> bytes:
    """A whole user message."""
    return encode(
        UserMessage(
            UserHeader(
                LOCAL,
                message_number=number,
                flags=user.RECOVERABLE if recoverable else 0,
                destination=DirectName(r"TCP:192.0.2.7\private$\work"),
            ),
            MessageProperties(
                body=body,
                body_size=len(body),
                allocated_size=len(body),
                message_class=message_class,
            ),
            base=BaseHeader(0),
            session=session,
            session_counted=counted,
            tail=tail,
        )
    )


def ack(**facts: int) -> bytes:
    """A SessionAck as a peer sends it."""
    return encode(SessionAck(SessionHeader(**facts)))


def establish(
    client: Guid = PEER, server: Guid = NIL_GUID, ticks_ms: int = 77, **more: Any
) -> bytes:
    """An EstablishConnection packet, request or reply."""
    return encode(EstablishConnection(EstablishHeader(client, server, ticks_ms), **more))


def parameters(
    window: int = 64, ack_ms: int = 20_000, recoverable_ms: int = 500, **more: Any
) -> bytes:
    """A ConnectionParameters packet, request or reply."""
    return encode(ConnectionParameters(ParametersHeader(recoverable_ms, ack_ms, window), **more))


def written(outputs: list[Any]) -> list[Packet]:
    """The packets that a session wrote, read."""
    unread = bytearray().join(output.data for output in outputs if isinstance(output, Written))
    packets = [decode(packet) for packet in take_packets(unread)]
    assert not unread, "half a packet was written"
    return packets


def of_type(outputs: list[Any], kind: type[OutputT]) -> list[OutputT]:
    return [output for output in outputs if isinstance(output, kind)]


def acks_in(outputs: list[Any]) -> list[SessionHeader]:
    """The acknowledgments that a session wrote, those that ride on messages included."""
    return [
        packet.session
        for packet in written(outputs)
        if isinstance(packet, SessionAck | UserMessage) and packet.session is not None
    ]


def close_reason(outputs: list[Any]) -> CloseReason | None:
    """Why the session ended, if it did; nothing may follow its end."""
    closed = of_type(outputs, Closed)
    if not closed:
        return None
    assert outputs[-1] is closed[0]
    return closed[0].reason


def open_initiator(
    config: TransferConfig = CONFIG, *, window: int = 64, direct: bool = False
) -> Session:
    """A session that we asked for, open since `at(0)`."""
    session = Session(LOCAL, Role.INITIATOR, config, address=ADDRESS, called=Called(direct=direct))
    session.connected(at(0))
    session.receive_data(establish(LOCAL, PEER, at(0).ticks_ms) + parameters(window), at(0))
    session.take_outputs()
    assert session.state is SessionState.OPEN
    return session


def open_acceptor(
    config: TransferConfig = CONFIG, *, window: int = 64, ack_ms: int = 20_000
) -> Session:
    """A session that the peer asked for, open since `at(0)`."""
    session = Session(LOCAL, Role.ACCEPTOR, config, address=ADDRESS)
    session.connected(at(0))
    session.receive_data(establish() + parameters(window, ack_ms), at(0))
    session.take_outputs()
    assert session.state is SessionState.OPEN
    return session


def send(session: Session, *packets: bytes, now: int = 0) -> None:
    """Send packets under the numbers 0, 1, … as tokens, and forget the bytes."""
    session.send(list(range(len(packets))), list(packets), at(now))
    session.take_outputs()


class Side:
    """One of two engines that talk, with what it was told and what came of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sent: list[bytes] = []
        self.arrived: list[bytes] = []
        self.settled_count = 0
        self.acknowledged: list[Any] = []
        self.wire = bytearray()
        """Bytes on their way to the other side."""
        self.reason: CloseReason | None = None

    def drain(self) -> None:
        """Take the outputs and remember them."""
        for output in self.session.take_outputs():
            assert self.reason is None, "something follows the end of the session"
            match output:
                case Written():
                    self.wire += output.data
                case Arrived():
                    self.arrived += output.packets
                case Acknowledged():
                    self.acknowledged += output.tokens
                case Closed():
                    self.reason = output.reason

    def send(self, packets: list[bytes], now: Instant) -> None:
        """Send under the positions as tokens."""
        first = len(self.sent)
        self.sent += packets
        self.session.send(list(range(first, first + len(packets))), packets, now)
        self.drain()

    def settle(self, count: int, now: Instant) -> None:
        self.settled_count += count
        self.session.settled(count, now)
        self.drain()

    @property
    def unsettled_count(self) -> int:
        return len(self.arrived) - self.settled_count


class Conversation:
    """Two engines with two wires between them, and one clock."""

    def __init__(self, left: TransferConfig = CONFIG, right: TransferConfig = CONFIG) -> None:
        self.now_ms = 0
        self.left = Side(Session(LOCAL, Role.INITIATOR, left, address=ADDRESS, called=Called(PEER)))
        self.right = Side(Session(PEER, Role.ACCEPTOR, right, address=ADDRESS))
        for side in (self.right, self.left):
            side.session.connected(self.now)
            side.drain()
        while self.left.wire or self.right.wire:
            self.deliver(self.left)
            self.deliver(self.right)
        assert self.left.session.state is self.right.session.state is SessionState.OPEN

    @property
    def now(self) -> Instant:
        return at(self.now_ms)

    @property
    def sides(self) -> tuple[Side, Side]:
        return (self.left, self.right)

    def other(self, side: Side) -> Side:
        return self.right if side is self.left else self.left

    def deliver(self, sender: Side, count: int | None = None) -> bytes:
        """Move bytes that `sender` wrote, all or the first ones; give them."""
        data = bytes(sender.wire[:count])
        del sender.wire[: len(data)]
        if data:
            receiver = self.other(sender)
            receiver.session.receive_data(data, self.now)
            receiver.drain()
        return data

    def advance(self, milliseconds: int) -> None:
        """Let time pass, waking each side whenever it wants to be woken."""
        end_ms = self.now_ms + milliseconds
        while True:
            wakes = [
                side.session.next_wake_ms - at(0).ticks_ms
                for side in self.sides
                if side.session.next_wake_ms is not None
            ]
            if not wakes or min(wakes) > end_ms:
                break
            self.now_ms = max(self.now_ms, min(wakes))
            for side in self.sides:
                side.session.wake(self.now)
                side.drain()
        self.now_ms = end_ms

    def settle_everything(self) -> None:
        """Deliver and settle until nothing moves and every timer of acknowledgments ran out."""
        for _ in range(8):
            while self.left.wire or self.right.wire:
                for side in self.sides:
                    self.deliver(side)
                    self.other(side).settle(self.other(side).unsettled_count, self.now)
            self.advance(10_000)

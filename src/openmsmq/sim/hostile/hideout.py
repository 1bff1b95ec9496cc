"""Where the adversary sits: an address from which it connects, and at which it answers as anybody.

TCP keeps it from the addresses and the connections of others. Everything else is up to it: who it
says it is, what it acknowledges, whether it ends what it has begun.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from openmsmq.sim.clock import Clock
from openmsmq.sim.violation import Violation
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.message_bytes import MESSAGE_MIN_BYTES, is_recoverable
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.model.identity import Guid
    from openmsmq.sim.hostile.adversary import Adversary

_PARAMETERS: Final = ConnectionParameters(ParametersHeader(500, 20_000, 64))


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What the adversary does with a connection."""

    claim: Guid
    """Who it says it is."""
    server: Guid
    """Whom it asks for; nil for whoever is there."""
    packets: tuple[bytes, ...] = ()
    """What it says once the session is open."""
    first: bytes = b""
    """What it says before anything else."""
    greets: bool = True
    """Whether it begins the handshake at all."""
    goes_on: bool = True
    """Whether it ends the handshake."""
    acknowledges: bool = True
    """Whether it says that it has stored whatever it is given."""
    stays_ms: int = 0
    """How long it stays when it has said everything."""


class Talk:
    """One connection of the adversary."""

    def __init__(self, hideout: Hideout, session: int, visit: Visit, *, calls: bool) -> None:
        self._hideout = hideout
        self._session = session
        self._visit = visit
        self._calls = calls
        self._unread = bytearray()
        self._received_count = self._stored_count = 0
        self._sent_count = self._recoverable_sent_count = 0

    def connected(self) -> None:
        """The connection is there."""
        visit = self._visit
        if visit.first:
            self._write(visit.first)
        if visit.greets:
            self._write(encode(EstablishConnection(EstablishHeader(visit.claim, visit.server))))
        elif visit.packets:
            self._open()

    def data(self, data: bytes) -> None:
        """The other side says something."""
        self._unread += data
        # It is an honest one who speaks here: he may have been made to pass on nonsense.
        with contextlib.suppress(DecodeError):
            for packet in take_packets(self._unread):
                self._answer(decode(packet))

    def _answer(self, packet: Packet) -> None:
        visit = self._visit
        match packet:
            case EstablishConnection() if self._calls:
                if visit.goes_on and not packet.internal.refused:
                    self._write(encode(_PARAMETERS))
            case EstablishConnection():
                if visit.goes_on:
                    answer = msgspec.structs.replace(packet.establish, server=visit.claim)
                    self._write(encode(msgspec.structs.replace(packet, establish=answer)))
            case ConnectionParameters() if self._calls:
                self._hideout.let_in()
                self._open()
            case ConnectionParameters():
                self._write(encode(packet))
                self._open()
            case UserMessage() if visit.acknowledges:
                self._take(packet)
            case _:
                pass

    def _open(self) -> None:
        for packet in self._visit.packets:
            self._sent_count += 1
            if len(packet) >= MESSAGE_MIN_BYTES and is_recoverable(packet):
                self._recoverable_sent_count += 1
        if self._visit.packets:
            self._write(b"".join(self._visit.packets))
        if self._visit.stays_ms:
            self._hideout.later(self._visit.stays_ms, self._hideout.leave, self._session)

    def _take(self, message: UserMessage) -> None:
        """Say that a message is stored: who believes it lets go of it."""
        self._received_count += 1
        stored = message.user.recoverable
        self._stored_count += stored
        header = SessionHeader(
            self._received_count & 0xFFFF,
            self._stored_count & 0xFFFF if stored else 0,
            int(stored),
            self._sent_count & 0xFFFF,
            self._recoverable_sent_count & 0xFFFF,
            64,
        )
        self._write(encode(SessionAck(header)))

    def _write(self, data: bytes) -> None:
        self._hideout.write(self._session, data)


class Hideout:
    """An address of the adversary, as the network sees a node."""

    is_watched: Final = False
    up: Final = True
    boot: Final = 1

    def __init__(self, adversary: Adversary, index: int, name: str, address: str) -> None:
        self._adversary = adversary
        self._world = adversary.world
        self.index = index
        self.name = name
        self.address = address
        self.clock = Clock(self._world.timeline, 0)
        self._last_session = 0
        self._talks: dict[int, Talk] = {}

    def visit(self, address: str, visit: Visit) -> None:
        """Connect to a node."""
        self._last_session += 1
        self._talks[self._last_session] = Talk(self, self._last_session, visit, calls=True)
        self._world.network.connect(self, self._last_session, address)

    def write(self, session: int, data: bytes) -> None:
        """Send bytes on a connection."""
        if session in self._talks:
            self._world.network.send(self, session, data)

    def leave(self, session: int) -> None:
        """Close a connection."""
        if self._talks.pop(session, None) is not None:
            self._world.network.disconnect(self, session)

    def let_in(self) -> None:
        """A node has opened a session; in strict mode nobody may."""
        if self._adversary.scenario.mode == "strict":
            raise Violation(f"somebody let {self.name} in, whom no rule names")

    # As the network sees it.

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen here."""
        self._world.timeline.after(delay_ms, action, *arguments)

    def accept(self, address: str, proven: str = "") -> int:
        """Take a connection: somebody was made to believe that there is something to reach."""
        del proven
        self._last_session += 1
        answer = self._adversary.answer_to(address)
        self._talks[self._last_session] = Talk(self, self._last_session, answer, calls=False)
        return self._last_session

    def input(self, name: str, session: int, *arguments: Any, **_: Any) -> None:
        """Hear what happens to a connection."""
        talk = self._talks.get(session)
        if talk is None:
            return
        if name == "session_connected":
            talk.connected()
        elif name == "session_data":
            talk.data(arguments[0])
        else:
            del self._talks[session]

    def datagram(self, address: str, port: int, data: bytes, *, is_answer: bool) -> None:
        """Leave a ping unanswered."""

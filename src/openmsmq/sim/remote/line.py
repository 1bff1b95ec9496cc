"""One connection of a remote reader to the door of a node: calls, and what came of them.

The bytes are those of `openmsmq.protocol.rpc.client`. A reader may offer less than that does, and
cut its calls into more fragments than it would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import (
    Bound,
    ClientOutput,
    Failed,
    Protection,
    Returned,
    Threw,
)
from openmsmq.protocol.rpc.states import Written
from openmsmq.security.authentication.ports import Level
from openmsmq.sim.remote.door import INTERFACE, address_at
from openmsmq.sim.violation import Violation
from openmsmq.wire.rpc.fragments import read_body, read_header
from openmsmq.wire.rpc.pdus import (
    HEADER_BYTES,
    REQUEST_BYTES,
    WHOLE,
    Flag,
    Notice,
    PduType,
    Request,
    write,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from openmsmq.sim.checks.remote_watch import Place
    from openmsmq.sim.node import Node
    from openmsmq.sim.remote.host import ReaderHost
    from openmsmq.sim.scenarios.remote import RemoteScenario

_FLAGS_AT: Final = 3
_SPOILT: Final = 0.03
"""How many calls somebody on the way changes, if that is to happen."""
_SIZES: Final = slice(HEADER_BYTES, HEADER_BYTES + 4)
"""Where a bind says how long fragments may be, in both directions."""


class Ticket:
    """A call that was made, and its end."""

    def __init__(self, line: ReaderLine) -> None:
        self.line = line
        self.is_over = False
        self.is_spoilt = False
        """Whether somebody on the way changes it, so that it must not be carried out."""
        self.stub: bytes | None = None
        """The results; None if there are none."""
        self.status = 0
        """Of a fault; 0 if the end of the call is unknown."""
        self.then: Callable[[], None] | None = None
        """Who waits for the end."""

    def ends(self, stub: bytes | None = None, status: int = 0) -> None:
        """The call is over, or nobody believes in its end any more."""
        if self.is_over:
            return
        if self.is_spoilt and stub is not None:
            raise Violation("a call that was changed on its way was carried out")
        self.is_over, self.stub, self.status = True, stub, status
        if self.then is not None:
            self.then()


class ReaderLine:
    """A connection, from the wish to have it until it is lost."""

    def __init__(
        self,
        host: ReaderHost,
        node: Node,
        scenario: RemoteScenario,
        rng: random.Random,
        group: int = 0,
        protection: Protection | None = None,
    ) -> None:
        """`group` is that of other connections with which it shares what is opened."""
        self._host = host
        self._node = node
        assert node.world.books.remote is not None
        self._watch = node.world.books.remote
        self._scenario = scenario
        self._rng = rng
        self._machine = ClientAssociation(INTERFACE, protection, group)
        self._tickets: dict[int, Ticket] = {}
        self.place: Place | None = None
        """What it belongs to at the node; None until that has agreed."""
        self.is_lost = False
        self.is_spoilt = False
        """Whether a call was changed on its way."""
        self._spoils_next = False
        signs = protection is not None and protection.level >= Level.PACKET
        self._may_be_spoilt = signs and "spoil" in scenario.readings
        self._session = host.connect(address_at(node.address), self)

    @property
    def can_call(self) -> bool:
        """Whether a call can be made now."""
        return not self.is_lost and self._machine.can_call

    @property
    def group(self) -> int:
        """The group to name, so that another connection shares what was opened here."""
        return 0 if self.place is None else self.place[2]

    # What its reader does.

    def call(self, operation: int, stub: bytes) -> Ticket:
        """Make a call."""
        ticket = Ticket(self)
        if self._may_be_spoilt:
            self._spoils_next = ticket.is_spoilt = self._rng.random() < _SPOILT
            self.is_spoilt = self.is_spoilt or ticket.is_spoilt
        self._tickets[self._machine.call(operation, stub)] = ticket
        self._settle()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Ask for the end of a call."""
        number = self._number(ticket)
        if number is not None:
            self._machine.cancel(number)
            self._settle()

    def orphan(self, ticket: Ticket) -> None:
        """Say that nobody wants to hear how a call ends."""
        number = self._number(ticket)
        if number is not None and not self.is_lost:
            kind = PduType.ORPHANED
            self._host.write(self._session, write(kind, number, Notice(kind)))

    def leave(self) -> None:
        """Close it without a word."""
        self._host.leave(self._session)
        self.gone()

    def _number(self, ticket: Ticket) -> int | None:
        found = (number for number, each in self._tickets.items() if each is ticket)
        return next(found, None)

    # What its host calls.

    def connected(self) -> None:
        """It is there."""
        self._machine.connected()
        self._settle()

    def received(self, data: bytes) -> None:
        """The node says something."""
        self._machine.received(data)
        self._settle()

    def gone(self) -> None:
        """It is lost, or never came about."""
        self._machine.lost("the connection is gone")
        self._settle()

    # What there is to do.

    def _settle(self) -> None:
        for output in self._machine.take_outputs():
            self._do(output)

    def _do(self, output: ClientOutput) -> None:
        match output:
            case Written(data) if self._spoils_next:
                self._spoils_next = False
                self._host.write(self._session, self._spoilt(data))
            case Written(data):
                for fragment in self._fragments(data):
                    self._host.write(self._session, fragment)
            case Bound(group):
                self.place = (self._node.index, self._node.boot, group)
            case Returned(call, stub):
                self._tickets.pop(call).ends(stub)
            case Threw(call, status):
                self._tickets.pop(call).ends(status=status)
            case Failed():
                self.is_lost = True
                self._host.leave(self._session)
                tickets, self._tickets = self._tickets, {}
                for ticket in tickets.values():
                    ticket.ends()

    def _spoilt(self, data: bytes) -> bytes:
        """Change a bit of a call, behind what says how long it is."""
        self._watch.spoilt.add(self._host.address)
        changed = bytearray(data)
        changed[self._rng.randrange(REQUEST_BYTES, len(data))] ^= 1 << self._rng.randrange(8)
        return bytes(changed)

    def _fragments(self, data: bytes) -> list[bytes]:
        """Say less in a bind, and cut a call in pieces."""
        header = read_header(data)
        if header.kind == PduType.BIND:
            changed = bytearray(data)
            changed[_SIZES] = self._scenario.fragment_max.to_bytes(2, "little") * 2
            if not self._scenario.concurrent:
                changed[_FLAGS_AT] &= ~Flag.CONCURRENT & 0xFF
            return [bytes(changed)]
        if header.kind != PduType.REQUEST or header.auth_length:
            return [data]
        if self._rng.random() >= self._scenario.pieces_chance:
            return [data]
        request = read_body(header, data)
        assert isinstance(request, Request)
        stub = request.stub
        size = max(1, len(stub) // self._rng.randrange(1, 4))
        found = []
        for at in range(0, max(1, len(stub)), size):
            flags = WHOLE
            if at:
                flags &= ~Flag.FIRST
            if at + size < len(stub):
                flags &= ~Flag.LAST
            part = Request(request.context, request.operation, stub[at : at + size], len(stub) - at)
            found.append(write(PduType.REQUEST, header.call, part, flags=flags))
        return found

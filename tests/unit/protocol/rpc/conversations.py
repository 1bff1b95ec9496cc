"""Our client of RPC before our own server, in one process; bytes are cut as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import ClientOutput, Protection
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import (
    CallArrived,
    CallCancelled,
    Closed,
    Door,
    InterfaceFacts,
    Written,
)
from openmsmq.security.access.callers import anonymous
from openmsmq.security.authentication.ports import Level, ProviderKind, SecurityContext
from openmsmq.wire.rpc.syntaxes import Syntax
from tests.unit.security.authentication.negotiations import ntlm_client, ntlm_server
from tests.unit.security.authentication.sides import PASSWORD, acceptor, initiator

OPEN: Final = Syntax.of("11111111-2222-3333-4444-555555555555", 1)
SAFE: Final = Syntax.of("99999999-2222-3333-4444-555555555555", 1)

Cuts = Iterator[int]


def by_ntlm(level: Level = Level.PRIVACY, password: str = PASSWORD) -> Protection:
    return Protection(ProviderKind.NTLM, level, initiator(password=password))


def by_spnego(level: Level = Level.PRIVACY, password: str = PASSWORD) -> Protection:
    return Protection(ProviderKind.SPNEGO, level, ntlm_client(password))


def server(groups: Groups | None = None, key: int = 1) -> Association:
    makers: dict[ProviderKind, Callable[[], SecurityContext]] = {
        ProviderKind.NTLM: acceptor,
        ProviderKind.SPNEGO: ntlm_server,
    }
    door = Door(
        2103,
        {OPEN: InterfaceFacts(4), SAFE: InterfaceFacts(4, Level.PRIVACY)},
    )
    return Association(
        door,
        groups or Groups(),
        key,
        anonymous("192.0.2.1"),
        lambda kind: makers[kind]() if kind in makers else None,
    )


class Conversation:
    """Both sides, and what the client hears."""

    def __init__(
        self,
        client: ClientAssociation,
        cuts: Cuts | None = None,
        answer: Callable[[CallArrived], bytes | int | None] = lambda call: call.stub,
    ) -> None:
        """`answer` says what a call returns, or throws; None leaves it under way."""
        self.client = client
        self.server = server()
        self._cuts = cuts
        self._answer = answer
        self.heard: list[ClientOutput] = []
        self.cancelled: list[int] = []
        client.connected()
        self.settle()

    def settle(self) -> None:
        """Let both talk until nobody has anything to say."""
        while True:
            outputs = self.client.take_outputs()
            for output in outputs:
                if isinstance(output, Written):
                    self._feed(output.data, self.server.received)
                else:
                    self.heard.append(output)
            if not self._serve() and not outputs:
                return

    def _serve(self) -> bool:
        outputs = self.server.take_outputs()
        for output in outputs:
            match output:
                case Written(data):
                    self._feed(data, self.client.received)
                case CallArrived(call):
                    self.end(call, self._answer(output))
                case CallCancelled(call):
                    self.cancelled.append(call)
                case Closed():
                    # The server's side of the connection is closed when all is written.
                    self.client.lost("the connection is closed")
                case _:
                    pass
        return bool(outputs)

    def end(self, call: int, answer: bytes | int | None) -> None:
        if isinstance(answer, bytes):
            self.server.returned(call, answer)
        elif answer is not None:
            self.server.threw(call, answer)

    def _feed(self, data: bytes, to: Callable[[bytes], None]) -> None:
        at = 0
        while at < len(data):
            size = len(data) if self._cuts is None else next(self._cuts)
            to(data[at : at + size])
            at += size

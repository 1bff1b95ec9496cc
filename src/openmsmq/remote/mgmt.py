"""What the server of RPC tells of itself: its interfaces, that it listens, and under which name."""

from __future__ import annotations

from collections.abc import Sequence

from openmsmq.model.clock import Instant
from openmsmq.remote.ports import AsksNobody, Output, Return, Throw
from openmsmq.security.authentication.ports import ProviderKind
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.mgmt import (
    ACCESS_DENIED,
    ASK_PRINCIPAL,
    ASK_STATISTICS,
    INTERFACES,
    LISTENING,
    OK,
    PRINCIPAL,
    STATISTICS,
    STATISTICS_COUNT,
    STOPPED,
    TOO_SHORT,
    UNKNOWN_AUTHENTICATION,
    Interfaces,
    Listening,
    Operation,
    Principal,
    Statistics,
    Stopped,
)
from openmsmq.wire.rpc.pdus import Status
from openmsmq.wire.rpc.syntaxes import Syntax


class ServerManagement(AsksNobody):
    """Answers questions about a server of RPC; the same for everybody."""

    def __init__(self, interfaces: Sequence[Syntax], principal: str) -> None:
        """`principal` is the name for Kerberos; empty if nobody can use it here."""
        self._interfaces = tuple(interfaces)
        self._principal = principal.encode("ascii", "replace")

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        """Answer a call."""
        del now
        try:
            return [Return(call, self._answer(operation, stub))]
        except DecodeError:
            return [Throw(call, Status.BAD_STUB)]

    def _answer(self, operation: int, stub: bytes) -> bytes:
        match operation:
            case Operation.INTERFACES:
                return INTERFACES.encode(Interfaces(self._interfaces, OK))
            case Operation.STATISTICS:
                # What there is to count stands in the metrics of the queue manager.
                count = min(ASK_STATISTICS.decode(stub).count, STATISTICS_COUNT)
                return STATISTICS.encode(Statistics(count, (0,) * count, OK))
            case Operation.IS_LISTENING:
                return LISTENING.encode(Listening(OK, is_listening=1))
            case Operation.STOP:
                # Nobody stops it from afar.
                return STOPPED.encode(Stopped(ACCESS_DENIED))
            case _:
                return self._say_principal(stub)

    def _say_principal(self, stub: bytes) -> bytes:
        asked = ASK_PRINCIPAL.decode(stub)
        if asked.kind not in (ProviderKind.KERBEROS, ProviderKind.SPNEGO) or not self._principal:
            return PRINCIPAL.encode(Principal(b"", UNKNOWN_AUTHENTICATION))
        if len(self._principal) >= asked.room:
            return PRINCIPAL.encode(Principal(b"", TOO_SHORT))
        return PRINCIPAL.encode(Principal(self._principal, OK))

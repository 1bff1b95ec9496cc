"""What an association says: fragments for its client, and news for others, in order."""

from __future__ import annotations

from openmsmq.protocol.rpc.states import Output, Refused, Written
from openmsmq.security.authentication.ports import Level
from openmsmq.wire.rpc.pdus import (
    WHOLE,
    BindNak,
    Body,
    Fault,
    NakReason,
    PduType,
    Status,
    Verifier,
    write,
)


class Ended(Exception):
    """Why no further fragment of a connection is looked at."""


class Outbox:
    """Collects what there is to do."""

    def __init__(self) -> None:
        self._outputs: list[Output] = []

    def take(self) -> list[Output]:
        """Return what there is to do since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def add(self, output: Output) -> None:
        """Have something done."""
        self._outputs.append(output)

    def write(
        self, kind: PduType, call: int, body: Body, token: Verifier | None, flags: int
    ) -> None:
        """Send a fragment."""
        self.add(Written(write(kind, call, body, token, flags)))

    def fault(self, call: int, status: int, context: int, flags: int) -> None:
        """End a call, and go on."""
        self.write(PduType.FAULT, call, Fault(context, status), None, flags)

    def last_fault(
        self, call: int, status: Status, sentence: str, *, context: int = 0, flags: int = WHOLE
    ) -> Ended:
        """End a call, and the connection with it; return how."""
        self.fault(call, status, context, flags)
        return Ended(sentence)

    def nak(self, call: int, reason: NakReason, sentence: str) -> Ended:
        """Refuse a bind; return how the connection ends."""
        self.write(PduType.BIND_NAK, call, BindNak(reason), None, WHOLE)
        return Ended(sentence)

    def refuse(self, sentence: str, verifier: Verifier | None, name: str = "") -> None:
        """Tell the log of somebody who has not proved enough."""
        level = "" if verifier is None else level_name(verifier.level)
        self.add(Refused(sentence, name, level))


def level_name(level: int) -> str:
    """Return the name of a level of protection; its number, if it is none."""
    return Level(level).name.lower() if level in set(Level) else str(level)

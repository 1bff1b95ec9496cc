"""Pings: whether others would take a session, and what we say to those who ask. [MQQB 3.1.5.2]"""

from __future__ import annotations

from openmsmq.manager.admission import Admission
from openmsmq.manager.identities import Identities
from openmsmq.manager.outputs import SendDatagram
from openmsmq.manager.peering import Neighbour
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol import ping
from openmsmq.protocol.config import TransferConfig


class Pings:
    """Asks, answers, and hears answers."""

    def __init__(
        self, config: TransferConfig, own: Guid, admission: Admission, identities: Identities
    ) -> None:
        self._config = config
        self._own = own
        self._admission = admission
        self._identities = identities
        self._table = ping.PingTable(own)

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._table.next_wake_ms

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        self._table.wake(now)

    def ask(self, address: str, neighbour: Neighbour, now: Instant) -> SendDatagram:
        """Ask whether somebody at an address takes sessions."""
        return SendDatagram(address, self._table.ask(address, neighbour, now))

    def answered(self, data: bytes, now: Instant) -> None:
        """Take the answer to a question of ours."""
        self._table.received(data, now)

    def take_answers(self) -> list[tuple[Neighbour, bool]]:
        """Give who has been answered for, and whether a session would be taken."""
        found: list[tuple[Neighbour, bool]] = []
        for answered in self._table.take_outputs():
            assert isinstance(answered.waiter, Neighbour)
            found.append((answered.waiter, answered.accepted))
        return found

    def answer(self, address: str, port: int, data: bytes, now: Instant) -> SendDatagram | None:
        """Answer somebody, unless he is one to whom nothing is said."""
        if (
            not self._config.answer_ping
            or self._config.hardened
            or self._identities.refuses_address(address, "")
        ):
            return None
        answer = ping.answer(data, self._own, self._admission.refuses(now))
        return None if answer is None else SendDatagram(address, answer, port)

"""What links ask for: addresses of hosts, answers to pings, sessions. [MQQB 3.1.5.2]

A link says what it needs next; here it is asked for, and the answer brought back.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from openmsmq.manager.outputs import Resolve, SendDatagram
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.peering import Neighbour
from openmsmq.manager.transfer.admission import Admission
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.protocol import ping
from openmsmq.protocol.link import AskPing, LinkChanged, OpenSession, ResolveHost


class LinkNeeds(Protocol):
    """Does what links cannot do themselves."""

    def open_session(self, neighbour: Neighbour, asked: OpenSession, now: Instant) -> None:
        """Open a session for a link."""
        ...

    def wake_link(self, neighbour: Neighbour, due_ms: int | None) -> None:
        """Wake a link then, and only then; None is never."""
        ...


class Links:
    """Carries out what links ask for, and answers the pings of others."""

    def __init__(
        self,
        base: Foundation,
        admission: Admission,
        identities: Identities,
        needs: LinkNeeds,
    ) -> None:
        self._config = base.config.transfer
        self._own = base.counters.identifier
        self._admission = admission
        self._identities = identities
        self._needs = needs
        self._outputs = base.outputs
        self._pings = ping.PingTable(self._own)
        self._resolving: dict[str, dict[Neighbour, None]] = {}

    def drain(self, neighbour: Neighbour | None, now: Instant) -> None:
        """Do what a link asks for."""
        if neighbour is None:
            return
        for output in neighbour.engine.take_outputs():
            match output:
                case ResolveHost(host):
                    self._resolve(host)[neighbour] = None
                case AskPing(address):
                    data = self._pings.ask(address, neighbour, now)
                    self._outputs.append(SendDatagram(address, data))
                case OpenSession():
                    self._needs.open_session(neighbour, output, now)
                case LinkChanged():
                    pass
                case _:
                    assert_never(output)
        self._needs.wake_link(neighbour, neighbour.engine.next_wake_ms)

    # Hosts.

    def look_up_peers(self, now: Instant) -> None:
        """Look up the hosts that a peer may be, as far as that is not known."""
        for host in self._identities.take_wanted(now):
            self._resolve(host)

    def _resolve(self, host: str) -> dict[Neighbour, None]:
        """Have a host looked up; gives who waits for that."""
        if host not in self._resolving:
            self._outputs.append(Resolve(host))
        return self._resolving.setdefault(host, {})

    def resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses of a host are known, or it has none."""
        self._identities.resolved(host, addresses)
        for neighbour in self._resolving.pop(host, {}):
            neighbour.engine.host_resolved(host, addresses, now)
            self.drain(neighbour, now)

    # Pings.

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._pings.next_wake_ms

    def wake(self, now: Instant) -> None:
        """Time has passed: who was asked has perhaps not answered."""
        self._pings.wake(now)
        self._drain_pings(now)

    def ping_answered(self, data: bytes, now: Instant) -> None:
        """The answer to a ping of ours came."""
        self._pings.received(data, now)
        self._drain_pings(now)

    def _drain_pings(self, now: Instant) -> None:
        for answered in self._pings.take_outputs():
            neighbour = answered.waiter
            assert isinstance(neighbour, Neighbour)
            neighbour.engine.ping_answered(answered.accepted, now)
            self.drain(neighbour, now)

    def answer_ping(self, address: str, port: int, data: bytes, now: Instant) -> None:
        """Answer a ping, unless nobody at that address is let in."""
        if (
            not self._config.answer_ping
            or self._config.hardened
            or self._identities.refuses_address(address, "")
        ):
            return
        answer = ping.answer(data, self._own, self._admission.refuses(now))
        if answer is not None:
            self._outputs.append(SendDatagram(address, answer, port))

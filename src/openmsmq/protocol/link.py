"""One neighbour: where its addresses are tried, one after the other, until a session opens.

A link outlives its sessions. It knows the hops that lead to its neighbour and tries every address
of every hop at once, one at a time; only when all of them have failed does it wait, and then it
begins anew, for addresses change. `TRANSITIONS` says which input means something in which state,
and where it may lead; every other input is ignored. [MQQB 3.1.5.2, 3.1.6.1]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    MsmqError,
    NoDirectory,
    RemoteMachineNotAvailable,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.model.queue import ConnectionEvent, ConnectionStatus, OutgoingQueueState
from openmsmq.protocol.config import TransferConfig

HISTORY_MAX_COUNT: Final = 32
"""Lines of the connection history that are kept."""

ADDRESSES_MAX_COUNT: Final = 16
"""Addresses of one host that are tried in a round."""


class LinkState(Enum):
    """How far a link has come. [MQQB 3.1.5.2]"""

    IDLE = "idle"
    """Nobody has anything to send."""
    RESOLVING = "resolving"
    """The addresses of a hop are looked up."""
    PINGING = "pinging"
    """An address was asked whether it would take a session."""
    CONNECTING = "connecting"
    """A TCP connection is on its way."""
    OPENING = "opening"
    """The connection is there, the session not yet."""
    OPEN = "open"
    WAITING = "waiting"
    """Every address has failed; the next round begins after a pause."""


class LinkInput(Enum):
    """What a link is told: the values are the names of its methods."""

    WANTED = "wanted"
    UNWANTED = "unwanted"
    HOST_RESOLVED = "host_resolved"
    PING_ANSWERED = "ping_answered"
    CONNECTED = "connected"
    CONNECT_FAILED = "connect_failed"
    ESTABLISH_SEEN = "establish_seen"
    OPENED = "opened"
    CLOSED = "closed"
    RETRY_NOW = "retry_now"
    WAKE = "wake"


_FIRST_ROUND: Final = (
    LinkState.RESOLVING,
    LinkState.PINGING,
    LinkState.CONNECTING,
    LinkState.WAITING,
)
# A round after a pause, and what follows an open session, do without the ping.
_LATER_ROUND: Final = (LinkState.RESOLVING, LinkState.CONNECTING, LinkState.WAITING)

TRANSITIONS: Final[Mapping[tuple[LinkState, LinkInput], tuple[LinkState, ...]]] = {
    (LinkState.IDLE, LinkInput.WANTED): _FIRST_ROUND,
    (LinkState.RESOLVING, LinkInput.UNWANTED): (LinkState.IDLE,),
    (LinkState.RESOLVING, LinkInput.HOST_RESOLVED): _FIRST_ROUND,
    (LinkState.PINGING, LinkInput.PING_ANSWERED): (*_FIRST_ROUND, LinkState.IDLE),
    (LinkState.CONNECTING, LinkInput.CONNECTED): (LinkState.OPENING,),
    (LinkState.CONNECTING, LinkInput.CONNECT_FAILED): (*_FIRST_ROUND, LinkState.IDLE),
    (LinkState.CONNECTING, LinkInput.ESTABLISH_SEEN): (LinkState.OPENING,),
    (LinkState.CONNECTING, LinkInput.OPENED): (LinkState.OPEN,),
    (LinkState.CONNECTING, LinkInput.CLOSED): (*_FIRST_ROUND, LinkState.IDLE),
    (LinkState.OPENING, LinkInput.CONNECT_FAILED): (*_FIRST_ROUND, LinkState.IDLE),
    (LinkState.OPENING, LinkInput.ESTABLISH_SEEN): (LinkState.OPENING,),
    (LinkState.OPENING, LinkInput.OPENED): (LinkState.OPEN,),
    (LinkState.OPENING, LinkInput.CLOSED): (*_FIRST_ROUND, LinkState.IDLE),
    (LinkState.OPEN, LinkInput.CLOSED): (*_LATER_ROUND, LinkState.IDLE),
    (LinkState.WAITING, LinkInput.UNWANTED): (LinkState.IDLE,),
    (LinkState.WAITING, LinkInput.RETRY_NOW): _LATER_ROUND,
    (LinkState.WAITING, LinkInput.WAKE): _LATER_ROUND,
}
"""Where each input may lead. What is not here changes nothing."""


class Hop(msgspec.Struct, frozen=True):
    """A computer that takes messages for the neighbour (NextHop). [MQQB 3.1.1.3.1.3]"""

    host: str
    manager: Guid = NIL_GUID
    """The queue manager that must answer there; nil when anyone may."""


class ResolveHost(msgspec.Struct, frozen=True):
    """Look up the addresses of a host, then call `host_resolved`."""

    host: str


class AskPing(msgspec.Struct, frozen=True):
    """Ask an address whether it would take a session, then call `ping_answered`."""

    address: str


class OpenSession(msgspec.Struct, frozen=True):
    """Open a session, then call `opened`, or one of `connect_failed` and `closed`."""

    address: str
    manager: Guid
    pinged: bool = False
    """Whether a ping went before: the first packet of the session says so. [MQQB 3.1.5.2.3]"""


class LinkChanged(msgspec.Struct, frozen=True):
    """The link is in another state."""

    state: LinkState


LinkOutput: TypeAlias = ResolveHost | AskPing | OpenSession | LinkChanged

_UNREACHED: Final = RemoteMachineNotAvailable.code
_NOT_RESOLVED: Final = 0xC00E0099
_ERROR_CODES: Final = {
    ConnectionStatus.PING_FAILURE: _UNREACHED,
    ConnectionStatus.SOCKET_CONNECT_FAILURE: _UNREACHED,
    ConnectionStatus.SOCKET_SEND_FAILURE: _UNREACHED,
    ConnectionStatus.CONNECTION_NOT_READY: _UNREACHED,
    ConnectionStatus.CONNECTION_REFUSED: _UNREACHED,
    ConnectionStatus.DNS_FAILURE: _NOT_RESOLVED,
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: NoDirectory.code,
    ConnectionStatus.CONNECTION_LIMIT_REACHED: InsufficientResources.code,
    ConnectionStatus.LOW_RESOURCE: InsufficientResources.code,
}
"""The result code of a failure; the others have the one for unknown reasons."""

_PROBLEMS: Final = {
    ConnectionStatus.PING_FAILURE: "{} does not answer the ping, or would refuse a session",
    ConnectionStatus.SOCKET_CREATE_FAILURE: "no socket could be opened towards {}",
    ConnectionStatus.SOCKET_BIND_FAILURE: "no local address could be used towards {}",
    ConnectionStatus.SOCKET_CONNECT_FAILURE: "{} does not accept connections",
    ConnectionStatus.TCP_NOT_ENABLED: "the network of {} cannot be reached from here",
    ConnectionStatus.CONNECTION_LIMIT_REACHED: "too many connections are open to add one to {}",
    ConnectionStatus.CONNECTION_REFUSED: "{} refused the connection",
    ConnectionStatus.LOW_RESOURCE: "memory or file handles are short for a connection to {}",
}


def next_hop_text(address: str) -> str:
    """Return the form in which management shows an address. [MQMQ 2.3.12.12]"""
    return f"IPv6={address}" if ":" in address else f"IP={address}"


class Link:
    """One neighbour: a host of a direct name, or the hops towards a queue manager."""

    def __init__(
        self, name: str, hops: tuple[Hop, ...], config: TransferConfig, *, direct: bool
    ) -> None:
        self.name = name
        self.hops = hops
        """Read at the beginning of each round, so there may be a new route at any time."""
        self.direct = direct
        self.state = LinkState.IDLE
        self.queue_state = OutgoingQueueState.INACTIVE
        """What management shows of the queues on this link, unless they are on hold or locked."""
        self.last_problem = ""
        """Why the last attempt failed, as a part of a sentence; empty after a success."""
        self.address = ""
        """The address that is tried or in use."""
        self.since_ms = 0
        """When the state, or the attempt on another address, began."""
        self.retry_at_ms: int | None = None
        self._rests_until_ms = 0
        """When the last pause ends: it holds though another link has led there meanwhile."""
        self._config = config
        self._wanted = False
        self._may_ping = False
        self._state_at_rest = OutgoingQueueState.INACTIVE
        self._hop = Hop("")
        self._hops_left: deque[Hop] = deque()
        self._addresses_left: deque[str] = deque()
        self._addresses_found: list[str] = []
        self._history: deque[ConnectionEvent] = deque(maxlen=HISTORY_MAX_COUNT)
        self._outputs: list[LinkOutput] = []

    # Inputs.

    def wanted(self, now: Instant) -> None:
        """Somebody has something to send. [MQQB 3.1.7.12, C-30]"""
        self._wanted = True
        if not self._heeds(LinkInput.WANTED):
            return
        if now.ticks_ms < self._rests_until_ms:
            # Of two links to one computer that ends each session at once, each would have the other
            # forget its pause.
            self._enter(LinkState.WAITING, self._state_at_rest, now)
            self.retry_at_ms = self._rests_until_ms
        else:
            self._begin_round(now, may_ping=self._config.ask_ping)

    def unwanted(self, now: Instant) -> None:
        """Nothing is left to send. What runs already is not broken off; it ends by itself."""
        self._wanted = False
        if self._heeds(LinkInput.UNWANTED):
            self._rest(OutgoingQueueState.INACTIVE, now)

    def host_resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses of a host are known; none when it was not found."""
        if self._heeds(LinkInput.HOST_RESOLVED) and fold(host) == fold(self._hop.host):
            self._take_addresses(addresses, now)
            self._try_next(now)

    def ping_answered(self, accepted: bool, now: Instant) -> None:
        """The ping was answered, or too much time has passed (`accepted` is false then)."""
        if not self._heeds(LinkInput.PING_ANSWERED):
            return
        if accepted and self._wanted:
            self._open_session(now, pinged=True)
            return
        if not accepted:
            self._fail(ConnectionStatus.PING_FAILURE, "", now)
        self._go_on(now)

    def connected(self, now: Instant) -> None:
        """The TCP connection is there, the session sends its first packet."""
        if self._heeds(LinkInput.CONNECTED):
            self._record(ConnectionStatus.IN_PROCESS, now)
            self._enter(LinkState.OPENING, OutgoingQueueState.WAITING, now)

    def connect_failed(self, status: ConnectionStatus, now: Instant, sentence: str = "") -> None:
        """There is no connection to the address; `sentence` may say more than the status does."""
        if self._heeds(LinkInput.CONNECT_FAILED):
            self._fail(status, sentence, now)
            self._go_on(now)

    def establish_seen(self, now: Instant) -> None:
        """The peer has answered the first packet and takes the session."""
        if self._heeds(LinkInput.ESTABLISH_SEEN):
            self._record(ConnectionStatus.ESTABLISH_PACKET_RECEIVED, now)
            self._enter(LinkState.OPENING, OutgoingQueueState.WAITING, now)

    def opened(self, now: Instant) -> None:
        """The session is open."""
        if self._heeds(LinkInput.OPENED):
            self._record(ConnectionStatus.ESTABLISHED, now)
            self.last_problem = ""
            self._may_ping = False
            self._enter(LinkState.OPEN, OutgoingQueueState.CONNECTED, now)

    def closed(
        self, status: ConnectionStatus, sentence: str, now: Instant, *, wanted: bool
    ) -> None:
        """The session has ended, at whatever stage; `sentence` says why. [MQQB 3.1.5.9]"""
        if not self._heeds(LinkInput.CLOSED):
            return
        self._wanted = wanted
        if self.state is not LinkState.OPEN or status.is_failure:
            self._fail(status, sentence, now)
        self._state_at_rest = OutgoingQueueState.DISCONNECTED
        self._go_on(now)

    def retry_now(self, now: Instant) -> None:
        """Somebody does not want to wait for the next round."""
        self._rests_until_ms = 0
        if self._heeds(LinkInput.RETRY_NOW):
            self._begin_round(now, may_ping=False)

    def wake(self, now: Instant) -> None:
        """Time has passed. [MQQB 3.1.6.1]"""
        due_ms = self.next_wake_ms
        if self._heeds(LinkInput.WAKE) and due_ms is not None and now.ticks_ms >= due_ms:
            self._begin_round(now, may_ping=False)

    def reroute(self, hops: tuple[Hop, ...]) -> None:
        """Try these hops from the next round on."""
        if hops != self.hops:
            self._rests_until_ms = 0
        self.hops = hops

    # State and outputs.

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do; an answer that is awaited needs no waking."""
        return self.retry_at_ms

    @property
    def history(self) -> tuple[ConnectionEvent, ...]:
        """How the last attempts went, newest last. [MQDMPR 3.1.1.3]"""
        return tuple(self._history)

    @property
    def next_hops(self) -> tuple[str, ...]:
        """The address in use, or those found so far, as management shows them. [MQMQ 2.3.12.12]"""
        if self.state is LinkState.OPEN:
            return (next_hop_text(self.address),)
        return tuple(map(next_hop_text, self._addresses_found))

    def take_outputs(self) -> list[LinkOutput]:
        """Return what happened since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def _heeds(self, given: LinkInput) -> bool:
        return (self.state, given) in TRANSITIONS

    # A round: hops, addresses, attempts.

    def _begin_round(self, now: Instant, *, may_ping: bool) -> None:
        self._may_ping = may_ping
        self._state_at_rest = OutgoingQueueState.INACTIVE
        self._hops_left = deque(self.hops)
        self._addresses_left.clear()
        self._addresses_found.clear()
        self.address = ""
        if not self.hops:
            problem = f"no route to {self.name} is known"
            self._fail(ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, problem, now)
        self._try_next(now)

    def _go_on(self, now: Instant) -> None:
        """After an attempt that led to nothing, or a session that has ended."""
        if self._wanted:
            self._try_next(now)
        elif self._state_at_rest is OutgoingQueueState.DISCONNECTED:
            self._rest(OutgoingQueueState.DISCONNECTED, now)
        else:
            self._rest(OutgoingQueueState.INACTIVE, now)

    def _try_next(self, now: Instant) -> None:
        """Try the next address; when there is none left, wait."""
        while not self._addresses_left:
            if not self._hops_left:
                self._wait(now)
                return
            self._hop = self._hops_left.popleft()
            self.address = ""
            addresses = self._known_addresses(self._hop.host)
            if addresses is None:
                self._enter(LinkState.RESOLVING, OutgoingQueueState.WAITING, now)
                self._outputs.append(ResolveHost(self._hop.host))
                return
            self._take_addresses(addresses, now)
        self.address = self._addresses_left.popleft()
        if self._may_ping:
            self._enter(LinkState.PINGING, OutgoingQueueState.WAITING, now)
            self._outputs.append(AskPing(self.address))
        else:
            self._open_session(now, pinged=False)

    def _open_session(self, now: Instant, *, pinged: bool) -> None:
        # Who is reached by a direct name is not known beforehand (C-18, C-23).
        manager = NIL_GUID if self.direct else self._hop.manager
        self._enter(LinkState.CONNECTING, OutgoingQueueState.WAITING, now)
        self._outputs.append(OpenSession(self.address, manager, pinged))

    def _known_addresses(self, host: str) -> tuple[str, ...] | None:
        """What need not be looked up: an address itself, or a host of the configuration."""
        if (address := canonical_ip_address(host)) is not None:
            return (address,)
        wanted = fold(host)
        hosts = self._config.hosts.items()
        return next((addresses for name, addresses in hosts if fold(name) == wanted), None)

    def _take_addresses(self, addresses: tuple[str, ...], now: Instant) -> None:
        usable = list(dict.fromkeys(addresses))[:ADDRESSES_MAX_COUNT]
        if not usable:
            problem = f"the address of {self._hop.host} could not be found"
            self._fail(ConnectionStatus.DNS_FAILURE, problem, now)
        self._addresses_left.extend(usable)
        self._addresses_found.extend(usable)

    def _wait(self, now: Instant) -> None:
        self._enter(LinkState.WAITING, self._state_at_rest, now)
        self.retry_at_ms = self._rests_until_ms = now.ticks_ms + self._config.retry_ms

    def _rest(self, queue_state: OutgoingQueueState, now: Instant) -> None:
        self._addresses_left.clear()
        self._addresses_found.clear()
        self._hops_left.clear()
        self.address = ""
        self._enter(LinkState.IDLE, queue_state, now)

    def _enter(self, state: LinkState, queue_state: OutgoingQueueState, now: Instant) -> None:
        self.queue_state = queue_state
        self.since_ms = now.ticks_ms
        self.retry_at_ms = None
        if state is not self.state:
            self.state = state
            self._outputs.append(LinkChanged(state))

    # History.

    def _record(self, status: ConnectionStatus, now: Instant) -> None:
        error = _ERROR_CODES.get(status, MsmqError.code) if status.is_failure else 0
        addresses = (self.address,) if self.address else ()
        self._history.append(ConnectionEvent(status, now.unix_s, error, addresses))

    def _fail(self, status: ConnectionStatus, sentence: str, now: Instant) -> None:
        if not status.is_failure:
            status = ConnectionStatus.UNKNOWN_FAILURE
        self._record(status, now)
        self.last_problem = self._problem(status, sentence)
        unresolved = (ConnectionStatus.DNS_FAILURE, ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE)
        self._state_at_rest = (
            OutgoingQueueState.NEED_VALIDATION
            if status in unresolved
            else OutgoingQueueState.WAITING
        )

    def _problem(self, status: ConnectionStatus, sentence: str) -> str:
        host = self._hop.host
        place = host if self.address in ("", host) else f"{host} ({self.address})"
        if not sentence:
            return _PROBLEMS.get(status, "the connection to {} failed").format(place)
        plain = sentence.strip().rstrip(".")
        return f"{place}: {plain}" if self.address else plain

"""Finding a directory server by asking everybody on the networks around. [MQSD 3.1]

One network is asked after the other, with one identifier for the whole search. An answer of the
own site is the best there is, and the next network is asked at once. After an answer of another
site an own one may still come, so the wait begins again; a second one ends it.

What the specification keeps of a network is forgotten when the next one is asked. Here the best
answer of all networks is kept (C-112), so an answer of the own site is never lost to a later one
(C-113). On a network, an answer of another site is waited over only while no server of the own
site is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import DISCOVERY_ANSWER_S
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery
from openmsmq.wire.errors import DecodeError

ANSWER_MAX_BYTES: Final = 8_192
"""An answer; a longer one is neither sent nor read."""

SEARCHED_NETWORKS_MAX_COUNT: Final = 32
"""Networks that are asked in one search; a computer's further ones are not."""


class Network(msgspec.Struct, frozen=True):
    """A network that this computer is on."""

    address: str
    """Our own address there."""
    broadcast: str
    """The address of everybody there."""
    remote_access: bool = False
    """Whether it is dialled, so that other computers may be behind it each time."""


class Broadcast(msgspec.Struct, frozen=True):
    """Send a datagram to everybody on a network, and listen there for answers."""

    network: int
    """Its index among the networks of the search."""
    data: bytes


class DirectoryFound(msgspec.Struct, frozen=True):
    """A search is over: a directory server is there."""

    address: str
    """The server that gave the best answer."""
    network: Network
    """The network by which it came."""
    networks: tuple[Guid, ...]
    """The connected networks of that server, which are now ours. [MQSD 3.1.7.2]"""
    site: Guid | None = None
    """Its site; None when that is our own one."""
    servers: tuple[str, ...] = ()
    """The directory servers of its site, by computer name. [MQSD 3.1.7.1]

    A server of our own site names none: what we know of our site's servers stays true (C-113).
    """

    @property
    def same_site(self) -> bool:
        """Whether a server of our own site answered."""
        return self.site is None


class DirectoryNotFound(msgspec.Struct, frozen=True):
    """A search is over: nobody answered on any network."""


DiscoveryOutput: TypeAlias = Broadcast | DirectoryFound | DirectoryNotFound


class DiscoveryClient:
    """Searches for directory servers, again when asked again. [MQSD 3.1]

    The driver draws the identifiers of requests, sends each `Broadcast`, hands in what comes back,
    and calls `wake` at `next_wake_ms`. A search ends with `DirectoryFound` or `DirectoryNotFound`.
    """

    def __init__(
        self, enterprise: Guid, site: Guid, *, wait_ms: int = DISCOVERY_ANSWER_S * 1_000
    ) -> None:
        self._enterprise = enterprise
        self._site = site
        self._wait_ms = wait_ms
        self._last: DirectoryFound | None = None
        self._last_network: Network | None = None
        self._networks: tuple[Network, ...] = ()
        self._request_id = NIL_GUID
        # The first network is number 1 (C-114); none is asked outside a search.
        self._number = 0
        self._due_ms: int | None = None
        self._best: DirectoryFound | None = None
        self._other_site_heard = False
        self._outputs: list[DiscoveryOutput] = []

    @property
    def is_searching(self) -> bool:
        """Whether a search is under way."""
        return self._due_ms is not None

    @property
    def last_network(self) -> Network | None:
        """The network of the last answer, unless a later search was in vain. [MQSD 3.1.1.2]"""
        return self._last_network

    @property
    def next_wake_ms(self) -> int | None:
        """When the wait for answers on the current network is over."""
        return self._due_ms

    def take_outputs(self) -> list[DiscoveryOutput]:
        """Return what is to be done since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def start(
        self, networks: Sequence[Network], request_id: Guid, now: Instant, *, force: bool = False
    ) -> None:
        """Search for a directory server. [MQSD 3.1.4.1]

        What was found before is found again without asking, except over dialled networks and when
        `force` says so (C-118).
        """
        assert not self.is_searching, "one search at a time"
        dialled = any(network.remote_access for network in networks)
        if self._last is not None and not dialled and not force:
            self._outputs.append(self._last)
            return
        self._networks = tuple(networks[:SEARCHED_NETWORKS_MAX_COUNT])
        self._request_id = request_id
        self._number = 0
        self._best = None
        self._ask_next(now)

    def received(self, network: int, address: str, data: bytes, now: Instant) -> None:
        """Take a datagram that came back on a network. [MQSD 3.1.5.2]

        What is no answer to this search, or comes when the network is not asked any more, is
        ignored.
        """
        self.wake(now)
        if not self._is_current(network):
            return
        answer = self._read(data)
        if answer is None:
            return
        self._last_network = self._networks[network]
        self._consider(answer, address)
        assert self._best is not None
        if self._best.same_site or self._other_site_heard:
            self._ask_next(now)
        else:
            self._other_site_heard = True
            self._due_ms = now.ticks_ms + self._wait_ms

    def not_sent(self, network: int, now: Instant) -> None:
        """The system did not send the broadcast: nobody on that network will answer."""
        if self._is_current(network):
            self._ask_next(now)

    def give_up(self) -> None:
        """End a search without a result; what was found before stays known."""
        self._due_ms = None
        self._outputs.clear()

    def wake(self, now: Instant) -> None:
        """Go on to the next network if the wait is over. [MQSD 3.1.6.1]"""
        if self._due_ms is not None and self._due_ms <= now.ticks_ms:
            self._ask_next(now)

    def _is_current(self, network: int) -> bool:
        return self.is_searching and network == self._number - 1

    def _read(self, data: bytes) -> DirectoryAnswer | None:
        if len(data) > ANSWER_MAX_BYTES:
            return None
        try:
            answer = DirectoryAnswer.decode(data)
        except DecodeError:
            return None
        return answer if answer.request_id == self._request_id else None

    def _consider(self, answer: DirectoryAnswer, address: str) -> None:
        """Keep an answer if it is the first, or the first of the own site (C-112)."""
        if self._best is None or (answer.same_site and not self._best.same_site):
            self._best = DirectoryFound(
                address,
                self._networks[self._number - 1],
                answer.networks,
                answer.site,
                tuple(server.name for server in answer.servers),
            )

    def _ask_next(self, now: Instant) -> None:
        """Ask on the next network, or end the search behind the last one. [MQSD 3.1.5.1]"""
        if self._number == len(self._networks):
            self._finish()
            return
        self._number += 1
        self._other_site_heard = False
        self._due_ms = now.ticks_ms + self._wait_ms
        query = DirectoryQuery(self._enterprise, self._request_id, self._site)
        self._outputs.append(Broadcast(self._number - 1, query.encode()))

    def _finish(self) -> None:
        self._due_ms = None
        self._last = self._best
        if self._best is None:
            self._last_network = None
        self._outputs.append(self._best or DirectoryNotFound())

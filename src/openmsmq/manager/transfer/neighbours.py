"""Neighbours: the computers that messages go to, and the sessions that lead there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.open_sessions import OpenSessions
from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.peers.peering import Neighbour, Peer, Word
from openmsmq.manager.queues.return_queues import sender_of
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import LINKS_MAX_COUNT
from openmsmq.model.names import DirectFormatName, FormatName
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.model.peers import canonical_address
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.link import Hop, Link
from openmsmq.storage.records import FACTS_BYTES
from openmsmq.wire.message_bytes import hop_count

_LOOK_COUNT: Final = 64
"""Messages at the front of a queue of which the hops are looked at. [ours]"""

_LOOK_BYTES: Final = 256 * 1024
"""How many bytes of a queue are read for that. [ours]"""


class Doubt:
    """A queue with messages that have gone round, until the directory has been asked."""

    __slots__ = ("cleared", "is_settled", "question")

    def __init__(self, question: int) -> None:
        self.question = question
        """The question to the directory whose answer is awaited."""
        self.is_settled = False
        self.cleared: frozenset[int] = frozenset()
        """The messages that may go on, by lookup identifier."""

    def settle(self, cleared: frozenset[int]) -> None:
        """Let messages go on: the directory has answered."""
        self.is_settled, self.cleared = True, cleared


class Neighbours:
    """All links, and which session leads to which queue."""

    def __init__(
        self,
        config: TransferConfig,
        ways: KnownWays,
        identities: Identities,
        sessions: OpenSessions,
    ) -> None:
        self._sessions = sessions
        self._config = config
        self._ways = ways
        self._copy = ways.copy
        self._identities = identities
        self._by_key: dict[str, Neighbour] = {}
        self._doubts: dict[OutgoingQueue, Doubt] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def opened(self, peer: Peer) -> None:
        """Note an open session."""
        self._sessions.opened(peer)
        if peer.link is not None:
            peer.link.answered(peer.remote)

    def closed(self, peer: Peer) -> None:
        """Forget a session."""
        self._sessions.closed(peer)

    def claimed_place(self, peer: Peer, now: Instant) -> str:
        """Return where a peer is if nobody but himself vouches for him; empty otherwise.

        Who is known elsewhere is not known here: what he gets makes no claim.
        """
        is_own = self._identities.word(peer, peer.remote, now) is Word.OWN
        return peer.place if is_own else ""

    def behind(self, peer: Peer, now: Instant) -> list[Neighbour]:
        """Return the neighbours a session leads to: who opened one can be reached through it."""
        remote = peer.remote
        found = [peer.link]
        listener = self._by_key.get(fold(peer.engine.address))
        if listener is not None and self._is_listener(peer, listener.reached, now):
            found.append(listener)
        if remote != NIL_GUID:
            found += [
                each
                for each in self._by_key.values()
                if (each.key == str(remote) or each.first_manager == remote)
                and self._is_believed(peer, () if each.is_return else each.engine.hops, now)
            ]
        return list(dict.fromkeys(neighbour for neighbour in found if neighbour is not None))

    def _is_listener(self, peer: Peer, reached: Guid, now: Instant) -> bool:
        """Whether at the other end of a session is who listens at its address.

        That is who answers where we call; or who calls from there, if he was reached there, or if
        configuration or directory say that he is there.
        """
        if peer.is_dialled:
            return True
        word = self._identities.word(peer, peer.remote, now)
        return word is Word.SURE or (word is Word.OWN and peer.remote == reached)

    def open_to(self, outgoing: OutgoingQueue, now: Instant) -> Peer | None:
        """Find any open session that leads to a queue: it may be one that others opened."""
        name = outgoing.name
        if isinstance(name, DirectFormatName) and sender_of(name) is not None:
            return self._open_back(name, now)
        if isinstance(name, DirectFormatName):
            neighbour = self._by_key.get(outgoing.neighbour)
            reached = outgoing.reached if neighbour is None else neighbour.reached
            address = canonical_address(canonical_ip_address(name.host) or "")
            sessions = self._sessions.at(address)
            leading = (peer for peer in sessions if self._is_listener(peer, reached, now))
            return next(leading, None)
        owner = self._owner_of(outgoing)
        if owner is None:
            return None
        return self._open_towards(owner, self._ways.hops_towards(owner), now)

    def _open_back(self, name: DirectFormatName, now: Instant) -> Peer | None:
        """Find a session with the sender at an address, for whom a return queue is."""
        sender = sender_of(name)
        assert sender is not None
        address = canonical_address(canonical_ip_address(name.host) or name.host)
        for peer in self._sessions.with_manager(sender):
            word = self._identities.word(peer, sender, now)
            if word is Word.SURE or (word is Word.OWN and peer.engine.address == address):
                return peer
        return None

    def kept(self, outgoing: OutgoingQueue, peers: Mapping[int, Peer]) -> Peer | None:
        """Return the session that a queue uses; it leaves one that has become the wrong way.

        What is under way there stays, and comes back if that session ends.
        """
        if outgoing.session is None:
            return None
        peer = peers[outgoing.session]
        leads_on = not outgoing.is_rerouted or self._leads_on(outgoing, peer)
        if not leads_on or self._is_in_doubt(outgoing):
            peer.queues.pop(outgoing, None)
            peer.waiting.pop(outgoing, None)
            outgoing.leave()
            return None
        return peer

    def _is_in_doubt(self, outgoing: OutgoingQueue) -> bool:
        """Whether a queue waits for the directory, because messages in it have gone round.

        When the directory changes, one gate knows it before the other, and both may take the other
        for the way. Messages between them would use up their hops and be lost. So who sees a
        message that has made more hops than any way has asks the directory before it goes on: of
        all on its way, those whose copies are behind come up to date.
        """
        if isinstance(outgoing.name, DirectFormatName) or not self._ways.may_be_behind:
            return False
        bound = self._ways.hops_expected_max
        circling = frozenset(
            lookup_id
            for lookup_id, value in outgoing.queue.front(_LOOK_COUNT, _LOOK_BYTES)
            if hop_count(value, FACTS_BYTES) >= bound
        )
        if not circling:
            self._doubts.pop(outgoing, None)
            return False
        doubt = self._doubts.get(outgoing)
        if doubt is None or (doubt.is_settled and not circling <= doubt.cleared):
            doubt = self._doubts[outgoing] = Doubt(self._ways.doubt())
        if not doubt.is_settled and self._ways.is_answered(doubt.question):
            doubt.settle(circling)
        return not doubt.is_settled

    def _leads_on(self, outgoing: OutgoingQueue, peer: Peer) -> bool:
        """Whether a session leads to the owner of a queue, or to the first on the way to it.

        That is asked once, after the directory has changed.
        """
        outgoing.trust_way()
        owner = self._owner_of(outgoing)
        if isinstance(outgoing.name, DirectFormatName) or owner is None:
            return True
        hops = self._ways.hops_towards(owner)
        first = hops[0].manager if hops else owner
        return first == NIL_GUID or peer.engine.remote in (first, owner)

    def _owner_of(self, outgoing: OutgoingQueue) -> Guid | None:
        """Return the queue manager of a queue, by the directory or else by its messages."""
        return self._ways.owner_of(outgoing.name) or outgoing.owner_by_messages

    def _open_towards(self, manager: Guid, hops: tuple[Hop, ...], now: Instant) -> Peer | None:
        """Find a session with a queue manager, or with the first that takes messages for it.

        Others that would take them are used only if a link has tried the first in vain: the way
        over them is a dearer one.
        """
        first = hops[0].manager if hops else NIL_GUID
        # Hops of the configuration are hosts, whoever answers there.
        sessions = self._sessions.with_manager(manager if first == NIL_GUID else first)
        believed = (peer for peer in sessions if self._is_believed(peer, hops, now))
        return next(believed, None)

    def _is_believed(self, peer: Peer, hops: tuple[Hop, ...], now: Instant) -> bool:
        """Whether the other end of a session is who it says it is, the first of these hops.

        If it is known where a queue manager is, only a session with one of these computers counts.
        """
        word = self._identities.word(peer, peer.remote, now)
        return word is Word.SURE or (word is Word.OWN and not hops)

    def has_way(self, name: FormatName, manager: Guid, now: Instant) -> bool:
        """Whether it is known how to reach a queue of a queue manager, now or later.

        One that the directory knows is worth waiting for: links come and go.
        """
        if isinstance(name, DirectFormatName):
            return True
        owner = self._ways.owner_of(name) or manager
        return (
            owner in self._copy.image.managers
            or bool(self._ways.hops_towards(owner))
            or self._open_towards(owner, (), now) is not None
        )

    def has_other_way(self, outgoing: OutgoingQueue) -> bool:
        """Whether the way to a queue is another than when it was last tried, or is sure now."""
        if outgoing.is_http:
            return False
        doubt = self._doubts.get(outgoing)
        if doubt is not None and not doubt.is_settled and self._ways.is_answered(doubt.question):
            return True
        key, _, hops = self._way_of(outgoing)
        neighbour = self._by_key.get(outgoing.neighbour)
        return neighbour is None or neighbour.key != key or neighbour.engine.hops != hops

    def of(self, outgoing: OutgoingQueue, *, create: bool) -> Neighbour | None:
        """Find the neighbour for a queue. The way to it may be another than the last time.

        With `create` the queue has something to send; there is none while its way is in doubt.
        """
        if outgoing.is_http or (create and self._is_in_doubt(outgoing)):
            return None
        key, shown, hops = self._way_of(outgoing)
        if outgoing.neighbour not in ("", key):
            self.forget(outgoing)
        neighbour = self._by_key.get(key)
        if neighbour is None and create and len(self._by_key) >= LINKS_MAX_COUNT:
            self._prune()
        if neighbour is None and create and len(self._by_key) < LINKS_MAX_COUNT:
            is_return = sender_of(outgoing.name) is not None
            direct = isinstance(outgoing.name, DirectFormatName) and not is_return
            link = Link(shown, hops, self._config, direct=direct)
            neighbour = Neighbour(key, link, outgoing.reached, is_return=is_return)
            self._by_key[key] = neighbour
        if neighbour is not None:
            outgoing.see_behind(key)
            neighbour.engine.reroute(hops)
        return neighbour

    def _way_of(self, outgoing: OutgoingQueue) -> tuple[str, str, tuple[Hop, ...]]:
        """Return the key of a neighbour, what people call it, and the hosts that lead there.

        Queues with the same hops share one neighbour, wherever they are behind it.
        """
        name = outgoing.name
        if isinstance(name, DirectFormatName):
            sender = sender_of(name)
            if sender is not None:
                return f"{sender} at {fold(name.host)}", name.host, (Hop(name.host, sender),)
            return fold(name.host), name.host, self._ways.hops_to_host(name.host)
        owner = self._owner_of(outgoing)
        if owner is None:
            return fold(str(name)), str(name), ()
        hops = self._ways.hops_towards(owner)
        shown = f"queue manager {owner}"
        if hops and hops[0].manager not in (NIL_GUID, owner):
            shown = hops[0].host
        elif all(hop.manager in (NIL_GUID, owner) for hop in hops):
            return str(owner), shown, hops
        return " ".join(f"{hop.manager}@{hop.host}" for hop in hops), shown, hops

    def forget(self, outgoing: OutgoingQueue) -> None:
        """A queue is gone, or goes another way, and with the last one its neighbour."""
        if not outgoing.queue.count:
            self._doubts.pop(outgoing, None)
        neighbour = self._by_key.get(outgoing.neighbour)
        outgoing.see_behind("")
        if neighbour is not None:
            neighbour.queues.pop(outgoing, None)
            if neighbour.is_unneeded:
                del self._by_key[neighbour.key]

    def _prune(self) -> None:
        """Drop the links that were still busy when their last queue went."""
        self._by_key = {
            key: neighbour for key, neighbour in self._by_key.items() if not neighbour.is_unneeded
        }

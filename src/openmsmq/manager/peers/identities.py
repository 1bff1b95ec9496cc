"""Identities: who is let in, and what the names are worth that a peer uses.

A session has an address and perhaps a certificate; whose it is, and whose packets it brings, are
words. Rules of `[peers]`, the directory and `[next_hops]` say where somebody is; where they are
silent, the first flow under a name does (`claims`). What is found out is kept with the session, so
it is not asked for each message.
"""

from __future__ import annotations

from typing import Any, Final

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.former_ways import FormerWays
from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.peers.peering import Peer, Word
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import HOST_ASKED_MS, PEER_NAMES_MAX_COUNT
from openmsmq.model.names import DirectFormatName
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.model.peers import PeerBook, Refusal, canonical_address

_LASTING: Final = (Word.SURE, Word.OWN)
"""What is so until directory, configuration or claims change."""


class Identities:
    """Judges those who connect or answer, and what they say."""

    def __init__(
        self, base: Foundation, claims: Claims, ways: KnownWays, former: FormerWays
    ) -> None:
        config = base.config
        self._config = config.transfer
        self._book = PeerBook(config.transfer.peers)
        self._claims = claims
        self.ways = ways
        self._former = former
        self._copy = ways.copy
        self._own = base.counters.identifier
        self._notices = base.notices
        self._own_addresses = frozenset(map(canonical_address, config.addresses))
        self._hosts = {
            fold(name): frozenset(map(canonical_address, addresses))
            for name, addresses in config.transfer.hosts.items()
        }
        self._found: dict[str, frozenset[str]] = {}
        """Addresses of hosts that configuration or directory name, once they were looked up."""
        self._asked_ms: dict[str, int] = {}
        self.wanted: dict[str, None] = {}
        """Hosts to be looked up."""
        self._image: DirectoryImage | None = None
        self._changes = 0

    # Who is let in.

    def refuses_address(self, address: str, proven: str) -> bool:
        """Whether a rule refuses all who come from an address."""
        return self._book.judge_address(address, proven) is not None

    def lets_connect(self, address: str, proven: str) -> bool:
        """Whether somebody may say who he is."""
        refusal = self._book.judge_address(address, proven)
        if refusal is not None:
            self._tell(refusal, address)
        return refusal is None

    def admits(self, peer: Peer, claimed: Guid, now: Instant) -> bool:
        """Whether somebody may be who he says he is.

        Who answers where we have called is let in unless a rule is against it: what we send to
        that address he gets in any case. But his words count for nothing if he is known elsewhere.
        """
        judgement = self._book.judge(claimed, peer.engine.address, peer.proven)
        peer.judged_by(judgement.rule)
        refusal = judgement.refusal
        if refusal is None and claimed != NIL_GUID:
            known = self._known_elsewhere(peer, claimed, now)
            if known is not None:
                self._tell(known[0], peer.engine.address, claimed, known[1])
                return peer.is_dialled
        if refusal is not None:
            self._tell(refusal, peer.engine.address, claimed)
        return refusal is None

    def _tell(
        self, refusal: Refusal, address: str, claimed: Guid = NIL_GUID, known: str = ""
    ) -> None:
        facts: dict[str, Any] = {"peer": address, "advice": refusal.advice}
        if claimed != NIL_GUID:
            facts["claimed"] = str(claimed)
        if known:
            facts["known"] = known
        self._notices.note(NoticeKind.IDENTITY_REFUSED, refusal.word, **facts)

    def _known_elsewhere(
        self, peer: Peer, claimed: Guid, now: Instant
    ) -> tuple[Refusal, str] | None:
        """Return why somebody cannot be who he says he is, and where that one is."""
        if self._is_placed(peer, claimed):
            return None
        if claimed == self._own:
            return Refusal.OWN, ""
        info = self._copy.image.managers.get(claimed)
        if info is not None and info.addresses:
            return Refusal.ELSEWHERE, ", ".join(info.addresses)
        place = self._claims.place_of(claimed)
        if place is None or self._is_same(place, peer.place) or self._claims.is_free(claimed, now):
            return None
        return Refusal.ELSEWHERE, place

    def _is_placed(self, peer: Peer, claimed: Guid) -> bool:
        """Whether configuration, directory or certificate put somebody where this peer is."""
        address = peer.engine.address
        if self._book.judge(claimed, address, peer.proven).is_pinned:
            return True
        if claimed == self._own:
            return address in self._own_addresses
        if any(address in self._addresses_of(host) for host in self._next_hops(claimed)):
            return True
        info = self._copy.image.managers.get(claimed)
        if info is None:
            return False
        if info.addresses:
            return address in map(canonical_address, info.addresses)
        return peer.expected == claimed or address in self._addresses_of(
            info.qualified_computer_name or info.computer_name
        )

    def _next_hops(self, manager: Guid) -> tuple[str, ...]:
        return self._config.next_hops.get(str(manager), ()) if self._config.next_hops else ()

    def _is_same(self, place: str, other: str) -> bool:
        """Whether two places are one, or addresses of one host of the configuration."""
        return place == other or any(
            place in addresses and other in addresses for addresses in self._hosts.values()
        )

    # Host names.

    def resolved(self, host: str, addresses: tuple[str, ...]) -> None:
        """The addresses of a host are known."""
        name = fold(host)
        found = frozenset(map(canonical_address, addresses))
        if name in self._asked_ms and found and self._found.get(name) != found:
            self._found[name] = found
            self._changes += 1

    def take_wanted(self, now: Instant) -> list[str]:
        """Return the hosts to look up now; none is asked for again within a minute."""
        wanted, self.wanted = self.wanted, {}
        hosts: list[str] = []
        for host in wanted:
            asked_ms = self._asked_ms.get(fold(host))
            if asked_ms is None or now.ticks_ms - asked_ms >= HOST_ASKED_MS:
                self._asked_ms[fold(host)] = now.ticks_ms
                hosts.append(host)
        return hosts

    def _addresses_of(self, host: str) -> frozenset[str]:
        address = canonical_ip_address(host)
        if address is not None:
            return frozenset((canonical_address(address),))
        name = fold(host)
        if name in self._hosts:
            return self._hosts[name]
        self.wanted[host] = None
        return self._found.get(name, frozenset())

    # What names are worth.

    def word(self, peer: Peer, name: bytes, now: Instant) -> Word:
        """Return what the name of a queue manager is worth in the mouth of a peer."""
        if self._copy.image is not self._image:
            self._image = self._copy.image
            self._changes += 1
        version = self._changes + self._claims.version
        if peer.words_version != version or len(peer.words) >= PEER_NAMES_MAX_COUNT:
            peer.forget_words(version)
        word = peer.words.get(name)
        if word is None:
            word = self._word(peer, Guid(name), now)
            if word in _LASTING:
                # What is foreign now may be its own after a silence.
                peer.words[name] = word
        return word

    def _word(self, peer: Peer, name: Guid, now: Instant) -> Word:
        if name == NIL_GUID:
            return Word.FOREIGN
        if name == peer.remote:
            if self._is_placed(peer, name):
                return Word.SURE
            return Word.FOREIGN if self._known_elsewhere(peer, name, now) else Word.OWN
        is_configured = self._brings_by_configuration(peer, name)
        if not is_configured and not self._brings_by_directory(peer, name, now):
            return Word.FOREIGN
        if name == self._own:
            # What we have sent ourselves we know, and nobody needs to vouch for us here.
            return Word.BROUGHT
        if is_configured:
            return Word.SURE
        # A routing server passes on what strangers say of themselves. Who is in the directory, it
        # knows; of another it believes any name that is nobody's there, and he may be known here.
        is_outsider = name not in self._copy.image.managers
        return Word.BROUGHT if is_outsider and self._is_elsewhere(peer, name, now) else Word.SURE

    def _is_elsewhere(self, peer: Peer, name: Guid, now: Instant) -> bool:
        """Whether a rule or a flow of his own say that somebody is not where a peer is."""
        return self._book.pins(name) or self._known_elsewhere(peer, name, now) is not None

    def _brings_by_configuration(self, peer: Peer, source: Guid) -> bool:
        """Whether a peer is a way from somebody because an operator says so."""
        rule = peer.rule
        if rule is not None and rule.routes and (rule.addresses or rule.name == peer.proven):
            return True
        address = peer.engine.address
        return any(address in self._addresses_of(host) for host in self._next_hops(source))

    def _brings_by_directory(self, peer: Peer, source: Guid, now: Instant) -> bool:
        """Whether the directory has a peer as a way from somebody, or had it not long ago."""
        managers = self._copy.image.managers
        info = managers.get(peer.remote)
        if info is None or not self._is_placed(peer, peer.remote):
            return False
        own, other = managers.get(self._own), managers.get(source)
        return (
            info.routing_server
            or (own is not None and peer.remote in own.in_routing_servers)
            or (other is not None and peer.remote in other.out_routing_servers)
            or self.ways.routes.enterprise.is_site_gate(peer.remote)
            or self._former.has(peer.remote, now)
        )

    def is_settled(self, name: Guid) -> bool:
        """Whether no flow is needed to know where somebody is: a rule says it, or it is us."""
        return name == self._own or self._book.pins(name)

    def is_outsider_of(self, peer: Peer, source: Guid) -> bool:
        """Whether somebody is not in the directory by which a peer is a way from him.

        Anybody may have invented him, and the way cannot know it.
        """
        return (
            source != peer.remote
            and source not in self._copy.image.managers
            and not self._brings_by_configuration(peer, source)
        )

    def is_of_enterprise(self, peer: Peer, now: Instant) -> bool:
        """Whether a peer says it is a queue manager of the directory, or was a way not long ago.

        Its word has to do: where it is may be what we have not learned yet. It is not believed for
        that, only not yet refused.
        """
        return peer.remote in self._copy.image.managers or self._former.has(peer.remote, now)

    def knows_elsewhere(self, peer: Peer, name: bytes, now: Instant) -> bool:
        """Whether a name that is foreign in the mouth of a peer is somebody else's, known here."""
        source = Guid(name)
        return bool(self._next_hops(source)) or self._is_elsewhere(peer, source, now)

    def disowns(self, peer: Peer, source: Guid, place: str) -> bool:
        """Whether a flow that somebody claimed at a place was never of the one who has this name.

        That is so if configuration or directory say where he is, and he is not there.
        """
        if self._book.judge(source, place, "").is_pinned or self._is_same(place, peer.place):
            return False
        info = self._copy.image.managers.get(source)
        if info is not None and info.addresses:
            return place not in map(canonical_address, info.addresses)
        return source == peer.remote or self._book.pins(source)

    def may_acknowledge(
        self, peer: Peer, source: Guid, outgoing: OutgoingQueue, now: Instant
    ) -> bool:
        """Whether an acknowledgment is of the one to whom a flow goes, or came on the way from it.

        The listener of an address may acknowledge what goes to that address, whoever it says it
        is; so may the one that was last reached there, on whatever session of his. Who is on the
        way from the destination brings words of others, too: theirs do not count.
        """
        if (
            not isinstance(outgoing.name, DirectFormatName)
            and source == (self.ways.owner_of(outgoing.name) or outgoing.owner_by_messages)
            and self.word(peer, source, now) is Word.SURE
        ):
            return True
        if source != peer.remote:
            return source == outgoing.reached and self.word(peer, source, now) is Word.SURE
        if source == outgoing.reached:
            word = self.word(peer, source, now)
            if word is Word.SURE:
                return True
            # A name that is nobody's is everybody's own, and so is one that was silent for long:
            # what was sent before is acknowledged where it was reached.
            place = outgoing.reached_at or self._claims.place_of(source)
            if word is Word.OWN and place is not None and self._is_same(place, peer.place):
                return True
        return isinstance(outgoing.name, DirectFormatName) and leads_directly(peer, outgoing)


def leads_directly(peer: Peer, outgoing: OutgoingQueue) -> bool:
    """Whether a session is one that we have opened to the computer of a direct name."""
    assert isinstance(outgoing.name, DirectFormatName)
    if not peer.is_dialled:
        return False
    address = canonical_ip_address(outgoing.name.host)
    if address is not None:
        return canonical_address(address) == peer.engine.address
    return peer.link is not None and peer.link.key == outgoing.neighbour

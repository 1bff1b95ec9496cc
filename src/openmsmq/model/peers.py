"""What an operator says about other queue managers: who they are, where, and by what they prove it.

A session has an address and, over TLS, a certificate; a packet has only words. These rules say
which words are believed of whom.
"""

from __future__ import annotations

import ipaddress
from enum import Enum
from typing import TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PEER_SILENCE_S

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class PeerRule(msgspec.Struct, frozen=True, kw_only=True):
    """One table `[peers.NAME]` of the configuration."""

    name: str
    identifiers: tuple[Guid, ...] = ()
    """Who it may say it is; empty for anybody who is not pinned elsewhere."""
    addresses: tuple[str, ...] = ()
    """IP addresses and networks it may come from and is reached at; empty for any."""
    certificates: tuple[str, ...] = ()
    """SHA-256 fingerprints of its certificates, in lower-case hexadecimal without colons."""
    certificate_names: tuple[str, ...] = ()
    """Names, one of which a certificate of a trusted authority must have."""
    tls: bool = False
    """Whether sessions with it are over TLS only."""
    routes: bool = False
    """Whether it may bring messages and acknowledgments of other queue managers."""
    refuse: bool = False
    """Whether it is refused whatever it says."""


class PeerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """All rules, and what happens to those whom no rule names."""

    rules: tuple[PeerRule, ...] = ()
    strict: bool = False
    """Whether only those are let in that a rule names."""
    silence_s: int = PEER_SILENCE_S
    """After so long without a word from where it was last, somebody whom no rule and no directory
    places may be somewhere else."""


class Refusal(Enum):
    """Why somebody is not let in, or not believed: the word of the log, and what to do."""

    RULE = "refused-by-rule", "a rule of [peers] refuses it"
    TLS = "not-over-tls", "its rule in [peers] wants TLS and a certificate"
    ELSEWHERE = (
        "known-elsewhere",
        "if it is one computer with several addresses, name it in [peers] with all of them",
    )
    UNNAMED = "not-named", "[peers] is strict and names nobody like that"
    OWN = "own-identifier", "it says that it is this queue manager, and comes from elsewhere"

    def __init__(self, word: str, advice: str) -> None:
        self.word = word
        self.advice = advice


class Judgement(msgspec.Struct, frozen=True):
    """What the rules say about somebody."""

    refusal: Refusal | None = None
    rule: PeerRule | None = None
    """The rule that names it; None if none does."""
    is_pinned: bool = False
    """Whether that rule says both who it is and where, or by what certificate."""


class PeerBook:
    """All rules, ready to be asked."""

    def __init__(self, policy: PeerPolicy) -> None:
        self._strict = policy.strict
        self._rules = [(rule, tuple(map(network_of, rule.addresses))) for rule in policy.rules]

    def judge_address(self, address: str, proven: str) -> Refusal | None:
        """Return why nobody from an address is let in, before anybody has said who it is."""
        fitting = self._fitting(None, address)
        if any(rule.refuse and not rule.identifiers for rule in fitting):
            return Refusal.RULE
        if any(_lets(rule, proven) for rule in fitting):
            return None
        by_address = (rule for rule in fitting if rule.addresses and not rule.identifiers)
        if not proven and any(rule.tls for rule in by_address):
            return Refusal.TLS
        return Refusal.UNNAMED if self._strict else None

    def judge(self, claimed: Guid, address: str, proven: str) -> Judgement:
        """Return whether somebody who says who it is is let in.

        `proven` is the name of the rule whose certificate it has shown.
        """
        fitting = self._fitting(claimed, address)
        if any(rule.refuse for rule in fitting):
            return Judgement(Refusal.RULE)
        letting = [rule for rule in fitting if _lets(rule, proven)]
        naming = [rule for rule in letting if claimed in rule.identifiers]
        if naming or (letting and not self.pins(claimed)):
            rule = (naming or letting)[0]
            is_placed = bool(rule.addresses) or rule.name == proven
            return Judgement(None, rule, is_pinned=bool(naming) and is_placed)
        named = (rule for rule in fitting if rule.addresses or rule.identifiers)
        if not proven and any(rule.tls for rule in named):
            return Judgement(Refusal.TLS)
        if self.pins(claimed):
            return Judgement(Refusal.ELSEWHERE)
        return Judgement(Refusal.UNNAMED if self._strict or proven else None)

    def _fitting(self, claimed: Guid | None, address: str) -> list[PeerRule]:
        """Return the rules for somebody at an address; None may turn out to be anybody."""
        if not self._rules:
            return []
        place = address_of(address)
        return [
            rule
            for rule, networks in self._rules
            if _is_at(place, networks)
            and (not rule.identifiers or claimed is None or claimed in rule.identifiers)
        ]

    def pins(self, claimed: Guid) -> bool:
        """Whether a rule says who somebody is."""
        return any(claimed in rule.identifiers and not rule.refuse for rule, _ in self._rules)


def canonical_address(text: str) -> str:
    """Return the one text of an address; what is none stays as it is."""
    return str(address_of(text) or text)


def _lets(rule: PeerRule, proven: str) -> bool:
    """Whether a rule that fits lets somebody in, by certificate or else by address."""
    if rule.refuse:
        return False
    if proven:
        return rule.name == proven
    by_certificate = bool(rule.certificates or rule.certificate_names)
    return not rule.tls and (bool(rule.addresses) or not by_certificate)


def _is_at(place: Address | None, networks: tuple[Network, ...]) -> bool:
    return not networks or (place is not None and any(place in network for network in networks))


def address_of(text: str) -> Address | None:
    """Read an address; None for a text that is none.

    IPv4 within IPv6 is the IPv4 address it stands for.
    """
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def network_of(text: str) -> Network:
    """Read an address or network of a rule."""
    base, slash, bits = text.partition("/")
    return ipaddress.ip_network(canonical_address(base) + slash + bits, strict=False)

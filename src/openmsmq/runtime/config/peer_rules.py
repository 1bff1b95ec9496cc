"""Which rule about peers an address belongs to, and whether a session with it is over TLS.

Of several rules those count whose address or network is the narrowest: so one host of a network may
have a rule of its own.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.peers import Network, PeerPolicy, PeerRule, address_of, network_of


class PeerRules:
    """The rules of a policy by address."""

    def __init__(self, policy: PeerPolicy) -> None:
        self.all: Final = policy.rules
        self._networks = [(network_of(text), rule) for rule in self.all for text in rule.addresses]

    @property
    def need_tls(self) -> tuple[PeerRule, ...]:
        """Those with whom sessions are over TLS only."""
        return tuple(rule for rule in self.all if rule.tls)

    def nearest(self, address: str) -> tuple[PeerRule, ...]:
        """Return the rules that name an address most exactly."""
        named = [(network.prefixlen, rule) for network, rule in self._containing(address)]
        longest = max((length for length, _ in named), default=0)
        return tuple(dict.fromkeys(rule for length, rule in named if length == longest))

    def allows(self, rule: PeerRule, address: str) -> bool:
        """Whether whom a rule names may come from an address."""
        return not rule.addresses or any(each == rule for _, each in self._containing(address))

    def reached_by_tls(self, address: str) -> tuple[PeerRule, ...]:
        """Return the rules of whom may be at an address that is reached over TLS only."""
        return tuple(rule for rule in self.nearest(address) if rule.tls)

    def why_not_plain(self, address: str) -> str:
        """Return why an address may not open a session without TLS; nothing, if it may.

        Behind one address there may be several: if only some of them need TLS, the queue manager
        tells them apart by their identifiers.
        """
        rules = self.nearest(address)
        if not rules or not all(rule.tls for rule in rules):
            return ""
        names = ", ".join(rule.name for rule in rules)
        return f"it came without TLS, and [peers] {names} has tls = true"

    def _containing(self, address: str) -> list[tuple[Network, PeerRule]]:
        place = address_of(address)
        return [named for named in self._networks if place is not None and place in named[0]]

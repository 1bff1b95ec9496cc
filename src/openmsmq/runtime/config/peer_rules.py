"""Which rule about peers an address belongs to, and whether a session with it is over TLS.

Of several rules those count whose address or network is the narrowest: so one host of a network may
have a rule of its own.
"""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.runtime.config.errors import ConfigError

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class PeerRules:
    """The rules of a policy by address."""

    def __init__(self, policy: PeerPolicy) -> None:
        self.all: Final = policy.rules
        self._networks = [
            (_network(text, rule), rule) for rule in self.all for text in rule.addresses
        ]

    @property
    def need_tls(self) -> tuple[PeerRule, ...]:
        """Those with whom sessions are over TLS only."""
        return tuple(rule for rule in self.all if rule.tls)

    def nearest(self, address: str) -> tuple[PeerRule, ...]:
        """Return the rules that name an address most exactly."""
        found = _address(address)
        if found is None:
            return ()
        named = [
            (network.prefixlen, rule)
            for network, rule in self._networks
            if network.version == found.version and found in network
        ]
        longest = max((length for length, _ in named), default=0)
        return tuple(dict.fromkeys(rule for length, rule in named if length == longest))

    def allows(self, rule: PeerRule, address: str) -> bool:
        """Whether whom a rule names may come from an address."""
        return not rule.addresses or rule in self._containing(address)

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

    def _containing(self, address: str) -> list[PeerRule]:
        found = _address(address)
        return [
            rule
            for network, rule in self._networks
            if found is not None and network.version == found.version and found in network
        ]


def _network(text: str, rule: PeerRule) -> _Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigError(
            f"[peers] {rule.name}: {text!r} is neither an IP address nor a network"
        ) from None


def _address(text: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found

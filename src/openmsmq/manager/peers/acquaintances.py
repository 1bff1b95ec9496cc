"""Who is known, and who is a stranger.

A packet may claim anything; what a session is known by are its address and, over TLS, the rule
whose certificate it has shown. Known are those whom the operator or the directory names there, and
those to whom an application of ours sends. All others are strangers, honest or not: they get a
share.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from openmsmq.manager.askers import Asker
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.protocol.config import TransferConfig

if TYPE_CHECKING:
    from openmsmq.manager.directory.known_ways import KnownWays
    from openmsmq.manager.peers.peering import Peer


class Acquaintances:
    """Tells known peers from strangers."""

    def __init__(self, config: TransferConfig, ways: KnownWays) -> None:
        self._ways = ways
        self._copy = ways.copy
        self._named: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for addresses in config.hosts.values():
            self._add(addresses)
        for hosts in config.next_hops.values():
            self._add(hosts)
        for rule in config.peers.rules:
            if not rule.refuse:
                self._add(rule.addresses)
        self._hosts = {fold(host): set(addresses) for host, addresses in config.hosts.items()}

    def _add(self, addresses: tuple[str, ...]) -> None:
        for address in addresses:
            single = canonical_ip_address(address)
            if single is not None:
                self._named.add(single)
                continue
            try:
                self._networks.append(ipaddress.ip_network(address, strict=False))
            except ValueError:
                # A host name: where it leads, `hosts` says or nobody.
                continue

    def asker_of(self, peer: Peer) -> Asker:
        """Return whose word the packets of a session are."""
        address, manager = peer.engine.address, peer.engine.remote
        known = bool(peer.proven) or self._is_named(address) or _is_sent_to(peer)
        info = self._copy.image.managers.get(manager)
        if info is not None:
            at_home = address in info.addresses
            return Asker(address, manager if at_home or known else NIL_GUID, known=known or at_home)
        if not known and self._ways.hops_towards(manager):
            manager = NIL_GUID
        return Asker(address, manager, known=known)

    def _is_named(self, address: str) -> bool:
        if address in self._named:
            return True
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def knows(self, name: FormatName) -> bool:
        """Whether configuration or directory know the computer of a queue."""
        match name:
            case DirectFormatName():
                address = canonical_ip_address(name.host)
                return address is not None and self._is_named(address)
            case PrivateFormatName():
                owner = name.queue_manager
                return owner in self._copy.image.managers or bool(self._ways.hops_towards(owner))
            case _:
                return False

    def leads_back(self, name: FormatName, asker: Asker) -> bool:
        """Whether a queue is on the very computer on whose word something goes there."""
        match name:
            case DirectFormatName():
                address = asker.address
                named = self._hosts.get(fold(name.host), ())
                return address == canonical_ip_address(name.host) or address in named
            case PrivateFormatName():
                owner: Guid | None = name.queue_manager
            case PublicFormatName():
                owner = self._ways.owner_of(name)
            case _:
                return False
        return owner == asker.manager and owner != NIL_GUID


def _is_sent_to(peer: Peer) -> bool:
    """Whether an application of ours sends there; who is only sent reports has asked for them."""
    link = peer.link
    return link is not None and any(not outgoing.queue.guest for outgoing in link.queues)

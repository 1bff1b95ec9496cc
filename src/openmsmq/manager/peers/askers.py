"""On whose word the queue manager acts: its applications', a known peer's or a stranger's.

A packet may claim anything; what a session is known by are its address and, over TLS, the rule
whose certificate it has shown. Known are those whom the operator or the directory names there, and
those to whom an application of ours sends. All others are strangers, honest or not: they get a
share.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import (
    REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES,
    REPORT_BYTES_PER_STRANGER_PER_S,
    REPORTS_PAUSE_MS,
    REPORTS_PER_STRANGER_AT_ONCE_COUNT,
    REPORTS_PER_STRANGER_PER_S,
    STRANGERS_REMEMBERED_MAX_COUNT,
)
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.protocol.config import TransferConfig

if TYPE_CHECKING:
    from openmsmq.manager.directory.ways import Ways
    from openmsmq.manager.peers.peering import Peer
    from openmsmq.model.clock import Instant


class Asker:
    """Who says so, as far as it is known."""

    __slots__ = ("address", "known", "manager")

    def __init__(self, address: str, manager: Guid, *, known: bool) -> None:
        self.address = address
        """Where the session comes from; empty for the queue manager and its applications."""
        self.manager = manager
        """The queue manager at its other end; nil where another one may have that identifier."""
        self.known = known

    @property
    def is_own(self) -> bool:
        """Whether nobody else says so."""
        return not self.address


OURSELVES: Final = Asker("", NIL_GUID, known=True)
"""The word of the queue manager itself, of its applications and of its clock."""


class Acquaintances:
    """Tells known peers from strangers."""

    def __init__(self, config: TransferConfig, ways: Ways) -> None:
        self._ways = ways
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
        """Say whose word the packets of a session are."""
        address, manager = peer.engine.address, peer.engine.remote
        known = bool(peer.proven) or self._is_named(address) or _is_sent_to(peer)
        info = self._ways.image.managers.get(manager)
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
                return owner in self._ways.image.managers or bool(self._ways.hops_towards(owner))
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


class _Allowance:
    """What one stranger may still cause: a number of reports and their bytes, which grow again."""

    __slots__ = ("bytes_left", "count_left", "ticks_ms")

    def __init__(self, ticks_ms: int) -> None:
        self.count_left = float(REPORTS_PER_STRANGER_AT_ONCE_COUNT)
        self.bytes_left = float(REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES)
        self.ticks_ms = ticks_ms

    def take(self, size: int, ticks_ms: int) -> bool:
        passed_s = max(0, ticks_ms - self.ticks_ms) / 1000
        self.ticks_ms = ticks_ms
        self.count_left = min(
            self.count_left + passed_s * REPORTS_PER_STRANGER_PER_S,
            REPORTS_PER_STRANGER_AT_ONCE_COUNT,
        )
        self.bytes_left = min(
            self.bytes_left + passed_s * REPORT_BYTES_PER_STRANGER_PER_S,
            REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES,
        )
        if self.count_left < 1 or self.bytes_left < size:
            return False
        self.count_left -= 1
        self.bytes_left -= size
        return True


class ReportRates:
    """How many reports each stranger may cause to others than himself."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Allowance] = {}
        self._quiet_until_ms: dict[str, int] = {}

    def is_quiet(self, asker: Asker, now: Instant) -> bool:
        """Whether a stranger has just asked for one too many, so that none is even made."""
        due_ms = self._quiet_until_ms.get(asker.address) if self._quiet_until_ms else None
        if due_ms is None:
            return False
        if now.ticks_ms < due_ms:
            return True
        del self._quiet_until_ms[asker.address]
        return False

    def refused(self, asker: Asker, now: Instant) -> None:
        """Note that a stranger has asked for one too many: to make reports costs time."""
        if len(self._quiet_until_ms) >= STRANGERS_REMEMBERED_MAX_COUNT:
            self._quiet_until_ms.clear()
        self._quiet_until_ms[asker.address] = now.ticks_ms + REPORTS_PAUSE_MS

    def take(self, asker: Asker, size: int, now: Instant) -> bool:
        """Count a report on a stranger's word; says whether it may be sent."""
        address = asker.address
        found = self._by_address.get(address)
        if found is None:
            if len(self._by_address) >= STRANGERS_REMEMBERED_MAX_COUNT:
                self._forget_quiet(now.ticks_ms)
            if len(self._by_address) >= STRANGERS_REMEMBERED_MAX_COUNT:
                address = ""
            found = self._by_address.setdefault(address, _Allowance(now.ticks_ms))
        return found.take(size, now.ticks_ms)

    def _forget_quiet(self, ticks_ms: int) -> None:
        """Forget those whose allowance is whole again."""
        whole_ms = 1000 * max(
            REPORTS_PER_STRANGER_AT_ONCE_COUNT // REPORTS_PER_STRANGER_PER_S,
            REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES // REPORT_BYTES_PER_STRANGER_PER_S,
        )
        self._by_address = {
            address: allowance
            for address, allowance in self._by_address.items()
            if ticks_ms - allowance.ticks_ms < whole_ms
        }

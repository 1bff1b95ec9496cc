"""What an operator says about other queue managers: who they are, where, and by what they prove it.

A session has an address and, over TLS, a certificate; a packet has only words. These rules say
which words are believed of whom.
"""

from __future__ import annotations

import msgspec

from openmsmq.model.identity import Guid


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

"""What the security of messages allows: the one place where weak algorithms are let in.

The defaults are safe ones. Everything that Windows still understands, but that is broken or can be
broken, has to be allowed by name.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.model.limits import (
    KEY_CACHE_MS,
    RECEIVE_KEY_CACHE_MAX_COUNT,
    SEND_KEY_CACHE_MAX_COUNT,
)
from openmsmq.model.message import AuthenticationLevel, HashAlgorithm
from openmsmq.wire.keys import SessionAlgorithm

SAFE_HASHES: Final = frozenset({HashAlgorithm.SHA512, HashAlgorithm.SHA256, HashAlgorithm.SHA1})
AES_CIPHERS: Final = (
    SessionAlgorithm.AES_256,
    SessionAlgorithm.AES_128,
    SessionAlgorithm.AES_192,
)
SAFE_CIPHERS: Final = frozenset(AES_CIPHERS)
USUAL_SIGNATURES: Final = frozenset(
    {AuthenticationLevel.SIGNATURE_20, AuthenticationLevel.SIGNATURE_30}
)
"""What Windows signs with today. One of MSMQ 1.0 does not say for which queue it was made, and one
of MSMQ 2.0 can be read as one of 1.0, for another queue and with a shorter body."""

KEY_MIN_BITS: Final = 1024
"""RSA keys as short as those that Windows makes; shorter ones are broken within hours."""

BAD_MESSAGES_PER_KEY_MAX_COUNT: Final = 16
"""So many messages with one session key may fail to decrypt before the key is given up.

Who has caught a message could learn its body by sending it again with changes, some hundred times
for each byte, and watching which changes decrypt. No sender that works needs even one."""


class SecurityPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which algorithms are accepted and used, and how long keys are remembered."""

    hashes: frozenset[HashAlgorithm] = SAFE_HASHES
    """Hashes of signatures; MD2, MD4 and MD5 are forgeable."""
    signatures: frozenset[AuthenticationLevel] = USUAL_SIGNATURES
    """Kinds of signatures beside exact ones. They cover fields one behind the other without
    their lengths: whoever has such a message can move the end of its body into its label."""
    exact_signatures: bool = True
    """Whether exact signatures count; only our own senders make them."""
    ciphers: frozenset[SessionAlgorithm] = SAFE_CIPHERS
    """Ciphers of bodies; RC4 and RC2 are broken."""
    preferred_cipher: SessionAlgorithm = SessionAlgorithm.AES_256
    """For destinations with AES."""
    preferred_old_cipher: SessionAlgorithm = SessionAlgorithm.RC4
    """For destinations without AES; used only if `ciphers` has it."""
    smallest_key_bits: int = KEY_MIN_BITS
    """Shorter RSA keys neither encrypt nor prove anything. Base providers have 512 bits."""
    send_rc2_40_bit: bool = False
    """SendEnhancedRC2Using40BitKeys. [MQQB 3.1.1.3]"""
    reject_rc2_40_bit: bool = True
    """RejectEnhancedRC2Using40BitKeys. [MQQB 3.1.1.3]"""
    accept_unregistered_certificates: bool = False
    """Take a signed message whose certificate no directory knows, as one of nobody (C-98)."""
    trust_unsigned_senders: bool = False
    """Believe whom a message without signature names as its sender. Windows does, without proof."""
    key_cache_ms: int = KEY_CACHE_MS
    send_key_cache_max_count: int = SEND_KEY_CACHE_MAX_COUNT
    receive_key_cache_max_count: int = RECEIVE_KEY_CACHE_MAX_COUNT
    bad_messages_per_key_max_count: int = BAD_MESSAGES_PER_KEY_MAX_COUNT

    def advanced_cipher(self) -> SessionAlgorithm | None:
        """The cipher for a destination that has AES, or none if the policy has no AES."""
        if self.preferred_cipher in AES_CIPHERS and self.preferred_cipher in self.ciphers:
            return self.preferred_cipher
        return next((cipher for cipher in AES_CIPHERS if cipher in self.ciphers), None)

    def old_cipher(self) -> SessionAlgorithm | None:
        """The cipher for a destination without AES, or none if the policy forbids them."""
        cipher = self.preferred_old_cipher
        return cipher if cipher in self.ciphers and cipher not in SAFE_CIPHERS else None

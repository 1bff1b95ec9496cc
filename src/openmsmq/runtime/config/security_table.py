"""The table `[security]` of a configuration file: how messages and keys are protected.

Each option makes the queue manager accept more or less; the defaults are the safe ones.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from openmsmq.manager.config import SecurityConfig
from openmsmq.model.limits import KEY_DEFAULT_BITS, KEY_LIFETIME_S, KEY_RETENTION_S
from openmsmq.runtime.config.tables import says
from openmsmq.security import legacy
from openmsmq.security.algorithm_names import (
    CIPHERS,
    EXACT_NAME,
    HASHES,
    SAFE_CIPHER_NAMES,
    SAFE_HASH_NAMES,
    SIGNATURES,
    USUAL_SIGNATURE_NAMES,
    CipherName,
    HashName,
    SignatureName,
)
from openmsmq.security.policy import KEY_MIN_BITS, SecurityPolicy
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from openmsmq.security.rsa import RSA_MAX_BITS, RSA_MIN_BITS

_DAY_S: Final = 24 * 3600


class SecurityTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about the security of messages."""

    hashes: Annotated[
        tuple[HashName, ...],
        says(
            "Hashes of signatures that are accepted. `md5`, `md4` and `md2` can be "
            "forged; the last two need the extra `legacy`.",
            min_length=1,
        ),
    ] = SAFE_HASH_NAMES
    signatures: Annotated[
        tuple[SignatureName, ...],
        says(
            "Kinds of signatures that are accepted. Only `exact` ones, which our own "
            'senders make, hold each field apart; with `["exact"]` no others count. In those of '
            "MSMQ `2.0` and `3.0` the end of the body can be moved into the label. One of MSMQ "
            "`1.0` does not cover the destination either: whoever has a signed message can send "
            "it to other queues.",
            min_length=1,
        ),
    ] = USUAL_SIGNATURE_NAMES
    ciphers: Annotated[
        tuple[CipherName, ...],
        says(
            "Ciphers of bodies that are accepted. `rc4` and `rc2` can be broken; with "
            "one of them a key for senders without AES is published, too. `rc2` needs the extra "
            "`legacy`.",
            min_length=1,
        ),
    ] = SAFE_CIPHER_NAMES
    smallest_key_bits: Annotated[
        int, says("Shorter RSA keys prove and protect nothing.", ge=RSA_MIN_BITS, le=RSA_MAX_BITS)
    ] = KEY_MIN_BITS
    accept_unregistered_certificates: Annotated[
        bool,
        says(
            "Whether a signature counts though no directory knows its certificate: it "
            "then proves that nobody has changed the message, and not who sent it."
        ),
    ] = False
    trust_unsigned_senders: Annotated[
        bool,
        says(
            "Whether to believe the sender that a message without signature names. "
            "Windows does; anybody can write a name."
        ),
    ] = False
    accept_40_bit_rc2: Annotated[
        bool, says("Whether RC2 may come with the short keys of Windows 2000.")
    ] = False
    key_bits: Annotated[
        int, says("Length of new key pairs.", ge=1024, le=RSA_MAX_BITS, multiple_of=16)
    ] = KEY_DEFAULT_BITS
    key_lifetime_days: Annotated[
        int, says("Age at which a key pair is replaced.", ge=1, le=36_500)
    ] = KEY_LIFETIME_S // _DAY_S
    key_retention_days: Annotated[
        int,
        says(
            "How long a key pair that was replaced still decrypts: as long as messages "
            "may be under way.",
            ge=0,
            le=36_500,
        ),
    ] = KEY_RETENTION_S // _DAY_S

    def __post_init__(self) -> None:
        if self.key_bits < self.smallest_key_bits:
            raise ValueError(
                f"key_bits {self.key_bits} is less than smallest_key_bits "
                f"{self.smallest_key_bits}: give longer new keys, too"
            )
        old = {"md2", "md4", "rc2"}.intersection((*self.hashes, *self.ciphers))
        if BASE in self.providers:
            old.add("a key of 512 bits")
        if old and not legacy.is_installed():
            raise ValueError(f"{min(old)} {legacy.ADVICE}")

    @property
    def config(self) -> SecurityConfig:
        """The same for the queue manager."""
        return SecurityConfig(
            policy=SecurityPolicy(
                hashes=frozenset(HASHES[name] for name in self.hashes),
                signatures=frozenset(
                    SIGNATURES[name] for name in self.signatures if name != EXACT_NAME
                ),
                exact_signatures=EXACT_NAME in self.signatures,
                ciphers=frozenset(CIPHERS[name] for name in self.ciphers),
                smallest_key_bits=self.smallest_key_bits,
                accept_unregistered_certificates=self.accept_unregistered_certificates,
                trust_unsigned_senders=self.trust_unsigned_senders,
                reject_rc2_40_bit=not self.accept_40_bit_rc2,
            ),
            key_lifetime_s=self.key_lifetime_days * _DAY_S,
            key_retention_s=self.key_retention_days * _DAY_S,
        )

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The kinds of keys to have: no sender finds a key for what is not accepted."""
        has_aes = any(name.startswith("aes") for name in self.ciphers)
        has_old = any(name.startswith("rc") for name in self.ciphers)
        found = ((ADVANCED,) if has_aes else ()) + ((ENHANCED,) if has_old else ())
        is_short = self.smallest_key_bits <= BASE.key_bits
        return found + ((BASE,) if has_old and is_short else ())

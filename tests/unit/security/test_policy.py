"""The policy: nothing that is broken is allowed unless somebody says so."""

from __future__ import annotations

import pytest

from openmsmq.model.limits import (
    KEY_CACHE_MS,
    RECEIVE_KEY_CACHE_MAX_COUNT,
    SEND_KEY_CACHE_MAX_COUNT,
)
from openmsmq.model.message import AuthenticationLevel, HashAlgorithm, PrivacyLevel
from openmsmq.security.encryption.decryption import ReceiveKeys
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import (
    ADVANCED,
    BASE,
    BY_LEVEL,
    ENHANCED,
    PROVIDERS,
    Provider,
    provider_named,
)
from openmsmq.wire.keys import ProviderType, SessionAlgorithm


def test_the_defaults_are_safe() -> None:
    policy = SecurityPolicy()
    broken = {HashAlgorithm.MD2, HashAlgorithm.MD4, HashAlgorithm.MD5}
    assert not policy.hashes & broken
    assert not policy.ciphers & {SessionAlgorithm.RC2, SessionAlgorithm.RC4}
    assert policy.advanced_cipher() is SessionAlgorithm.AES_256
    assert policy.old_cipher() is None
    assert policy.smallest_key_bits >= 1024
    assert policy.reject_rc2_40_bit
    assert not policy.send_rc2_40_bit
    assert not policy.accept_unregistered_certificates
    assert not policy.trust_unsigned_senders
    assert AuthenticationLevel.NONE not in policy.signatures


@pytest.mark.spec("MQQB-3.1.3.1-09", "MQQB-3.1.3.1-10", "MQQB-3.1.3.1-12", "MQQB-3.1.3.1-13")
def test_the_bounds_of_the_caches_are_those_of_the_specification() -> None:
    policy = SecurityPolicy()
    assert policy.key_cache_ms == KEY_CACHE_MS == 600_000
    assert policy.send_key_cache_max_count == SEND_KEY_CACHE_MAX_COUNT == 53
    assert policy.receive_key_cache_max_count == RECEIVE_KEY_CACHE_MAX_COUNT == 127
    assert (len(SendKeys(policy).cache), len(ReceiveKeys(policy).cache)) == (0, 0)


@pytest.mark.spec("MQQB-3.1.3.1-15", "MQQB-3.1.3.1-16", "MQQB-3.1.3.1-17", "MQQB-3.1.3.1-18")
def test_the_preferred_ciphers_are_those_of_the_specification_once_they_are_allowed() -> None:
    assert SecurityPolicy().preferred_cipher == 0x6610
    assert SecurityPolicy().preferred_old_cipher == 0x6801
    assert SecurityPolicy(ciphers=frozenset(SessionAlgorithm)).old_cipher() == 0x6801
    assert not SecurityPolicy().send_rc2_40_bit


@pytest.mark.parametrize("preferred", SessionAlgorithm)
@pytest.mark.parametrize("allowed", SessionAlgorithm)
def test_a_cipher_that_is_not_allowed_is_never_used(
    preferred: SessionAlgorithm, allowed: SessionAlgorithm
) -> None:
    policy = SecurityPolicy(
        ciphers=frozenset({allowed}), preferred_cipher=preferred, preferred_old_cipher=preferred
    )
    assert policy.advanced_cipher() in (None, allowed)
    assert policy.old_cipher() in (None, allowed)
    assert policy.old_cipher() in (None, SessionAlgorithm.RC2, SessionAlgorithm.RC4)


@pytest.mark.parametrize(
    ("spelling", "provider"),
    [
        ("Microsoft Base Cryptographic Provider v1.0", BASE),
        ("Microsoft Base Cryptographic Provider, v1.0", BASE),
        ("Microsoft Base Cryptographic Provider 1.0", BASE),
        ("Microsoft Enhanced Cryptographic Provider, 1.0", ENHANCED),
        ("MICROSOFT ENHANCED CRYPTOGRAPHIC PROVIDER V1.0", ENHANCED),
        ("Microsoft AES Cryptographic Provider", ADVANCED),
        ("Microsoft Enhanced RSA and AES Cryptographic Provider", ADVANCED),
        ("Microsoft Strong Cryptographic Provider", None),
        ("", None),
    ],
)
def test_providers_are_found_in_every_spelling_of_the_specifications(
    spelling: str, provider: Provider | None
) -> None:
    assert provider_named(spelling) is provider


def test_there_are_three_providers_with_their_lengths_and_levels() -> None:
    assert [(each.name, each.key_bits) for each in reversed(PROVIDERS)] == [
        ("Microsoft Base Cryptographic Provider v1.0", 512),
        ("Microsoft Enhanced Cryptographic Provider v1.0", 1024),
        ("Microsoft Enhanced RSA and AES Cryptographic Provider", 1024),
    ]
    assert {level: each.provider_type for level, each in BY_LEVEL.items()} == {
        PrivacyLevel.BASE: ProviderType.RSA_FULL,
        PrivacyLevel.ENHANCED: ProviderType.RSA_FULL,
        PrivacyLevel.ADVANCED: ProviderType.RSA_AES,
    }

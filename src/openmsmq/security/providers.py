"""The cryptographic providers: which keys a queue manager has, and what each is for.

[MQQB 3.1.5.8.3, 3.1.7.1.5]

Only their names are Microsoft's: here a provider is a kind of key, with the privacy level that
stands for it in a packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from openmsmq.model.message import PrivacyLevel
from openmsmq.model.topology import PublicKey
from openmsmq.wire.keys import ProviderType


class Provider(msgspec.Struct, frozen=True, gc=False):
    """One kind of key."""

    name: str
    provider_type: ProviderType
    level: PrivacyLevel
    key_bits: int
    """How long Windows makes its keys; a published key may be longer. [MQQB 3.1.7.1.5]"""


BASE: Final = Provider(
    "Microsoft Base Cryptographic Provider v1.0", ProviderType.RSA_FULL, PrivacyLevel.BASE, 512
)
ENHANCED: Final = Provider(
    "Microsoft Enhanced Cryptographic Provider v1.0",
    ProviderType.RSA_FULL,
    PrivacyLevel.ENHANCED,
    1024,
)
ADVANCED: Final = Provider(
    "Microsoft Enhanced RSA and AES Cryptographic Provider",
    ProviderType.RSA_AES,
    PrivacyLevel.ADVANCED,
    1024,
)

PROVIDERS: Final = (ADVANCED, ENHANCED, BASE)
"""The best one first."""

BY_LEVEL: Final[dict[int, Provider]] = {int(each.level): each for each in PROVIDERS}


def _plain(name: str) -> str:
    return " ".join(name.replace(",", " ").split()).casefold()


_BY_NAME: Final[dict[str, Provider]] = {each.name: each for each in PROVIDERS}
_BY_PLAIN_NAME: Final[dict[str, Provider]] = {
    _plain(spelling): each
    for each in PROVIDERS
    for spelling in (each.name, each.name.replace("v1.0", "1.0"))
} | {_plain("Microsoft AES Cryptographic Provider"): ADVANCED}


def provider_named(name: str) -> Provider | None:
    """Find a provider; the specifications spell the names in several ways (C-101)."""
    return _BY_NAME.get(name) or _BY_PLAIN_NAME.get(_plain(name))


def published_key(keys: Sequence[PublicKey], provider: Provider) -> PublicKey | None:
    """Find the first key of a provider among those that a queue manager has published."""
    for key in keys:
        if provider_named(key.provider_name) is provider:
            return key
    return None

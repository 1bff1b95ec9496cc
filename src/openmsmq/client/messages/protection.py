"""Signing and encrypting messages before they leave their application. [MQQB 3.1.7.1.4, 3.1.7.1.5]

Both happen here and not in the queue manager: the key of the user stays with the user, and bodies
are ciphertext from here to their destination, in the files of all queue managers between, too.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from time import monotonic  # noqa: TID251 -- the client is no part of the deterministic core
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.model.errors import (
    AccessDenied,
    IllegalPropertySize,
    PublicKeyNotFound,
    UnsupportedFormatName,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import KEY_CACHE_MARGIN_S
from openmsmq.model.message import AuthenticationRequest, PrivacyLevel
from openmsmq.model.names import DistributionListFormatName, MultipleFormatName
from openmsmq.model.topology import PublicKey
from openmsmq.security.access.sids import ANONYMOUS
from openmsmq.security.algorithm_names import CIPHERS
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.policy import SAFE_CIPHERS, SecurityPolicy
from openmsmq.security.signatures.signatures import Signer, sign
from openmsmq.wire import packets
from openmsmq.wire.addressing import destinations_header
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers.security import SenderKind
from openmsmq.wire.message_bytes import with_privacy_level

if TYPE_CHECKING:
    from openmsmq.client.messages.certificates import Certificate

PUBLIC_KEYS_KEPT_S: Final = 600.0
"""How long the published keys of a destination are used before they are asked for again."""

DESTINATIONS_KEPT_MAX_COUNT: Final = 1_000
"""Queue managers whose keys are remembered."""

Protect = Callable[[bytes], bytes]
Later = Callable[[float, Callable[[], None]], None]
"""Calls a function after so many seconds."""


def in_a_thread(pause_s: float, call: Callable[[], None]) -> None:
    """Call a function after a pause, in a thread that no program waits for at its end."""
    timer = threading.Timer(pause_s, call)
    timer.daemon = True
    timer.start()


class CleanUp:
    """Lets old session keys leave memory, also where nobody encrypts any more. [MQQB 3.1.6.11]"""

    def __init__(self, keys: SendKeys, clock: Callable[[], float], later: Later) -> None:
        self._keys = keys
        self._clock = clock
        self._later = later
        self._lock = threading.Lock()
        self._is_planned = False

    def plan(self) -> None:
        """Come again when the oldest key has been of no use for a minute, if there is one."""
        with self._lock:
            expiry_ms = self._keys.cache.next_expiry_ms
            if self._is_planned or expiry_ms is None:
                return
            self._is_planned = True
        self._later(
            max(0.0, expiry_ms / 1000 + KEY_CACHE_MARGIN_S - self._clock()), self._carry_out
        )

    def _carry_out(self) -> None:
        self._keys.forget_expired(int(self._clock() * 1000))
        with self._lock:
            self._is_planned = False
        self.plan()


class Destination(msgspec.Struct, frozen=True):
    """Where messages go, as far as their protection depends on it."""

    name: str
    manager: Guid
    """Who is to decrypt them; nil if a direct name does not tell."""
    is_local: bool
    listed: MultipleFormatName | DistributionListFormatName | None = None
    """The queues, if there are several."""


class Protection:
    """Protects the messages of one client; session keys are shared by all its queues."""

    def __init__(
        self,
        ciphers: tuple[str, ...],
        clock: Callable[[], float] = monotonic,
        later: Later = in_a_thread,
    ) -> None:
        allowed = frozenset(CIPHERS[name] for name in ciphers)
        old = next((each for each in CIPHERS.values() if each in allowed - SAFE_CIPHERS), None)
        policy = SecurityPolicy(
            ciphers=allowed, preferred_cipher=next(CIPHERS[name] for name in ciphers)
        )
        if old is not None:
            policy = msgspec.structs.replace(policy, preferred_old_cipher=old)
        self._keys = SendKeys(policy)
        self._clock = clock
        self._clean_up = CleanUp(self._keys, clock, later)
        self._published: dict[Guid, tuple[float, tuple[PublicKey, ...]]] = {}
        self._user: tuple[int, bytes] = (0, b"")
        self._signs_exactly = False

    def protecting(
        self,
        destination: Destination,
        source: Guid,
        generation: int,
        certificate: Certificate | None,
        request: AuthenticationRequest,
        *,
        encrypt: bool,
    ) -> Steps[Protect]:
        """Return what protects packets to a destination; asks for what it needs to know."""
        signer: Signer | None = None
        if certificate is not None:
            signer = yield from self._signer(certificate, generation)
            if (
                request is AuthenticationRequest.ALWAYS
                and self._signs_exactly
                and not _goes_to_list(destination)
            ):
                request = AuthenticationRequest.EXACT
        keys: tuple[PublicKey, ...] = ()
        if encrypt and not destination.is_local:
            keys = yield from self._published_keys(destination)

        def protect(packet: bytes) -> bytes:
            try:
                return protected(packet)
            except EncodeError as error:
                # Its security takes room too, and old hashes and ciphers take short bodies only.
                raise IllegalPropertySize(
                    f"a message cannot be protected: {error.problem}"
                ) from None

        def protected(packet: bytes) -> bytes:
            if signer is not None:
                packet = sign(_listed(packet, destination), signer, request, source)
            if not encrypt:
                return packet
            if destination.is_local:
                return _marked(packet)
            sealed = self._keys.encrypt(
                packet,
                destination.manager,
                keys,
                PrivacyLevel.BASE,
                int(self._clock() * 1000),
                secrets.token_bytes,
            )
            self._clean_up.plan()
            return sealed

        return protect

    def _signer(self, certificate: Certificate, generation: int) -> Steps[Signer]:
        known_in, user = self._user
        if known_in != generation:
            caller = yield from ask(api.GetCaller())
            user = caller.user
            if user == ANONYMOUS:
                raise AccessDenied(
                    f"nobody believes a signature of {caller.name}: connect as a user or with a "
                    "token"
                )
            self._user = generation, user
            self._signs_exactly = caller.exact_signatures
        return Signer(
            certificate.key, certificate.der, SenderKind.SID, user, certificate.hash_algorithm
        )

    def _published_keys(self, destination: Destination) -> Steps[tuple[PublicKey, ...]]:
        if destination.listed is not None or destination.manager == NIL_GUID:
            raise UnsupportedFormatName(
                f"{destination.name}: a body is encrypted for one queue manager, so name the queue "
                "by PUBLIC= or PRIVATE=, or by the path of a public queue"
            )
        since_s, keys = self._published.get(destination.manager, (0.0, ()))
        if not keys or self._clock() - since_s > PUBLIC_KEYS_KEPT_S:
            request = api.GetEncryptionKeys(bytes(destination.manager))
            told = yield from ask(request)
            keys = tuple(
                PublicKey(key.provider_name, key.provider_type, key.blob) for key in told.keys
            )
            if not keys:
                raise PublicKeyNotFound(
                    f"{destination.name}: its queue manager has published no key to encrypt with"
                )
            if len(self._published) >= DESTINATIONS_KEPT_MAX_COUNT:
                self._published.clear()
            self._published[destination.manager] = self._clock(), keys
        return keys


def _goes_to_list(destination: Destination) -> bool:
    """Whether only the directory knows the queues that messages go to."""
    match destination.listed:
        case DistributionListFormatName():
            return True
        case MultipleFormatName(elements):
            return any(isinstance(each, DistributionListFormatName) for each in elements)
        case None:
            return False


def _listed(packet: bytes, destination: Destination) -> bytes:
    """Name all destinations in a message to several queues: its signature covers them."""
    if destination.listed is None:
        return packet
    message = packets.decode(packet)
    assert isinstance(message, packets.UserMessage)
    header = destinations_header(destination.listed)
    return packets.encode(msgspec.structs.replace(message, multi_queue=header))


def _marked(packet: bytes) -> bytes:
    """Say that privacy was wanted, in a message that does not leave its computer."""
    return with_privacy_level(packet, PrivacyLevel.ADVANCED)

"""What applications ask about keys and certificates. [MQDMPR 3.1.7.1.29, MQOD 2.9]

A user registers certificates for itself only: who asks is known from the connection, never from
what it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.turn.counters import Counters
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    MsmqError,
    NoDirectory,
)
from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid
from openmsmq.model.limits import CERTIFICATES_PER_USER_MAX_COUNT
from openmsmq.model.topology import PublicKey, UserInfo
from openmsmq.security.signatures.certificates import BadCertificate, digest, public_key

if TYPE_CHECKING:
    import random


class SecurityRequests:
    """Hands out keys, and keeps certificates in the directory."""

    def __init__(
        self,
        config: ManagerConfig,
        directory: DirectoryService,
        keys: OwnKeys,
        counters: Counters,
        replies: Replies,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._directory = directory
        self._keys = keys
        self._counters = counters
        self._replies = replies
        self._rng = rng
        self._being_changed: set[bytes] = set()
        """Users whose certificates are being written: another change would undo that one."""

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.GetEncryptionKeys, self.get_encryption_keys)
        handlers.add(api.RenewKeys, self.renew_keys)
        handlers.add(api.RegisterCertificate, self.register)
        handlers.add(api.RemoveCertificate, self.remove)
        handlers.add(api.ListCertificates, self.list)

    # Keys.

    def get_encryption_keys(
        self, state: Connection, call: int, request: api.GetEncryptionKeys, _: Instant
    ) -> None:
        """Tell with which keys bodies are encrypted for a queue manager."""
        if len(request.manager) != GUID_BYTES:
            raise InvalidParameter(f"an identifier has {GUID_BYTES} bytes")
        keys = [_shown(key) for key in self._keys_of(Guid(request.manager))]
        self._replies.answer(state.id, call, api.EncryptionKeys(keys))

    def _keys_of(self, manager: Guid) -> tuple[PublicKey, ...]:
        if manager == self._counters.identifier:
            return self._keys.public
        known = self._directory.copy.image.managers.get(manager)
        if known is None:
            raise NoDirectory(
                f"no directory here knows the queue manager {manager}, so nobody knows the key "
                "with which to encrypt for it"
            )
        return known.encryption_keys

    def renew_keys(self, state: Connection, call: int, _: api.RenewKeys, _now: Instant) -> None:
        """Make new keys and publish them."""
        self._keys.renew(
            lambda _changes, _now: self._replies.answer_when_done(state.id, call, api.Done()),
            lambda error, _now: self._replies.fail(state.id, call, error),
        )

    # Certificates.

    def register(
        self, state: Connection, call: int, request: api.RegisterCertificate, now: Instant
    ) -> None:
        """Note a certificate as one of the user who asks."""
        user = self._user(state)
        try:
            public_key(request.certificate, self._config.security.policy.smallest_key_bits)
        except BadCertificate as bad:
            raise InvalidParameter(str(bad)) from None
        self._require_free(request.certificate, user)
        known = self._directory.copy.image.user_of(user)
        if known is None:
            known = UserInfo(identifier=self._new_identifier(), security_identifier=user)
        certificates = known.certificates
        if request.certificate not in certificates:
            certificates += (request.certificate,)
        if len(certificates) > CERTIFICATES_PER_USER_MAX_COUNT:
            raise InsufficientResources(
                f"a user may have {CERTIFICATES_PER_USER_MAX_COUNT} certificates: remove some first"
            )
        self._write(state, call, _with(known, certificates), now)

    def remove(
        self, state: Connection, call: int, request: api.RemoveCertificate, now: Instant
    ) -> None:
        """Take a certificate of the user who asks out of the directory."""
        known = self._directory.copy.image.user_of(self._user(state))
        certificates = () if known is None else known.certificates
        left = tuple(each for each in certificates if digest(each) != request.digest)
        if known is None or len(left) == len(certificates):
            raise InvalidParameter("the directory has no such certificate of this user")
        if left:
            self._write(state, call, _with(known, left), now)
        else:
            self._write(state, call, Removal(ObjectKind.USER, known.identifier), now)

    def list(self, state: Connection, call: int, _: api.ListCertificates, _now: Instant) -> None:
        """Tell which certificates the directory has of the user who asks."""
        user = self._user(state)
        known = self._directory.copy.image.user_of(user)
        certificates = () if known is None else known.certificates
        reply = api.Certificates(bytes(user), list(certificates))
        self._replies.answer_when_done(state.id, call, reply)

    def _user(self, state: Connection) -> bytes:
        if not state.caller.is_known:
            raise AccessDenied(
                f"{state.caller.name} has no certificates: connect as a user or with a token"
            )
        return bytes(state.caller.user)

    def _require_free(self, certificate: bytes, user: bytes) -> None:
        """Refuse a certificate of somebody else: anybody can have it, without its key."""
        name = digest(certificate)
        for other in self._directory.copy.image.users.values():
            if other.security_identifier != user and (
                certificate in other.certificates or name in other.certificate_digests
            ):
                raise AccessDenied("this certificate is registered for another user already")

    def _new_identifier(self) -> Guid:
        # Active Directory has its users already, and finds them by their security identifiers.
        if not self._config.directory.publishes_addresses:
            return NIL_GUID
        return Guid(self._rng.randbytes(GUID_BYTES))

    def _write(self, state: Connection, call: int, change: Change, now: Instant) -> None:
        user = bytes(state.caller.user)
        certificates = list(change.certificates) if isinstance(change, UserInfo) else []
        if user in self._being_changed:
            raise InsufficientResources(
                "another change of these certificates is under way: try again when it is done"
            )

        def answer() -> None:
            self._being_changed.discard(user)
            self._replies.answer_when_done(state.id, call, api.Certificates(user, certificates))

        def done(_changes: Sequence[Change], now: Instant) -> None:
            # The next change begins with what the copy says, so it must have this one.
            try:
                self._directory.refresh(lambda *_: answer(), lambda *_: answer(), now)
            except MsmqError:
                answer()

        def refused(error: MsmqError, _now: Instant) -> None:
            self._being_changed.discard(user)
            self._replies.fail(state.id, call, error)

        self._being_changed.add(user)
        try:
            self._directory.write((change,), done, refused, now)
        except MsmqError:
            self._being_changed.discard(user)
            raise


def _with(user: UserInfo, certificates: tuple[bytes, ...]) -> UserInfo:
    return msgspec.structs.replace(
        user, certificates=certificates, certificate_digests=tuple(map(digest, certificates))
    )


def _shown(key: PublicKey) -> api.EncryptionKey:
    return api.EncryptionKey(key.provider_name, key.provider_type, key.blob)

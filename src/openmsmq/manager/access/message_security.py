"""Whether a message may enter a queue: decrypted, verified, allowed. [MQQB 3.1.5.8.3]

The body is decrypted first, because the sender signs before it encrypts (C-91). Then the
signature is checked, then whose certificate it is, then what the queue demands, and at last
whether that sender may write into it. What a packet claims about these things itself counts for
nothing: a message that enters says what was found out here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.model.clock import Instant
from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.model.message import AuthenticationLevel, MessageClass
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.sids import (
    ANONYMOUS_IDENTITIES,
    EVERYONE,
    Sid,
    identities,
    is_sid,
)
from openmsmq.security.encryption.decryption import BadEncryption
from openmsmq.security.encryption.opener import Opener
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import BadSignature, check_signature, is_signed
from openmsmq.wire.headers import security, user
from openmsmq.wire.headers.security import SENDER_KIND, SecurityHeader, SenderKind
from openmsmq.wire.message_bytes import claiming, wants_privacy
from openmsmq.wire.outline import Outline, outline
from openmsmq.wire.packets import UserMessage, decode, encode, has_signed_lists

_CLAIMS: Final = security.AUTHENTICATED | security.SIGNATURE_KIND
"""What only a receiver can say about a message."""


class Examined(msgspec.Struct, frozen=True):
    """A message as it enters its queue, or why it does not."""

    packet: bytes
    found: Outline
    refusal: MessageClass | None = None


class MessageSecurity:
    """Examines messages for queues of this queue manager."""

    def __init__(
        self, policy: SecurityPolicy, keys: OwnKeys, copy: DirectoryCopy, access: AccessControl
    ) -> None:
        self._policy = policy
        self._keys = keys
        self._copy = copy
        self._access = access

    def may_enter_plain(self, queue: LocalQueue) -> bool:
        """Whether a message without sender, signature and encryption may enter a queue."""
        properties = queue.properties
        return (
            not properties.authentication_required
            and properties.privacy is not QueuePrivacy.BODY
            and self._access.anonymous_may_write(queue)
        )

    def opener(self, packet: bytes, queue: LocalQueue, now: Instant) -> Opener | None:
        """Return what opens messages like one that has just entered a queue, if they may enter too.

        None if more is to be looked at than the encryption.
        """
        properties = queue.properties
        if (
            properties.authentication_required
            or properties.privacy is QueuePrivacy.NONE
            or not self._access.anonymous_may_write(queue)
        ):
            return None
        return self._keys.receive.opener(packet, now.ticks_ms)

    def examine(
        self, packet: bytes, found: Outline, queue: LocalQueue, now: Instant, *, arrived: bool
    ) -> Examined:
        """Decrypt a message and find out whose it is; one that `arrived` came over the network."""
        if not found.flags & user.SECURITY and not (
            found.flags & user.MULTI_QUEUE and has_signed_lists(packet)
        ):
            refusal = self._refusal(packet, found, queue, _Sender(), arrived=arrived)
            return Examined(packet, found, refusal)
        try:
            opened = self._keys.receive.decrypt(packet, now.ticks_ms)
            was_encrypted = opened is not packet
            message = decode(opened)
            assert isinstance(message, UserMessage)
            sender = self._sender(message)
        except BadEncryption as bad:
            return Examined(packet, found, bad.message_class)
        except BadSignature:
            return Examined(packet, found, MessageClass.NACK_BAD_SIGNATURE)
        sender = msgspec.structs.replace(sender, was_encrypted=was_encrypted)
        refusal = self._refusal(packet, found, queue, sender, arrived=arrived)
        if refusal is not None:
            return Examined(packet, found, refusal)
        entering = _as_proved(message, opened, sender)
        return Examined(entering, found if entering is packet else outline(entering))

    def proved_manager(self, message: UserMessage) -> Guid | None:
        """Return the queue manager that has signed a message; None if nothing proves one.

        Its certificate is one that the directory has for it, whatever certificate the message
        brings and whoever else is believed.
        """
        header = message.security
        if header is None or header.sender_kind is not SenderKind.QUEUE_MANAGER:
            return None
        if header.sender_certificate not in self._certificates_of_manager(header.sender_id):
            return None
        try:
            check_signature(message, self._policy)
        except BadSignature:
            return None
        return Guid(header.sender_id)

    def _sender(self, message: UserMessage) -> _Sender:
        """Find out who has sent a message; a signature that proves nothing is a `BadSignature`."""
        header = message.security
        if not is_signed(message):
            return _Sender(sids=self._claimed(header))
        checked = check_signature(message, self._policy)
        kind = SenderKind.NONE if header is None else header.sender_kind
        if kind is SenderKind.NONE or header is None:
            # The signature holds, but nobody says whose it is (C-98).
            trusted = self._policy.accept_unregistered_certificates
            return _Sender(level=checked.kind if trusted else AuthenticationLevel.NONE)
        if kind is SenderKind.SID:
            known = self._copy.image.user_of(header.sender_id)
            certificates: tuple[bytes, ...] = () if known is None else known.certificates
            sids = identities(Sid(header.sender_id)) if is_sid(header.sender_id) else None
        else:
            certificates = self._certificates_of_manager(header.sender_id)
            sids = frozenset({EVERYONE})
        if sids is None or header.sender_certificate not in certificates:
            if not self._policy.accept_unregistered_certificates:
                raise BadSignature("the certificate is not registered for its sender")
            return _Sender(level=checked.kind)
        return _Sender(sids=sids, level=checked.kind, is_proved=True)

    def _certificates_of_manager(self, identifier: bytes) -> tuple[bytes, ...]:
        if len(identifier) != GUID_BYTES:
            return ()
        manager = self._copy.image.managers.get(Guid(identifier))
        return () if manager is None else tuple(key.blob for key in manager.signing_keys)

    def _claimed(self, header: SecurityHeader | None) -> frozenset[Sid]:
        """Return the identities of a sender whom nothing proves."""
        if header is None or not self._policy.trust_unsigned_senders:
            return ANONYMOUS_IDENTITIES
        if header.sender_kind is SenderKind.QUEUE_MANAGER:
            return frozenset({EVERYONE})
        if header.sender_kind is SenderKind.SID and is_sid(header.sender_id):
            return identities(Sid(header.sender_id))
        return ANONYMOUS_IDENTITIES

    def _refusal(
        self, packet: bytes, found: Outline, queue: LocalQueue, sender: _Sender, *, arrived: bool
    ) -> MessageClass | None:
        """Return what the queue has against a message."""
        properties = queue.properties
        if properties.authentication_required and sender.level is AuthenticationLevel.NONE:
            return MessageClass.NACK_BAD_SIGNATURE
        # A message that never left the computer needs no encryption, only the wish for it.
        protected = sender.was_encrypted or (not arrived and wants_privacy(packet, found))
        if properties.privacy is QueuePrivacy.BODY and not protected:
            return MessageClass.NACK_BAD_ENCRYPTION
        if properties.privacy is QueuePrivacy.NONE and sender.was_encrypted:
            return MessageClass.NACK_BAD_ENCRYPTION
        # Applications had to show their right to write when they opened the queue.
        if arrived and not self._access.may_write(queue, sender.sids):
            return MessageClass.NACK_ACCESS_DENIED
        return None


class _Sender(msgspec.Struct, frozen=True):
    """What is known of who sent a message, and how it came."""

    sids: frozenset[Sid] = ANONYMOUS_IDENTITIES
    level: AuthenticationLevel = AuthenticationLevel.NONE
    is_proved: bool = False
    """Whether the signature is one of whom the message names as its sender."""
    was_encrypted: bool = False


def without_claims(packet: bytes, found: Outline) -> bytes:
    """Return a packet that says nothing of its signature: who sends it cannot know (C-97)."""
    return claiming(packet, found, 0, _CLAIMS) if found.flags & user.SECURITY else packet


def _as_proved(message: UserMessage, packet: bytes, sender: _Sender) -> bytes:
    """Note in a message what its signature has proved, and nothing else."""
    header = message.security
    if header is None:
        return packet
    if sender.level and not sender.is_proved and header.sender_id:
        # Readers believe the sender of an authenticated message, and nobody knows this one.
        nobody = msgspec.structs.replace(
            header, sender_id=b"", flags=header.flags & ~SENDER_KIND, padding=b""
        )
        packet = encode(msgspec.structs.replace(message, security=nobody))
    claims = (security.AUTHENTICATED | sender.level << 8) if sender.level else 0
    return claiming(packet, outline(packet), claims, _CLAIMS)

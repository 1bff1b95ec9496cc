"""Change notifications: whoever changes an object of another queue manager tells it so. [MQCN 3]

A notification only says that something is to be read again; what is believed is the directory
(C-147). So anybody may send one, and all it can bring about is a question to the directory, one at
a time and not too often. Those of a directory service (version 1) carry the new values themselves;
they count only if a queue manager has signed them that serves the directory, and what they bring
about is the same question (C-149).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.access.message_security import MessageSecurity
from openmsmq.manager.directory.old_notifications import is_about_ours, notification_of
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, DirectoryRole, ObjectKind, Removal
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.message import AuthenticationRequest, HashAlgorithm
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import DirectoryServerKind, QueueManagerInfo
from openmsmq.security.signatures.signatures import Signer, sign
from openmsmq.wire.bodies.notifications import (
    NOTIFY_QUEUE_NUMBER,
    DirectoryNotification,
    Event,
    ManagerNotification,
)
from openmsmq.wire.bodies.notifications import decode as decode_notification
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.security import SenderKind
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode

NOTIFICATION_REACH_S: Final = 300
"""A notification that has not arrived by then is worth nothing. [MQCN 3.3.5.3]"""

NOTIFICATIONS_WAITING_MAX_COUNT: Final = 100
"""Notifications that wait for one queue manager; who misses one asks the directory anyway."""

SIGNED_NOTIFICATIONS_MAX_COUNT: Final = 100
"""Notifications that are signed for one change of the directory: nothing else is done meanwhile.
Those of version 2 go unsigned behind it, others not at all. [ours]"""

_HASH: Final = HashAlgorithm.SHA1
"""The newest that the queue managers know for which version 1 is meant. [MQCN 3.3.5.3]"""

_SERVER: Final = re.compile("[!-;=?-~]{1,256}")
"""What a notification can name as a server. [MQCN 2.2.5]"""


class Notifications:
    """Sends change notifications to the queue managers whose objects were changed from here."""

    def __init__(self, base: Foundation, reporter: Reporter, keys: OwnKeys) -> None:
        self._config = base.config
        self._counters = base.counters
        self._reporter = reporter
        self._keys = keys

    def tell_owners(self, changes: Sequence[Change], before: DirectoryImage, now: Instant) -> None:
        """Tell the owners of changed objects, if they understand it. [MQCN 3.3.4.1]"""
        # A foreign computer may come into the directory together with its queues.
        foreign = {
            change.identifier
            for change in changes
            if isinstance(change, QueueManagerInfo) and change.foreign
        }
        server = self._server(before)
        tells_old = self._tells_old(before)
        left_count = SIGNED_NOTIFICATIONS_MAX_COUNT
        for change in changes:
            owner, event = _event_of(change, before)
            if owner in (NIL_GUID, self._counters.identifier):
                continue
            known = before.managers.get(owner)
            if owner in foreign or (known is not None and known.foreign):
                continue
            packet = self._packet(
                owner, ManagerNotification(event, change.identifier, server).encode()
            )
            if left_count > 0:
                packet = self._signed(packet, SenderKind.NONE)
                left_count -= 1
            self._post(owner, packet, now)
            if tells_old and left_count > 0:
                values = notification_of(change, before, self._counters.identifier)
                if values is not None:
                    packet = self._packet(owner, values.encode())
                    self._post(owner, self._signed(packet, SenderKind.QUEUE_MANAGER), now)
                    left_count -= 1

    def _tells_old(self, before: DirectoryImage) -> bool:
        """Whether owners are told what has changed, too: as the directory service, and signed."""
        enterprise = before.enterprise
        return (
            self._config.directory.role is DirectoryRole.ORIGINAL
            and self._keys.signing is not None
            and enterprise is not None
            and enterprise.notify_old_managers
        )

    def _post(self, owner: Guid, packet: bytes, now: Instant) -> None:
        self._reporter.post(
            PrivateFormatName(owner, NOTIFY_QUEUE_NUMBER),
            packet,
            now,
            express_max_count=NOTIFICATIONS_WAITING_MAX_COUNT,
        )

    def _signed(self, packet: bytes, sender: SenderKind) -> bytes:
        """Sign a notification; only a directory service says in it who it is. [MQCN 3.3.5.3]"""
        own = self._keys.signing
        if own is None:
            return packet
        source = self._counters.identifier
        named = source if sender is SenderKind.QUEUE_MANAGER else b""
        signer = Signer(own.key, own.certificate, sender, named, _HASH)
        return sign(packet, signer, AuthenticationRequest.SIGNATURE_20, source)

    def _server(self, before: DirectoryImage) -> str:
        """Name the server where the directory was changed. [MQCN 3.3.5.1]

        A notification has ASCII letters only, and names of computers need not; then it is the
        identifier.
        """
        if self._config.directory.server:
            return self._config.directory.server
        name, identifier = self._config.name, self._counters.identifier
        if self._config.directory.role is DirectoryRole.COPY:
            for manager in before.managers.values():
                if manager.directory_server is DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER:
                    name, identifier = manager.computer_name, manager.identifier
                    break
        return name if _SERVER.fullmatch(name) else str(identifier)

    def _packet(self, owner: Guid, body: bytes) -> bytes:
        return encode(
            UserMessage(
                UserHeader(
                    self._counters.identifier,
                    owner,
                    destination=PrivateOnDestination(NOTIFY_QUEUE_NUMBER),
                ),
                MessageProperties.of(body),
                BaseHeader(time_to_reach_queue_s=NOTIFICATION_REACH_S),
            )
        )


class Heeded:
    """Heeds change notifications of others."""

    def __init__(self, directory: DirectoryService, security: MessageSecurity) -> None:
        self._directory = directory
        self._security = security

    def take(self, packet: bytes, now: Instant) -> None:
        """Heed what came to the queue of notifications. [MQCN 3.2.5.1, 3.2.5.2]"""
        message = decode(packet)
        assert isinstance(message, UserMessage)
        try:
            notification = decode_notification(message.properties.body)
        except DecodeError:
            return
        if isinstance(notification, ManagerNotification) or self._is_genuine(message, notification):
            self._directory.hint(now)

    def _is_genuine(self, message: UserMessage, notification: DirectoryNotification) -> bool:
        """Whether a server of the directory says that queues or queue managers have changed."""
        if not notification.updates or not all(map(is_about_ours, notification.updates)):
            return False
        manager = self._security.proved_manager(message)
        known = None if manager is None else self._directory.copy.image.managers.get(manager)
        return known is not None and known.directory_server is not None


def _event_of(change: Change, before: DirectoryImage) -> tuple[Guid, Event]:
    """Say whom a change concerns, and how; nil for changes that concern nobody in particular."""
    match change:
        case QueueProperties():
            known = change.identifier in before.queues
            return change.manager, Event.QUEUE_CHANGED if known else Event.QUEUE_CREATED
        case QueueManagerInfo() if change.identifier in before.managers:
            return change.identifier, Event.MANAGER_CHANGED
        case Removal(ObjectKind.QUEUE, identifier):
            queue = before.queues.get(identifier)
            return NIL_GUID if queue is None else queue.manager, Event.QUEUE_DELETED
        case _:
            return NIL_GUID, Event.QUEUE_CHANGED

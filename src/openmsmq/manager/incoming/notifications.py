"""Change notifications: whoever changes an object of another queue manager tells it so. [MQCN 3]

A notification only says that something is to be read again; what is believed is the directory
(C-147). So anybody may send one, and all it can bring about is a question to the directory, one at
a time and not too often. Those of a directory service (version 1) carry the new values themselves
and must be authenticated; nobody here knows the keys of such a service, so they are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, DirectoryRole, ObjectKind, Removal
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import DirectoryServerKind, QueueManagerInfo
from openmsmq.wire.bodies.notifications import (
    NOTIFY_QUEUE_NUMBER,
    Event,
    ManagerNotification,
)
from openmsmq.wire.bodies.notifications import decode as decode_notification
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode

NOTIFICATION_REACH_S: Final = 300
"""A notification that has not arrived by then is worth nothing. [MQCN 3.3.5.3]"""

NOTIFICATIONS_WAITING_MAX_COUNT: Final = 100
"""Notifications that wait for one queue manager; who misses one asks the directory anyway."""

_SERVER: Final = re.compile("[!-;=?-~]{1,256}")
"""What a notification can name as a server. [MQCN 2.2.5]"""


class Notifications:
    """Sends change notifications to the queue managers whose objects were changed from here."""

    def __init__(self, base: Foundation, reporter: Reporter) -> None:
        self._config = base.config
        self._counters = base.counters
        self._reporter = reporter

    def tell_owners(self, changes: Iterable[Change], before: DirectoryImage, now: Instant) -> None:
        """Tell the owners of changed objects. [MQCN 3.3.4.1]"""
        server = self._server(before)
        for change in changes:
            owner, event = _event_of(change, before)
            if owner not in (NIL_GUID, self._counters.identifier):
                body = ManagerNotification(event, change.identifier, server).encode()
                self._reporter.post(
                    PrivateFormatName(owner, NOTIFY_QUEUE_NUMBER),
                    self._packet(owner, body),
                    now,
                    express_max_count=NOTIFICATIONS_WAITING_MAX_COUNT,
                )

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

    def __init__(self, directory: DirectoryService) -> None:
        self._directory = directory

    def take(self, packet: bytes, now: Instant) -> None:
        """Heed what came to the queue of notifications. [MQCN 3.2.5.2]"""
        message = decode(packet)
        assert isinstance(message, UserMessage)
        try:
            notification = decode_notification(message.properties.body)
        except DecodeError:
            return
        if isinstance(notification, ManagerNotification):
            self._directory.hint(now)


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

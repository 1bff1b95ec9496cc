"""Queues that a message names beside its destination, and into which words of it may come.

A message that fails is copied into the dead-letter queue that its application names, and an
acknowledgment with its body goes to the administration queue. So whoever sends it must be one who
could send there himself: naming a queue is no way around its doors.
"""

from __future__ import annotations

from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.messages.dead_letters import closed_because
from openmsmq.manager.messages.reports import admin_queue_of
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.model.errors import AccessDenied, InvalidParameter, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    IllegalName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Caller
from openmsmq.wire import message_bytes
from openmsmq.wire.extensions import dead_letter_path_of
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.outline import Outline


class NamedQueues:
    """Refuses messages that name queues which their sender may not use."""

    def __init__(self, table: QueueTable, access: AccessControl, local: Guid) -> None:
        self._table = table
        self._access = access
        self._local = local

    def require_all(
        self, caller: Caller, queue: LocalQueue, packets: list[bytes], found: list[Outline]
    ) -> None:
        """Refuse a caller that names a queue to which it may not send, in messages to `queue`."""
        last: Outline | None = None
        for packet, outlined in zip(packets, found, strict=True):
            if outlined.flags & user.JOURNAL_ON_FAILURE:
                # It stands behind the body, where messages with the same headers may differ.
                self._require_dead_letter_queue(caller, packet)
                if outlined is not last and not caller.is_unlimited:
                    self._require_destination(queue, packet, outlined)
            if outlined is not last and outlined.flags & user.ADMIN_QUEUE and caller.queues:
                self._require_admin_queue(caller, packet)
            last = outlined

    def _require_destination(self, queue: LocalQueue, packet: bytes, found: Outline) -> None:
        """Refuse a message that says it is for another queue than the one it is put into.

        Whoever sends dead letters again sends them where they say, and may send there.
        """
        if not queue.can.take_messages or queue.is_connector:
            return
        try:
            if self._table.find_format_name(_destination(packet, found)) is queue:
                return
        except (MsmqError, IllegalName):
            pass
        raise InvalidParameter(f"a message is not addressed to {queue.name}")

    def _require_dead_letter_queue(self, caller: Caller, packet: bytes) -> None:
        path = dead_letter_path_of(packet)
        if not path:
            return
        try:
            queue = self._table.find(path)
        except MsmqError:
            # Then the dead-letter queue of the system takes it.
            return
        if not queue.can.take_messages:
            return
        closed = closed_because(queue)
        if closed:
            raise AccessDenied(f"{path} cannot be a dead-letter queue: {closed}")
        if not caller.is_unlimited:
            self._access.require_open(caller, queue, AccessMode.SEND)

    def _require_admin_queue(self, caller: Caller, packet: bytes) -> None:
        """Refuse a token for certain queues that has acknowledgments sent to others."""
        name = admin_queue_of(packet, self._local)
        if name is None:
            return
        try:
            shown = self._table.find_format_name(name).name
        except MsmqError:
            shown = str(name)
        if not caller.covers(shown):
            raise AccessDenied(
                f"{caller.name} may not have acknowledgments sent to {shown}: its token is for "
                "other queues"
            )


def _destination(packet: bytes, found: Outline) -> FormatName:
    match found.destination_name:
        case DirectName(text):
            return DirectFormatName.from_wire_text(text)
        case PrivateOnDestination(number):
            return PrivateFormatName(Guid(message_bytes.destination_manager(packet)), number)
        case PublicName(queue):
            return PublicFormatName(queue)
        case _:
            raise InvalidParameter("a message without a destination")

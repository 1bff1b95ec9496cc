"""The names of queues that a packet has, some of them in short, as names that stand alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.model.names import FormatName, IllegalName, parse_format_name
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import (
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    QueueName,
    SameAsAdmin,
)

if TYPE_CHECKING:
    from openmsmq.wire.headers.user import UserHeader


def name_text(name: QueueName, header: UserHeader) -> str | None:
    """Return a name as text. One that is none is not ours to repair, but to show."""
    if isinstance(name, SameAsAdmin):
        name = header.admin_queue
    try:
        found = format_name(name, header)
    except IllegalName:
        return queue_names.describe(name)
    return None if found is None else str(found)


def format_name(name: QueueName, header: UserHeader) -> FormatName | None:
    """Return a name as an application can use it; raises `IllegalName`."""
    match name:
        case None:
            return None
        case SameAsAdmin():
            return format_name(header.admin_queue, header)
        case PrivateOnSource(number):
            name = PrivateName(header.source, number)
        case PrivateOnDestination(number):
            name = PrivateName(header.destination_manager, number)
        case PrivateOnAdminHost(number):
            admin = header.admin_queue
            if not isinstance(admin, PrivateName):
                return None
            name = PrivateName(admin.manager, number)
        case _:
            pass
    return parse_format_name(queue_names.describe(name))

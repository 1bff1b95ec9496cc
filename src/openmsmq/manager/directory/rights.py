"""Rights on objects of the directory: only those that their kind has. [MQMQ 2.2.23-2.2.27]"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from openmsmq.model.directory import Change
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import ConnectedNetwork, EnterpriseInfo, QueueManagerInfo, Site
from openmsmq.security.access.access import (
    ENTERPRISE,
    MANAGER,
    NETWORK,
    QUEUE,
    SITE,
    Kind,
    with_known_rights,
)
from openmsmq.security.access.descriptors import BadDescriptor, decode, encode


def with_rights_of_their_kind(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return changes whose descriptors name only rights that the kind of object has."""
    return tuple(map(_with_rights, changes))


def _with_rights(change: Change) -> Change:
    match change:
        case QueueProperties():
            return _cleaned(change, change.security_descriptor, QUEUE)
        case QueueManagerInfo():
            return _cleaned(change, change.security_descriptor, MANAGER)
        case Site():
            return _cleaned(change, change.security_descriptor, SITE)
        case EnterpriseInfo():
            return _cleaned(change, change.security_descriptor, ENTERPRISE)
        case ConnectedNetwork():
            return _cleaned(change, change.security_descriptor, NETWORK)
        case _:
            return change


def _cleaned(change: Change, descriptor: bytes, kind: Kind) -> Change:
    if not descriptor:
        return change
    try:
        found = decode(descriptor)
    except BadDescriptor:
        # What cannot be read lets administrators in only, whatever it says.
        return change
    known = with_known_rights(found, kind)
    if known is found:
        return change
    return msgspec.structs.replace(change, security_descriptor=encode(known))

"""What a directory holds and how a copy of it is kept up to date. [MQDMPR 3.1.1, 3.1.7.1.18-25]

Every queue manager of an enterprise keeps a copy of the directory in its own store. It learns
what has changed since it last asked, whether it asks the directory of another queue manager or
Active Directory, so routing, names and look-ups work on while the directory cannot be reached.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import (
    ConnectedNetwork,
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)


class ObjectKind(Enum):
    """The kinds of objects in a directory; the values are the words that people read."""

    ENTERPRISE = "enterprise"
    SITE = "site"
    LINK = "link"
    NETWORK = "network"
    MANAGER = "manager"
    QUEUE = "queue"
    USER = "user"
    LIST = "list"


class DirectoryRole(Enum):
    """What a queue manager has of a directory. [MQOD 2.1.3.3]"""

    NONE = "none"
    """Nothing: it works in workgroup mode."""
    ORIGINAL = "original"
    """All of it: changes are made here."""
    COPY = "copy"
    """A copy of one that is elsewhere."""


DirectoryObject: TypeAlias = (
    EnterpriseInfo
    | Site
    | RoutingLink
    | ConnectedNetwork
    | QueueManagerInfo
    | QueueProperties
    | UserInfo
    | DistributionList
)

TYPES: Final[dict[ObjectKind, type[DirectoryObject]]] = {
    ObjectKind.ENTERPRISE: EnterpriseInfo,
    ObjectKind.SITE: Site,
    ObjectKind.LINK: RoutingLink,
    ObjectKind.NETWORK: ConnectedNetwork,
    ObjectKind.MANAGER: QueueManagerInfo,
    ObjectKind.QUEUE: QueueProperties,
    ObjectKind.USER: UserInfo,
    ObjectKind.LIST: DistributionList,
}
_KINDS: Final = {kept: kind for kind, kept in TYPES.items()}


def kind_of(value: DirectoryObject) -> ObjectKind:
    """Say of which kind an object is."""
    return _KINDS[type(value)]


class Removal(msgspec.Struct, frozen=True):
    """An object is in the directory no more."""

    kind: ObjectKind
    identifier: Guid


Change: TypeAlias = DirectoryObject | Removal
"""An object as it is now, whether it is new or was there before; or that it is gone."""


class Position(msgspec.Struct, frozen=True):
    """How far a copy has come: which directory it is a copy of, and its last change there.

    A directory that was made anew has another incarnation, and its changes are counted from the
    beginning, so a copy of the old one is not taken for one of the new.
    """

    incarnation: Guid = NIL_GUID
    number: int = 0


NOWHERE: Final = Position()
"""The position of a copy that has nothing yet."""


class DirectoryChanges(msgspec.Struct, frozen=True):
    """What has changed in a directory since a position."""

    position: Position
    """Where a copy is once it has taken all of this."""
    changes: tuple[Change, ...] = ()
    is_complete: bool = False
    """Whether these are all objects: what a copy has beside them is gone."""

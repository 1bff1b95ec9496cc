"""What is to be known of a request: what it needs, whether it repeats, waits, is heavy or audited.

Each request says this of itself, in its class, and everybody who has to know asks the class: the
queue manager what it needs, the server of the interface whether it waits, the client whether it
may be sent again. Handles are checked when they are opened, so requests that go by a handle need
nothing more: a right that is taken away later counts for whoever opens the queue next, as with
MSMQ.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from openmsmq.model.access import ManagerAccess, QueueAccess


class Check(Enum):
    """What is looked at before a request is carried out."""

    NOTHING = "nothing"
    """It works on what the caller itself has opened or begun."""
    OPEN = "open"
    """The rights that the access mode needs, on the queue that is opened."""
    QUEUE = "queue"
    """Rights on the queue that the request names."""
    MANAGER = "manager"
    """Rights on the queue manager."""
    OBJECT = "object"
    """Rights on the queue that the request names, or on the queue manager if it names none."""
    SECURITY = "security"
    """As `OBJECT`; which rights depends on what is to be changed."""
    KNOWN = "known"
    """The caller must have proved who it is, and its bounds must include sending."""
    OWNER = "owner"
    """The caller must have proved who it is, and what is named must be its own; those who may
    change the queue manager may use everything."""
    SELF = "self"
    """The caller must be the user whom it stands for, without bounds, and not only for a while."""

    @property
    def goes_by_rights(self) -> bool:
        """Whether certain rights are looked for."""
        return self in (Check.QUEUE, Check.MANAGER, Check.OBJECT)

    @property
    def goes_by_name(self) -> bool:
        """Whether the request says in `name` which queue it is about."""
        return self in (Check.OPEN, Check.QUEUE, Check.OBJECT, Check.SECURITY)


class Need(msgspec.Struct, frozen=True):
    """What a caller needs for a request."""

    check: Check
    rights: int = 0

    def __post_init__(self) -> None:
        """Refuse a check of rights that looks for none, and rights that nobody looks for."""
        if (self.rights != 0) != self.check.goes_by_rights:
            raise TypeError(f"{self.check} with the rights {self.rights:#x}")


OWN: Final = Need(Check.NOTHING)
KNOWN: Final = Need(Check.KNOWN)
OWNER: Final = Need(Check.OWNER)
SELF: Final = Need(Check.SELF)
SHOW: Final = Need(Check.MANAGER, int(ManagerAccess.GET_PROPERTIES))
ADMINISTER: Final = Need(Check.MANAGER, int(ManagerAccess.SET_PROPERTIES))


def on_queue(rights: QueueAccess) -> Need:
    """Return the need of rights on the queue that is named."""
    return Need(Check.QUEUE, int(rights))


def on_manager(rights: ManagerAccess) -> Need:
    """Return the need of rights on the queue manager."""
    return Need(Check.MANAGER, int(rights))


def on_object(rights: QueueAccess) -> Need:
    """Return the need of rights on the queue that is named, or on the queue manager."""
    return Need(Check.OBJECT, int(rights))


class Repeats(Enum):
    """Whether a request may be sent again when its connection was lost before its answer came."""

    ALWAYS = "always"
    """It changes nothing, or nothing that outlives the connection, or twice is once."""
    SOMETIMES = "sometimes"
    """What it asks for decides: the class has a `may_repeat` of its own."""
    NEVER = "never"
    """It may have taken effect, and would again."""


class Facts(msgspec.Struct, frozen=True):
    """What is to be known of all requests of a class."""

    needs: Need
    repeats: Repeats
    is_audited: bool = False
    """Whether it changes something for others, or for good: the audit log tells of it."""
    waits: bool = False
    """Whether it may wait for something to happen, and has done nothing while it does."""
    ends_waits: bool = False
    """Whether it makes waiting calls fewer: it is taken even if no more of them may wait."""
    is_heavy: bool = False
    """Whether its answer may be large: few of them are taken in one turn."""
    asks_directory: bool = False
    """Whether it begins with a name, and has done nothing if that is not found: the directory is
    asked before the name counts as missing."""

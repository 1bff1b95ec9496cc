"""What a turn does to access control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError
from openmsmq.storage import records

if TYPE_CHECKING:
    from openmsmq.manager.access.control import AccessControl


class ManagerSecurityChanged(Effect):
    """The queue manager has another descriptor."""

    __slots__ = ("access", "after", "before")

    def __init__(self, access: AccessControl, after: bytes) -> None:
        self.access = access
        self.before = access.descriptor
        self.after = after

    def apply(self) -> None:
        """Let the new one count."""
        self.access.go_by(self.after)

    def store(self, writes: Writes) -> None:
        """Write it."""
        writes.put(records.MANAGER_SECURITY_KEY, self.after)

    def revert(self, _: MsmqError, /) -> None:
        """Let the old one count."""
        self.access.go_by(self.before)

    def describe(self) -> dict[str, Plain]:
        """Return its size, and whether it is the default."""
        return {"size_bytes": len(self.after), "is_default": not self.after}

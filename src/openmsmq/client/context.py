"""What the parts of one client share: which connection is the current one, and who answers it."""

from __future__ import annotations

from openmsmq.api.messages import Welcome
from openmsmq.model.identity import NIL_GUID, Guid


class ClientContext:
    """The queue manager as the last connection met it. Each connection is a new generation.

    Handles, cursors and transactions belong to the generation that made them.
    """

    __slots__ = ("generation", "manager", "manager_name", "software")

    def __init__(self) -> None:
        self.generation = 0
        self.manager = NIL_GUID
        self.manager_name = ""
        self.software = ""

    def connected(self, welcome: Welcome) -> None:
        """Take note of a new connection."""
        self.generation += 1
        self.manager = Guid(welcome.manager)
        self.manager_name = welcome.manager_name
        self.software = welcome.software

"""Former ways: who passed messages on, by the directory as it was.

When an administrator takes that task from a queue manager, messages of others are still there, and
they go on from there: it has acknowledged them, so nobody else has them any more. Who forgets what
it was would refuse them.
"""

from __future__ import annotations

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import FORMER_WAY_S, FORMER_WAYS_MAX_COUNT


class FormerWays:
    """Remembers whom the directory had as a way; a restart forgets it."""

    def __init__(self, copy: DirectoryCopy) -> None:
        self._copy = copy
        self._image = copy.image
        self._ways = ways_of(copy.image)
        self._until_ms: dict[Guid, int] = {}
        """Those who are none any more, the last of them at the end."""

    def heed(self, now: Instant) -> None:
        """The directory has changed: remember those who were a way before."""
        image, before = self._copy.image, self._image
        self._image = image
        if image is before or image.routes_like(before):
            return
        ways = ways_of(image)
        for manager in self._ways - ways:
            self._until_ms.pop(manager, None)
            self._until_ms[manager] = now.ticks_ms + FORMER_WAY_S * 1000
        while len(self._until_ms) > FORMER_WAYS_MAX_COUNT:
            del self._until_ms[next(iter(self._until_ms))]
        self._ways = ways

    def has(self, manager: Guid, now: Instant) -> bool:
        """Whether messages of others may still be at a queue manager that was a way to here."""
        return self._until_ms.get(manager, now.ticks_ms) > now.ticks_ms


def ways_of(image: DirectoryImage) -> frozenset[Guid]:
    """Return all who pass messages on, for whomever, by one state of the directory."""
    managers = image.managers.values()
    return frozenset(
        (
            *(manager.identifier for manager in managers if manager.routing_server),
            *(server for manager in managers for server in manager.in_routing_servers),
            *(server for manager in managers for server in manager.out_routing_servers),
            *(gate for link in image.links.values() for gate in link.site_gates),
        )
    )

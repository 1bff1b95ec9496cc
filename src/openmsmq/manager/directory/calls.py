"""Calls that wait for the directory, and who hears of its changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change
from openmsmq.model.errors import MsmqError

Done: TypeAlias = Callable[[Sequence[Change], Instant], None]
Refused: TypeAlias = Callable[[MsmqError, Instant], None]


class Publisher(Protocol):
    """Publishes this queue manager in the directory."""

    def publish(self, done: Done, refused: Refused, now: Instant) -> None:
        """Publish ourselves as we are now."""
        ...


class Owners(Protocol):
    """Reaches the queue managers to whom objects of the directory belong."""

    def tell_owners(self, changes: Sequence[Change], before: DirectoryImage, now: Instant) -> None:
        """Tell the queue managers whose objects were changed from here."""
        ...

"""What a queue manager's driver asks of a directory, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from openmsmq.model.directory import Change, DirectoryChanges, Position


class DirectoryPort(Protocol):
    """A directory that can be reached over a network.

    All failures are `MsmqError`s. `NoDirectory` means that it could not be asked, so that the same
    may work later; other errors are its answer.
    """

    async def changes(self, position: Position) -> DirectoryChanges:
        """Ask what has changed since a copy was at `position`."""

    async def moved(self, position: Position) -> bool:
        """Wait for a while until the directory is no longer at `position`; say whether it is so."""

    async def write(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Change objects, in order, until one is refused.

        Gives them as the directory has them now: it may choose the identifiers of new objects.
        """

    async def close(self) -> None:
        """End the connection."""

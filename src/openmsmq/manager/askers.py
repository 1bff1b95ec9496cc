"""On whose word the queue manager acts: its applications', a known peer's or a stranger's."""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import NIL_GUID, Guid


class Asker:
    """Who says so, as far as it is known."""

    __slots__ = ("address", "is_brought", "known", "manager")

    def __init__(
        self, address: str, manager: Guid, *, known: bool, is_brought: bool = False
    ) -> None:
        self.address = address
        """Where the session comes from; empty for the queue manager and its applications."""
        self.manager = manager
        """The queue manager at its other end; nil where another one may have that identifier."""
        self.known = known
        self.is_brought = is_brought
        """Whether it is somebody behind the one at that address, which is known and cannot know who
        that is: he has the room of a stranger, and the one who brings him never waits for him."""

    @property
    def is_stranger(self) -> bool:
        """Whether nobody vouches for who says so."""
        return not self.known or self.is_brought

    @property
    def is_own(self) -> bool:
        """Whether nobody else says so."""
        return not self.address


OURSELVES: Final = Asker("", NIL_GUID, known=True)
"""The word of the queue manager itself, of its applications and of its clock."""


class Acting:
    """On whose word the queue manager acts at this moment."""

    __slots__ = ("asker",)

    def __init__(self) -> None:
        self.asker = OURSELVES

    def on_word_of(self, asker: Asker) -> None:
        """Act on the word of somebody from now on."""
        self.asker = asker

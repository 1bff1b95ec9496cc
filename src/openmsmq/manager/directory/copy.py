"""The directory as this queue manager has it in its store: the original, or a copy of it.

Each object carries the number of its last change. A copy takes over the numbers of its directory,
or higher ones: so whoever has a copy can serve others from it, and they may change servers. To get
an object twice does no harm, to miss one would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from openmsmq.directory.codec import decode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.limits import DIRECTORY_REMOVED_MAX_COUNT
from openmsmq.manager.directory.effects import (
    KIND_NUMBERS,
    KINDS,
    DirectoryMoved,
    ObjectKey,
    key_of,
)
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.directory import (
    NOWHERE,
    Change,
    DirectoryChanges,
    DirectoryObject,
    Position,
    Removal,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader

_ROWS: Final = 1000

Standing: TypeAlias = tuple[Position, DirectoryImage, bool, int, dict[ObjectKey, None]]
"""Where a copy stands: position, objects, whether it is the original, floor, removals."""


class DirectoryCopy:
    """All objects of the directory, and how far this copy has come."""

    def __init__(self, ledger: Ledger, reader: StoreReader) -> None:
        self._ledger = ledger
        self.removed_max = DIRECTORY_REMOVED_MAX_COUNT
        """So many removals are remembered."""
        self.position = NOWHERE
        self.is_original = False
        """Whether the changes are counted here."""
        self.question_number = 0
        """How often the directory was asked since we started."""
        self.answer_number = 0
        """The last of these questions that was answered."""
        self.is_doubted = False
        """Whether this copy looks as if it were behind, so that the directory is to be asked."""
        self.floor = 0
        """Removals are remembered of changes after this one."""
        self.numbers: dict[ObjectKey, int] = {}
        """The last change of each object and each removal; those changed last come last."""
        self._is_in_order = True
        self.removed: dict[ObjectKey, None] = {}
        """The objects of which the removal is remembered."""
        self._everything: tuple[DirectoryObject, ...] = ()
        self._everything_in: DirectoryImage | None = None
        objects: list[DirectoryObject] = []
        value = reader.get(records.POSITION_KEY)
        if value is not None:
            record = records.decode_record(value, records.PositionRecord)
            self.position = Position(record.incarnation, record.number)
            self.is_original = record.is_original
            self.floor = record.floor
            objects = self._restore(reader)
        self.image = DirectoryImage(objects)

    def _restore(self, reader: StoreReader) -> list[DirectoryObject]:
        objects: list[DirectoryObject] = []
        start, stop = records.kind_range(b"G")
        while rows := reader.scan(start, stop, _ROWS):
            for key, value in rows:
                kind, identifier = KINDS[key[1]], Guid(key[2:])
                number, data = records.decode_object_row(value)
                self.numbers[kind, identifier] = number
                if data:
                    objects.append(decode_object(kind, data))
                else:
                    self.removed[kind, identifier] = None
            start = rows[-1][0] + b"\0"
        self._is_in_order = False
        return objects

    # Changing.

    def found(self, incarnation: Guid, objects: Sequence[DirectoryObject]) -> None:
        """Begin a directory of our own: with these objects, and with what a copy has already.

        Others may know later changes than a copy does, so its numbers are not gone on with.
        """
        position = Position(incarnation, self.position.number + 1)
        self._apply(position, objects, is_original=True, renumber=True)

    def write(self, changes: Sequence[Change]) -> list[Change]:
        """Change the original; gives what really changed."""
        real = self._real(changes)
        if real:
            position = Position(self.position.incarnation, self.position.number + 1)
            self._apply(position, real, is_original=True)
        return real

    def take(self, told: DirectoryChanges) -> list[Change]:
        """Come up to date with what a directory says; gives what really changed."""
        position = told.position
        same = position.incarnation == self.position.incarnation
        back = same and position.number < self.position.number
        if position.incarnation == NIL_GUID or (back and not told.is_complete):
            # A server that has read nothing yet, or less than we have.
            return []
        changes: Sequence[Change] = told.changes
        if told.is_complete:
            named = {key_of(change) for change in changes}
            gone = (key for key in map(key_of, self.image) if key not in named)
            changes = [*changes, *(Removal(*key) for key in gone)]
        real = self._real(changes)
        if told.is_complete:
            # Who is not as far as this asks for everything, so only what is new gets a number.
            changes = real
        if changes or position != self.position:
            renumber = back or not same
            self._apply(position, changes, renumber=renumber, forget=told.is_complete)
        return real

    def _real(self, changes: Iterable[Change]) -> list[Change]:
        """Return the last change of each object, unless it is so already."""
        last = {key_of(change): change for change in changes}
        return [
            change
            for key, change in last.items()
            if self.image.get(*key) != (None if isinstance(change, Removal) else change)
        ]

    def _apply(
        self,
        position: Position,
        changes: Sequence[Change],
        *,
        is_original: bool = False,
        renumber: bool = False,
        forget: bool = False,
    ) -> None:
        """Become what the changes say, those too that are not new here.

        Others may have missed more than we have: an object may have changed to and fro, or come
        and gone, since we last asked, and they ask us.
        """
        image = self.image.changed(changes) if changes else self.image
        if renumber:
            # The numbers of another directory mean nothing in this one.
            changes = [*(each for each in changes if isinstance(each, Removal)), *image]
        forget = renumber or forget
        self._ledger.add(
            DirectoryMoved(self, position, image, changes, is_original=is_original, forget=forget)
        )

    def standing(self) -> Standing:
        """Return where it stands, to come back there."""
        return self.position, self.image, self.is_original, self.floor, self.removed.copy()

    def move_to(self, position: Position, image: DirectoryImage, *, is_original: bool) -> None:
        """Be at another position, with the objects that are there."""
        self.position = position
        self.image = image
        self.is_original = is_original

    def note(self, change: Change, number: int) -> int | None:
        """Number a change; return the number that its object had before."""
        key = key_of(change)
        if isinstance(change, Removal):
            self.removed[key] = None
        else:
            self.removed.pop(key, None)
        before = self.numbers.pop(key, None)
        self.numbers[key] = number
        return before

    def forget_removed(self) -> dict[ObjectKey, int | None]:
        """Remember no removals before the present position; gives those that are forgotten."""
        self.floor = self.position.number
        forgotten = {key: self.numbers.pop(key, None) for key in self.removed}
        self.removed = {}
        return forgotten

    def take_back(self, before: Standing, numbers: dict[ObjectKey, int | None]) -> None:
        """Go back to where it stood, and to the numbers that objects had."""
        self.position, self.image, self.is_original, self.floor, self.removed = before
        for key, number in numbers.items():
            self.numbers.pop(key, None)
            if number is not None:
                self.numbers[key] = number
        self._is_in_order = False

    # Asking.

    def doubt(self) -> int:
        """Say that this copy may be behind; gives the question whose answer settles that."""
        self.is_doubted = True
        return self.question_number + 1

    def ask(self) -> None:
        """Note that the directory is asked now: doubts of before are settled by its answer."""
        self.is_doubted = False
        self.question_number += 1

    def answered(self) -> None:
        """Note that the directory has answered the last question."""
        self.answer_number = self.question_number

    # Telling others.

    def since(self, position: Position) -> DirectoryChanges:
        """Return what has changed since a position; in a stable order, so that it can be cut up."""
        same = position.incarnation == self.position.incarnation
        # Nobody can be farther than the original, unless that was restored from a backup.
        lost = self.is_original and position.number > self.position.number
        if not same or lost or position.number < self.floor:
            return DirectoryChanges(self.position, self._all(), is_complete=True)
        changes: list[Change] = []
        for kind_number, identifier in sorted(self._changed_after(position.number)):
            kind = KINDS[kind_number]
            value = self.image.get(kind, Guid(identifier))
            changes.append(Removal(kind, Guid(identifier)) if value is None else value)
        return DirectoryChanges(self.position, tuple(changes))

    def _changed_after(self, number: int) -> Iterator[tuple[int, bytes]]:
        if not self._is_in_order:
            self.numbers = dict(sorted(self.numbers.items(), key=itemgetter(1)))
            self._is_in_order = True
        for key, changed in reversed(self.numbers.items()):
            if changed <= number:
                return
            yield KIND_NUMBERS[key[0]], bytes(key[1])

    def _all(self) -> tuple[DirectoryObject, ...]:
        if self._everything_in is not self.image:
            self._everything = tuple(
                value
                for kind in KINDS
                for _, value in sorted(self.image.of_kind(kind).items(), key=itemgetter(0))
            )
            self._everything_in = self.image
        return self._everything

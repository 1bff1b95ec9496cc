"""What a turn does to the directory, and how the store knows its objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from openmsmq.directory.codec import encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.directory import Change, ObjectKind, Position, Removal, kind_of
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.storage import records
from openmsmq.storage.records import PositionRecord

if TYPE_CHECKING:
    from openmsmq.manager.directory.copy import DirectoryCopy

KINDS: Final = (
    ObjectKind.ENTERPRISE,
    ObjectKind.SITE,
    ObjectKind.LINK,
    ObjectKind.NETWORK,
    ObjectKind.MANAGER,
    ObjectKind.QUEUE,
    ObjectKind.USER,
    ObjectKind.LIST,
)
"""The kinds by the number that they have in the store: new ones are added at the end."""
KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}

ObjectKey: TypeAlias = tuple[ObjectKind, Guid]


def key_of(change: Change) -> ObjectKey:
    """Return what object a change is about."""
    kind = change.kind if isinstance(change, Removal) else kind_of(change)
    return kind, change.identifier


class DirectoryMoved(Effect):
    """The directory, or a copy of it, has come to another position."""

    __slots__ = (
        "before",
        "changes",
        "copy",
        "forget",
        "forgotten",
        "image",
        "is_original",
        "numbers",
        "position",
    )

    def __init__(
        self,
        copy: DirectoryCopy,
        position: Position,
        image: DirectoryImage,
        changes: Sequence[Change],
        *,
        is_original: bool,
        forget: bool,
    ) -> None:
        self.copy = copy
        self.position = position
        self.image = image
        self.changes = changes
        """All that get the number of the new position, whether they are new here or not."""
        self.is_original = is_original
        self.forget = forget
        """Whether no removal is to be remembered any more."""
        self.before = copy.standing()
        self.numbers: dict[ObjectKey, int | None] = {}
        """What number each object had before."""
        self.forgotten: dict[ObjectKey, int | None] = {}
        """The removals that are not remembered any more."""

    def apply(self) -> None:
        """Be there, and have the objects as they are there."""
        copy = self.copy
        copy.move_to(self.position, self.image, is_original=self.is_original)
        for change in self.changes:
            self.numbers.setdefault(key_of(change), copy.note(change, self.position.number))
        if self.forget or len(copy.removed) > copy.removed_max:
            self.forgotten = copy.forget_removed()
            for key, number in self.forgotten.items():
                self.numbers.setdefault(key, number)

    def store(self, writes: Writes) -> None:
        """Write every change, and the position."""
        number = self.position.number
        for change in self.changes:
            kind, identifier = key_of(change)
            data = b"" if isinstance(change, Removal) else encode_object(change)
            row = records.encode_object_row(number, data)
            writes.put(records.object_key(KIND_NUMBERS[kind], identifier), row)
        for kind, identifier in self.forgotten:
            writes.delete(records.object_key(KIND_NUMBERS[kind], identifier))
        record = PositionRecord(
            self.position.incarnation, number, self.copy.floor, self.is_original
        )
        writes.put(records.POSITION_KEY, records.encode_record(record))

    def revert(self, _: MsmqError, /) -> None:
        """Be where it was before, with what was there."""
        self.copy.take_back(self.before, self.numbers)

    def describe(self) -> dict[str, Plain]:
        """Return the position, and how many objects are others there."""
        return {
            "incarnation": str(self.position.incarnation),
            "number": self.position.number,
            "changes": len(self.changes),
            "is_original": self.is_original,
        }

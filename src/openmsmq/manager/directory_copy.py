"""The directory as this queue manager has it in its store: the original, or a copy of it.

Each object carries the number of its last change. A copy takes over the numbers of its directory,
or higher ones: so whoever has a copy can serve others from it, and they may change servers. To get
an object twice does no harm, to miss one would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from openmsmq.directory.codec import decode_object, encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.ledger import Ledger
from openmsmq.model.directory import (
    NOWHERE,
    Change,
    DirectoryChanges,
    DirectoryObject,
    ObjectKind,
    Position,
    Removal,
    kind_of,
)
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DIRECTORY_REMOVED_MAX_COUNT
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import PositionRecord

_KINDS: Final = list(ObjectKind)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_ROWS: Final = 1000

_Key = tuple[ObjectKind, Guid]


class DirectoryCopy:
    """All objects of the directory, and how far this copy has come."""

    def __init__(self, ledger: Ledger, reader: StoreReader) -> None:
        self._ledger = ledger
        self.position = NOWHERE
        self._floor = 0
        self._numbers: dict[_Key, int] = {}
        self._removed: dict[_Key, None] = {}
        objects: list[DirectoryObject] = []
        value = reader.get(records.POSITION_KEY)
        if value is not None:
            record = records.decode_position(value)
            self.position = Position(record.incarnation, record.number)
            self._floor = record.floor
            objects = self._restore(reader)
        self.image = DirectoryImage(objects)

    def _restore(self, reader: StoreReader) -> list[DirectoryObject]:
        objects: list[DirectoryObject] = []
        start, stop = records.kind_range(b"G")
        while rows := reader.scan(start, stop, _ROWS):
            for key, value in rows:
                kind, identifier = _KINDS[key[1]], Guid(key[2:])
                number, data = records.decode_object_row(value)
                self._numbers[kind, identifier] = number
                if data:
                    objects.append(decode_object(kind, data))
                else:
                    self._removed[kind, identifier] = None
            start = rows[-1][0] + b"\0"
        return objects

    # Changing.

    def found(self, incarnation: Guid, objects: Sequence[DirectoryObject]) -> None:
        """Begin a directory of our own."""
        self._apply(Position(incarnation, 1), objects)

    def write(self, changes: Sequence[Change]) -> list[Change]:
        """Change the original; gives what really changed."""
        real = self._real(changes)
        if real:
            position = Position(self.position.incarnation, self.position.number + 1)
            self._apply(position, real)
        return real

    def take(self, told: DirectoryChanges) -> list[Change]:
        """Come up to date with what a directory says; gives what really changed."""
        changes: list[Change] = list(told.changes)
        if told.is_complete:
            named = {_key_of(change) for change in changes}
            changes += [
                Removal(kind_of(value), value.identifier)
                for value in self.image
                if (kind_of(value), value.identifier) not in named
            ]
        real = self._real(changes)
        if real or told.position != self.position:
            another = told.position.incarnation != self.position.incarnation
            self._apply(told.position, real, restart=another)
        return real

    def _real(self, changes: Iterable[Change]) -> list[Change]:
        """Give the last change of each object, unless it is so already."""
        last = {_key_of(change): change for change in changes}
        return [
            change
            for key, change in last.items()
            if self.image.get(*key) != (None if isinstance(change, Removal) else change)
        ]

    def _apply(
        self, position: Position, changes: Sequence[Change], *, restart: bool = False
    ) -> None:
        before = self.image, self.position, self._floor, dict(self._numbers), dict(self._removed)

        def restore(_: MsmqError) -> None:
            self.image, self.position, self._floor, self._numbers, self._removed = before

        self._ledger.when_done(lambda: None, restore)
        if changes:
            self.image = self.image.changed(changes)
        self.position = position
        if restart:
            # The numbers of another directory mean nothing in this one.
            self._forget_removed(position.number)
            for value in self.image:
                self._store(value, position.number)
        for change in changes:
            self._store(change, position.number)
        if len(self._removed) > DIRECTORY_REMOVED_MAX_COUNT:
            self._forget_removed(position.number)
        record = PositionRecord(position.incarnation, position.number, self._floor)
        self._ledger.put(records.POSITION_KEY, records.encode_record(record))

    def _store(self, change: Change, number: int) -> None:
        kind, identifier = key = _key_of(change)
        data = b""
        if isinstance(change, Removal):
            self._removed[key] = None
        else:
            self._removed.pop(key, None)
            data = encode_object(change)
        self._numbers[key] = number
        row = records.encode_object_row(number, data)
        self._ledger.put(records.object_key(_NUMBERS[kind], identifier), row)

    def _forget_removed(self, floor: int) -> None:
        self._floor = floor
        for kind, identifier in self._removed:
            self._numbers.pop((kind, identifier), None)
            self._ledger.delete(records.object_key(_NUMBERS[kind], identifier))
        self._removed.clear()

    # Telling others.

    def since(self, position: Position) -> DirectoryChanges:
        """Tell what has changed since a position; in a stable order, so that it can be cut up."""
        same = position.incarnation == self.position.incarnation
        complete = not same or position.number < self._floor
        after = -1 if complete else position.number
        keys = sorted(_key_number(key) for key, number in self._numbers.items() if number > after)
        changes: list[Change] = []
        for kind_number, identifier in keys:
            kind = _KINDS[kind_number]
            value = self.image.get(kind, Guid(identifier))
            if value is not None:
                changes.append(value)
            elif not complete:
                changes.append(Removal(kind, Guid(identifier)))
        return DirectoryChanges(self.position, tuple(changes), is_complete=complete)


def _key_of(change: Change) -> _Key:
    kind = change.kind if isinstance(change, Removal) else kind_of(change)
    return kind, change.identifier


def _key_number(key: _Key) -> tuple[int, bytes]:
    """Give a key that sorts in the order of the store."""
    return _NUMBERS[key[0]], bytes(key[1])

"""The files in which values of bundles stay: what the base has in each, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from openmsmq.storage.bundles.checksums import checksum_of, pack, unpack
from openmsmq.storage.bundles.staying import FileUse, Stay
from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.layout import ADVICE, aside_name
from openmsmq.storage.port import StoreDamaged

OPENED_MAX_COUNT: Final = 8
"""Files that stay open to read what stays in them."""

WASTED_MAX_BYTES: Final = 64 << 20
"""The files in which values stay may be so much longer than twice what they are for. Beyond that
the base takes in what is left of the file that wastes the most."""

_FILE: Final = b"file"
_NUMBER_BYTES: Final = 8
_USE: Final = msgspec.msgpack.Decoder(FileUse)


def _nobody_asks(_number: int, _size_bytes: int) -> None:
    """Tell nobody that a file is not needed any more."""


class StayedFiles:
    """The files beside a base, each by its number."""

    def __init__(self, files: FileOps, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._opened: dict[int, int] = {}
        # Whether a file has become less worth its place since that was looked at.
        self._is_scattered = True
        self.uses: dict[int, FileUse] = {}
        """What the base has in each."""
        self.left: Callable[[int, int], None] = _nobody_asks
        """Called with a file's number and length when nothing of the base is in it any more."""

    def load(self, cursor: lmdb.Cursor[bytes]) -> bytes | None:
        """Read what the base has in files; gives the key of what is damaged, if something is."""
        there = cursor.set_range(_FILE)
        while there and (key := cursor.key()).startswith(_FILE):
            value = unpack(key, cursor.value())
            if value is None:
                return key
            self.uses[int.from_bytes(key[len(_FILE) :], "big")] = _USE.decode(value)
            there = cursor.next()
        return None

    def store(
        self, transaction: lmdb.Transaction, state: lmdb._Database, changed: Mapping[int, FileUse]
    ) -> None:
        """Write what the base has in files from now on."""
        for number, use in changed.items():
            key = _FILE + number.to_bytes(_NUMBER_BYTES, "big")
            if use.used_bytes:
                transaction.put(key, pack(key, msgspec.msgpack.encode(use)), db=state)
            else:
                transaction.delete(key, db=state)

    def stored(self, changed: Mapping[int, FileUse]) -> None:
        """Know of what was written: it is on the disk."""
        for number, use in changed.items():
            if use.used_bytes:
                before = self.uses.get(number)
                if before is not None and use.used_bytes < before.used_bytes:
                    self._is_scattered = True
                self.uses[number] = use
            else:
                self.uses.pop(number, None)
                self._close(number)
                self.left(number, use.size_bytes)

    def most_wasteful(self) -> int | None:
        """Return the file that wastes the most, if all together waste too much."""
        if not self._is_scattered:
            return None
        used_bytes = sum(use.used_bytes for use in self.uses.values())
        wasted_bytes = sum(use.size_bytes for use in self.uses.values()) - used_bytes
        if wasted_bytes <= used_bytes + WASTED_MAX_BYTES:
            self._is_scattered = False
            return None
        return max(
            self.uses, key=lambda each: self.uses[each].size_bytes - self.uses[each].used_bytes
        )

    def read(self, stay: Stay) -> bytes:
        """Read the values of a bundle that are in a file."""
        path = self._directory / aside_name(stay.file)
        try:
            file = self._opened.get(stay.file)
            if file is None:
                file = self._files.open(path, write=False)
                while len(self._opened) >= OPENED_MAX_COUNT:
                    self._close(next(iter(self._opened)))
                self._opened[stay.file] = file
            data = self._files.read(file, stay.length, stay.offset)
        except FileNotFoundError:
            raise StoreDamaged(f"{path} is missing: {ADVICE}") from None
        except OSError as error:
            raise disk_error(error, "read messages", path) from error
        if len(data) != stay.length or checksum_of(data) != stay.checksum:
            raise StoreDamaged(
                f"{path}: the checksum of {stay.length} bytes at {stay.offset} is wrong: {ADVICE}"
            )
        return data

    def close(self) -> None:
        """Close what was opened to be read."""
        for number in list(self._opened):
            self._close(number)

    def _close(self, number: int) -> None:
        file = self._opened.pop(number, None)
        if file is not None:
            self._files.close(file)

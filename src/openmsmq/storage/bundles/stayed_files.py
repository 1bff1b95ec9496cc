"""The files in which values of bundles stay: what the base has in each, and how it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
        self._used_bytes = 0
        self.size_bytes = 0
        """How long all are together."""
        self.uses: dict[int, FileUse] = {}
        """What the base has in each."""
        self.left: Callable[[int, int], None] = _nobody_asks
        """Called with a file's number and length when nothing of the base is in it any more."""
        self.found_bytes: Final = Counter[int]()
        """What whoever reads everything has found in each, so far."""

    def load(self, cursor: lmdb.Cursor[bytes]) -> bytes | None:
        """Read what the base has in files; gives the key of what is damaged, if something is."""
        there = cursor.set_range(_FILE)
        while there and (key := cursor.key()).startswith(_FILE):
            value = unpack(key, cursor.value())
            if value is None:
                return key
            self._set(int.from_bytes(key[len(_FILE) :], "big"), _USE.decode(value))
            there = cursor.next()
        return None

    def problems(self) -> Iterator[str]:
        """Look whether all files are there, and as long as they should be."""
        for number, use in self.uses.items():
            path = self.path(number)
            try:
                file = self._files.open(path, write=False)
            except FileNotFoundError:
                yield f"{path} is missing"
                continue
            try:
                size_bytes = self._files.size_bytes(file)
            finally:
                self._files.close(file)
            if size_bytes < use.size_bytes:
                yield f"{path} is cut: {size_bytes} bytes of {use.size_bytes} are left"

    def miscounted(self) -> Iterator[str]:
        """Compare what was found with what the base says of each file."""
        for number in sorted(self.uses.keys() | self.found_bytes.keys()):
            use, found_bytes = self.uses.get(number), self.found_bytes[number]
            used_bytes = 0 if use is None else use.used_bytes
            if found_bytes != used_bytes:
                yield (
                    f"{self.path(number)}: {used_bytes} bytes of it are announced, but bundles "
                    f"speak of {found_bytes}"
                )

    def path(self, number: int) -> Path:
        """Return where a file is."""
        return self._directory / aside_name(number)

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
            self._set(number, use)
            if not use.used_bytes:
                self._close(number)
                self.left(number, use.size_bytes)

    def _set(self, number: int, use: FileUse) -> None:
        before = self.uses.pop(number, None)
        if before is not None:
            self._used_bytes -= before.used_bytes
            self.size_bytes -= before.size_bytes
        if use.used_bytes:
            self.uses[number] = use
            self._used_bytes += use.used_bytes
            self.size_bytes += use.size_bytes

    def most_wasteful(self) -> int | None:
        """Return the file that wastes the most, if all together waste too much."""
        wasted_bytes = self.size_bytes - self._used_bytes
        if wasted_bytes <= self._used_bytes + WASTED_MAX_BYTES:
            return None
        return max(
            self.uses, key=lambda each: self.uses[each].size_bytes - self.uses[each].used_bytes
        )

    def read(self, stay: Stay) -> bytes:
        """Read the values of a bundle that are in a file."""
        path = self.path(stay.file)
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

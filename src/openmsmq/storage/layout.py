"""The directory of a store: which files it has, and the file that says what they are.

    format.json           schema version, state, and what the journal's records are known by
    lock                  held while the store is open; has the process id of the owner
    journal-00000001.log  two files of fixed size that take turns, see `journal`
    journal-00000002.log
    records.mdb           everything the last checkpoint knew, see `base`
    aside-00000001.log    and others like it: what is set aside, see `aside`
    records.mdb-lock      who reads the base, since somebody copied it, see `base`

The format file is written first with the state `creating`, and again with `ready` when all other
files are there. So a crash during creation is finished by the next start, and a file that is
missing later is damage, never a reason to begin anew.
"""

from __future__ import annotations

import secrets
import zlib
from pathlib import Path
from typing import Final, Literal

import msgspec

from openmsmq.storage.files import DirectoryLock, FileOps, disk_error, write_whole
from openmsmq.storage.frames import FIRST_MARK, MARK_BYTES, Framing
from openmsmq.storage.port import StoreDamaged, StoreTooNew

SCHEMA_VERSION: Final = 6
"""Grows with every change that an older version of this software could not read: 3 may have values
that are set aside, 4 records in bundles, 5 bundles whose values stay where they were set aside, 6
several batches in one record of the journal."""

UNMARKED_VERSION: Final = 1
"""The version whose journals all have the same mark, and whose base has no note of the journal."""

FORMAT_NAME: Final = "format.json"
LOCK_NAME: Final = "lock"
BASE_NAME: Final = "records.mdb"
JOURNAL_NAMES: Final = ("journal-00000001.log", "journal-00000002.log")
ASIDE_NAMES: Final = "aside-*.log"

ADVICE: Final = "run `openmsmq store check` for a list, and restore the directory from a backup"


def aside_name(number: int) -> str:
    """Return the name of a file with values that are set aside."""
    return f"aside-{number:08}.log"


class StoreFormat(msgspec.Struct, frozen=True):
    """The content of the format file."""

    version: int
    state: Literal["creating", "ready"]
    salt: int
    """Start of every checksum in the journal, so that no message can contain a valid record."""
    mark: bytes = FIRST_MARK
    """What every record in the journal begins with."""
    format: Literal["openmsmq-store"] = "openmsmq-store"

    @property
    def framing(self) -> Framing:
        """How the journal's records are known."""
        return Framing(self.mark, self.salt)


class _Sealed(msgspec.Struct):
    store: msgspec.Raw
    crc32: int


class _Version(msgspec.Struct):
    version: int
    format: Literal["openmsmq-store"]


def new_format() -> StoreFormat:
    """Describe a store that is about to be created."""
    mark = secrets.token_bytes(MARK_BYTES)
    return StoreFormat(SCHEMA_VERSION, "creating", secrets.randbits(32), mark)


def write_format(files: FileOps, directory: Path, description: StoreFormat) -> None:
    """Write the format file, durably and as a whole."""
    text = msgspec.json.encode(description)
    data = msgspec.json.encode(_Sealed(msgspec.Raw(text), zlib.crc32(text)))
    write_whole(files, directory / FORMAT_NAME, data + b"\n")


def read_format(files: FileOps, directory: Path) -> StoreFormat | None:
    """Read the format file; None if the directory holds no store yet."""
    path = directory / FORMAT_NAME
    if not path.exists():
        present = [name for name in (BASE_NAME, *JOURNAL_NAMES) if (directory / name).exists()]
        if present:
            raise StoreDamaged(f"{directory} has {present[0]} but no {FORMAT_NAME}: {ADVICE}")
        return None
    file = files.open(path, write=False)
    try:
        data = files.read(file, 4096, 0)
    finally:
        files.close(file)
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        if zlib.crc32(sealed.store) != sealed.crc32:
            raise StoreDamaged(f"the checksum of {path} is wrong: {ADVICE}")
        version = msgspec.json.decode(sealed.store, type=_Version).version
        if version > SCHEMA_VERSION:
            raise StoreTooNew(
                f"the store at {directory} has schema version {version}, this software knows "
                f"{SCHEMA_VERSION}: use the version of OpenMSMQ that wrote it, or a later one"
            )
        return msgspec.json.decode(sealed.store, type=StoreFormat)
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"{path} is not readable ({error}): {ADVICE}") from error


def lock_store(directory: Path, *, create: bool) -> DirectoryLock:
    """Take the exclusive right to use the store in a directory."""
    if create:
        try:
            # Whoever could write here could take files away that the store needs.
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(error, "create the directory of the store", directory) from error
    elif not directory.is_dir():
        raise StoreDamaged(f"there is no store at {directory}: check the path")
    return DirectoryLock(directory / LOCK_NAME)

"""The manifest of a back-up: whose it is, of which moment, and every file with its checksum.

It is written last. A directory without a whole one is no back-up, whatever else is in it.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from openmsmq.storage.files import FileOps, disk_error, write_whole
from openmsmq.storage.port import StoreError

MANIFEST_NAME: Final = "manifest.json"
MANIFEST_MAX_BYTES: Final = 64 << 20
"""A manifest of some hundred thousand files."""

BACKUP_VERSION: Final = 1
STORE_FOLDER: Final = "store"
"""The store's place in a back-up, as in a data directory."""

_DEPTH_MAX_COUNT: Final = 5
_TIME_MAX_S: Final = 253_402_300_799
"""The last second of the year 9999: no calendar here knows a later one."""
_NAME_MAX_BYTES: Final = 255


class BackupError(StoreError):
    """A back-up could not be made or put back; the sentence says why, and what to do."""


class BackupFile(msgspec.Struct, frozen=True):
    """One file of a back-up."""

    path: str
    size_bytes: int
    sha256: str
    mode: int


class BackupOwner(msgspec.Struct, frozen=True):
    """Whose back-up it is."""

    name: str
    id: str
    software: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """What a back-up is."""

    version: int
    owner: BackupOwner
    taken_time_s: Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_S)]
    """The moment that it shows."""
    sequence: int
    """The last batch of the journal that is in it; 0 if nobody looked."""
    files: list[BackupFile]
    format: Literal["openmsmq-backup"] = "openmsmq-backup"

    @property
    def size_bytes(self) -> int:
        """How large all files are."""
        return sum(file.size_bytes for file in self.files)


class _Sealed(msgspec.Struct):
    backup: msgspec.Raw
    sha256: str


class _Version(msgspec.Struct):
    version: int
    format: Literal["openmsmq-backup"]


def is_good_path(path: str) -> bool:
    """Whether a back-up may have a file there: below its directory, and nothing hidden."""
    names = path.split("/")
    return (
        path != MANIFEST_NAME
        and len(names) <= _DEPTH_MAX_COUNT
        and all(
            name.isprintable()
            and name[:1] not in ("", ".")
            and len(name.encode()) <= _NAME_MAX_BYTES
            for name in names
        )
    )


def require_plain(directory: Path, path: str) -> None:
    """Raise `BackupError` unless a file of a back-up is a file, with no link on the way to it.

    Whoever opened a pipe would wait for ever. Raises `OSError` if it cannot be looked at.
    """
    place = directory
    for name in path.split("/"):
        place /= name
        if place.is_symlink():
            raise BackupError(f"{place} is a link: back-ups have none")
    if not stat.S_ISREG(place.lstat().st_mode):
        raise BackupError(f"{place} is no file: back-ups have nothing else")


def write_manifest(files: FileOps, directory: Path, manifest: Manifest) -> None:
    """Write the manifest, durably and as a whole."""
    text = msgspec.json.encode(manifest)
    data = msgspec.json.encode(_Sealed(msgspec.Raw(text), hashlib.sha256(text).hexdigest()))
    write_whole(files, directory / MANIFEST_NAME, data + b"\n")


def read_manifest(files: FileOps, directory: Path) -> Manifest:
    """Read what a back-up is; raise `BackupError` if the directory is none."""
    path = directory / MANIFEST_NAME
    try:
        require_plain(directory, MANIFEST_NAME)
        file = files.open(path, write=False)
        try:
            data = files.read(file, MANIFEST_MAX_BYTES, 0)
        finally:
            files.close(file)
    except (FileNotFoundError, NotADirectoryError):
        raise BackupError(
            f"{directory} is no back-up: it has no {MANIFEST_NAME}; name the directory that "
            "`openmsmq backup` made"
        ) from None
    except OSError as error:
        raise disk_error(error, "read the manifest", path) from error
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        if hashlib.sha256(sealed.backup).hexdigest() != sealed.sha256:
            raise BackupError(f"{path} is damaged: its checksum is wrong; take another back-up")
        version = msgspec.json.decode(sealed.backup, type=_Version).version
        if version > BACKUP_VERSION:
            raise BackupError(
                f"{directory} is a back-up of version {version}, this software knows "
                f"{BACKUP_VERSION}: use the version of OpenMSMQ that made it, or a later one"
            )
        manifest = msgspec.json.decode(sealed.backup, type=Manifest)
    except msgspec.DecodeError as error:
        raise BackupError(f"{path} is damaged ({error}): take another back-up") from error
    paths = [file.path for file in manifest.files]
    bad = [each for each in paths if not is_good_path(each)]
    if bad or len(set(paths)) != len(paths):
        raise BackupError(
            f"{path} names files that no back-up has ({(bad or paths)[0]!r}): it was not written "
            "by this software"
        )
    if not f"{manifest.owner.name}{manifest.owner.id}".isprintable():
        raise BackupError(f"{path} names no queue manager: it was not written by this software")
    return manifest

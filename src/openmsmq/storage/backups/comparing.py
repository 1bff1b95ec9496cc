"""Compares a back-up with its manifest, where it lies: what restoring it would find."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from openmsmq.storage.backups.manifest import (
    MANIFEST_NAME,
    STORE_FOLDER,
    BackupError,
    BackupFile,
    Manifest,
    read_manifest,
    require_plain,
)
from openmsmq.storage.backups.writing import CHUNK_BYTES
from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.layout import LOCK_NAME

Progress = Callable[[int, int], None]


class BackupReport(msgspec.Struct, frozen=True):
    """What a comparison found."""

    manifest: Manifest
    problems: tuple[str, ...]


def _silent(done: int, total: int) -> None:
    """Show no progress."""


def is_backup(directory: Path) -> bool:
    """Whether a directory says of itself that it is a back-up."""
    place = directory / MANIFEST_NAME
    return place.exists() or place.is_symlink()


def compare(
    directory: Path, *, progress: Progress = _silent, files: FileOps | None = None
) -> BackupReport:
    """Compare every file of a back-up with its manifest; changes nothing.

    Raises `BackupError` if the manifest itself cannot be believed.
    """
    files = files or FileOps()
    manifest = read_manifest(files, directory)
    total = manifest.size_bytes
    done = 0
    problems: list[str] = []
    for file in manifest.files:
        try:
            problem = _problem_of(files, directory, file)
        except BackupError as error:
            problem = str(error)
        if problem:
            problems.append(problem)
        done += file.size_bytes
        progress(done, total)
    known = {file.path for file in manifest.files}
    # What lies beside the store is left where it is; in the store it would be read with the rest.
    for place in sorted((directory / STORE_FOLDER).rglob("*")):
        path = place.relative_to(directory).as_posix()
        is_folder = place.is_dir() and not place.is_symlink()
        if not is_folder and place.name != LOCK_NAME and path not in known:
            problems.append(
                f"{place} is not in the manifest: it came later, and restoring leaves it out"
            )
    return BackupReport(manifest, tuple(problems))


def _problem_of(files: FileOps, directory: Path, file: BackupFile) -> str:
    """Say what is wrong with a file; nothing if it is as it was written."""
    place = directory / file.path
    digest = hashlib.sha256()
    offset = 0
    try:
        require_plain(directory, file.path)
        opened = files.open(place, write=False)
        try:
            while data := files.read(opened, CHUNK_BYTES, offset):
                digest.update(data)
                offset += len(data)
                if offset > file.size_bytes:
                    break
        finally:
            files.close(opened)
    except (FileNotFoundError, NotADirectoryError):
        return f"{place} is missing, and the manifest has it"
    except OSError as error:
        raise disk_error(error, "read", place) from error
    if offset != file.size_bytes:
        size = f"more than {file.size_bytes}" if offset > file.size_bytes else str(offset)
        return f"{place} has {size} bytes, and the manifest says {file.size_bytes}"
    if digest.hexdigest() != file.sha256:
        return f"{place} is not as it was written: its checksum is not that of the manifest"
    return ""

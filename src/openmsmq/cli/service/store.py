"""`openmsmq store`: care for the store of a queue manager that is not running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import msgspec
import typer

from openmsmq.cli.options.connecting import EXIT_FAILED
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import say_error
from openmsmq.cli.views.output import (
    JsonObject,
    count_text,
    print_facts,
    print_json,
    print_result,
    progress,
    size_text,
    time_text,
)

if TYPE_CHECKING:
    from openmsmq.storage.backups.comparing import BackupReport
    from openmsmq.storage.backups.manifest import Manifest

STORE_FOLDER: Final = "store"
"""The store's place below the directory that `serve --data` is given."""

STORE_FILES: Final = ("format.json", "records.mdb", "journal-*.log", "aside-*.log")
"""What a store is known by, even if a part of it is lost."""

_PROBLEMS_SHOWN_COUNT: Final = 100
"""What differs from a manifest and is told one by one."""

app: Final = typer.Typer(
    help="Check and compact the store of a queue manager that is stopped.", no_args_is_help=True
)

DirectoryArgument = Annotated[
    str,
    typer.Argument(
        metavar="DIRECTORY", help="What `serve` was given as --data, or the store itself."
    ),
]


@app.command()
def check(directory: DirectoryArgument, json: JsonOption = False) -> None:
    """Read everything in a store and verify it; changes nothing.

    Of a back-up, every file is compared with the manifest, too. Exit code 1 says that something is
    wrong.
    """
    # Other commands do not pay for loading the store.
    from openmsmq.storage.backups.comparing import compare, is_backup
    from openmsmq.storage.maintenance import check_store
    from openmsmq.storage.port import StoreError

    path = _store_path(directory)
    # Nothing at all is no damage but the wrong directory, and nobody should restore a backup.
    if path.is_dir() and not any(any(path.glob(each)) for each in STORE_FILES):
        stop_with(f"there is no store at {path}: check the path")
    backup: BackupReport | None = None
    try:
        if is_backup(Path(directory)):
            with progress(f"Comparing {directory} with its manifest") as bar:
                backup = compare(Path(directory), progress=bar.show)
        with progress(f"Checking {path}") as bar:
            report = check_store(path, progress=bar.show)
    except StoreError as error:
        for problem in () if backup is None else backup.problems[:_PROBLEMS_SHOWN_COUNT]:
            say_error(problem)
        stop_with(str(error))
    if backup is not None:
        report = msgspec.structs.replace(
            report,
            problem_count=report.problem_count + len(backup.problems),
            problems=(*report.problems, *backup.problems[:_PROBLEMS_SHOWN_COUNT]),
        )
    if json:
        about = {} if backup is None else {"backup": _backup_object(backup.manifest)}
        print_json({**msgspec.to_builtins(report), **about, "sound": report.sound})
    else:
        print_facts(
            report.path,
            [
                ("records", f"{report.record_count} ({size_text(report.record_bytes)})"),
                ("on disk", size_text(report.file_bytes)),
                *([] if backup is None else [("back-up of", _backup_text(backup.manifest))]),
                ("only in the journal", count_text(report.journal_change_count, "change")),
                ("result", "sound" if report.sound else "damaged"),
            ],
        )
    for problem in report.problems:
        say_error(problem)
    if report.problem_count > len(report.problems):
        say_error(f"{report.problem_count - len(report.problems)} more problems")
    if not report.sound:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def compact(directory: DirectoryArgument, json: JsonOption = False) -> None:
    """Give the space of deleted messages back to the disk.

    Everything is verified on the way. A crash leaves the store as it was, or compacted.
    """
    from openmsmq.storage.backups.comparing import is_backup
    from openmsmq.storage.maintenance import compact_store
    from openmsmq.storage.port import StoreError

    if is_backup(Path(directory)):
        stop_with(
            f"{directory} is a back-up: compacted, it would not be what its manifest says, and "
            "could not be restored; restore it, and compact that"
        )
    path = _store_path(directory)
    try:
        with progress(f"Compacting {path}") as bar:
            report = compact_store(path, progress=bar.show)
    except StoreError as error:
        stop_with(str(error))
    print_result(
        msgspec.to_builtins(report),
        f"{report.path}: {count_text(report.record_count, 'record')}, "
        f"{size_text(report.before_bytes)} before, {size_text(report.after_bytes)} now",
        json=json,
    )


def _backup_object(manifest: Manifest) -> JsonObject:
    return {
        "name": manifest.owner.name,
        "id": manifest.owner.id,
        "taken_time": time_text(manifest.taken_time_s),
        "file_count": len(manifest.files),
        "size_bytes": manifest.size_bytes,
    }


def _backup_text(manifest: Manifest) -> str:
    whose = manifest.owner.name or "a queue manager without a name"
    files = count_text(len(manifest.files), "file")
    return f"{whose}, as of {time_text(manifest.taken_time_s)}, {files}"


def _store_path(directory: str) -> Path:
    below = Path(directory) / STORE_FOLDER
    return below if below.is_dir() else Path(directory)


def stop_with(sentence: str) -> NoReturn:
    """Say what went wrong, and stop."""
    say_error(sentence if sentence.endswith(".") else f"{sentence}.")
    raise typer.Exit(EXIT_FAILED)

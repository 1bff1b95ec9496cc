"""Whose a data directory is: a file beside the store says it, so that neither changes unseen.

A store that is gone must not become a new queue manager under the eyes of everybody who knows the
old one, and a store must not answer to another name than the one it was made with. Who means one
of the two says so, for one start.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.runtime.operating_system.key_files import KEY_FOLDER
from openmsmq.runtime.start_errors import StartError
from openmsmq.storage.files import FileOps, disk_error, write_whole
from openmsmq.storage.layout import read_format
from openmsmq.storage.port import Batch, Store
from openmsmq.storage.records import (
    MACHINE_KEY,
    REPLICATION_KEY,
    MachineRecord,
    decode_record,
    encode_record,
    kind_range,
)

IDENTITY_FILE: Final = "identity.json"
IDENTITY_MAX_BYTES: Final = 4096


class Leave(msgspec.Struct, frozen=True):
    """What an operator allows for one start."""

    new_store: bool = False
    """To begin anew where a queue manager was whose store is gone."""
    rename: bool = False
    """To give the queue manager of the store another name."""
    log: bool = False
    """To make a queue manager of its own again of one that is on several computers."""


class Identity(msgspec.Struct, frozen=True):
    """The content of the file."""

    name: str
    id: str


def read_identity(data: Path) -> Identity | None:
    """Read whose a data directory is; None if nobody's yet."""
    path = data / IDENTITY_FILE
    try:
        with path.open("rb") as file:
            content = file.read(IDENTITY_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StartError(f"cannot read {path}: {error.strerror}") from None
    try:
        return msgspec.json.decode(content, type=Identity)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise StartError(
            f"{path} does not say whose the directory is: restore it from a backup, or remove it "
            "if the store beside it is the right one"
        ) from None


def check_directory(data: Path, store: Path, leave: Leave) -> None:
    """Refuse to begin anew in the place of somebody, unless that is wanted."""
    try:
        description = read_format(FileOps(), store)
    except OSError as error:
        raise disk_error(error, "read the store", store) from error
    if description is not None and description.state == "ready":
        if leave.new_store:
            raise StartError(
                f"there is a store at {store}: start without --new-store, or move it away first"
            )
        return
    if leave.new_store:
        return
    owner = read_identity(data)
    if owner is None and not any((data / KEY_FOLDER).glob("*.pem")):
        return
    whose = "a queue manager" if owner is None else f"queue manager {owner.name} ({owner.id})"
    raise StartError(
        f"{data} belongs to {whose}, but its store {store} is missing: restore it from a backup, "
        "or look whether a disk is not mounted; `serve --new-store` begins anew with a new "
        "identifier and without the messages"
    )


def check_store_identity(data: Path, store: Store, name: str, leave: Leave) -> None:
    """Refuse a store of another name or of another directory; rename it if that is wanted."""
    value = store.get(MACHINE_KEY)
    if value is None:
        return
    machine = decode_record(value, MachineRecord)
    owner = read_identity(data)
    if owner is not None and owner.id != str(machine.identifier):
        raise StartError(
            f"the store in {data} is that of {machine.name} ({machine.identifier}), but the "
            f"directory belongs to {owner.name} ({owner.id}): put back the store that belongs "
            f"here, or remove {data / IDENTITY_FILE} if this one does"
        )
    if machine.name.casefold() == name.casefold():
        return
    # One whose start failed, at a port for example, has not been known to anybody under its name.
    is_known = owner is not None or bool(store.scan(*kind_range(b"Q"), 1))
    if is_known and not leave.rename:
        raise StartError(
            f"the queue manager in {data} is {machine.name}, not {name}: start it with --name "
            f"{machine.name}, or once with --rename if it shall be {name} from now on; messages "
            "that others send to the old name will not find it"
        )
    renamed = msgspec.structs.replace(machine, name=name)
    store.commit(Batch([(MACHINE_KEY, encode_record(renamed))]))


def check_alone(data: Path, store: Store, leave: Leave) -> None:
    """Refuse a store that is a part of a log, without that log."""
    if store.get(REPLICATION_KEY) is None:
        return
    if leave.log:
        store.commit(Batch([(REPLICATION_KEY, None)]))
        return
    raise StartError(
        f"the queue manager in {data} is on several computers, and the configuration has no "
        "[replication]: what it acknowledges would be missing on the others. Start it with "
        "[replication] as before; when no other computer serves it any more, `serve --leave-log` "
        "makes it a queue manager of its own again"
    )


def keep_identity(data: Path, identity: Identity) -> None:
    """Note whose the directory is, when others can know it."""
    with contextlib.suppress(StartError):
        if read_identity(data) == identity:
            return
    # A full disk must not keep a queue manager from starting and being emptied.
    with contextlib.suppress(OSError):
        write_whole(FileOps(), data / IDENTITY_FILE, msgspec.json.encode(identity) + b"\n")

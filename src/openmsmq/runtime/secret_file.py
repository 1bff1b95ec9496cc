"""Files with what others must not read or write, such as tokens and accounts.

They belong to their owner alone, and are not believed otherwise. A command changes such a file
while a server runs, which looks at it again when it has changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.owner_file import replace_file

_OTHERS: Final = 0o077


def read_secret_file(path: Path, what: str, max_bytes: int) -> bytes | None:
    """Read such a file, or raise `ConfigError`; None if it is not there."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_IMODE(found.st_mode) & _OTHERS:
                raise ConfigError(
                    f"others than its owner may use {path}, so its {what} are not believed: "
                    f"chmod 600 {path}"
                )
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read the {what} in {path}: {error.strerror}") from None
    if len(data) > max_bytes:
        raise ConfigError(f"{path} is longer than {max_bytes} bytes")
    return data


@contextlib.contextmanager
def changing_alone(path: Path) -> Iterator[None]:
    """Keep others from changing the same file."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(f"cannot use the directory {path.parent}: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_secret_file(path: Path, content: msgspec.Struct) -> None:
    """Write such a file as a whole."""
    data = msgspec.json.format(msgspec.json.encode(content))
    try:
        replace_file(path, data + b"\n")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None

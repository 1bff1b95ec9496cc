"""A file with one line of JSON for each turn of the queue manager, for those who work on it.

It has the names of queues and computers, numbers and sizes, and nothing of a message itself; all
the same, only its owner may read it. A file that is full, or that cannot be written, ends; the
queue manager does not.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import BinaryIO, Final

import msgspec

from openmsmq.manager.turn.trace import TurnTrace
from openmsmq.runtime.limits import TURN_FILE_MAX_BYTES
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.start_errors import StartError, os_reason

_OWNER_ONLY: Final = 0o600


class TurnFile:
    """Writes what a queue manager describes; each line is there when the turn has ended."""

    def __init__(self, path: str, log: EventLog, max_bytes: int = TURN_FILE_MAX_BYTES) -> None:
        self._path = path
        self._log = log
        self._max_bytes = self._left_bytes = max_bytes
        self._encoder = msgspec.json.Encoder()
        self._trace: TurnTrace | None = None
        try:
            self._file: BinaryIO | None = open(  # noqa: SIM115 - until the end
                path, "wb", buffering=0, opener=_open_for_owner
            )
        except OSError as error:
            raise StartError(
                f"cannot write the turns to {path} ({os_reason(error)}): give another file"
            ) from None

    def follow(self, trace: TurnTrace) -> None:
        """Write the turns of a queue manager from now on."""
        trace.is_on = True
        self._trace = trace

    def write(self) -> None:
        """Write the turns that have ended since the last time."""
        if self._trace is None or self._file is None:
            return
        lines = b"".join(self._encoder.encode(turn) + b"\n" for turn in self._trace.take())
        if len(lines) > self._left_bytes:
            self._end(f"it would be longer than {self._max_bytes} bytes")
            return
        self._left_bytes -= len(lines)
        try:
            written = self._file.write(lines)
        except OSError as error:
            self._end(os_reason(error))
        else:
            if written != len(lines):
                self._end("there was room for a part of a line only")

    def close(self) -> None:
        """End the file."""
        self.write()
        self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _end(self, reason: str) -> None:
        self._let_go()
        if self._trace is not None:
            self._trace.is_on = False
        self._log.warning(Event.TURN_FILE_ENDED, file=self._path, reason=reason)


def _open_for_owner(path: str, flags: int) -> int:
    file = os.open(path, flags, _OWNER_ONLY)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            # One that was there already has the mode that somebody else gave it.
            os.fchmod(file, _OWNER_ONLY)
    except OSError:
        os.close(file)
        raise
    return file

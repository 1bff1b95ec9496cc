"""What is left when a signal ends the process: a file that the next start looks at.

A page of the store that went bad after the start can end the process inside LMDB, where no error
can be raised. Python then still writes where it was into this file. Whoever starts next knows by
it that every page has to be looked at before the store is used.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from pathlib import Path
from typing import Final

CRASH_FILE: Final = "crash.log"
EARLIER_CRASH_FILE: Final = "crash.log.old"

_MODE: Final = 0o600


class CrashFile:
    """The file of one run."""

    def __init__(self, data: Path) -> None:
        self.path: Final = data / CRASH_FILE
        self._file: int | None = None

    def is_left(self) -> bool:
        """Whether a signal ended an earlier run, and no start went well since."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_size > 0
        return False

    def open(self) -> None:
        """Have the end of this process written down, if a signal such as SIGBUS ends it."""
        # Who has switched this on already wants to see it elsewhere.
        if faulthandler.is_enabled():
            return
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self.path, flags, _MODE)
            faulthandler.enable(self._file, all_threads=False)

    def put_away(self) -> None:
        """Keep what an earlier run left under another name: the store was found to be good."""
        self.close()
        with contextlib.suppress(OSError):
            os.replace(self.path, self.path.with_name(EARLIER_CRASH_FILE))
        self.open()

    def close(self) -> None:
        """Let the end of the process be its own affair again."""
        if self._file is not None:
            faulthandler.disable()
            os.close(self._file)
            self._file = None

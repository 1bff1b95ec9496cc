"""A primary and a computer that can be its standby, on addresses of loopback."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests.runtime.computers import Computer
from tests.runtime.scripted_engine import free_port

ADDRESSES = {"alpha": "127.0.82.1", "beta": "127.0.82.2"}
ALARMS = """
[alarms]
look_s = 1
[alarms.alone]
standby_lag_s = 1
[alarms.long]
log_records = 5
"""


def launch(computer: Computer, *options: str) -> None:
    """Start a computer, and wait until it follows the log."""
    computer.options = options
    computer.launch()
    assert computer.process is not None
    assert computer.process.stdout is not None
    line = computer.process.stdout.readline()
    assert line.startswith("standby "), computer.log


class Two:
    """A primary and a computer that can be its standby."""

    def __init__(self, folder: Path, database: str, name: str = "PAIR", *, other: str = "") -> None:
        """`database` is how alpha finds its log, and `other` how beta does, if otherwise."""
        self.folder = folder
        self._name = name
        self.alpha = self._computer("alpha", database)
        self.beta = self._computer("beta", other or database)

    def _computer(self, name: str, database: str) -> Computer:
        folder = self.folder / name
        folder.mkdir()
        made = Computer(folder, self._name, ADDRESSES[name], free_port(ADDRESSES[name]))
        hook = folder / "hook"
        hook.write_text(f"#!/bin/sh\necho $1 >> {folder}/promoted\n")
        hook.chmod(0o700)
        made.configure(
            f'[replication]\ndatabase = "{database}"\nmember = "{name}"\n'
            f'lease_ms = 1500\non_promotion = "{hook}"\n{ALARMS}'
        )
        return made

    def restore(self) -> None:
        """Give beta a back-up of alpha, which works."""
        place = self.folder / "back-up"
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(self.beta.data, ignore_errors=True)
        self.alpha.command("backup", str(place))
        self.alpha.command("restore", str(place), "--data", str(self.beta.data))

    def begin(self) -> None:
        """Start alpha, which becomes the primary of a new log."""
        launch(self.alpha)
        self.alpha.ready()

    def follow(self) -> None:
        """Start beta as a standby."""
        launch(self.beta, "--standby")

    def end(self) -> None:
        """Leave nothing behind."""
        for each in (self.alpha, self.beta):
            if each.is_running:
                each.end(signal.SIGKILL)
            elif each.process is not None and each.process.stdout is not None:
                each.process.stdout.close()

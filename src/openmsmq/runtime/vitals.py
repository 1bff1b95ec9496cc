"""What a queue manager cannot know of itself: its disk, its commits, and how late its loop is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openmsmq.api.messages import Replication, Vitals
from openmsmq.runtime.clocks import elapsed_ns
from openmsmq.runtime.limits import VITALS_LOOK_MS

if TYPE_CHECKING:
    from openmsmq.manager.manager import QueueManager
    from openmsmq.runtime.multicast.transport import PgmTransport

_BLOCK_BYTES: Final = 512
"""The unit in which the system counts what a file takes, whatever the file system has."""


class VitalSigns:
    """Measures, and tells the queue manager what to tell."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._path: Path | None = None
        self.http_answers: Mapping[int, int] = {}
        """What the door of HTTP counts, if there is one."""
        self.multicast: PgmTransport | None = None
        """What knows of multicast."""
        self.replication: Replication | None = None
        """What is known of the standbys, if there is a log."""
        self._commit_count = 0
        self._commit_total_ns = 0
        self._commit_last_us = self._commit_worst_us = -1
        self._lag_us = self._lag_worst_us = -1
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, store: Path) -> None:
        """Look again and again from now on."""
        self._path = store
        self._arm()
        self.look()

    def committed(self, took_ns: int) -> None:
        """Note how long a commit took."""
        self._commit_count += 1
        self._commit_total_ns += took_ns
        self._commit_last_us = took_ns // 1000
        self._commit_worst_us = max(self._commit_worst_us, self._commit_last_us)

    def disk(self) -> tuple[int, int]:
        """Return how many bytes the disk of the store has, and how many are free; -1 if unknown."""
        return (-1, -1) if self._path is None else _disk(self._path)

    def look(self) -> None:
        """Look at the disk, and tell all that is known."""
        total_bytes, free_bytes = self.disk()
        multicast = self.multicast
        store_bytes = -1 if self._path is None else _store_bytes(self._path)
        self._manager.admin.take_vitals(
            Vitals(
                free_disk_bytes=free_bytes,
                store_bytes=store_bytes,
                commit_count=self._commit_count,
                commit_total_us=self._commit_total_ns // 1000,
                commit_last_us=self._commit_last_us,
                commit_worst_us=self._commit_worst_us,
                lag_us=self._lag_us,
                lag_worst_us=self._lag_worst_us,
                disk_bytes=total_bytes,
                http_answers={str(status): count for status, count in self.http_answers.items()},
                replication=self.replication,
                multicast_packets={} if multicast is None else multicast.counts,
                multicast_sources=0 if multicast is None else multicast.receiver.sources_count,
                multicast_backlog_bytes=0 if multicast is None else multicast.backlog_bytes,
            )
        )

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._due_ns = elapsed_ns() + VITALS_LOOK_MS * 1_000_000
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(VITALS_LOOK_MS / 1000, self._woken)

    def _woken(self) -> None:
        self._lag_us = max(0, elapsed_ns() - self._due_ns) // 1000
        self._lag_worst_us = max(self._lag_worst_us, self._lag_us)
        self._arm()


def _disk(store: Path) -> tuple[int, int]:
    try:
        disk = os.statvfs(store)
    except OSError:
        return -1, -1
    # What only the administrator of the computer may use is not there for us.
    used = disk.f_blocks - disk.f_bfree
    return (used + disk.f_bavail) * disk.f_frsize, disk.f_bavail * disk.f_frsize


def _store_bytes(store: Path) -> int:
    """Return how many bytes a store takes of its disk; -1 if unknown."""
    try:
        with os.scandir(store) as files:
            return sum(_taken(file) for file in files)
    except OSError:
        return -1


def _taken(file: os.DirEntry[str]) -> int:
    """Return what a file takes of the disk: one with holes takes less than it is long."""
    try:
        found = file.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    return found.st_blocks * _BLOCK_BYTES

"""The audit log read from its end, a page at a time: for those who ask for it by a request.

A place in it is the number of a file on its disk and an offset there: a file keeps both when the
log turns over and it gets another name.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Final

from openmsmq.api.messages import AuditLines
from openmsmq.manager.outputs import ReadAuditLog
from openmsmq.model.errors import InsufficientResources
from openmsmq.runtime.api.audit import AUDIT_FILES_KEPT_COUNT
from openmsmq.runtime.server import Pump
from openmsmq.runtime.start_errors import os_reason

AUDIT_READ_MAX_BYTES: Final = 512 << 10
"""Bytes that are read for one page, whether lines fit or not."""


class AuditReader:
    """Reads pages, one at a time, beside the queue manager's own work."""

    def __init__(self, path: Path | None, pump: Pump) -> None:
        self._path = path
        self._pump = pump
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, wanted: ReadAuditLog) -> None:
        """Read a page and tell the queue manager."""
        task = asyncio.get_running_loop().create_task(self._read(wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, wanted: ReadAuditLog) -> None:
        engine = self._pump.engine
        try:
            async with self._lock:
                found = await asyncio.to_thread(
                    read_page, self._path, wanted.before, wanted.count, wanted.filter
                )
        except OSError as error:
            problem = InsufficientResources(f"the audit log cannot be read: {os_reason(error)}")
            self._pump.put_in(engine.audit_told, wanted, problem)
            return
        self._pump.put_in(engine.audit_told, wanted, found)


def read_page(path: Path | None, before: str, count: int, wanted: str) -> AuditLines:
    """Return the lines before a place, the newest first; without a place, the last ones."""
    if path is None:
        return AuditLines([], "", is_kept=False)
    files = _files(path)
    number, _, offset_text = before.partition(":")
    place = next((index for index, one in enumerate(files) if str(one[0]) == number), None)
    if before and place is None:
        # Its file has gone meanwhile, and everything older went before it.
        return AuditLines([], "")
    index = place or 0
    offset = int(offset_text) if offset_text.isdecimal() else None
    lines: list[str] = []
    left = AUDIT_READ_MAX_BYTES
    # Lines are JSON, and so is what is looked for in them.
    folded = json.dumps(wanted)[1:-1].casefold()
    while index < len(files):
        inode, name = files[index]
        data, start = _tail(name, offset, left)
        left -= len(data)
        end = start + len(data)
        for raw in reversed(data.splitlines(keepends=True)):
            end -= len(raw)
            text = raw.decode(errors="replace").rstrip("\n")
            if text and folded in text.casefold():
                lines.append(text)
            if len(lines) == count:
                return AuditLines(lines, _place(files, index, inode, end))
        if left <= 0 or start > 0:
            return AuditLines(lines, _place(files, index, inode, start))
        index, offset = index + 1, None
    return AuditLines(lines, "")


def _place(files: list[tuple[int, Path]], index: int, inode: int, offset: int) -> str:
    """Return where to go on; nothing at the beginning of the oldest file."""
    if offset > 0:
        return f"{inode}:{offset}"
    return "" if index + 1 == len(files) else f"{files[index + 1][0]}:"


def _files(path: Path) -> list[tuple[int, Path]]:
    """Return the files of the log, the newest first, with their numbers on the disk."""
    found = []
    for number in range(AUDIT_FILES_KEPT_COUNT + 1):
        name = path if not number else path.with_name(f"{path.name}.{number}")
        try:
            status = os.lstat(name)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_ino, name))
    return found


def _tail(path: Path, end: int | None, bytes_max: int) -> tuple[bytes, int]:
    """Read whole lines before an offset, up to so many bytes; gives where they begin."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = os.fstat(descriptor).st_size
        stop = size if end is None else min(end, size)
        start = max(0, stop - bytes_max)
        data = os.pread(descriptor, stop - start, start)
    finally:
        os.close(descriptor)
    if start:
        # The first line is cut, unless one begins just there: it comes with the next page.
        cut = data.find(b"\n") + 1
        if 0 < cut < len(data):
            return data[cut:], start + cut
    return data, start

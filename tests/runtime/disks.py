"""Small real file systems for tests: one whose power can be cut, one that is soon full."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_EXT4_IOC_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSH = 2


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Disk:
    """An ext4 file system in a file, mounted through a loop device."""

    def __init__(self, folder: Path, size_mb: int) -> None:
        self.image = folder / "disk.img"
        self.path = folder / "disk"
        self._was_mounted = False
        self._is_shut_down = False
        self.path.mkdir()
        with self.image.open("wb") as file:
            file.truncate(size_mb << 20)
        # Without reserved blocks, root meets a full disk as everybody else does.
        _run("mkfs.ext4", "-q", "-F", "-m0", str(self.image))

    def mount(self, *options: str) -> None:
        if self._was_mounted:
            # A process in another mount namespace (`ip netns exec` makes one) may still hold the
            # file system, which the kernel would mount again as it is: with its power cut, or not
            # at all if it is to be read only.
            fresh = self.image.with_name(self.image.name + ".after")
            _run("cp", "--sparse=always", str(self.image), str(fresh))
            fresh.replace(self.image)
        self._was_mounted, self._is_shut_down = True, False
        _run("mount", "-o", "loop", str(self.image), str(self.path))
        if options:
            # Only now: what its journal has could not be put in its place before.
            _run("mount", "-o", ",".join(("remount", *options)), str(self.path))

    def unmount(self) -> None:
        if not self._is_shut_down:
            # Who else holds it may keep it from being written at once.
            _run("sync", "-f", str(self.path))
        # The kernel lets go of the files of a killed process a moment after it is gone.
        for _ in range(1000):
            with contextlib.suppress(subprocess.CalledProcessError):
                return _run("umount", str(self.path))
            time.sleep(0.02)
        return _run("umount", "-l", str(self.path))

    def cut_power(self) -> None:
        """Lose everything that was not flushed; from now on every write fails."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _EXT4_IOC_SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(directory)
        self._is_shut_down = True


@contextlib.contextmanager
def mounted_disk(folder: Path, size_mb: int) -> Iterator[Disk]:
    """Yield a mounted disk, or skip the test and say why."""
    if os.geteuid() != 0:
        pytest.skip("mounting a loop device needs root")
    for program in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    try:
        disk = Disk(folder, size_mb)
        disk.mount()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device can be mounted here: {error.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        disk.unmount()

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES
from openmsmq.storage.files import FileOps, disk_error, fill_with_zeroes, write_whole
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreFailed, StoreFull


@contextlib.contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_is_done_in_part_only_is_an_error(tmp_path: Path) -> None:
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    with largest_file(60), pytest.raises(OSError, match="File too large") as raised:
        files.write(file, [b"a" * 40, b"b" * 40], 0)
    assert raised.value.errno == errno.EFBIG
    assert files.read(file, 100, 0) == b"a" * 40 + b"b" * 20
    files.close(file)


def test_a_file_gets_its_size_and_keeps_what_it_had(tmp_path: Path) -> None:
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    files.write(file, [b"abc"], 0)
    fill_with_zeroes(files, file, 3 << 20)
    assert files.read(file, 4 << 20, 0) == b"abc".ljust(3 << 20, b"\0")
    fill_with_zeroes(files, file, 2)
    assert files.read(file, 100, 0) == b"ab"
    files.close(file)


def test_what_is_written_once_is_not_filled_before(tmp_path: Path) -> None:
    class Counting(FileOps):
        written_bytes = 0

        def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
            self.written_bytes += sum(map(len, parts))
            super().write(file, parts, offset)

    files = Counting()
    file = files.open(tmp_path / "file", create=True)
    fill_with_zeroes(files, file, 5 << 20, 2 << 20)
    assert files.written_bytes == 2 << 20
    assert files.read(file, 6 << 20, 0) == bytes(5 << 20)
    files.close(file)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"a long first content", b"short"):
        write_whole(FileOps(), path, data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_size_limit_is_a_full_store(tmp_path: Path) -> None:
    store = open_store(tmp_path, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    with largest_file(200_000), pytest.raises(StoreFull, match="File too large"):
        store.commit(Batch([(b"big", bytes(300_000))]))
    assert store.get(b"big") is None
    store.commit(Batch([(b"big", bytes(300_000))]))
    store.close()


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.ENOSPC, StoreFull, "free some space"),
        (errno.EDQUOT, StoreFull, "free some space"),
        (errno.EROFS, StoreFailed, "mount it writable"),
        (errno.EACCES, StoreFailed, "the right to write"),
        (errno.EIO, StoreFailed, "check the disk"),
    ],
)
def test_an_error_says_what_where_and_what_to_do(
    code: int, kind: type[Exception], advice: str
) -> None:
    error = disk_error(OSError(code, os.strerror(code)), "write the journal", Path("some/store"))
    assert type(error) is kind
    assert "write the journal" in str(error)
    assert "some/store" in str(error)
    assert advice in str(error)


def test_a_write_through_leaves_what_a_write_and_a_sync_leave(tmp_path: Path) -> None:
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    files.write_through(file, [b"one", b"two"], 4)
    assert files.read(file, 20, 0) == b"\0\0\0\0onetwo"
    files.close(file)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_where_a_write_cannot_sync_it_is_followed_by_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    write = os.pwritev
    synced: list[int] = []

    def refuse(file: int, parts: Sequence[bytes], offset: int, flags: int = 0) -> int:
        if flags:
            raise OSError(code, os.strerror(code))
        return write(file, parts, offset)

    monkeypatch.setattr(os, "pwritev", refuse)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    files.write_through(file, [b"one", b"two"], 0)
    assert files.read(file, 20, 0) == b"onetwo"
    assert synced == [file]
    files.close(file)


def test_what_is_forgotten_is_still_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advised: list[tuple[int, ...]] = []
    advise = os.posix_fadvise

    def listen(*request: int) -> None:
        advised.append(request)
        advise(*request)

    monkeypatch.setattr(os, "posix_fadvise", listen)
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    files.write_through(file, [b"one", b"two"], 0)
    files.forget(file)
    assert advised == [(file, 0, 0, os.POSIX_FADV_DONTNEED)]
    assert files.read(file, 20, 0) == b"onetwo"
    files.close(file)


def test_where_files_cannot_be_forgotten_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    files.forget(file)
    files.close(file)


def test_a_disk_that_fails_to_write_through_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    files = FileOps()
    file = files.open(tmp_path / "file", create=True)
    monkeypatch.setattr(os, "pwritev", fail)
    with pytest.raises(OSError, match="Input/output"):
        files.write_through(file, [b"one"], 0)
    files.close(file)

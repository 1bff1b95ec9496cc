"""A queue manager that runs is backed up, goes on, and is the same one when it is put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.api.messages import BackupState
from openmsmq.api.program import BackupPhase
from openmsmq.model.errors import InsufficientResources, InvalidParameter
from openmsmq.model.lives import is_good_place
from openmsmq.runtime.api.tokens import create_token, read_tokens
from openmsmq.runtime.backups import place
from openmsmq.security.access.callers import Scope
from openmsmq.storage.backups.manifest import read_manifest
from openmsmq.storage.backups.restoring import Restoring
from openmsmq.storage.backups.snapshot import Part
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.files import FileOps
from openmsmq.storage.memory import MemoryStore
from tests.server_thread import ServerThread, start_server

ORDERS = r"private$\orders"


def connected(server: ServerThread) -> mq.QueueManager:
    return mq.connect(f"{server.host}:{server.port}")


def over(manager: mq.QueueManager) -> BackupState:
    """Wait for the end of a back-up."""
    state = manager.backup()
    while not BackupPhase(state.state).is_over:
        time.sleep(0.02)
        state = manager.backup()
    return state


def bodies(manager: mq.QueueManager) -> list[bytes]:
    return [message.body_bytes for message in manager.queue(ORDERS).peek_many(100, 0)]


def place_behind_all(manager: mq.QueueManager) -> tuple[str, int]:
    """Return a place behind all messages, and the life in which it is told."""
    life = manager.epochs()[-1].identifier
    return life, manager.queue(ORDERS).measure(0, count=1000, epoch=life)


def test_a_restored_queue_manager_is_the_same_one_at_the_moment_of_its_back_up(
    tmp_path: Path,
) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    with start_server(str(data)) as server, connected(server) as manager:
        identifier = server.server.manager_id
        create_token(data / "tokens.json", "web", (Scope.SEND,), now_s=1)
        (data / "keys").mkdir()
        (data / "keys" / "some.pem").write_text("some key")
        queue = manager.create_queue(ORDERS)
        queue.send_many([b"one", b"two"], recoverable=True)
        queue.send(b"express")
        then = place_behind_all(manager)
        begun = manager.begin_backup(str(target))
        assert BackupPhase(begun.state) is not BackupPhase.FAILED
        queue.receive(timeout=0)
        queue.send_many([b"three", b"four", b"five"], recoverable=True)
        state = over(manager)
        assert (state.state, state.number, state.problem) == ("done", 1, "")
        assert state.copied_bytes == state.total_bytes > 0
        later = place_behind_all(manager)
        assert later[1] > then[1]
        lives = [(life.identifier, life.first) for life in manager.epochs()]
        assert is_good_place(lives, *then)
        assert is_good_place(lives, *later)
    manifest = read_manifest(FileOps(), target)
    assert (manifest.owner.name, manifest.owner.id) == ("ALPHA", str(identifier))
    Restoring(target, tmp_path / "again").run(now_s=1)
    assert (tmp_path / "again" / "keys" / "some.pem").read_text() == "some key"
    assert [token.name for token in read_tokens(tmp_path / "again" / "tokens.json")] == ["web"]
    with start_server(str(tmp_path / "again")) as server, connected(server) as manager:
        assert server.server.manager_id == identifier
        assert bodies(manager) == [b"one", b"two"]
        # It is another life: who has read further than it begins is told so.
        lives = [(life.identifier, life.first) for life in manager.epochs()]
        assert is_good_place(lives, *then)
        assert not is_good_place(lives, then[0], lives[-1][1] + 1)
        # And no number that was told is given again.
        manager.queue(ORDERS).send(b"other", recoverable=True)
        assert place_behind_all(manager)[1] > later[1]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[mq.QueueManager]:
    with start_server(str(tmp_path / "data")) as server, connected(server) as manager:
        manager.create_queue(ORDERS)
        yield manager
        # It is unharmed.
        manager.queue(ORDERS).send(b"still there", recoverable=True)
        assert bodies(manager) == [b"still there"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_place_that_is_refused_is_said_at_once(tmp_path: Path, manager: mq.QueueManager) -> None:
    with pytest.raises(InvalidParameter, match="in the data directory"):
        manager.begin_backup(str(tmp_path / "data" / "x"))
    with pytest.raises(InvalidParameter, match="make it first"):
        manager.begin_backup(str(tmp_path / "nowhere" / "x"))
    assert manager.backup().state == "failed"


def test_a_disk_without_room_is_said_at_once(
    tmp_path: Path, manager: mq.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "ROOM_LEFT_BYTES", 1 << 60)
    with pytest.raises(InsufficientResources, match="free some space"):
        manager.begin_backup(str(tmp_path / "backup"))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("a defect")])
def test_one_that_fails_in_the_middle_is_removed(
    tmp_path: Path, manager: mq.QueueManager, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    usual = Draft.copy

    def copy(self: Draft, part: Part) -> Iterator[int]:
        if part.name.endswith("records.mdb"):
            raise error
        return usual(self, part)

    monkeypatch.setattr(Draft, "copy", copy)
    manager.begin_backup(str(tmp_path / "backup"))
    state = over(manager)
    assert state.state == "failed"
    assert state.problem


def test_a_store_in_memory_has_no_back_up(tmp_path: Path) -> None:
    with (
        start_server(str(tmp_path), store=MemoryStore()) as server,
        connected(server) as manager,
        pytest.raises(InvalidParameter, match="nothing on a disk"),
    ):
        manager.begin_backup(str(tmp_path / "backup"))


def test_a_queue_manager_that_stops_gives_its_back_up_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Draft.copy

    def copy(self: Draft, part: Part) -> Iterator[int]:
        """Copy for ever."""
        while True:
            time.sleep(0.01)
            yield from usual(self, part)

    monkeypatch.setattr(Draft, "copy", copy)
    with start_server(str(tmp_path / "data")) as server, connected(server) as manager:
        manager.begin_backup(str(tmp_path / "backup"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]

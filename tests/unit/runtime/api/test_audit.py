from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.model.errors import AccessDenied, QueueNotFound
from openmsmq.runtime.api.audit import (
    AUDIT_TEXT_MAX_CHARACTERS,
    DENIALS_AUDITED_PER_S,
    AuditLog,
    Watch,
    action_of,
)
from openmsmq.security.access.access import queue_descriptor
from openmsmq.security.access.callers import anonymous, unix_caller
from openmsmq.security.access.descriptors import encode

ALICE = unix_caller("alice", 7, frozenset(), administrator=False)
DELETE = api.DeleteQueue(r"private$\orders")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def watch(path: Path) -> Watch:
    return Watch(AuditLog(path), ALICE, "127.0.0.1:5")


def test_a_line_says_who_did_what_to_what_from_where_and_how_it_went(path: Path) -> None:
    seen = watch(path)
    seen.begin(1, DELETE)
    seen.end(1, api.DeleteQueue, api.Done())
    seen.begin(2, DELETE)
    seen.end(2, api.DeleteQueue, api.Failed(QueueNotFound.code, "gone"))
    first, second = lines(path)
    assert first.pop("time").endswith("Z")
    assert first == {
        "who": "user alice",
        "sid": "S-1-22-1-7",
        "peer": "127.0.0.1:5",
        "action": "delete-queue",
        "on": r"private$\orders",
        "with": {"name": r"private$\orders"},
        "result": "done",
    }
    assert second["result"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refusal_is_written_for_any_call(path: Path) -> None:
    seen = watch(path)
    seen.end(1, api.Receive, api.Failed(AccessDenied.code, "not for alice"))
    (line,) = lines(path)
    assert (line["action"], line["result"]) == ("receive", "MQ_ERROR_ACCESS_DENIED")
    assert line["reason"] == "not for alice"


def test_other_failures_of_calls_that_are_not_watched_are_not_written(path: Path) -> None:
    watch(path).end(1, api.Receive, api.Failed(QueueNotFound.code, "gone"))
    assert not path.exists()


def test_what_is_done_by_a_handle_is_told_by_the_name_of_the_queue(path: Path) -> None:
    seen = watch(path)
    seen.begin(1, api.OpenQueue("orders", 1))
    seen.end(1, api.OpenQueue, api.Opened(9, r"private$\orders", "", "", False))
    seen.begin(2, api.Purge(9))
    seen.end(2, api.Purge, api.Removed(3))
    seen.closed(9)
    seen.begin(3, api.Purge(9))
    seen.end(3, api.Purge, api.Removed(0))
    assert [line["on"] for line in lines(path)] == [r"private$\orders", "handle 9"]


def test_rights_are_told_in_words(path: Path) -> None:
    seen = watch(path)
    for call, request in enumerate(
        (
            api.SetSecurity("", b""),
            api.SetSecurity("orders", encode(queue_descriptor())),
            api.SetSecurity("orders", b"nonsense"),
        )
    ):
        seen.begin(call, request)
        seen.end(call, api.SetSecurity, api.Done())
    told = [(line["on"], line["with"]["rights"]) for line in lines(path)]
    assert told[0] == ("the queue manager", "those of a new one")
    assert told[1][1].startswith("owner administrators; administrators allowed full; everyone")
    assert "cut short" in told[2][1]


def test_long_texts_are_cut(path: Path) -> None:
    seen = watch(path)
    seen.begin(1, api.DeleteQueue("x" * 100_000))
    seen.end(1, api.DeleteQueue, api.Done())
    assert path.stat().st_size < 4 * AUDIT_TEXT_MAX_CHARACTERS


def test_a_flood_of_refusals_is_no_flood_of_lines(path: Path) -> None:
    log = AuditLog(path)
    for _ in range(1000):
        log.denied(anonymous("192.0.2.1"), "192.0.2.1:5", "connect", "no")
    written = lines(path)
    # The clock may have gone from one second to the next.
    assert DENIALS_AUDITED_PER_S <= len(written) <= 2 * DENIALS_AUDITED_PER_S + 1


def test_full_files_are_kept_up_to_a_number(path: Path) -> None:
    log = AuditLog(path, file_max_bytes=1000, files_kept=3)
    for number in range(200):
        log.noted("counted", str(number))
    log.close()
    files = sorted(each.name for each in path.parent.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2", "audit.log.3"]
    told = [int(line["on"]) for name in reversed(files) for line in lines(path.parent / name)]
    assert told == list(range(told[0], 200)), "the newest are there, in order, without a gap"
    assert all((path.parent / name).stat().st_size <= 1000 for name in files)


def test_a_log_goes_on_where_it_was(path: Path) -> None:
    for number in range(2):
        log = AuditLog(path)
        log.noted("counted", str(number))
        log.close()
    assert [line["on"] for line in lines(path)] == ["0", "1"]


def test_a_log_that_cannot_be_written_says_so_once_and_stops_nothing(tmp_path: Path) -> None:
    problems: list[str] = []
    log = AuditLog(tmp_path / "absent" / "audit.log", problems.append)
    log.noted("a", "b")
    log.noted("a", "b")
    assert len(problems) == 1
    (tmp_path / "absent").mkdir()
    log.noted("a", "c")
    assert [line["on"] for line in lines(tmp_path / "absent" / "audit.log")] == ["c"]


def test_a_link_is_not_followed(path: Path) -> None:
    target = path.with_name("target")
    path.symlink_to(target)
    problems: list[str] = []
    AuditLog(path, problems.append).noted("a", "b")
    assert len(problems) == 1
    assert not target.exists()


@pytest.mark.timeout(20)
def test_a_pipe_holds_up_nobody_who_does_what_is_audited(path: Path) -> None:
    os.mkfifo(path)
    problems: list[str] = []
    AuditLog(path, problems.append).noted("a", "b")
    assert problems == [f"{path}: it is no regular file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else")
def test_nothing_is_written_into_a_file_of_somebody_else(path: Path) -> None:
    path.touch(0o666)
    os.chown(path, 65_534, 65_534)
    problems: list[str] = []
    AuditLog(path, problems.append).noted("a", "b")
    assert problems == [f"{path}: it belongs to somebody else"]
    assert path.read_bytes() == b""


def test_without_a_path_nothing_is_written_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problems: list[str] = []
    log = AuditLog(None, problems.append)
    log.noted("a", "b")
    log.done(ALICE, "peer", DELETE, "on", "")
    log.denied(ALICE, "peer", "connect", "no")
    log.close()
    assert problems == []
    assert list(tmp_path.iterdir()) == []


def test_actions_have_the_names_of_the_interface() -> None:
    assert action_of(api.SetOnline) == "set-online"
    assert action_of(None) == "call"

"""Stores that are lost, exchanged, renamed or damaged, seen from the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openmsmq.storage.bundles.pages import PAGES_LOOKED_AT_COUNT
from openmsmq.storage.layout import BASE_NAME, JOURNAL_NAMES
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch
from tests.runtime.test_server_process import environment, refused, serving

PAGE_BYTES = 4096


def run_once(data: Path, *flags: str) -> str:
    """Start a queue manager and stop it in order; give its identifier."""
    with serving(data, *flags) as server:
        assert server.end(signal.SIGTERM)[0] == 0
        return server.facts["id"]


def store_check(data: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "openmsmq.cli.app", "store", "check", str(data)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment()
    )


def test_a_missing_store_does_not_become_a_new_queue_manager(tmp_path: Path) -> None:
    identifier = run_once(tmp_path)
    shutil.rmtree(tmp_path / "store")
    line = refused("--data", str(tmp_path), "--name", "ALPHA")
    assert f"belongs to queue manager ALPHA ({identifier})" in line
    assert "is missing: restore it from a backup" in line
    assert "--new-store" in line
    assert not (tmp_path / "store").exists()
    # An empty directory in its place, as an unmounted disk leaves it, is no store either.
    (tmp_path / "store").mkdir()
    assert "is missing" in refused("--data", str(tmp_path), "--name", "ALPHA")
    fresh = run_once(tmp_path, "--new-store")
    assert fresh != identifier
    assert run_once(tmp_path) == fresh


def test_the_keys_of_a_queue_manager_are_a_sign_of_its_life(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "encryption-enhanced-1.pem").write_text("")
    assert "belongs to a queue manager, but its store" in refused("--data", str(tmp_path))


def test_tokens_that_were_made_before_the_first_start_are_no_obstacle(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "openmsmq.cli.app", "token", "create", "clerk"]
    command += ["--data", str(tmp_path), "--scope", "send"]
    subprocess.run(command, capture_output=True, check=True, timeout=30, env=environment())
    assert (tmp_path / "tokens.json").exists()
    run_once(tmp_path)


def test_a_new_store_is_not_put_in_the_place_of_one_that_is_there(tmp_path: Path) -> None:
    identifier = run_once(tmp_path)
    line = refused("--data", str(tmp_path), "--name", "ALPHA", "--new-store")
    assert "there is a store" in line
    assert run_once(tmp_path) == identifier


def test_a_store_does_not_answer_to_another_name(tmp_path: Path) -> None:
    identifier = run_once(tmp_path)
    line = refused("--data", str(tmp_path), "--name", "BETA")
    assert f"the queue manager in {tmp_path} is ALPHA, not BETA" in line
    assert "--name ALPHA" in line
    assert "--rename" in line
    assert run_once(tmp_path, "--name", "alpha") == identifier
    assert run_once(tmp_path, "--name", "BETA", "--rename") == identifier
    assert run_once(tmp_path, "--name", "BETA") == identifier
    assert "is BETA, not ALPHA" in refused("--data", str(tmp_path), "--name", "ALPHA")


def test_a_start_that_failed_binds_nobody_to_a_name(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as server:
        taken = ("--api-port", str(server.port), "--address", server.host)
        data = ("--data", str(tmp_path / "two"))
        assert "cannot listen" in refused(*data, *taken, "--name", "BETA", status=75)
    run_once(tmp_path / "two")
    assert "is ALPHA, not BETA" in refused(*data, "--name", "BETA")


def test_a_store_from_before_names_were_noted_keeps_its_name(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connect() as client:
        client.create()
    (tmp_path / "identity.json").unlink()
    assert "is ALPHA, not BETA" in refused("--data", str(tmp_path), "--name", "BETA")


def test_a_store_of_another_directory_is_refused(tmp_path: Path) -> None:
    here, there = (run_once(tmp_path / name) for name in ("here", "there"))
    shutil.rmtree(tmp_path / "here" / "store")
    shutil.copytree(tmp_path / "there" / "store", tmp_path / "here" / "store")
    line = refused("--data", str(tmp_path / "here"), "--name", "ALPHA")
    assert here in line
    assert there in line
    (tmp_path / "here" / "identity.json").unlink()
    assert run_once(tmp_path / "here") == there


def test_a_directory_from_before_this_was_noted_is_taken_as_it_is(tmp_path: Path) -> None:
    identifier = run_once(tmp_path)
    note = tmp_path / "identity.json"
    content = note.read_bytes()
    note.unlink()
    assert run_once(tmp_path) == identifier
    assert note.read_bytes() == content
    note.write_bytes(b"{")
    assert "identity.json does not say" in refused("--data", str(tmp_path), "--name", "ALPHA")


@pytest.mark.parametrize("size", [0, 100, 5_000_000])
def test_a_cut_journal_is_refused_and_called_damaged(tmp_path: Path, size: int) -> None:
    with serving(tmp_path) as server, server.connect() as client:
        client.create()
        server.end(signal.SIGKILL)
    os.truncate(tmp_path / "store" / JOURNAL_NAMES[0], size)
    said = f"{JOURNAL_NAMES[0]} is cut: {size} bytes of"
    assert said in refused("--data", str(tmp_path), "--name", "ALPHA")
    check = store_check(tmp_path)
    assert check.returncode == 1
    assert said in check.stderr


def blank(path: Path, page: int) -> bytes:
    content = path.read_bytes()
    rest = content[(page + 1) * PAGE_BYTES :]
    path.write_bytes(content[: page * PAGE_BYTES] + bytes(PAGE_BYTES) + rest)
    return content


def test_a_damaged_page_is_a_sentence_for_the_server_and_for_the_check(tmp_path: Path) -> None:
    run_once(tmp_path)
    base = tmp_path / "store" / BASE_NAME
    content = base.read_bytes()
    noticed = 0
    for page in range(2, 8):
        blank(base, page)
        check = store_check(tmp_path)
        assert check.returncode in (0, 1), check
        if check.returncode:
            noticed += 1
            assert f"{BASE_NAME} is damaged: page {page} " in check.stderr
            line = refused("--data", str(tmp_path), "--name", "ALPHA")
            assert f"{BASE_NAME} is damaged: page {page} " in line
            assert "restore the directory from a backup" in line
        base.write_bytes(content)
    assert noticed >= 2


def test_after_the_end_by_a_signal_every_page_is_looked_at(tmp_path: Path) -> None:
    run_once(tmp_path)
    store = open_store(tmp_path / "store")
    count = 6 * PAGES_LOOKED_AT_COUNT
    store.commit(Batch([(b"Z%06d" % number, bytes(1500)) for number in range(count)]))
    store.close()
    base = tmp_path / "store" / BASE_NAME
    content = base.read_bytes()
    # The last record is on a page that a start does not reach.
    blank(base, content.rindex(b"Z%06d" % (count - 1)) // PAGE_BYTES)
    with serving(tmp_path, "--log-format", "json") as server:
        status, errors = server.end(signal.SIGABRT)
    assert status == -signal.SIGABRT
    assert "crashed-before" not in errors
    assert (tmp_path / "crash.log").stat().st_size
    assert "is damaged: page" in refused("--data", str(tmp_path), "--name", "ALPHA")
    base.write_bytes(content)
    with serving(tmp_path, "--log-format", "json") as server:
        # The run that has put the file away writes its own.
        _, errors = server.end(signal.SIGABRT)
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert "crashed-before" in events
    assert (tmp_path / "crash.log.old").stat().st_size
    assert (tmp_path / "crash.log").stat().st_size
    run_once(tmp_path)
    with serving(tmp_path, "--log-format", "json") as server:
        _, errors = server.end(signal.SIGTERM)
    assert "crashed-before" not in errors

"""Ordinary mistakes of an operator: each is refused in a sentence that says what to do."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import openmsmq
from bench.peers.databases import Databases
from openmsmq.client.errors import ConnectionLost
from tests.failover.test_standby import send, status
from tests.failover.two import Two
from tests.runtime.computers import PROGRAM, Computer, environment, wait_for

NOT_STARTED = 2
NOT_YET = 75


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    made = Databases()
    with psycopg.connect(made.first.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE limited LOGIN")
        connection.execute("CREATE DATABASE other")
    with psycopg.connect(other(made), autocommit=True) as connection:
        connection.execute("CREATE TABLE openmsmq_log (name text PRIMARY KEY, stuff int)")
        connection.execute("CREATE TABLE openmsmq_follower (name text)")
    yield made
    made.remove()


@pytest.fixture
def two(tmp_path: Path, databases: Databases, request: pytest.FixtureRequest) -> Iterator[Two]:
    made = Two(tmp_path, databases.address, f"MISTAKE{abs(hash(request.node.name)) % 10**6}")
    try:
        made.begin()
        yield made
    finally:
        made.end()


def other(databases: Databases) -> str:
    return databases.first.address.replace("dbname=postgres", "dbname=other")


def serve(
    folder: Path, database: str, *options: str, **replication: str
) -> subprocess.CompletedProcess[str]:
    """Start a queue manager that cannot start; give what it said."""
    lines = [f'{key} = "{value}"' for key, value in {"database": database, **replication}.items()]
    text = f'name = "PAIR"\ndata = "{folder}/data"\naddress = "127.0.82.1"\n[replication]\n'
    file = folder / "openmsmq.toml"
    file.write_text(text + "\n".join(lines) + "\n")
    return subprocess.run(
        [*PROGRAM, "serve", "--config", str(file), *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )


def failover(computer: Computer, *options: str, code: int = 0) -> None:
    file = str(computer.data.parent / f"{computer.name}.toml")
    computer.command("failover", "--config", file, "--name", computer.name, *options, code=code)


def test_a_connection_string_that_is_none_is_not_tried_again(tmp_path: Path) -> None:
    done = serve(tmp_path, "hst=127.0.0.1 dbname=openmsmq")
    assert (done.returncode, "is no connection string" in done.stderr) == (NOT_STARTED, True)


def test_a_database_that_is_away_is_tried_again(tmp_path: Path) -> None:
    done = serve(tmp_path, "host=127.0.0.1 port=1 dbname=openmsmq")
    assert (done.returncode, "Connection refused" in done.stderr) == (NOT_YET, True)


def test_who_may_not_create_tables_hears_what_to_grant(
    tmp_path: Path, databases: Databases
) -> None:
    done = serve(tmp_path, databases.address.replace("user=tester", "user=limited"))
    assert (done.returncode, "GRANT CREATE ON SCHEMA" in done.stderr) == (NOT_STARTED, True)


def test_tables_of_another_version_are_refused(tmp_path: Path, databases: Databases) -> None:
    done = serve(tmp_path, other(databases))
    assert (done.returncode, "are not what this version makes" in done.stderr) == (
        NOT_STARTED,
        True,
    )


def test_a_server_that_follows_another_one_is_never_read(
    tmp_path: Path, databases: Databases
) -> None:
    # It may lack what was confirmed, which would look like a loss.
    done = serve(tmp_path, f"{databases.second.address} target_session_attrs=any")
    assert (done.returncode, "read-only" in done.stderr) == (NOT_YET, True)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_hook_that_cannot_be_run_is_told_before_it_is_needed(
    tmp_path: Path, databases: Databases, is_there: bool
) -> None:
    program = tmp_path / "take-over"
    if is_there:
        program.write_text("#!/bin/sh\n")
    done = serve(tmp_path, databases.address, "--standby", on_promotion=str(program))
    assert done.returncode == NOT_STARTED
    assert "is not there, or may not be run" in done.stderr


def test_a_standby_without_a_back_up_says_that_it_needs_one(two: Two) -> None:
    two.beta.options = ("--standby",)
    two.beta.launch()
    assert two.beta.process is not None
    two.beta.process.communicate(timeout=60)
    assert two.beta.process.returncode == NOT_STARTED
    assert "restore a back-up that was made while it was replicated" in two.beta.log


def test_nobody_hands_over_when_nobody_follows(two: Two) -> None:
    failover(two.alpha, code=1)
    send(two.alpha, 1)
    assert two.alpha.is_running


def test_what_the_database_has_no_log_of_is_told(two: Two) -> None:
    file = str(two.alpha.data.parent / f"{two.alpha.name}.toml")
    for options in ((), ("--show",)):
        two.alpha.command("failover", "--config", file, "--name", "NOBODY", *options, code=1)


def test_a_database_that_has_lost_its_standby_for_good_is_told_while_it_serves(
    two: Two, databases: Databases
) -> None:
    databases.first.set(synchronous_standby_names="")
    try:
        wait_for(
            lambda: (
                "synchronous_standby_names is empty"
                in ((status(two.alpha)["replication"] or {}).get("problem") or "")
            )
        )
    finally:
        databases.first.set(synchronous_standby_names="second")
    wait_for(lambda: not status(two.alpha)["replication"]["problem"])


def test_a_primary_can_be_stopped_while_the_database_is_away(
    two: Two, databases: Databases
) -> None:
    send(two.alpha, 1)
    databases.first.stop()
    try:
        with (
            pytest.raises(ConnectionLost),
            openmsmq.connect(two.alpha.qm, call_timeout_s=1, reconnect_within_s=0) as manager,
        ):
            manager.queue(r"private$\a").send(b"x", recoverable=True)
        # A record is under way, and nobody knows of it.
        assert two.alpha.end(signal.SIGTERM) == 0
    finally:
        databases.first.start()
        wait_for(lambda: databases.first.synchronous_count() == 1)


def test_two_computers_of_one_name_are_noticed(two: Two) -> None:
    two.restore()
    file = two.beta.data.parent / f"{two.beta.name}.toml"
    file.write_text(file.read_text().replace('member = "beta"', 'member = "alpha"'))
    two.follow()
    # Whoever has less is told as soon as the other one has said that it has more.
    send(two.alpha, 3)
    two.alpha.command("backup", str(two.folder / "newer"))
    wait_for(lambda: "is called alpha, too" in two.beta.log or "newer back-up" in two.beta.log)


def test_systemd_does_not_end_a_standby_that_lives(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.restore()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        two.follow()
        heard = [systemd.recv(1000).decode() for _ in range(4)]
    assert heard[0].startswith("READY=1")
    assert heard[1:] == ["WATCHDOG=1"] * 3


def test_one_that_lost_its_epoch_while_its_hook_ran_never_says_that_it_is_ready(
    tmp_path: Path, databases: Databases
) -> None:
    hook = tmp_path / "take-over"
    taken = (
        "UPDATE openmsmq_log SET epoch = epoch + 1, holder = 'gamma 1',"
        " lease_until = clock_timestamp() + interval '1 hour' WHERE name = 'PAIR'"
    )
    # As another computer does, when this one was cut off meanwhile. Then it renews, and hears it.
    connection = f"psycopg.connect({databases.first.address!r}, autocommit=True)"
    hook.write_text(
        f"#!{sys.executable}\nimport psycopg, time\n"
        f"with {connection} as connection:\n    connection.execute({taken!r})\ntime.sleep(2)\n"
    )
    hook.chmod(0o700)
    done = serve(tmp_path, databases.address, on_promotion=str(hook))
    assert (done.returncode, "ready " in done.stdout) == (NOT_YET, False), done.stderr
    assert "another computer has taken over" in done.stderr

"""What an operator sees of a pair on two computers: who follows, how far, and with which files."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import openmsmq
from bench.peers.databases import Databases
from tests.failover.two import Two
from tests.runtime.computers import Computer, wait_for


@pytest.fixture
def databases() -> Iterator[Databases]:
    made = Databases()
    yield made
    made.remove()


@pytest.fixture
def two(tmp_path: Path, databases: Databases) -> Iterator[Two]:
    made = Two(tmp_path, databases.address)
    try:
        made.begin()
        yield made
    finally:
        made.end()


def status(computer: Computer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(computer.command("status", "--json"))
    return found


def standby(computer: Computer) -> dict[str, Any]:
    """Return what the primary says of the only standby; nothing while it knows none."""
    found = (status(computer)["replication"] or {}).get("standbys", [])
    return found[0] if found else {}


def raised(computer: Computer) -> list[str]:
    return [each["name"] for each in status(computer)["alarms"] if each["raised_count"]]


def send(computer: Computer, count: int) -> None:
    with openmsmq.connect(computer.qm) as manager:
        queue = manager.create_queue(r"private$\a", exist_ok=True)
        for number in range(count):
            queue.send(b"%d" % number, recoverable=True)


def test_a_primary_says_who_follows_how_far_and_that_nobody_does(two: Two) -> None:
    wait_for(lambda: "alone" in raised(two.alpha))
    text = two.alpha.command("status")
    assert "primary alpha, epoch 1" in text
    assert "none for" in text
    send(two.alpha, 12)
    wait_for(lambda: "long" in raised(two.alpha))
    two.restore()
    two.follow()
    wait_for(lambda: standby(two.alpha).get("name") == "beta")
    wait_for(lambda: "alone" not in raised(two.alpha))
    before = status(two.alpha)["replication"]["record"]
    assert standby(two.alpha)["differing"] == []
    send(two.alpha, 3)
    wait_for(lambda: standby(two.alpha)["record"] >= before + 3)
    assert standby(two.alpha)["lag_s"] < 15
    metrics = two.alpha.command("metrics")
    assert "openmsmq_replication_epoch 1" in metrics
    assert 'openmsmq_standby_lag_records{standby="beta"}' in metrics
    # What all have and a back-up has need not stay in the database.
    two.alpha.command("backup", str(two.folder / "later"))
    wait_for(lambda: "long" not in raised(two.alpha))
    # A standby that stands still is behind, and then there is none.
    two.beta.process.send_signal(signal.SIGSTOP)
    send(two.alpha, 3)
    wait_for(lambda: standby(two.alpha)["lag_s"] > 0)
    wait_for(lambda: "alone" in raised(two.alpha))
    two.beta.process.send_signal(signal.SIGCONT)
    wait_for(lambda: "alone" not in raised(two.alpha))


def test_a_standby_says_which_files_are_not_those_of_the_primary(two: Two) -> None:
    two.restore()
    key = Path("keys", "encryption-advanced-1700000000.pem")
    (two.alpha.data / key).parent.mkdir(exist_ok=True)
    (two.alpha.data / key).write_text("a new key")
    two.follow()
    wait_for(lambda: "replication-files" in two.beta.log)
    line = next(line for line in two.beta.log_lines() if "replication-files" in line)
    assert str(key) in line
    wait_for(lambda: standby(two.alpha).get("differing") == [str(key)])
    assert f"files differ: {key}" in two.alpha.command("status")
    (two.beta.data / key).parent.mkdir(exist_ok=True)
    shutil.copy(two.alpha.data / key, two.beta.data / key)
    wait_for(lambda: standby(two.alpha)["differing"] == [])


LIES = {
    "a record is changed": (
        "UPDATE openmsmq_record SET record = set_byte(record, 3, 255 - get_byte(record, 3))"
        " WHERE number = {last}",
        "is not what its primary has written",
    ),
    "a record is cut": (
        "UPDATE openmsmq_record SET record = substring(record FROM 1 FOR 9) WHERE number = {last}",
        "is not what its primary has written",
    ),
    "records change their places": (
        "UPDATE openmsmq_record SET record = (SELECT record FROM openmsmq_record WHERE number ="
        " {last} - 1) WHERE number = {last}",
        "is not what its primary has written",
    ),
    "a record is missing": (
        "DELETE FROM openmsmq_record WHERE number = {last} - 1",
        "has a gap",
    ),
    "the database is of yesterday": (
        "UPDATE openmsmq_log SET last = {last} - 4, confirmed = {last} - 5",
        "the database has lost what it had confirmed",
    ),
    "it is another log": ("UPDATE openmsmq_log SET log = 'another'", "the store belongs to"),
}
"""What a database may do that is broken, or in the wrong hands; and what a standby says of it."""


@pytest.mark.parametrize("lie", LIES)
def test_a_standby_stores_nothing_of_a_log_that_lies(
    two: Two, databases: Databases, lie: str
) -> None:
    statement, words = LIES[lie]
    two.restore()
    two.follow()
    process = two.beta.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    send(two.alpha, 8)
    with psycopg.connect(databases.first.address, autocommit=True) as connection:
        row = connection.execute("SELECT confirmed FROM openmsmq_log").fetchone()
        assert row is not None
        connection.execute(statement.format(last=row[0]).encode())
    process.send_signal(signal.SIGCONT)
    code = process.wait(60)
    assert (code, words in two.beta.log) == (2, True), two.beta.log[-2000:]


def test_a_standby_begins_from_an_online_back_up_and_runs_the_hook_before_it_serves(
    two: Two,
) -> None:
    send(two.alpha, 5)
    two.restore()
    send(two.alpha, 4)
    two.follow()
    assert not (two.folder / "beta" / "promoted").exists()
    two.alpha.end(signal.SIGKILL)
    two.beta.ready()
    assert (two.folder / "beta" / "promoted").read_text() == "PAIR\n"
    addresses = [two.alpha.qm, two.beta.qm]
    for place in (addresses, addresses[::-1], "|".join(addresses)):
        with openmsmq.connect(place, start_wait_s=30) as manager:
            found = [message.body_bytes for message in manager.queue(r"private$\a").browse()]
        assert found == [b"%d" % number for number in (*range(5), *range(4))]
    wait_for(lambda: (status(two.beta)["replication"] or {}).get("epoch") == 2)

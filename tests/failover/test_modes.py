"""What a queue manager does when PostgreSQL is slow, gone, restarted, failed over, or split.

The guide has a row for each. Whatever happens: nothing is acknowledged that is not in the log, and
what is acknowledged is there once.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import openmsmq
import openmsmq.aio
from bench.peers.databases import Databases
from openmsmq.client.errors import OutcomeUnknown
from tests.failover.lines import Lines, lines_to
from tests.failover.load import QUEUE, Sender, check, create_queue, take_all
from tests.failover.test_standby import status
from tests.failover.two import Two, launch
from tests.runtime.computers import Computer, wait_for

pytestmark = pytest.mark.slow

SILENT = "replication-silent"
HEARD = "replication-heard"
OTHER = r"private$\other"
NAMES = (f"MODES{number}" for number in itertools.count())
NOT_STARTED = 2
NOT_YET = 75


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    made = Databases()
    yield made
    made.remove()


@pytest.fixture
def lines(databases: Databases) -> Iterator[Lines]:
    with lines_to(databases) as made:
        yield made


@pytest.fixture
def two(tmp_path: Path, databases: Databases, lines: Lines) -> Iterator[Two]:
    """Alpha comes to the databases by lines; beta, which is not started yet, at once."""
    made = Two(tmp_path, lines.address, next(NAMES), other=databases.address)
    try:
        made.begin()
        create_queue(made.alpha.qm)
        yield made
    finally:
        made.end()


def last_record(databases: Databases, two: Two) -> int:
    with psycopg.connect(databases.writer.address, autocommit=True) as connection:
        asked = "SELECT last FROM openmsmq_log WHERE name = %s"
        row = connection.execute(asked, [two.alpha.name]).fetchone()
    assert row is not None
    return int(row[0])


def acknowledges(sender: Sender, count: int = 3) -> None:
    """Wait until a sender was told of so many more."""
    wanted = len(sender.acknowledged) + count
    wait_for(lambda: len(sender.acknowledged) >= wanted)


def ended(computer: Computer) -> int:
    """Wait until it has ended by itself; give its exit status."""
    process = computer.process
    assert process is not None
    process.communicate(timeout=60)
    return process.returncode


# What ends the log for a while, and what brings it back.


def cut(_: Databases, lines: Lines) -> Callable[[], None]:
    lines.cut()
    return lines.mend


def slow_down(_: Databases, lines: Lines) -> Callable[[], None]:
    lines.slow_down(3.0)
    return lines.mend


def lose_the_second(databases: Databases, _: Lines) -> Callable[[], None]:
    databases.follower.stop()
    return databases.follower.start


def stop_the_first(databases: Databases, _: Lines) -> Callable[[], None]:
    databases.writer.stop()
    return databases.writer.start


def fail_over(databases: Databases, _: Lines) -> Callable[[], None]:
    databases.fail_over()
    return databases.copy


def split(databases: Databases, _: Lines) -> Callable[[], None]:
    """Let both take writes; each waits for a second server that it has not."""
    one, other = databases.writer, databases.follower
    other.set(synchronous_standby_names=f'"{one.name}"')
    other.promote()

    def decide() -> None:
        one.stop()
        databases.writer, databases.follower = other, one
        databases.copy()

    return decide


@pytest.mark.parametrize(
    "fault", [cut, slow_down, lose_the_second, stop_the_first, fail_over, split]
)
def test_nothing_is_acknowledged_while_there_is_no_log_and_then_it_goes_on(
    two: Two,
    databases: Databases,
    lines: Lines,
    fault: Callable[[Databases, Lines], Callable[[], None]],
) -> None:
    sender = Sender(two.alpha.qm, QUEUE)
    with openmsmq.connect(two.alpha.qm, call_timeout_s=1.0, reconnect_within_s=0) as manager:
        other = manager.create_queue(OTHER)
        other.send(b"before", recoverable=True)
        acknowledges(sender)
        mend = fault(databases, lines)
        wait_for(lambda: SILENT in two.alpha.log)
        told = len(sender.acknowledged)
        with pytest.raises(OutcomeUnknown):
            other.send(b"meanwhile", recoverable=True)
    assert HEARD not in two.alpha.log
    assert len(sender.acknowledged) == told
    mend()
    databases.wait_until_it_follows()
    acknowledges(sender)
    assert HEARD in two.alpha.log
    sender.stop()
    # Who looks at the log for operators may have found it away, and looks again.
    wait_for(lambda: (status(two.alpha)["replication"] or {}).get("epoch") == 1)
    check(
        take_all(two.alpha.qm, lambda found: sender.acknowledged[-1] in found), sender.acknowledged
    )
    assert last_record(databases, two) >= len(sender.acknowledged)


def test_a_slow_database_makes_turns_grow_and_answers_late(
    two: Two, databases: Databases, lines: Lines
) -> None:
    delay_s = 0.2
    count = 40

    async def send_all() -> list[float]:
        async with openmsmq.aio.connect(two.alpha.qm) as manager:
            queue = manager.queue(OTHER)

            async def send(number: int) -> float:
                began_s = time.perf_counter()
                await queue.send(b"%d" % number, recoverable=True)
                return time.perf_counter() - began_s

            return await asyncio.gather(*(send(number) for number in range(count)))

    with openmsmq.connect(two.alpha.qm) as manager:
        manager.create_queue(OTHER)
    before = last_record(databases, two)
    lines.slow_down(delay_s)
    took_s = asyncio.run(send_all())
    assert min(took_s) > delay_s
    lines.mend()
    assert last_record(databases, two) - before < count / 2
    assert SILENT not in two.alpha.log


def test_a_primary_that_is_cut_off_ends_when_a_standby_has_taken_over(
    two: Two, lines: Lines
) -> None:
    two.restore()
    two.follow()
    sender = Sender([two.alpha.qm, two.beta.qm], QUEUE)
    acknowledges(sender)
    lines.cut()
    two.beta.ready()
    acknowledges(sender)
    assert SILENT in two.alpha.log
    lines.mend()
    assert ended(two.alpha) == NOT_YET, two.alpha.log[-2000:]
    assert "replication-ended" in two.alpha.log
    sender.stop()
    check(
        take_all(two.beta.qm, lambda found: sender.acknowledged[-1] in found), sender.acknowledged
    )


def test_a_primary_ends_for_good_when_the_database_has_lost_what_it_had_confirmed(
    two: Two, databases: Databases
) -> None:
    sender = Sender(two.alpha.qm, QUEUE)
    # As somebody does who wants the queue manager to go on without a second server.
    databases.writer.set(synchronous_standby_names="")
    databases.follower.stop()
    acknowledges(sender)
    told = list(sender.acknowledged)
    databases.writer.stop()
    databases.follower.start()
    lost, left = databases.writer, databases.follower
    left.set(synchronous_standby_names=f'"{lost.name}"')
    left.promote()
    databases.writer, databases.follower = left, lost
    databases.copy()
    assert ended(two.alpha) == NOT_STARTED, two.alpha.log[-2000:]
    assert "has lost what it had confirmed" in two.alpha.log
    assert told == sender.acknowledged
    two.alpha.configure("")
    two.alpha.options = ("--leave-log",)
    two.alpha.start()
    sender.stop()
    check(
        take_all(two.alpha.qm, lambda found: sender.acknowledged[-1] in found), sender.acknowledged
    )


def test_an_operator_lets_a_standby_take_over_and_the_primary_ends_in_order(
    two: Two, tmp_path: Path
) -> None:
    two.restore()
    two.follow()
    sender = Sender([two.alpha.qm, two.beta.qm], QUEUE)
    acknowledges(sender)
    config = str(tmp_path / "alpha" / f"{two.alpha.name}.toml")
    shown = two.alpha.command("failover", "--config", config, "--name", two.alpha.name, "--show")
    assert "alpha" in shown
    assert "beta" in shown
    two.alpha.command("failover", "--config", config, "--name", two.alpha.name)
    two.beta.ready()
    assert ended(two.alpha) == NOT_YET, two.alpha.log[-2000:]
    acknowledges(sender)
    began_s = time.perf_counter()
    launch(two.alpha, "--standby")
    assert two.beta.end(signal.SIGTERM) == 0
    two.alpha.ready()
    # A lease that is given back need not end: nobody waits for it.
    assert time.perf_counter() - began_s < 60
    acknowledges(sender)
    sender.stop()
    check(
        take_all(two.alpha.qm, lambda found: sender.acknowledged[-1] in found), sender.acknowledged
    )


def test_a_standby_that_was_away_for_long_has_to_begin_from_a_newer_back_up(
    two: Two, databases: Databases
) -> None:
    two.restore()
    two.follow()
    wait_for(
        lambda: [each["name"] for each in (status(two.alpha)["replication"] or {})["standbys"]]
    )
    two.beta.end(signal.SIGKILL)
    with openmsmq.connect(two.alpha.qm) as manager:
        queue = manager.create_queue(OTHER)
        for number in range(5):
            queue.send(b"%d" % number, recoverable=True)
    with psycopg.connect(databases.writer.address, autocommit=True) as connection:
        away = (
            "UPDATE openmsmq_follower SET seen = seen - interval '25 hours' WHERE follower = 'beta'"
        )
        connection.execute(away)
    two.alpha.command("backup", str(two.folder / "newer"))

    def first() -> int:
        with psycopg.connect(databases.writer.address, autocommit=True) as connection:
            asked = "SELECT first FROM openmsmq_log WHERE name = %s"
            row = connection.execute(asked, [two.alpha.name]).fetchone()
        assert row is not None
        return int(row[0])

    wait_for(lambda: first() > 5)
    two.beta.options = ("--standby",)
    two.beta.launch()
    assert ended(two.beta) == NOT_STARTED, two.beta.log[-2000:]
    assert "begin from a newer back-up" in two.beta.log

"""The log in a real PostgreSQL keeps the rules that the simulated one has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import psycopg
import pytest

from bench.peers.databases import Databases
from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    Read,
    Release,
    Renew,
    Request,
    Take,
    Trim,
)
from openmsmq.runtime.config.services.replication_table import ReplicationTable
from openmsmq.runtime.replication.database import READ_MAX_BYTES, DatabaseLog
from openmsmq.runtime.replication.wire import LogFailed
from openmsmq.runtime.start_errors import StartError
from tests.runtime.computers import wait_for


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    made = Databases()
    yield made
    made.remove()


def table(databases: Databases, **options: int) -> ReplicationTable:
    return ReplicationTable(database=databases.address, lease_ms=60_000, **options)


Ask = Callable[[DatabaseLog, Request], Awaitable[Answer]]


async def asked(log: DatabaseLog, request: Request) -> Answer:
    """Ask as a standby does."""
    return await log.ask(request)


async def begun(log: DatabaseLog, request: Request) -> Answer:
    """Ask as a primary does, which is told."""
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def heard(end: Answer | Exception) -> None:
        if isinstance(end, Answer):
            answered.set_result(end)
        else:
            answered.set_exception(end)

    log.begin(request, heard)
    assert not answered.done(), "it was told before it had asked"
    return await answered


both_ways = pytest.mark.parametrize("ask", [asked, begun])


async def ask_all(log: DatabaseLog, *requests: Request, ask: Ask = asked) -> list[Answer]:
    return [await ask(log, request) for request in requests]


@both_ways
def test_appends_are_fenced_by_epoch_holder_and_number(databases: Databases, ask: Ask) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), f"FENCED {ask.__name__}")
        await log.create("log", "mark", 0)
        taken, *rest = await ask_all(
            log,
            Take(0, "first"),
            Append(1, "first", 1, b"one"),
            Append(1, "first", 1, b"one"),
            Append(1, "first", 3, b"three"),
            Append(2, "first", 2, b"two"),
            Append(1, "second", 2, b"two"),
            Take(1, "second"),
            Append(1, "first", 2, b"two"),
            Release(1, "first"),
            Take(0, "second"),
            Take(1, "second"),
            Append(1, "first", 3, b"late"),
            Renew(1, "first", 2),
            Append(2, "second", 3, b"three"),
            ask=ask,
        )
        assert taken.done
        states = [(answer.state.epoch, answer.state.holder) for answer in rest]
        assert states == [*[(1, "first")] * 9, *[(2, "second")] * 4]
        ends = [(answer.state.first, answer.state.last) for answer in rest]
        assert ends == [*[(1, 1)] * 6, *[(1, 2)] * 6, (1, 3)]
        assert {answer.state.log for answer in rest} == {"log"}
        assert not any(answer.state.handover for answer in rest)
        done = [answer.done for answer in rest]
        assert done == [
            *(True, False, False, False, False, False, True),
            *(True, False, True, False, False, True),
        ]
        read = await log.ask(Read(0, "follower"))
        assert read.records == [(1, b"one"), (2, b"two"), (3, b"three")]
        assert (read.state.epoch, read.state.confirmed, read.state.lease_ended) == (2, 2, False)
        log.close()

    asyncio.run(run())


def test_nothing_is_trimmed_that_a_follower_or_a_back_up_lacks(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "TRIMMED")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        for number in range(1, 9):
            await log.ask(Append(1, "us", number, b"%d" % number))
        await log.ask(Read(5, "follower"))
        first = [
            (await log.ask(Trim(1, "us", backed_up, "us", 8))).state.first for backed_up in (3, 8)
        ]
        assert first == [4, 6]
        assert (await log.ask(Read(5, "follower"))).records[0] == (6, b"6")
        late = await log.ask(Trim(7, "us", 8, "us", 8))
        assert (late.done, late.state.first) == (False, 6)
        log.close()

    asyncio.run(run())


@both_ways
def test_without_its_second_server_the_database_gives_no_answer(
    databases: Databases, ask: Ask
) -> None:
    async def run() -> None:
        name = f"SLOW {ask.__name__}"
        log = DatabaseLog(table(databases, answer_timeout_ms=1000), name)
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        frozen = databases.second.freeze()
        with pytest.raises(LogFailed, match="within 1 s"):
            await ask(log, Append(1, "us", 1, b"one"))
        databases.second.thaw(frozen)
        # What was under way is done meanwhile or not: to append it again says so.
        answer = await ask(log, Append(1, "us", 1, b"one"))
        assert answer.state.last == 1
        assert [number for number, _ in (await log.ask(Read(0, "f"))).records] == [1]
        log.close()

    asyncio.run(run())


@both_ways
def test_a_record_with_a_longer_lease_is_waited_for_longer(databases: Databases, ask: Ask) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases, answer_timeout_ms=1000), f"PATIENT {ask.__name__}")
        await log.create("log", "mark", 0)
        # The look for the one before comes too early for the next one, and then too late.
        await ask_all(log, Take(0, "us"), Append(1, "us", 1, b"one"), ask=asked)
        await ask(log, Append(1, "us", 2, b"two"))
        frozen = databases.second.freeze()
        with pytest.raises(LogFailed, match=r"within 1\.5 s"):
            await ask(log, Append(1, "us", 3, b"three", 500))
        with pytest.raises(LogFailed, match="within 1 s"):
            await ask(log, Append(1, "us", 3, b"three"))
        databases.second.thaw(frozen)
        assert (await ask(log, Append(1, "us", 3, b"three"))).state.last == 3
        log.close()

    asyncio.run(run())


@both_ways
def test_a_database_that_starts_again_has_what_it_answered(databases: Databases, ask: Ask) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), f"AGAIN {ask.__name__}")
        await log.create("log", "mark", 0)
        await ask_all(log, Take(0, "us"), Append(1, "us", 1, b"one"))
        databases.first.stop()
        with pytest.raises(LogFailed):
            await ask(log, Append(1, "us", 2, b"two"))
        databases.first.start()
        wait_for(lambda: databases.first.synchronous_count() == 1)
        answer = await ask(log, Append(1, "us", 2, b"two"))
        assert (answer.done, answer.state.last) == (True, 2)
        log.close()

    asyncio.run(run())


def test_a_record_that_the_socket_does_not_take_at_once_arrives_whole(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "LARGE")
        await log.create("log", "mark", 0)
        record = bytes(range(256)) * (16 << 12)
        await ask_all(log, Take(0, "us"), Append(1, "us", 1, record), ask=begun)
        # Nothing keeps a connection busy on which all has left.
        answer = await begun(log, Append(1, "us", 2, b"two"))
        assert answer.state.last == 2
        read = [(await log.ask(Read(after, "f"))).records for after in (0, 1)]
        assert read == [[(1, record)], [(2, b"two")]]
        log.close()

    asyncio.run(run())


def test_nobody_is_told_of_a_log_that_was_closed(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "CLOSED")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        ends: list[Answer | Exception] = []
        log.begin(Append(1, "us", 1, b"one"), ends.append)
        log.close()
        other = DatabaseLog(table(databases), "CLOSED")
        # An answer that takes a whole turn of its own comes later than any to the first.
        await other.ask(Read(0, "f"))
        assert ends == []
        other.close()

    asyncio.run(run())


def test_a_handover_that_is_wanted_is_told_with_the_next_record(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "HANDED")
        await log.create("log", "mark", 0)
        await ask_all(log, Take(0, "us"), Append(1, "us", 1, b"one"))
        assert await log.hand_over() == "us"
        for ask in (asked, begun):
            number = (await log.ask(Read(0, "f"))).state.last + 1
            assert (await ask(log, Append(1, "us", number, b"next"))).state.handover
        log.close()

    asyncio.run(run())


def test_a_clock_that_is_put_back_makes_no_lease_longer(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "CLOCK")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        with psycopg.connect(databases.address, autocommit=True) as connection:
            # As if it had been ahead by a day, and the lease had been given then.
            connection.execute("UPDATE openmsmq_log SET lease_until = now() + interval '1 day'")
            await log.ask(Read(0, "follower"))
            left = "SELECT extract(epoch FROM lease_until - clock_timestamp()) FROM openmsmq_log"
            row = connection.execute(left + " WHERE name = 'CLOCK'").fetchone()
        assert row is not None
        assert 50 < row[0] <= 60
        log.close()

    asyncio.run(run())


def test_a_database_without_a_second_server_is_refused(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "ALONE")
        databases.first.set(synchronous_standby_names="")
        try:
            with pytest.raises(StartError, match="synchronous_standby_names"):
                await log.find()
        finally:
            databases.first.set(synchronous_standby_names="second")
            log.close()

    asyncio.run(run())


def test_records_are_read_by_their_bytes_and_one_that_is_long_in_parts(
    databases: Databases,
) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "LONG")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        half = bytes([1]) * (READ_MAX_BYTES // 2)
        long = bytes(range(256)) * (READ_MAX_BYTES // 100)
        written = [half, b"two", half, long, b"five"]
        for number, record in enumerate(written, 1):
            assert (await log.ask(Append(1, "us", number, record))).done
        found: list[tuple[int, bytes]] = []
        counts = []
        while len(found) < len(written):
            read = (await log.ask(Read(len(found), "follower"))).records
            counts.append(len(read))
            found += read
        assert found == list(enumerate(written, 1))
        # Half and "two" fit, a further half does not; what is long comes alone.
        assert counts == [2, 1, 1, 1]
        log.close()

    asyncio.run(run())


def test_a_lease_that_is_longer_for_a_record_is_not_cut_short(databases: Databases) -> None:
    async def run() -> None:
        log = DatabaseLog(table(databases), "LONGER")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))

        async def left_s() -> float:
            # A follower looks for leases that nobody can have had.
            follower = DatabaseLog(table(databases), "LONGER")
            await follower.ask(Read(0, "follower"))
            follower.close()
            with psycopg.connect(databases.address) as connection:
                row = connection.execute(
                    "SELECT extract(epoch FROM lease_until - clock_timestamp())::float"
                    " FROM openmsmq_log WHERE name = 'LONGER'"
                ).fetchone()
            assert row is not None
            return float(row[0])

        for request, longer_s in (
            (Renew(1, "us", 0, 40_000), 40),
            (Append(1, "us", 1, b"one", 30_000), 30),
            (Append(1, "us", 2, b"two"), 0),
            (Renew(1, "us", 2), 0),
        ):
            assert (await log.ask(request)).done
            assert 50 + longer_s < await left_s() <= 60 + longer_s
        log.close()

    asyncio.run(run())


def test_a_database_that_writes_bytes_in_another_way_is_understood(databases: Databases) -> None:
    with psycopg.connect(databases.address, autocommit=True) as connection:
        connection.execute("ALTER ROLE tester SET bytea_output = 'escape'")

    async def run() -> None:
        log = DatabaseLog(table(databases), "ESCAPED")
        await log.create("log", "mark", 0)
        await log.ask(Take(0, "us"))
        await log.ask(Append(1, "us", 1, b"\x00one\\"))
        assert (await log.ask(Read(0, "follower"))).records == [(1, b"\x00one\\")]
        log.close()

    try:
        asyncio.run(run())
    finally:
        with psycopg.connect(databases.address, autocommit=True) as connection:
            connection.execute("ALTER ROLE tester RESET bytea_output")

"""The log in PostgreSQL: requests of the machines as statements, and answers as values."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    LeaseTimes,
    LogState,
    Read,
    Release,
    Renew,
    Request,
    Take,
    Trim,
)
from openmsmq.runtime.clocks import elapsed_ns
from openmsmq.runtime.config.services.replication_table import ReplicationTable
from openmsmq.runtime.replication import statements
from openmsmq.runtime.replication.files import Digests, decode_digests, encode_digests
from openmsmq.runtime.replication.wire import LogFailed, Row, Wire, open_wire
from openmsmq.runtime.start_errors import StartError

READ_MAX_COUNT: Final = 64
"""Records of one answer to a standby."""

READ_MAX_BYTES: Final = 4 << 20
"""Their bytes, and those of one part of a longer record: an answer has to come in time."""

TRIMMED_MAX_COUNT: Final = 5000
"""Records that one request removes: appends wait for it."""

NOTED_EVERY_NS: Final = 2_000_000_000
"""How often a standby has noted how far it is."""

_NO_RIGHT: Final = "42501"
_OTHER_TABLES: Final = {"42703", "42P01", "42804", "42883", "42P10", "23502"}
"""A column or a table is missing, of another type, without a key, or one more is wanted."""

_STATE_COLUMNS: Final = 8
_RECORD: Final = 4
"""The parameter of an append that is bytes."""

_Told = TypeVar("_Told")

Change = Take | Renew | Append | Release | Trim
"""What writes: one statement, and one transaction, each."""

Heard = Callable[[Answer | Exception], None]
"""Hears what the log has answered; `LogFailed` when it is not known whether it was done."""


class Follower:
    """How far a standby is."""

    def __init__(self, name: str, number: int, silent_s: int, files: str) -> None:
        self.name = name
        self.number = number
        self.silent_s = silent_s
        self.files = files


class DatabaseLog:
    """The log of one queue manager."""

    def __init__(self, table: ReplicationTable, name: str) -> None:
        self.name = name
        self.times: LeaseTimes = table.times
        self._table = table
        self._timeout_s = table.answer_timeout_ms / 1000
        self._wire: Wire | None = None
        self._noted_ns = 0
        self._noted: int | None = None
        """What a follower had when that was noted last."""
        self._asking: asyncio.Task[None] | None = None
        self._appending: tuple[Append, Heard] | None = None
        """The record that was sent and is not answered, and who wants to hear of it."""
        self._append_timeout_s = 0.0
        self._append_until_ns = 0
        """So long its answer is waited for."""
        self._late: asyncio.TimerHandle | None = None
        self._late_ns = 0
        """When that timer looks, which is not set anew for each record."""

    async def ask(self, request: Request) -> Answer:
        """Have a request done; raise `LogFailed` when it is not known whether it was."""
        try:
            if isinstance(request, Read):
                return await self._read(request)
            longer_ms = request.longer_ms if isinstance(request, Append) else 0
            return await self._in_time(self._ask(request), longer_ms / 1000)
        except StartError as error:
            raise LogFailed(str(error)) from None

    def begin(self, request: Request, heard: Heard) -> None:
        """Have a request done; `heard` is called later, unless the log is closed before.

        A record goes out at once over a connection that is there: a turn waits for it.
        """
        wire = self._wire
        if isinstance(request, Append) and wire is not None and wire.is_open:
            self._appending = request, heard
            self._append_timeout_s = self._timeout_s + request.longer_ms / 1000
            self._append_until_ns = elapsed_ns() + round(self._append_timeout_s * 1e9)
            self._watch_append()
            wire.ask(statements.APPEND, self._values(request), _RECORD, self._have_appended)
        else:
            self._hear(self.ask(request), heard)

    def _watch_append(self) -> None:
        """Look when the answer is late, unless a look before will do: most come much earlier."""
        if self._late is not None:
            if self._late_ns <= self._append_until_ns:
                return
            self._late.cancel()
        self._late_ns = self._append_until_ns
        pause_s = (self._late_ns - elapsed_ns()) / 1e9
        self._late = asyncio.get_running_loop().call_later(pause_s, self._look_for_late)

    def _look_for_late(self) -> None:
        self._late = None
        if self._appending is not None:
            if elapsed_ns() < self._append_until_ns:
                self._watch_append()
            else:
                self._drop()

    def _have_appended(self, end: list[Row] | LogFailed) -> None:
        if self._appending is None:
            # The log was closed meanwhile.
            return
        (append, heard), self._appending = self._appending, None
        if isinstance(end, LogFailed):
            was_late = elapsed_ns() >= self._append_until_ns
            heard(_silence(self._append_timeout_s) if was_late else end)
        elif end:
            heard(Answer(_appended(append, end[0])))
        else:
            # It is refused again, and now with what the log has instead.
            self._hear(self.ask(append), heard)

    def _hear(self, asking: Coroutine[Any, Any, Answer], heard: Heard) -> None:
        async def hear() -> None:
            end: Answer | Exception
            try:
                end = await asking
            except Exception as error:
                end = error
            heard(end)

        self._asking = asyncio.get_running_loop().create_task(hear())

    async def create(self, log: str, mark: str, number: int) -> None:
        """Begin a log behind a number, if there is none of this name; `log` is its name for ever.

        Raise `LogFailed`, or `StartError` if the database may not keep one.
        """
        with _explained():
            exists = await self._rows(statements.EXISTS, [])
            if exists[0][0] != b"t":
                await (await self._open()).script(statements.SCHEMA)
            values = [self._name, log.encode(), mark.encode(), _number(number)]
            await self._rows(statements.CREATE, values)

    async def find(self) -> tuple[LogState, str] | None:
        """Return the line about the log, and the mark of the store that it began with."""
        with _explained():
            exists = await self._rows(statements.EXISTS, [])
            if exists[0][0] != b"t":
                return None
            rows = await self._rows(statements.STATE, [self._name])
            marks = await self._rows(statements.MARK, [self._name])
        return (_state(rows[0]), _text(marks[0][0])) if rows else None

    async def hand_over(self) -> str:
        """Want another primary; return who is it now, or nothing if there is none."""
        rows = await self._rows(statements.HAND_OVER, [self._name])
        return _text(rows[0][1]) if rows else ""

    async def require_safe(self) -> None:
        """Raise `StartError` if the database has no synchronous standby, or not any more."""
        wire = await self._in_time(self._open())
        await self._in_time(self._require_standby(wire))

    async def followers(self) -> list[Follower]:
        """Return who has which records."""
        rows = await self._rows(statements.FOLLOWERS, [self._name])
        return [Follower(_text(row[0]), _int(row[1]), _int(row[2]), _text(row[3])) for row in rows]

    async def tell_files(self, member: str, files: Digests) -> None:
        """Say which files a computer has beside the store."""
        values = [self._name, member.encode(), encode_digests(files)]
        await self._rows(statements.TELL_FILES, values)

    async def files_of_primary(self) -> Digests | None:
        """Return what the primary has said of its files, if it has."""
        rows = await self._rows(statements.FILES_OF_HOLDER, [self._name])
        return decode_digests(_text(rows[0][0])) if rows else None

    def close(self) -> None:
        """End the connection and what was begun; the next request makes another one."""
        self._appending = None
        self._drop()
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if self._asking is not None:
            self._asking.cancel()

    def _drop(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def _ask(self, request: Change) -> Answer:
        return await self._asked(await self._open(), request)

    async def _run(self, statement: str, values: list[bytes]) -> list[Row]:
        return await (await self._open()).run(statement, values)

    async def _rows(self, statement: str, values: list[bytes]) -> list[Row]:
        return await self._in_time(self._run(statement, values))

    async def _in_time(self, asking: Awaitable[_Told], longer_s: float = 0.0) -> _Told:
        timeout_s = self._timeout_s + longer_s
        try:
            async with asyncio.timeout(timeout_s):
                return await asking
        except TimeoutError:
            self._drop()
            raise _silence(timeout_s) from None

    @property
    def _name(self) -> bytes:
        return self.name.encode()

    async def _open(self) -> Wire:
        if self._wire is None or not self._wire.is_open:
            self._wire = await open_wire(self._table.database, self._timeout_s)
            await self._require_standby(self._wire)
        return self._wire

    async def _require_standby(self, wire: Wire) -> None:
        rows = await wire.run(statements.STANDBYS, [])
        standbys, fsync, commit = (_text(value) for value in rows[0])
        if commit not in ("on", "remote_apply"):
            problem = f"synchronous_commit is {commit}, although we have set it"
        elif fsync != "on" and not self._table.single_database:
            problem = "fsync is off: what it says to be durable is not"
        elif not standbys and not self._table.single_database:
            problem = (
                "synchronous_standby_names is empty: what is acknowledged would be lost with one "
                "machine. Give it a synchronous standby, or say single_database = true"
            )
        else:
            return
        self._drop()
        raise StartError(f"the database of [replication] is not safe: {problem}")

    async def _asked(self, wire: Wire, request: Change) -> Answer:
        if isinstance(request, Append):
            rows = await wire.run(statements.APPEND, self._values(request), _RECORD)
            if rows:
                return Answer(_appended(request, rows[0]))
        else:
            statement, values = self._statement(request)
            rows = await wire.run(statement, values)
            if rows:
                return Answer(_state(rows[0]))
        return Answer(await self._state(wire), done=False)

    def _values(self, append: Append) -> list[bytes]:
        return [
            self._name,
            _number(append.epoch),
            append.holder.encode(),
            _number(append.number),
            append.record,
            _number(self.times.lease_ms + append.longer_ms),
        ]

    def _statement(self, request: Take | Renew | Release | Trim) -> tuple[str, list[bytes]]:
        name, lease_ms = self._name, _number(self.times.lease_ms)
        holder = request.holder.encode()
        if isinstance(request, Take):
            return statements.TAKE, [name, holder, _number(request.seen_epoch), lease_ms]
        values = [name, _number(request.epoch), holder]
        if isinstance(request, Renew):
            longer_ms = _number(self.times.lease_ms + request.longer_ms)
            return statements.RENEW, [*values, _number(request.confirmed), longer_ms]
        if isinstance(request, Release):
            return statements.RELEASE, values
        return statements.TRIM, [
            *values,
            _number(request.backed_up),
            request.follower.encode(),
            _number(request.number),
            _number(TRIMMED_MAX_COUNT),
            _number(self._table.forget_standby_h),
        ]

    async def _state(self, wire: Wire) -> LogState:
        rows = await wire.run(statements.STATE, [self._name])
        if not rows:
            raise LogFailed(f"the database has no log of {self.name} any more")
        return _state(rows[0])

    async def _read(self, request: Read) -> Answer:
        """Read records; each statement has its own time, so that what is long comes in the end."""
        now_ns = elapsed_ns()
        after = _number(request.after)
        if now_ns - self._noted_ns >= NOTED_EVERY_NS:
            self._noted_ns = now_ns
            await self._note(request)
            await self._rows(statements.SHORTEN, [self._name])
        bounds = [_number(READ_MAX_COUNT), _number(READ_MAX_BYTES)]
        rows = await self._rows(statements.READ, [self._name, after, *bounds])
        if not rows:
            raise LogFailed(f"the database has no log of {self.name}")
        records: list[tuple[int, bytes]] = []
        for *_, number, record, size in rows:
            if number is None:
                continue
            whole = await self._in_parts(number, _int(size)) if record is None else _bytes(record)
            records.append((_int(number), whole))
        return Answer(_state(rows[0]), True, records)

    async def _note(self, request: Read) -> None:
        """Have it noted how far a follower is; nobody else may note that under its name."""
        who = [self._name, request.follower.encode()]
        rows = await self._rows(statements.NOTED, who)
        if self._noted is not None and rows and _int(rows[0][0]) > self._noted:
            raise LogFailed(
                f"another computer with this queue manager is called {request.follower}, too, so "
                "that the log may be trimmed before this one has it: give each a member of its own "
                "in [replication]"
            )
        await self._rows(statements.NOTE_FOLLOWER, [*who, _number(request.after)])
        self._noted = request.after

    async def _in_parts(self, number: bytes, size: int) -> bytes:
        parts = []
        for start in range(1, size + 1, READ_MAX_BYTES):
            part = [self._name, number, _number(start), _number(READ_MAX_BYTES)]
            rows = await self._rows(statements.READ_PART, part)
            if not rows:
                raise LogFailed(f"the database has no record {_int(number)} any more")
            parts.append(_bytes(rows[0][0]))
        return b"".join(parts)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Say what somebody has to put right, where another attempt would end alike."""
    try:
        yield
    except LogFailed as error:
        if error.code == _NO_RIGHT:
            raise StartError(
                f"{error}: the user of [replication] has to be able to create tables there (GRANT "
                "CREATE ON SCHEMA public TO …), or to own openmsmq_log, openmsmq_record and "
                "openmsmq_follower"
            ) from None
        if error.code in _OTHER_TABLES:
            raise StartError(
                f"{error}: the tables openmsmq_log, openmsmq_record and openmsmq_follower are not "
                "what this version makes. Use the version that has made them, or another database"
            ) from None
        raise


def _state(row: Row) -> LogState:
    log, epoch, holder, first, last, confirmed, ended, handover = map(_text, row[:_STATE_COLUMNS])
    return LogState(
        log,
        int(epoch),
        holder,
        int(first),
        int(last),
        int(confirmed),
        lease_ended=ended == "t",
        handover=handover == "t",
    )


def _appended(append: Append, row: Row) -> LogState:
    """Return the line about the log behind a record that was just appended."""
    log, first, handover = map(_text, row)
    return LogState(
        log,
        append.epoch,
        append.holder,
        int(first),
        append.number,
        append.number - 1,
        lease_ended=False,
        handover=handover == "t",
    )


def _silence(timeout_s: float) -> LogFailed:
    return LogFailed(f"the database gives no answer within {timeout_s:g} s")


def _number(value: int) -> bytes:
    return b"%d" % value


def _text(value: bytes | None) -> str:
    assert value is not None, "a column of a log is never null"
    return value.decode()


def _int(value: bytes | None) -> int:
    return int(_text(value))


def _bytes(value: bytes | None) -> bytes:
    return bytes.fromhex(_text(value)[2:])

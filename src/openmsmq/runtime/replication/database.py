"""The log in PostgreSQL: requests of the machines as statements, and answers as values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
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

TRIMMED_MAX_COUNT: Final = 5000
"""Records that one request removes: appends wait for it."""

NOTED_EVERY_NS: Final = 2_000_000_000
"""How often a standby has noted how far it is."""

_STATE_COLUMNS: Final = 8
_RECORD: Final = 4
"""The parameter of an append that is bytes."""

_Told = TypeVar("_Told")
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
        self._asking: asyncio.Task[None] | None = None
        self._appending: tuple[Append, Heard] | None = None
        """The record that was sent and is not answered, and who wants to hear of it."""
        self._append_ns = 0
        """When it was sent."""
        self._late: asyncio.TimerHandle | None = None

    async def ask(self, request: Request) -> Answer:
        """Have a request done; raise `LogFailed` when it is not known whether it was."""
        try:
            return await self._in_time(self._ask(request))
        except StartError as error:
            raise LogFailed(str(error)) from None

    def begin(self, request: Request, heard: Heard) -> None:
        """Have a request done; `heard` is called later, unless the log is closed before.

        A record goes out at once over a connection that is there: a turn waits for it.
        """
        wire = self._wire
        if isinstance(request, Append) and wire is not None and wire.is_open:
            self._appending, self._append_ns = (request, heard), elapsed_ns()
            if self._late is None:
                self._watch_append(self._timeout_s)
            wire.ask(statements.APPEND, self._values(request), _RECORD, self._have_appended)
        else:
            self._hear(self.ask(request), heard)

    def _watch_append(self, pause_s: float) -> None:
        """Look later, once for many records."""
        self._late = asyncio.get_running_loop().call_later(pause_s, self._look_for_late)

    def _look_for_late(self) -> None:
        self._late = None
        if self._appending is not None:
            left_s = self._timeout_s - (elapsed_ns() - self._append_ns) / 1e9
            if left_s > 0:
                self._watch_append(left_s)
            else:
                self._drop()

    def _have_appended(self, end: list[Row] | LogFailed) -> None:
        if self._appending is None:
            # The log was closed meanwhile.
            return
        (append, heard), self._appending = self._appending, None
        if isinstance(end, LogFailed):
            was_late = elapsed_ns() - self._append_ns >= self._timeout_s * 1e9
            heard(LogFailed(self._silence) if was_late else end)
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
        exists = await self._rows(statements.EXISTS, [])
        if exists[0][0] != b"t":
            await (await self._open()).script(statements.SCHEMA)
        values = [self._name, log.encode(), mark.encode(), _number(number)]
        await self._rows(statements.CREATE, values)

    async def find(self) -> tuple[LogState, str] | None:
        """Return the line about the log, and the mark of the store that it began with."""
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

    async def _ask(self, request: Request) -> Answer:
        return await self._asked(await self._open(), request)

    async def _run(self, statement: str, values: list[bytes]) -> list[Row]:
        return await (await self._open()).run(statement, values)

    async def _rows(self, statement: str, values: list[bytes]) -> list[Row]:
        return await self._in_time(self._run(statement, values))

    async def _in_time(self, asking: Awaitable[_Told]) -> _Told:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asking
        except TimeoutError:
            self._drop()
            raise LogFailed(self._silence) from None

    @property
    def _silence(self) -> str:
        return f"the database gives no answer within {self._timeout_s:g} s"

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

    async def _asked(self, wire: Wire, request: Request) -> Answer:
        if isinstance(request, Read):
            return await self._read(wire, request)
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
            _number(self.times.lease_ms),
        ]

    def _statement(self, request: Take | Renew | Release | Trim) -> tuple[str, list[bytes]]:
        name, lease_ms = self._name, _number(self.times.lease_ms)
        holder = request.holder.encode()
        if isinstance(request, Take):
            return statements.TAKE, [name, holder, _number(request.seen_epoch), lease_ms]
        values = [name, _number(request.epoch), holder]
        if isinstance(request, Renew):
            return statements.RENEW, [*values, _number(request.confirmed), lease_ms]
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

    async def _read(self, wire: Wire, request: Read) -> Answer:
        now_ns = elapsed_ns()
        after = _number(request.after)
        if now_ns - self._noted_ns >= NOTED_EVERY_NS:
            self._noted_ns = now_ns
            await wire.run(statements.NOTE_FOLLOWER, [self._name, request.follower.encode(), after])
            await wire.run(statements.SHORTEN, [self._name])
        rows = await wire.run(statements.READ, [self._name, after, _number(READ_MAX_COUNT)])
        if not rows:
            raise LogFailed(f"the database has no log of {self.name}")
        records = [
            (_int(row[_STATE_COLUMNS]), bytes.fromhex(_text(row[_STATE_COLUMNS + 1])[2:]))
            for row in rows
            if row[_STATE_COLUMNS] is not None
        ]
        return Answer(_state(rows[0]), True, records)


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


def _number(value: int) -> bytes:
    return b"%d" % value


def _text(value: bytes | None) -> str:
    assert value is not None, "a column of a log is never null"
    return value.decode()


def _int(value: bytes | None) -> int:
    return int(_text(value))

"""One connection to PostgreSQL, statement by statement, whose waits can be given up at any time.

What psycopg offers for asyncio tells the server to cancel a statement that is given up, and waits
for that. A commit that waits for a synchronous standby would end so as one that is not replicated,
and a server that hangs would keep us waiting. So the statements go over psycopg's own interface to
libpq, and a connection on which one is given up is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import pq

from openmsmq.runtime.start_errors import StartError

OPTIONS = (
    "-c synchronous_commit=on -c client_connection_check_interval=1000 "
    "-c idle_in_transaction_session_timeout=5000 -c statement_timeout=0 -c bytea_output=hex"
)
"""What our sessions need, whatever the database's default is."""

_WANTED = {"target_session_attrs": "read-write"}
"""Whatever is configured: a server that follows another one may lack what that has confirmed."""

_WAITS_FOR_STANDBY = "SyncRepWaitForLSN"
"""Where PostgreSQL warns that a commit is not replicated; its words are in the server's language.
"""

_CLOSED = "the connection to the database is closed"
_DONE = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})

Row = list[bytes | None]


class LogFailed(Exception):
    """The database gave no answer, or one that says nothing; what was asked may have been done."""

    def __init__(self, sentence: str, code: str = "") -> None:
        """`code` is what PostgreSQL calls the error, if it has said one."""
        super().__init__(sentence)
        self.code = code


Told = Callable[[list[Row] | LogFailed], None]
"""Hears what came of a statement."""


class Wire:
    """An open connection. One statement at a time.

    What comes is looked at where the event loop says that it has come: whoever waits for a record
    to be committed does not wait for turns of the loop as well.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 1
        self._loop = asyncio.get_running_loop()
        self._prepared: dict[str, bytes] = {}
        self._told: Told | None = None
        """Who waits for the statement that is under way."""
        self._rows: list[Row] = []
        self._warning = ""
        connection.add_notice_handler(self._noticed)
        self._socket = self._pg.socket
        self._is_writing = False
        self._loop.add_reader(self._socket, self._ready)
        self.is_open = True

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == _WAITS_FOR_STANDBY:
            self._warning = notice.message_primary or _WAITS_FOR_STANDBY

    async def run(self, statement: str, parameters: Sequence[bytes], binary: int = -1) -> list[Row]:
        """Run a statement; `binary` is the parameter that is bytes as they are."""
        return await self._awaited(lambda told: self.ask(statement, parameters, binary, told))

    async def script(self, statements: str) -> None:
        """Run several statements without parameters."""
        query = statements.encode()
        await self._awaited(lambda told: self._send(partial(self._pg.send_query, query), told))

    async def _awaited(self, begin: Callable[[Told], None]) -> list[Row]:
        answered: asyncio.Future[list[Row]] = self._loop.create_future()

        def told(end: list[Row] | LogFailed) -> None:
            if answered.done():
                return
            if isinstance(end, LogFailed):
                answered.set_exception(end)
            else:
                answered.set_result(end)

        begin(told)
        try:
            return await answered
        except BaseException:
            self.close()
            raise

    def ask(self, statement: str, parameters: Sequence[bytes], binary: int, told: Told) -> None:
        """Do the same, and say later what came of it. A connection on which it fails is closed."""
        name = self._prepared.get(statement)
        if name is None:
            self._prepare(statement, lambda: self.ask(statement, parameters, binary, told), told)
            return
        formats = [0] * len(parameters)
        if binary >= 0:
            formats[binary] = 1
        self._send(partial(self._pg.send_query_prepared, name, parameters, formats), told)

    def _prepare(self, statement: str, then: Callable[[], None], told: Told) -> None:
        name = f"s{len(self._prepared)}".encode()

        def prepared(end: list[Row] | LogFailed) -> None:
            if isinstance(end, LogFailed):
                told(end)
            else:
                self._prepared[statement] = name
                then()

        self._send(partial(self._pg.send_prepare, name, statement.encode()), prepared)

    def _send(self, send: Callable[[], None], told: Told) -> None:
        assert self._told is None, "two statements under way"
        self._told = told
        if not self.is_open:
            self._fail(LogFailed(_CLOSED))
            return
        try:
            send()
            self._flush()
        except psycopg.Error as error:
            self._fail(LogFailed(_sentence(error)))

    def _flush(self) -> None:
        """Hand over what the socket takes, and the rest when it takes more."""
        wants_more = bool(self._pg.flush())
        if wants_more and not self._is_writing:
            self._loop.add_writer(self._socket, self._writable)
        elif self._is_writing and not wants_more:
            self._loop.remove_writer(self._socket)
        self._is_writing = wants_more

    def _writable(self) -> None:
        try:
            self._flush()
        except psycopg.Error as error:
            self._fail(LogFailed(_sentence(error)))

    def _ready(self) -> None:
        """Take what has come: an answer, or the end of the connection, or word from the server."""
        try:
            self._pg.consume_input()
            is_answered = self._told is not None and self._collect()
        except psycopg.Error as error:
            self._fail(LogFailed(_sentence(error)))
        except LogFailed as error:
            self._fail(error)
        else:
            if is_answered:
                told, self._told = self._told, None
                rows, self._rows = self._rows, []
                assert told is not None, "nobody has asked"
                told(rows)

    def _collect(self) -> bool:
        """Take the rows that are there; return whether they are all."""
        pg = self._pg
        while not pg.is_busy():
            result = pg.get_result()
            if result is None:
                if self._warning:
                    raise LogFailed(f"the database says {self._warning}")
                return True
            if result.status not in _DONE:
                code = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
                said = _text(result.error_message)
                raise LogFailed(f"the database says {said}", code.decode())
            columns = range(result.nfields)
            for row in range(result.ntuples):
                self._rows.append([result.get_value(row, column) for column in columns])
        return False

    def _fail(self, failure: LogFailed) -> None:
        """Close, and say why to whoever waits: later, so that nobody hears of it while asking."""
        told, self._told = self._told, None
        self.close()
        if told is not None:
            self._loop.call_soon(told, failure)

    def close(self) -> None:
        """End the connection."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            if self._is_writing:
                self._loop.remove_writer(self._socket)
            with contextlib.suppress(psycopg.Error):
                self._pg.finish()
        if self._told is not None:
            self._fail(LogFailed(_CLOSED))


async def open_wire(database: str, timeout_s: float) -> Wire:
    """Connect to the server that can be written to; raise `LogFailed`."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(database)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise StartError(f"database of [replication] is no connection string ({reason})") from None
    try:
        options = f"{given.pop('options', '')} {OPTIONS}".strip()
        defaults: dict[str, Any] = {
            "application_name": "openmsmq",
            "connect_timeout": max(2, round(timeout_s)),
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
        }
        async with asyncio.timeout(timeout_s):
            connection = await psycopg.AsyncConnection.connect(
                **{**defaults, **given, **_WANTED, "options": options}, autocommit=True
            )
    except psycopg.Error as error:
        raise LogFailed(_sentence(error)) from None
    except TimeoutError:
        raise LogFailed(f"the database does not answer within {timeout_s:g} s") from None
    return Wire(connection)


def _sentence(error: psycopg.Error) -> str:
    return f"the database says {' '.join(str(error).split()) or type(error).__name__}"


def _text(message: bytes) -> str:
    return " ".join(message.decode("utf-8", "replace").split())

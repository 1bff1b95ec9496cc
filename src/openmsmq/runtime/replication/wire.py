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

Row = list[bytes | None]


class LogFailed(Exception):
    """The database gave no answer, or one that says nothing; what was asked may have been done."""

    def __init__(self, sentence: str, code: str = "") -> None:
        """`code` is what PostgreSQL calls the error, if it has said one."""
        super().__init__(sentence)
        self.code = code


class Wire:
    """An open connection. One statement at a time."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 1
        self._loop = asyncio.get_running_loop()
        self._prepared: dict[str, bytes] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._warning = ""
        connection.add_notice_handler(self._noticed)
        self._socket = self._pg.socket
        self._loop.add_reader(self._socket, self._ready)
        self.is_open = True

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == _WAITS_FOR_STANDBY:
            self._warning = notice.message_primary or _WAITS_FOR_STANDBY

    def _ready(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        elif self._waiter is None:
            # Nothing was asked, so this is the end of the connection, or word from the server.
            try:
                self._pg.consume_input()
            except psycopg.Error:
                self.close()

    async def run(self, statement: str, parameters: Sequence[bytes], binary: int = -1) -> list[Row]:
        """Run a statement; `binary` is the parameter that is bytes as they are."""
        name = self._prepared.get(statement)
        try:
            if name is None:
                name = f"s{len(self._prepared)}".encode()
                await self._result(lambda: self._pg.send_prepare(name, statement.encode()))
                self._prepared[statement] = name
            formats = [int(place == binary) for place in range(len(parameters))]
            return await self._result(
                lambda: self._pg.send_query_prepared(name, parameters, formats)
            )
        except psycopg.Error as error:
            self.close()
            raise LogFailed(_sentence(error)) from None
        except BaseException:
            self.close()
            raise

    async def script(self, statements: str) -> None:
        """Run several statements without parameters."""
        try:
            await self._result(lambda: self._pg.send_query(statements.encode()))
        except psycopg.Error as error:
            self.close()
            raise LogFailed(_sentence(error)) from None

    async def _result(self, send: Callable[[], None]) -> list[Row]:
        if not self.is_open:
            raise LogFailed("the connection to the database is closed")
        pg = self._pg
        send()
        while pg.flush():
            await self._writable()
        rows: list[Row] = []
        while True:
            while pg.is_busy():
                self._waiter = self._loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
                pg.consume_input()
            result = pg.get_result()
            if result is None:
                break
            if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
                code = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
                said = _text(result.error_message)
                raise LogFailed(f"the database says {said}", code.decode())
            columns = range(result.nfields)
            rows += [
                [result.get_value(row, column) for column in columns]
                for row in range(result.ntuples)
            ]
        if self._warning:
            warning, self._warning = self._warning, ""
            raise LogFailed(f"the database says {warning}")
        return rows

    async def _writable(self) -> None:
        waiter = self._loop.create_future()

        def ready() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self._loop.add_writer(self._socket, ready)
        try:
            await waiter
        finally:
            self._loop.remove_writer(self._socket)

    def close(self) -> None:
        """End the connection."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            with contextlib.suppress(psycopg.Error):
                self._pg.finish()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_exception(LogFailed("the connection to the database is closed"))


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

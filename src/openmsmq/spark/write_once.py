"""Batches of a stream into PostgreSQL, exactly once: a function for `foreachBatch`.

The rows of a batch and the note that it was written are one transaction. So a batch is there as a
whole or not at all, and one that Spark writes again is recognised, by the rules of
`openmsmq.model.batches`.

The rows pass through the driver, one partition at a time, into `COPY`. A transaction of PostgreSQL
belongs to one connection, so tasks could only fill tables beside it, which somebody would have to
move over, and to clear up after every kind of death. A batch is what a trigger has found, and the
options of the source bound it: one connection is enough for that, and for a load of terabytes there
are other tools.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import psycopg
from psycopg import sql
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from openmsmq.model.batches import BatchMark, Succession, refusal, succession
from openmsmq.spark.checkpoint import UnreadableCheckpoint, end_of, offsets_in
from openmsmq.spark.errors import DatabaseProblem

BATCHES_TABLE: Final = "openmsmq_batches"
"""Where the last batch of each query is noted, in the first schema of the search path."""

_QUERY_PROPERTY: Final = "sql.streaming.queryId"

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_CREATE: Final = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {} (query text PRIMARY KEY, checkpoint text NOT NULL,"
    " batch bigint NOT NULL, row_count bigint NOT NULL, batch_end text NOT NULL DEFAULT '',"
    " written_time timestamptz NOT NULL DEFAULT now())"
).format(sql.Identifier(BATCHES_TABLE))
_COLUMNS: Final = (
    "SELECT attname FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)
_ADD_END: Final = sql.SQL(
    "ALTER TABLE {} ADD COLUMN IF NOT EXISTS batch_end text NOT NULL DEFAULT ''"
).format(sql.Identifier(BATCHES_TABLE))
"""What a table of an earlier version lacks."""
_LAST: Final = sql.SQL(
    "SELECT batch, checkpoint, row_count, batch_end FROM {} WHERE query = %s"
).format(sql.Identifier(BATCHES_TABLE))
_NOTE: Final = sql.SQL(
    "INSERT INTO {} (query, checkpoint, batch, row_count, batch_end) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (query) DO UPDATE SET checkpoint = excluded.checkpoint, batch = excluded.batch,"
    " row_count = excluded.row_count, batch_end = excluded.batch_end, written_time = now()"
).format(sql.Identifier(BATCHES_TABLE))


class WriteOnce:
    """What `write_once` gives to `foreachBatch`."""

    def __init__(self, database: str, table: str, query: str, checkpoint: str) -> None:
        self._database = database
        self._table = table
        self._query = query
        self._checkpoint = checkpoint

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch, unless it is written."""
        mark = _mark(frame, batch, self._checkpoint)
        try:
            with psycopg.connect(self._database) as connection:
                self._write(connection, frame, mark)
        except psycopg.Error as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise DatabaseProblem(
                f"batch {batch} of {self._query!r} could not be written to {self._table}: {why}. "
                "Nothing of it is there, unless the answer to its commit was lost; then it is "
                "recognised when it comes again"
            ) from None

    def _write(self, connection: psycopg.Connection, frame: DataFrame, mark: BatchMark) -> None:
        """Write rows and note in the transaction of a connection."""
        # One driver at a time: one that was only thought dead waits, and then finds the note.
        connection.execute(_LOCK, [f"{BATCHES_TABLE} {self._query}"])
        last = self._last(connection)
        is_same = last is not None and "" != last.end == mark.end
        if succession(last, mark) in (Succession.AGAIN, Succession.MOVED) and not is_same:
            # Without ends it is the same if it has not grown; with others, if it has no rows.
            mark = msgspec.structs.replace(mark, row_count=frame.count())
        name = self._query.replace("'", "''")
        forgetting = f"DELETE FROM {BATCHES_TABLE} WHERE query = '{name}'"
        problem = refusal(self._query, last, mark, forgetting)
        if problem is not None:
            raise DatabaseProblem(problem)
        if succession(last, mark) is Succession.NEXT:
            count = self._copy(connection, frame)
            note = [self._query, mark.checkpoint, mark.batch, count, mark.end]
            connection.execute(_NOTE, note)

    def _last(self, connection: psycopg.Connection) -> BatchMark | None:
        columns = {row[0] for row in connection.execute(_COLUMNS, [BATCHES_TABLE])}
        if "batch_end" not in columns:
            # Two queries that begin together would both create it.
            connection.execute(_LOCK, [BATCHES_TABLE])
            connection.execute(_ADD_END if columns else _CREATE)
        row = connection.execute(_LAST, [self._query]).fetchone()
        return None if row is None else BatchMark(*row)

    def _copy(self, connection: psycopg.Connection, frame: DataFrame) -> int:
        """Send the rows, and give how many there were."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(*self._table.split(".")),
            sql.SQL(", ").join(map(sql.Identifier, frame.columns)),
        )
        count = 0
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in frame.toLocalIterator(prefetchPartitions=True):
                copy.write_row([_plain(value) for value in row])
                count += 1
        return count


def write_once(database: str, table: str, *, query: str, checkpoint: str = "") -> WriteOnce:
    """Make a function for `foreachBatch` that writes each batch into a table exactly once.

    `database` is a connection string of PostgreSQL, without a password if `PGPASSFILE` names a file
    that has it. `table` may have a schema before a dot; the columns of the data frame have to be
    columns of it. `query` names what is written: one name for each stream and table. The identity
    of the checkpoint is the id of the query; where Spark does not tell it, as with Spark Connect,
    give a text of your own as `checkpoint`, and another one with each new checkpoint.
    """
    if not query:
        raise DatabaseProblem("write_once needs a name for what it writes: query='orders'")
    return WriteOnce(database, table, query, checkpoint)


def _mark(frame: DataFrame, batch: int, checkpoint: str) -> BatchMark:
    """Return what a batch is known by before anybody has counted its rows."""
    query = _query_id(frame)
    if not query and not checkpoint:
        raise DatabaseProblem(
            "this Spark does not tell which query a batch is of: give write_once the option "
            "checkpoint, a text that you change with each new checkpoint; outside of foreachBatch, "
            "too"
        )
    end = _end(frame.sparkSession, query, batch) if query else ""
    return BatchMark(batch, checkpoint or query, end=end)


def _query_id(frame: DataFrame) -> str:
    """Return the id of the query whose batch this is; empty if Spark does not tell."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_PROPERTY)
    except (AttributeError, PySparkException):
        found = None
    return str(found or "")


def _end(session: SparkSession, query: str, batch: int) -> str:
    """Return a word for where a batch ends, which its checkpoint has; empty if Spark does not tell.

    Java reads it, so that the checkpoint may be in any storage that Spark knows. Python has no name
    for what is asked for here; a Spark without it lets rows be counted.
    """
    try:
        java: Any = session._jvm  # noqa: SLF001 -- see above
        state = session._jsparkSession  # noqa: SLF001
        running = state.sharedState().activeStreamingQueries()
        root = running.get(java.java.util.UUID.fromString(query)).resolvedCheckpointRoot()
        path = java.org.apache.hadoop.fs.Path(root, f"offsets/{batch}")
        file = path.getFileSystem(state.sessionState().newHadoopConf()).open(path)
        try:
            text = java.org.apache.commons.io.IOUtils.toString(file, "UTF-8")
        finally:
            file.close()
        return end_of(offsets_in(text, batch))
    except (AttributeError, TypeError, PySparkException, Py4JError, UnreadableCheckpoint):
        return ""


def _plain(value: Any) -> Any:
    """Return what the database takes: a `bytearray` of Spark is bytes."""
    return bytes(value) if isinstance(value, bytearray) else value

"""The data source `msmq`: queues as tables and streams, and as the place where rows go.

Spark imports it in several processes for each query, and each needs only a part of it: so readers
and writers are imported where they are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from openmsmq.spark.catalog import reading_options, table_options, with_note, writing_options
from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.schema import spark_schema
from openmsmq.spark.sink.options import SinkOptions, read_sink_options
from openmsmq.spark.source.options import read_source_options

if TYPE_CHECKING:
    from openmsmq.spark.sink.writers import BatchWriter, StreamWriter
    from openmsmq.spark.source.batch_reader import BatchReader
    from openmsmq.spark.source.stream_reader import StreamReader


class MsmqDataSource(DataSource):
    """Reads and writes queues of MSMQ; `docs/guides` says how, `options` what it takes.

    Spark finds it by itself where OpenMSMQ is installed; elsewhere, register it:
    `spark.dataSource.register(MsmqDataSource)`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name by which `format` finds it."""
        return "msmq"

    def schema(self) -> StructType:
        """Return the columns of the messages: all, or those of the option `columns`."""
        table = table_options(self.options)
        if table is not None:
            return with_note(spark_schema(read_source_options(table).columns), table)
        return spark_schema(read_source_options(self.options).columns)

    def reader(self, schema: StructType) -> BatchReader:
        """Make a reader for a batch."""
        from openmsmq.spark.source.batch_reader import BatchReader, FilteringBatchReader

        options = read_source_options(reading_options(self.options, schema))
        _require_own_schema(schema, options.columns)
        return FilteringBatchReader(options) if options.push_filters else BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader:
        """Make a reader for a stream."""
        from openmsmq.spark.source.stream_reader import StreamReader

        options = read_source_options(reading_options(self.options, schema))
        _require_own_schema(schema, options.columns)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Make a writer for a data frame."""
        from openmsmq.spark.sink.messages_from_rows import chosen_columns
        from openmsmq.spark.sink.writers import BatchWriter

        options = self._sink_options(overwrite)
        with connected(options.place, options.place.addresses[0], options.queue, first=True):
            # Before any task has begun: an address may be wrong.
            pass
        return BatchWriter(options, chosen_columns(schema, options.columns))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Make a writer for the batches of a query."""
        from openmsmq.spark.sink.messages_from_rows import chosen_columns
        from openmsmq.spark.sink.writers import StreamWriter

        options = self._sink_options(overwrite)
        return StreamWriter(options, chosen_columns(schema, options.columns))

    def _sink_options(self, overwrite: bool) -> SinkOptions:
        if overwrite:
            raise QueueProblem("messages are added to a queue: write with mode append")
        return read_sink_options(writing_options(self.options))


def _require_own_schema(schema: StructType, columns: tuple[str, ...]) -> None:
    if tuple(schema.fieldNames()) != columns:
        raise BadOption("columns", "chooses the columns of messages; leave out schema()")

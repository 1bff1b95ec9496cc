"""`openmsmq pipeline ingest`: queues to a table, once or for as long as it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from openmsmq.cli.options.connecting import TOKEN_VARIABLE, target_of
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.running import (
    DEFAULT_MASTER,
    ConfOption,
    MasterOption,
    checking,
    spark_session,
)
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import count_text, print_facts, print_json, size_text

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from openmsmq.spark.pipelines.ingest import BatchReport

EVERY_DEFAULT_S: Final = 5.0
_POLL_S: Final = 1
_LAST_BATCH_S: Final = 60
"""How long the batch under way may take to end after somebody wants to stop."""

FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="ADDRESS",
        help="A queue manager to read from, instead of the one of --qm; may be repeated.",
    ),
]


class Totals(msgspec.Struct):
    """What a run has done so far."""

    batches: int = 0
    messages: int = 0
    behind: int = 0
    files: int = 0
    bytes: int = 0


def ingest(
    context: typer.Context,
    queue: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A queue to read, or * for all; may be repeated."),
    ],
    output: Annotated[str, typer.Option(metavar="DIR", help="The table: a directory.")],
    from_: FromOption = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="parquet, delta or iceberg; the last two need the extra of that name.",
        ),
    ] = "parquet",
    catalog: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Iceberg: a catalog of PyIceberg's settings; by default one in the directory.",
        ),
    ] = "",
    table: Annotated[
        str, typer.Option(metavar="NAMESPACE.NAME", help="Iceberg: the table's name in --catalog.")
    ] = "",
    checkpoint: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where it is noted how far the table has come; OUTPUT.checkpoint by default.",
        ),
    ] = "",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on when the queues are empty, until Ctrl-C.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help=f"With --follow: how often to look for messages; {EVERY_DEFAULT_S:g} by default.",
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="consume takes the messages out of their queues; browse leaves them there.",
        ),
    ] = "consume",
    start: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Where a new table begins: earliest, latest, or a time such as "
            "2026-01-31T08:00:00Z. A table that has a checkpoint goes on where it was.",
        ),
    ] = "earliest",
    json_schema: Annotated[
        str,
        typer.Option(
            metavar="DDL|FILE",
            help="The fields of JSON bodies: as in 'id bigint, total double', or in a file.",
        ),
    ] = "",
    xml_schema: Annotated[
        str,
        typer.Option(
            metavar="DDL|FILE", help="The fields of XML bodies; an attribute's name begins with _."
        ),
    ] = "",
    max_messages: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many in one batch.")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column whose values are directories; may be repeated; none for none. By "
            "default queue and date, the day of arrival.",
        ),
    ] = None,
    reader: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name for which messages are reserved; two tables from one queue need two.",
        ),
    ] = "ingest",
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Write the messages of queues into a table, each of them exactly once.

    Without --follow it ends when it has written what is there. When it is stopped or killed, run
    it again with the same options: it goes on where it was. The fields of JSON or XML bodies are
    in the column data; data_error says why a body has none.
    """
    if every is not None and not follow:
        fail("--every needs --follow: without it, the command ends when the queues are empty.")
    source = connection_options(context, from_)
    source |= {"queue": ",".join(queue), "mode": mode, "reader": reader, **_starting(start)}
    if max_messages is not None:
        source["maxMessagesPerTrigger"] = str(max_messages)
    with checking():
        from openmsmq.spark.pipelines.ingest import require_format
        from openmsmq.spark.source.options import read_source_options

        read_source_options(source)
        require_format(format, catalog, table)
    with spark_session("ingest", master, conf) as spark:
        from openmsmq.spark.pipelines import ingest as pipeline
        from openmsmq.spark.pipelines.ingest.schemas import read_schema

        # Files are counted by the clock of whoever writes them.
        since = datetime.now(UTC)  # noqa: TID251
        query = pipeline.ingest(
            spark,
            source,
            output,
            checkpoint=checkpoint,
            format=format,
            every_s=(EVERY_DEFAULT_S if every is None else every) if follow else None,
            partition_by=_partitions(partition_by),
            json_schema=read_schema(json_schema, "json-schema") if json_schema else None,
            xml_schema=read_schema(xml_schema, "xml-schema") if xml_schema else None,
            catalog=catalog,
            table=table,
        )
        totals = Totals()
        with _wish_to_stop() as stopping:
            watch(query, source, totals, stopping)
        if totals.batches and not totals.files:
            # Spark has written them, and does not tell.
            files = pipeline.files_added(spark, output, since)
            totals.files, totals.bytes = files.count, files.bytes
    _print(output, totals, json=json)


def connection_options(context: typer.Context, addresses: Sequence[str] | None) -> dict[str, str]:
    """Return the options of the data source that reach the chosen queue managers."""
    target = target_of(context)
    given = {
        "qm": ",".join(addresses or [target.address]),
        "tokenFile": target.token_file,
        "ca": target.ca,
        "tls": "true" if target.tls else "",
        "certificate": target.cert,
        "key": target.key,
        "token": "" if target.token_file else os.environ.get(TOKEN_VARIABLE, ""),
    }
    return {name: value for name, value in given.items() if value}


def _starting(start: str) -> dict[str, str]:
    if start.lower() in ("earliest", "latest"):
        return {"startingOffsets": start}
    return {"startingTime": start}


def _partitions(names: list[str] | None) -> tuple[str, ...]:
    if names is None:
        return ("queue", "date")
    return () if names == ["none"] else tuple(names)


@contextlib.contextmanager
def _wish_to_stop() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C, or SIGTERM, into a wish; the second one stops at once."""
    wished = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def wish(number: int, _: FrameType | None) -> None:
        wished.set()
        signal.signal(number, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield wished
        return
    before = {number: signal.signal(number, wish) for number in numbers}
    try:
        yield wished
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    query: StreamingQuery, source: dict[str, str], totals: Totals, stopping: threading.Event
) -> None:
    """Report each batch, and end the query when that is wished."""
    last = -1
    while not query.awaitTermination(_POLL_S):
        last = _report(query, source, totals, last)
        if stopping.is_set():
            typer.echo("stopping when the batch is done; Ctrl-C stops at once", err=True)
            _stop(query)
    _report(query, source, totals, last)


def _report(query: StreamingQuery, source: dict[str, str], totals: Totals, last: int) -> int:
    from openmsmq.spark.pipelines.ingest import batch_reports

    for report in batch_reports(query, source, last):
        totals.batches += 1
        totals.messages += report.message_count
        totals.behind = report.behind_count
        if report.files is not None:
            totals.files += report.files.count
            totals.bytes += report.files.bytes
        typer.echo(_line(report), err=True)
        last = report.batch
    return last


def _line(report: BatchReport) -> str:
    behind = f"at most {report.behind_count} wait" if report.behind_count else "none waits"
    return (
        f"batch {report.batch}: {count_text(report.message_count)} in "
        f"{report.duration_ms / 1000:.1f} s, {behind}"
    )


def _stop(query: StreamingQuery) -> None:
    """End a query after the batch under way; one that is cut off would be written again."""
    before = query.lastProgress
    waited_s = 0
    while waited_s < _LAST_BATCH_S and query.status["isTriggerActive"]:
        if query.awaitTermination(_POLL_S):
            return
        waited_s += _POLL_S
        now = query.lastProgress
        if now is not None and (before is None or now.batchId != before.batchId):
            break
    query.stop()


def _print(output: str, totals: Totals, *, json: bool) -> None:
    if json:
        print_json({"output": output, **msgspec.structs.asdict(totals)})
        return
    print_facts(
        output,
        [
            ("messages", f"{totals.messages} in {totals.batches} batch{_es(totals.batches)}"),
            ("files", f"{totals.files} with {size_text(totals.bytes)}"),
            ("waiting", str(totals.behind)),
        ],
    )


def _es(count: int) -> str:
    return "" if count == 1 else "es"

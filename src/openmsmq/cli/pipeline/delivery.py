"""`openmsmq pipeline delivery`: what became of the messages of many queue managers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.ingest import FromOption, connection_options
from openmsmq.cli.pipeline.running import (
    DEFAULT_MASTER,
    ConfOption,
    MasterOption,
    require_new_directory,
    spark_session,
)
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import (
    JsonObject,
    print_facts,
    print_json,
    print_table,
    progress,
    size_text,
)
from openmsmq.spark.pipelines.few import are_few, are_small, for_few_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from openmsmq.spark.pipelines.delivery.tables import Manager

Row: TypeAlias = dict[str, Any]

QUEUES_MAX_COUNT: Final = 20
"""Queues that are shown; the table has all."""

_PERCENTILES: Final = (50, 95, 99)
_COUNTED: Final = (
    *("delivered_count", "arrived_count", "failed_after_arrival_count", "untraced_count"),
    *("latency_reach_count", "latency_receive_count"),
)
_GROUPED: Final = (*_COUNTED, "size_bytes", "loss", "dead_letter_reasons")
_SUMMED: Final = ("in_doubt_count", *_GROUPED)


class Job(msgspec.Struct, frozen=True):
    """What is looked at, and where the tables go: the options of the command, checked."""

    inputs: tuple[str, ...]
    browsed: bool
    source: dict[str, str] | None
    """The options of the data source; None if no queue is browsed."""
    queues: tuple[str, ...]
    output: str
    lost_after_s: int | None


def delivery(
    context: typer.Context,
    output: Annotated[
        str, typer.Option(metavar="DIR", help="Where the tables go: a new directory.")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="DIR",
            help="A table of messages, as pipeline ingest writes it; may be repeated.",
        ),
    ] = None,
    browsed: Annotated[
        bool,
        typer.Option(
            "--browsed",
            help="The input was ingested with --mode browse: its messages may still be in their "
            "queues. Without this, they count as received.",
        ),
    ] = False,
    from_: FromOption = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A queue to browse; may be repeated. With --from and without this, all queues "
            "with their journals, and those of the system.",
        ),
    ] = None,
    lost_after: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Count a message as in transit for so long at most, if its own time is longer.",
        ),
    ] = None,
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Tell what became of messages, from queues, journals, acknowledgments, traces, dead letters.

    Writes the tables delivery, by_queue, by_hour and by_link as Parquet, and shows a summary. The
    more queues of the same time are looked at, the more is known; nothing is taken out of them.
    """
    browses = bool(from_ or queue)
    if not inputs and not browses:
        fail("name tables with --input DIR, or queues to browse with --from ADDRESS or --queue.")
    if browsed and not inputs:
        fail("--browsed says something about --input, which is missing.")
    require_new_directory(output, "--output ")
    job = Job(
        tuple(inputs or ()),
        browsed,
        connection_options(context, from_) if browses else None,
        tuple(queue or ()),
        output.rstrip("/"),
        lost_after,
    )
    few = job.source is None and are_small(job.inputs)
    with spark_session("delivery", master, conf, few=few) as spark:
        total, queues = run(spark, job)
    show(job, total, queues, json=json)


def run(spark: SparkSession, job: Job) -> tuple[Row, list[Row]]:
    """Write the tables; give the sums of everything, and of the busiest queues."""
    from openmsmq.spark.pipelines.delivery import tables

    messages, managers = _messages(spark, job)
    few = are_few(messages)
    with progress("joining messages"), for_few_rows(spark, few):
        return tables.write_results(
            spark,
            messages.coalesce(1) if few else messages,
            job.output,
            lost_after_s=job.lost_after_s,
            managers=managers,
            top=QUEUES_MAX_COUNT,
            few=few,
        )


def _messages(spark: SparkSession, job: Job) -> tuple[DataFrame, Sequence[Manager]]:
    from openmsmq.spark.pipelines.delivery.tables import browse, managers_at, read_tables

    frames = []
    managers: Sequence[Manager] = ()
    if job.inputs:
        frames.append(read_tables(spark, job.inputs, taken=not job.browsed))
    if job.source is not None:
        managers = managers_at(job.source)
        # Queues change: what is looked at several times must be the same each time.
        browsed = browse(spark, job.source, job.queues).persist()
        # Only then Spark knows how much it is.
        browsed.count()
        frames.append(browsed)
    messages = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return messages, managers


def show(job: Job, total: Row, queues: list[Row], *, json: bool) -> None:
    """Print the sums."""
    if json:
        print_json({"kind": "summary", "output": job.output, **_plain(total, _SUMMED)})
        for row in queues:
            names = ("destination_queue_manager", "destination_queue")
            place = {name: row[name] for name in names}
            print_json({"kind": "queue", **place, **_plain(row, _GROUPED)})
        return
    print_facts(job.output, _facts(total))
    if queues:
        typer.echo()
        print_table(_COLUMNS, (_row(row) for row in queues))


def _plain(row: Row, more: tuple[str, ...]) -> JsonObject:
    from openmsmq.spark.pipelines.delivery.outcomes import Outcome

    names = ["message_count", *(f"{one.value}_count" for one in Outcome)]
    names += [
        f"latency_{what}_p{percent}_s" for what in ("reach", "receive") for percent in _PERCENTILES
    ]
    return {name: row[name] for name in (*names, *more)}


def _facts(total: Row) -> list[tuple[str, str]]:
    from openmsmq.spark.pipelines.delivery.outcomes import Outcome

    count = total["message_count"]
    facts = [("messages", f"{count:,} ({size_text(total['size_bytes'] or 0)})")]
    for one in Outcome:
        part = total[f"{one.value}_count"]
        if part:
            facts.append((one.value.replace("_", " "), f"{part:,} ({part / count:.1%})"))
    failed = total["failed_after_arrival_count"]
    arrived = f"{total['arrived_count']:,}: {total['delivered_count']:,} delivered"
    facts.append(("arrived", f"{arrived}, {failed:,} failed after that" if failed else arrived))
    if total["untraced_count"]:
        facts.append(
            (
                "left no trace",
                f"{total['untraced_count']:,} did not ask to be told: send with --ack "
                "full-receive and --admin-queue QUEUE",
            )
        )
    if total["in_doubt_count"]:
        facts.append(("in doubt", f"{total['in_doubt_count']:,}: a failure and an arrival"))
    for what, name in (("reach", "time to reach the queue"), ("receive", "time to be received")):
        if total[f"latency_{what}_p50_s"] is not None:
            facts.append((name, _times(total, what)))
    reasons = sorted((total["dead_letter_reasons"] or {}).items(), key=lambda item: -item[1])
    facts += [(f"dead: {name}", f"{part:,}") for name, part in reasons]
    return facts


def _times(row: Row, what: str) -> str:
    times = ", ".join(f"p{p} {row[f'latency_{what}_p{p}_s']:.4g} s" for p in _PERCENTILES)
    return f"{times}, of {row[f'latency_{what}_count']:,} messages"


_COLUMNS: Final = (
    "Queue manager",
    "Queue",
    ">Messages",
    ">Delivered",
    ">Failed or lost",
    ">Reached p50",
    ">p95",
    ">p99",
    ">of",
)


def _row(row: Row) -> list[str]:
    seconds = [row[f"latency_reach_p{percent}_s"] for percent in _PERCENTILES]
    return [
        row["destination_queue_manager"] or "",
        row["destination_queue"] or "",
        f"{row['message_count']:,}",
        f"{row['delivered_count']:,}",
        f"{row['loss']:.1%}",
        *("" if value is None else f"{value:.4g} s" for value in seconds),
        f"{row['latency_reach_count']:,}",
    ]

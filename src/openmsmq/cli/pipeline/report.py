"""`openmsmq pipeline report`: deliveries as one page to look at."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.running import DEFAULT_MASTER, ConfOption, MasterOption, spark_session
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import print_result, progress, size_text
from openmsmq.spark.pipelines.few import are_few, are_small, for_few_rows, local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_TITLE: Final = "Delivery of messages"


class Wanted(msgspec.Struct, frozen=True):
    """What the page is to be about: the options of the command, checked."""

    source: str
    title: str = DEFAULT_TITLE
    before: str | None = None
    day: date | None = None
    events: tuple[tuple[datetime, str], ...] = ()


def report(
    source: Annotated[
        str,
        typer.Option("--input", metavar="DIR", help="What pipeline delivery wrote."),
    ],
    output: Annotated[str, typer.Option(metavar="FILE", help="The page, such as report.html.")],
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="The heading of the page.")
    ] = DEFAULT_TITLE,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Compare with this: what pipeline delivery wrote for the day before, or any time.",
        ),
    ] = None,
    day: Annotated[
        str | None,
        typer.Option(
            metavar="YYYY-MM-DD",
            help="Only messages sent on this day, in UTC, compared with those of the day before.",
        ),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'TIME TEXT'",
            help="Something that happened, for the time axis, such as "
            "'2026-03-02T13:02:00Z HUB was killed'; may be repeated.",
        ),
    ] = None,
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Draw deliveries: one page that says what needs you, and needs nothing but a browser.

    `openmsmq report serve` shows it to a browser on this computer.
    """
    if os.path.isdir(output):
        fail(f"--output {output} is a directory: name the file, such as {output}/report.html.")
    if not os.path.isdir(os.path.dirname(output) or "."):
        fail(f"--output {output}: there is no directory {os.path.dirname(output)}.")
    if before is not None and day is not None:
        fail("--before and --day both say what to compare with: give one of them.")
    events = tuple(_event(text) for text in event or ())
    wanted = Wanted(source, title, before, None if day is None else _day(day), events)
    with spark_session("report", master, conf, few=are_small((source, before))) as spark:
        page = run(spark, wanted)
    try:
        Path(output).write_text(page, encoding="utf-8")
    except OSError as error:
        fail(f"--output {output} cannot be written: {error.strerror}.")
    size_bytes = len(page.encode())
    sentence = f"{output}: {size_text(size_bytes)}, open it with a browser"
    print_result({"output": output, "size_bytes": size_bytes}, sentence, json=json)


def run(spark: SparkSession, wanted: Wanted) -> str:
    """Return the page about the tables in a directory."""
    from openmsmq.spark.pipelines import report as pipeline
    from openmsmq.spark.pipelines.delivery.tables import read_deliveries, read_events, sent_on

    deliveries = read_deliveries(spark, wanted.source)
    events = [pipeline.Event(*one) for one in read_events(spark, wanted.source)]
    events += [pipeline.Event(*one) for one in wanted.events]
    more: dict[str, Any] = {}
    if wanted.before is not None:
        name = os.path.basename(wanted.before.rstrip("/"))
        more = {"before": read_deliveries(spark, wanted.before), "before_name": name}
    elif wanted.day is not None:
        previous = wanted.day - timedelta(days=1)
        more = {"before": sent_on(deliveries, previous), "before_name": str(previous)}
        deliveries = sent_on(deliveries, wanted.day)
    few = are_few(deliveries)
    with progress("summing up"), for_few_rows(spark, few):
        rows = local(deliveries) if few else deliveries
        if few and "before" in more and are_few(more["before"]):
            more["before"] = local(more["before"])
        return pipeline.report(rows, title=wanted.title, events=events, **more)


def _event(text: str) -> tuple[datetime, str]:
    time_text, _, what = text.strip().partition(" ")
    try:
        time = datetime.fromisoformat(time_text)
    except ValueError:
        time = None
    if time is None or not what.strip():
        fail(
            f"--event {text}: write a time and what happened then, such as "
            "'2026-03-02T13:02:00Z HUB was killed'."
        )
    # A time that does not say its zone is in UTC, as all times of the page are.
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC), what.strip()


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        fail(f"--day {text}: write a day as in 2026-03-02.")

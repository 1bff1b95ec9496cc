"""`openmsmq pipeline report`: deliveries as one page to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.console import fail
from openmsmq.cli.output import print_json, progress, size_text
from openmsmq.cli.pipeline.running import DEFAULT_MASTER, ConfOption, MasterOption, spark_session
from openmsmq.cli.reading import JsonOption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_TITLE: Final = "Delivery of messages"


def report(
    source: Annotated[
        str,
        typer.Option("--input", metavar="DIR", help="What pipeline delivery wrote."),
    ],
    output: Annotated[
        str,
        typer.Option("--output", metavar="FILE", help="The page, such as report.html."),
    ],
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
    ] = DEFAULT_TITLE,
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Draw deliveries: one page with tables and plots, which needs nothing but a browser."""
    if os.path.isdir(output):
        fail(f"--output {output} is a directory: name the file, such as {output}/report.html.")
    if not os.path.isdir(os.path.dirname(output) or "."):
        fail(f"--output {output}: there is no directory {os.path.dirname(output)}.")
    with spark_session("report", master, conf) as spark:
        page = run(spark, source, title)
    try:
        Path(output).write_text(page, encoding="utf-8")
    except OSError as error:
        fail(f"--output {output} cannot be written: {error.strerror}.")
    size_bytes = len(page.encode())
    if json:
        print_json({"output": output, "size_bytes": size_bytes})
    else:
        typer.echo(f"{output}: {size_text(size_bytes)}, open it with a browser")


def run(spark: SparkSession, source: str, title: str) -> str:
    """Give the page about the tables in a directory."""
    from openmsmq.spark.pipelines import report as pipeline
    from openmsmq.spark.pipelines.delivery.tables import read_results

    tables = read_results(spark, source)
    with progress("summing up"):
        return pipeline.report(
            tables["delivery"],
            by_queue=tables["by_queue"],
            by_hour=tables["by_hour"],
            by_link=tables["by_link"],
            title=title,
        )

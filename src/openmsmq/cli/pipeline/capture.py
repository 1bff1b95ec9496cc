"""`openmsmq pipeline capture`: capture files to tables of packets, sessions and anomalies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.running import (
    DEFAULT_MASTER,
    ConfOption,
    MasterOption,
    checking,
    require_new_directory,
    spark_session,
)
from openmsmq.cli.views.output import Columns, count_text, print_list, progress
from openmsmq.spark.pipelines.few import are_small, for_few_rows

if TYPE_CHECKING:
    from openmsmq.spark.pipelines.capture import AnomalyCount


def capture(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="Captures in pcapng or pcap: files, directories of them, or patterns. Names with "
            "a scheme, such as s3a://, are left to Spark.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where the tables packets, sessions and anomalies are written, as Parquet.",
        ),
    ],
    tcp_port: Annotated[
        list[int] | None, typer.Option(help="TCP ports to follow instead of 1801.")
    ] = None,
    udp_port: Annotated[
        list[int] | None, typer.Option(help="UDP ports to follow instead of 3527 and 1801.")
    ] = None,
    http_port: Annotated[
        list[int] | None, typer.Option(help="Ports of HTTP to follow instead of 80 and 8080.")
    ] = None,
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Turn captures of MSMQ traffic into tables of packets, sessions and anomalies.

    All files of one run are one capture: a connection that goes on in the next file of a rotated
    capture is one session. A file that cannot be read is an anomaly, and the others are read.
    """
    require_new_directory(output, "--output ")
    with checking():
        from openmsmq.spark.pipelines.capture.names import find_files

        found = find_files(files)
    few = are_small(found)
    with spark_session("capture", master, conf, few=few) as spark:
        from openmsmq.spark.pipelines import capture as pipeline

        defaults = pipeline.Ports()
        ports = pipeline.Ports(
            frozenset(tcp_port or defaults.tcp),
            frozenset(udp_port or defaults.udp),
            frozenset(http_port or defaults.http),
        )
        with progress(f"reading {count_text(len(found), 'capture')}"), for_few_rows(spark, few):
            rows, anomalies = pipeline.write_and_count(spark, found, ports, output, few=few)
    show(output, rows, anomalies, json=json)


def show(
    output: str, rows: dict[str, int], anomalies: list[AnomalyCount], *, json: bool = False
) -> None:
    """Print which tables were written, and what is wrong with the traffic."""
    tables = [
        {"table": name, "rows": count, "path": f"{output}/{name}"} for name, count in rows.items()
    ]
    found = [
        {
            "anomaly": one.kind,
            "severity": one.severity,
            "count": one.count,
            "file": one.file,
            "first": one.first,
        }
        for one in anomalies
    ]
    print_list(tables, {"Table": "table", ">Rows": "rows", "Where": "path"}, "", json=json)
    if not json:
        typer.echo()
    print_list(found, _ANOMALY_COLUMNS, "Nothing is wrong.", json=json)


_ANOMALY_COLUMNS: Final[Columns] = {
    "Anomaly": "anomaly",
    "Severity": "severity",
    ">Count": "count",
    "The first of them": lambda one: f"{os.path.basename(str(one['file']))}: {one['first']}",
}

"""`openmsmq pipeline replay`: dead letters planned first, and then sent again, each once."""

from __future__ import annotations

import getpass
import os
import re
import secrets
import socket
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from openmsmq.cli.options.connecting import EXIT_FAILED
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.ingest import FromOption, connection_options
from openmsmq.cli.pipeline.running import (
    DEFAULT_MASTER,
    ConfOption,
    MasterOption,
    checking,
    spark_session,
)
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.message import preview
from openmsmq.cli.views.output import count_text, print_json, print_table, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from openmsmq.spark.pipelines.replay import AuditTable

_DURATION: Final = re.compile(r"(?P<count>\d+(\.\d+)?)\s*(?P<unit>[smhdw]?)")
_UNITS_S: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_COLUMNS: Final = ("Message", "Reason", ">Age", "Label", "Destination", "Changed", "What", "Note")
_SENT: Final = "sent"
_PLANNED: Final = "planned"


class Wishes(msgspec.Struct, frozen=True):
    """Which dead letters are meant, and what is to be changed: the options of the command."""

    reasons: tuple[str, ...] = ()
    older_than_s: float | None = None
    newer_than_s: float | None = None
    label: str = ""
    destination: str = ""
    where: str = ""
    settings: dict[str, str] = {}
    transform: str = ""
    to: str = ""


def replay(
    context: typer.Context,
    audit: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="The audit table: what was planned and done with each dead letter, as Parquet.",
        ),
    ],
    reason: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REASON",
            help="Only letters with this reason, such as receive-timeout; may be repeated.",
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only letters that are older: 90s, 15m, 1h, 2d."),
    ] = None,
    newer_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only letters that are newer.")
    ] = None,
    label: Annotated[
        str, typer.Option(metavar="LABEL", help="Only with this label; * is anything.")
    ] = "",
    destination: Annotated[
        str,
        typer.Option(
            metavar="QUEUE",
            help=r"Only letters for this queue, by format name or as in private$\orders; * is "
            "anything.",
        ),
    ] = "",
    where: Annotated[
        str,
        typer.Option(
            metavar="SQL",
            help="Only letters for which this holds; the columns of messages, reason and age_s.",
        ),
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=SQL",
            help="Send it with another label, text, priority, destination...; may be repeated.",
        ),
    ] = None,
    transform: Annotated[
        str,
        typer.Option(
            metavar="FILE.py",
            help="Change the letters by the function transform(letters) of this file.",
        ),
    ] = "",
    to: Annotated[
        str, typer.Option(metavar="QUEUE", help="Send them to this queue, not where they were.")
    ] = "",
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A dead-letter queue of an application instead of the system's; may be repeated.",
        ),
    ] = None,
    from_: FromOption = None,
    send: Annotated[
        bool, typer.Option("--send", help="Send; without it, only say what would be sent.")
    ] = False,
    run: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="The name of the run. One that has a plan does what it says, and goes on where "
            "it was; the options that choose and change letters then do not count.",
        ),
    ] = "",
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Send dead letters again, exactly once; without --send, only plan it.

    A dry run names its run: `--run ID --send` sends exactly what it has shown. When a run is
    stopped or killed, repeat it with the same name: nothing is sent twice.
    """
    wishes = Wishes(
        tuple(reason or ()),
        _seconds(older_than, "--older-than"),
        _seconds(newer_than, "--newer-than"),
        label,
        destination,
        where,
        dict(_assignment(text) for text in set_ or ()),
        transform,
        to,
    )
    options = connection_options(context, from_)
    if queue:
        options["queue"] = ",".join(queue)
    with checking():
        from openmsmq.spark.pipelines.replay import letters, require_run
        from openmsmq.spark.source.options import read_source_options

        read_source_options(letters.letter_options(options))
        for each in wishes.reasons:
            letters.reason_name(each)
        letters.setting(wishes.settings)
        if run:
            require_run(run)
    name = run or f"{_now():%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    with spark_session("replay", master, conf) as spark:
        from openmsmq.spark.pipelines.replay import AuditTable

        table = AuditTable(spark, audit, _who(), _now)
        plan = planned(spark, table, options, wishes, name)
        if plan is None:
            typer.echo("no dead letters match", err=True)
        elif send:
            _send(table, options, name, plan, json=json)
        else:
            _show_plan(name, plan, json=json)


def planned(
    spark: SparkSession, audit: AuditTable, options: dict[str, str], wishes: Wishes, run: str
) -> DataFrame | None:
    """Return the plan of a run: the one that it has, or a new one; None if it has no letters."""
    from openmsmq.spark.pipelines import replay as pipeline

    plan = audit.plan(run)
    if plan is not None:
        typer.echo(f"run {run} has a plan, which is followed", err=True)
        return plan
    steps = [pipeline.load_transform(wishes.transform)] if wishes.transform else []
    if wishes.settings:
        steps.append(pipeline.setting(wishes.settings))
    with progress("planning"):
        letters = pipeline.select_dead_letters(
            pipeline.dead_letters(spark, options),
            reasons=wishes.reasons,
            older_than_s=wishes.older_than_s,
            newer_than_s=wishes.newer_than_s,
            label_like=wishes.label,
            destination=wishes.destination,
            where=wishes.where,
        ).persist()
        try:
            if letters.isEmpty():
                return None
            made = pipeline.plan_replay(
                letters,
                options,
                transform=pipeline.one_after_the_other(steps),
                to=wishes.to,
                taken=audit.unfinished(),
            )
            kept = audit.begin(run, made)
        finally:
            letters.unpersist()
    return None if kept.isEmpty() else kept


def _send(
    audit: AuditTable, options: dict[str, str], run: str, plan: DataFrame, *, json: bool
) -> None:
    from openmsmq.spark.pipelines.replay import replay as replay_run

    total = plan.where(f"action = '{_PLANNED}'").count()
    earlier = audit.results(run).where(f"action = '{_SENT}'").count()
    # It is needed to go on with the run, whatever happens from here on.
    typer.echo(f"run {run}: {count_text(total)} planned", err=True)
    with progress("sending", total) as bar:
        replay_run(audit, options, run, done=bar.advance)
    results = audit.results(run).collect()
    left = [row for row in results if row["action"] != _SENT]
    _print(results if json else left, json=json)
    sent = len(results) - len(left)
    if not json:
        typer.echo(f"run {run}: {outcome_text(sent - earlier, earlier, len(left))}")
    if sent < total:
        raise typer.Exit(EXIT_FAILED)


def outcome_text(sent: int, earlier: int, left: int) -> str:
    """Return what a run has done, and what it found done."""
    before = f", {earlier} had been sent before" if earlier else ""
    rest = f", {left} not sent" if left else ""
    return f"{count_text(sent) if sent else 'nothing'} sent again{before}{rest}"


def _show_plan(run: str, plan: DataFrame, *, json: bool) -> None:
    columns = [name for name in plan.columns if name not in ("changes", "token", "address")]
    rows = plan.select(*columns).orderBy("queue_manager", "queue", "arrival_number")
    _print(rows.toLocalIterator(), json=json)
    total = plan.where(f"action = '{_PLANNED}'").count()
    typer.echo(
        f"run {run}: {count_text(total)} would be sent; to send, repeat the command with "
        f"--run {run} --send",
        err=True,
    )


def _print(rows: Iterable[Row], *, json: bool) -> None:
    if json:
        for row in rows:
            print_json({name: _plain(value) for name, value in row.asDict().items()})
    else:
        print_table(_COLUMNS, _cells(rows))


def _cells(rows: Iterable[Row]) -> Iterator[list[str]]:
    for row in rows:
        new = row["new_destination"] or ""
        moved = new != row["destination"]
        yield [
            row["message_id"] or f"lookup id {row['lookup_id']}",
            row["reason"] or "unknown",
            _age(row["age_s"]),
            preview(row["label"] or ""),
            f"{row['destination'] or '?'} -> {new}" if moved else new,
            ", ".join(row["changed"] or ()),
            row["action"],
            row["note"] or row["method"] or "",
        ]


def _plain(value: Any) -> Any:
    # Spark hands times over in the zone of this computer, without saying so.
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value


def _age(age_s: int | None) -> str:
    """Say an age in its largest unit."""
    if age_s is None:
        return ""
    for unit in ("d", "h", "m"):
        if age_s >= 2 * _UNITS_S[unit]:
            return f"{age_s // _UNITS_S[unit]}{unit}"
    return f"{age_s}s"


def _seconds(text: str | None, option: str) -> float | None:
    if text is None:
        return None
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        fail(f"{option} {text}: write a time such as 90s, 15m, 1h, 2d or 1w.")
    return float(found["count"]) * _UNITS_S[found["unit"]]


def _assignment(text: str) -> tuple[str, str]:
    column, equals, expression = text.partition("=")
    if not equals or not column.strip() or not expression.strip():
        fail(f"--set {text}: write COLUMN=SQL, such as label=\"concat('again: ', label)\".")
    return column.strip(), expression.strip()


def _who() -> str:
    """Return who runs the command, for the audit table."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def _now() -> datetime:
    # When a person did something is by the clock of the person.
    return datetime.now(UTC)  # noqa: TID251

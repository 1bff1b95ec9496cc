"""Small pipelines: what the commands take on some thousand rows, where Spark's own work counts.

Nothing here is about throughput: with so few rows the time goes into planning, into starting tasks
and into compiling what they run. So each command is compared with the least that Spark can do with
such rows: read a table, count by one column, write a table.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from inspect import signature
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from bench.cores import used_by_s
from bench.measure import Effort, Figure
from bench.peers.process import disk_directory
from bench.routes import make_enterprise
from bench.trees import Asked, trees
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.recorder import Recorder
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass, message_class_name
from openmsmq.wire import packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES: Final = 2_000
"""Messages of the table: with their copies and acknowledgments some 5,700 rows."""
PACKETS: Final = 5_000
SITES: Final = 72
"""Sites of the plan: some 5,000 pairs."""
TRIALS: Final = 4
COMMANDS: Final = ("delivery", "report", "capture", "routes")
BEFORE_BAR: Final = 1 / 3
_START_S: Final = 1_700_000_000
_SEED: Final = 14
_SOURCE: Final = "a1f0c0de-0000-4000-8000-00000000000a"
_TARGET: Final = "9c3d0000-0000-4000-8000-00000000000c"


def run(effort: Effort) -> Iterator[Figure]:
    """Run each command in one session: the first time, and when Spark is warm."""
    trials = max(2, round(TRIALS * min(1.0, effort.rounds / Effort().rounds)))
    with disk_directory() as directory:
        _make_messages(directory / "messages")
        _make_capture(directory / "traffic.pcapng")
        _make_plan(directory)
        with trees("bench.small", directory, lambda own: [str(directory), str(own)]) as made:
            taken = _in_turn(made, trials)
    yield from _figures(taken[0])
    if len(taken) > 1:
        yield from _compared(*taken)


class Taken(NamedTuple):
    """How long a command ran, and how long cores worked for it."""

    wall_s: float
    cores_s: float


Turns: TypeAlias = dict[str, list[Taken]]


def _figures(taken: Turns) -> Iterator[Figure]:
    least_s = _warm(taken["least"]).wall_s
    yield Figure("read, count, write: the least", least_s, "s")
    for name in COMMANDS:
        warm_s = _warm(taken[name]).wall_s
        yield Figure(f"{name}, the first time", taken[name][0].wall_s, "s")
        yield Figure("  warm", warm_s, "s")
        yield Figure("  warm, by the least", warm_s / least_s, "times")


def _compared(now: Turns, before: Turns) -> Iterator[Figure]:
    for name in COMMANDS:
        ours, theirs = _warm(now[name]), _warm(before[name])
        share, cores = ours.wall_s / theirs.wall_s, ours.cores_s / theirs.cores_s
        yield Figure(f"{name}, warm, by before", share, "times", bar=BEFORE_BAR)
        yield Figure("  time of cores", cores, "times")
        first = now[name][0].wall_s / before[name][0].wall_s
        yield Figure("  the first time", first, "times")


def _warm(turns: list[Taken]) -> Taken:
    others = turns[1:]
    return Taken(
        statistics.median(one.wall_s for one in others),
        statistics.median(one.cores_s for one in others),
    )


def _in_turn(made: list[tuple[Asked, int]], trials: int) -> list[Turns]:
    taken: list[Turns] = [{} for _ in made]
    for _ in range(trials + 1):
        for name in ("least", *COMMANDS):
            for (ask, process), turns in zip(made, taken, strict=True):
                used_s = used_by_s([process])
                wall_s = float(ask(name))
                turns.setdefault(name, []).append(Taken(wall_s, used_by_s([process]) - used_s))
    return taken


# In the process of a tree.


def _serve(inputs: str, outputs: str) -> None:
    """Run the commands whose names come in, and say how long each took."""
    from openmsmq.spark.session import make_session

    # As the commands start it for such inputs; another tree may not know that yet.
    few: dict[str, Any] = {"few": True} if "few" in signature(make_session).parameters else {}
    spark = make_session("bench small", f"local[{os.cpu_count()}]", **few)
    jobs = _jobs(spark, inputs, outputs)
    with _shared(spark):
        for line in sys.stdin:
            begin = time.perf_counter()
            jobs[line.strip()]()
            print(time.perf_counter() - begin, flush=True)
    spark.stop()


def _jobs(spark: SparkSession, inputs: str, outputs: str) -> dict[str, Callable[[], None]]:
    def least() -> None:
        shutil.rmtree(f"{outputs}/least", ignore_errors=True)
        found = spark.read.parquet(f"{inputs}/messages").groupBy("queue").count()
        found.write.parquet(f"{outputs}/least")

    def command(output: str, *arguments: str) -> Callable[[], None]:
        def job() -> None:
            shutil.rmtree(f"{outputs}/{output}", ignore_errors=True)
            _command(*arguments, "--output", f"{outputs}/{output}")

        return job

    return {
        "least": least,
        "delivery": command("delivery", "delivery", "--input", f"{inputs}/messages", "--browsed"),
        "report": command("report.html", "report", "--input", f"{outputs}/delivery"),
        "capture": command("capture", "capture", f"{inputs}/traffic.pcapng"),
        "routes": command(
            "routes",
            *("routes", "--sites", f"{inputs}/sites.csv", "--links", f"{inputs}/links.csv"),
            *("--traffic", f"{inputs}/traffic.csv", "--link-down", _first_link(Path(inputs))),
        ),
    }


def _command(*arguments: str) -> None:
    from typer.testing import CliRunner

    from openmsmq.cli import app

    # As the program does; another tree may not know that yet.
    narrow = getattr(app, "asked_for", lambda whole, _: whole)
    program = narrow(app.app, ["pipeline"])
    result = CliRunner().invoke(program, ["pipeline", *arguments, "--json"])
    if result.exit_code:
        raise RuntimeError(f"openmsmq pipeline {arguments[0]}: {result.output}{result.exception}")


@contextlib.contextmanager
def _shared(spark: SparkSession) -> Iterator[None]:
    """Make the commands work in one session, which they do not stop."""
    from openmsmq.cli.pipeline import capture, delivery, report, routes

    @contextlib.contextmanager
    def session(*_: object, **__: object) -> Iterator[Any]:
        yield spark

    commands: tuple[Any, ...] = (capture, delivery, report, routes)
    before = [command.spark_session for command in commands]
    for command in commands:
        command.spark_session = session
    try:
        yield
    finally:
        for command, own in zip(commands, before, strict=True):
            command.spark_session = own


# What they work on.


def _make_messages(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from openmsmq.spark.schema import NAMES, arrow_schema

    chance = random.Random(_SEED)
    rows: list[dict[str, Any]] = []
    for number in range(MESSAGES):
        rows += [dict.fromkeys(NAMES) | row for row in _traces_of(chance, number)]
    path.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), path / "part.parquet")


def _traces_of(chance: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield what one message leaves: the sender's copy, and two rows of what became of it."""
    queue = f"private$\\queue{chance.randrange(12)}"
    sent_s = _START_S + chance.randrange(86_400)
    copy = {
        "message_id": f"{{{_SOURCE}}}\\{number}",
        "source_qm": _SOURCE,
        "destination": f"DIRECT=OS:target\\{queue}",
        "label": f"order {number}",
        "body": b"x" * chance.randrange(500),
        "priority": 3,
        "transactional": True,
        "acknowledge": 0x0E,
        "sent_time": _time(sent_s),
        **_class(MessageClass.NORMAL),
    }
    yield {**copy, **_place("SOURCE", "system$;journal", sent_s)}
    end_s = sent_s + chance.choice((0, 0, 1, 1, 2, 5, 60))
    told = MessageClass.ACK_RECEIVE
    if chance.random() < 0.05:
        told = MessageClass.NACK_BAD_DESTINATION_QUEUE
        yield {**copy, **_class(told), **_place("SOURCE", "system$;deadxact", end_s)}
    else:
        yield {**copy, **_place("TARGET", f"{queue};journal", end_s)}
    yield {
        "message_id": f"{{{_TARGET}}}\\{number}",
        "source_qm": _TARGET,
        "correlation_id": copy["message_id"],
        "destination": "DIRECT=OS:source\\private$\\acks",
        "response_queue": copy["destination"],
        "label": copy["label"],
        "sent_time": _time(end_s),
        **_class(told),
        **_place("SOURCE", "private$\\acks", end_s + 1),
    }


def _class(message_class: MessageClass) -> dict[str, Any]:
    return {
        "message_class": int(message_class),
        "message_class_name": message_class_name(message_class),
    }


def _place(queue_manager: str, queue: str, time_s: int) -> dict[str, Any]:
    return {"queue_manager": queue_manager, "queue": queue, "arrived_time": _time(time_s)}


def _time(time_s: int) -> datetime:
    return datetime.fromtimestamp(time_s, UTC)


def _make_capture(path: Path) -> None:
    client, server = (
        Endpoint(ip_address(address).packed, port)
        for address, port in (("10.0.0.1", 50_000), ("10.0.0.2", 1801))
    )
    recorder = Recorder()
    now_ns = _START_S * 1_000_000_000
    parts = [recorder.start(), recorder.opened(client, server, now_ns)]
    for number in range(PACKETS):
        now_ns += 1_000_000
        message = UserMessage(
            UserHeader(Guid(b"0123456789abcdef"), message_number=number, flags=user.RECOVERABLE),
            MessageProperties.of(b"body"),
        )
        parts.append(recorder.sent(client, server, packets.encode(message), now_ns))
    path.write_bytes(b"".join(parts))


def _make_plan(directory: Path) -> None:
    made = make_enterprise(SITES, 3 * SITES)
    sites = "".join(f"{site.key}\n" for site in made.snapshot.sites)
    links = "".join(f"{link.site1},{link.site2},{link.cost}\n" for link in made.snapshot.links)
    traffic = "".join(f"{','.join(map(str, row))}\n" for row in made.traffic)
    for name, text in (
        ("sites", f"site\n{sites}"),
        ("links", f"site_1,site_2,cost\n{links}"),
        ("traffic", f"from_site,to_site,messages,bytes\n{traffic}"),
    ):
        (directory / f"{name}.csv").write_text(text, encoding="utf-8")


def _first_link(directory: Path) -> str:
    row = (directory / "links.csv").read_text(encoding="utf-8").splitlines()[1]
    return ":".join(row.split(",")[:2])


if __name__ == "__main__":
    _serve(*sys.argv[1:])

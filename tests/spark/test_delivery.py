"""The pipeline `delivery`: what became of messages, told from rows of queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from openmsmq.api import messages as api
from openmsmq.cli.options.connecting import Target
from openmsmq.cli.pipeline import delivery as command
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.queue import AccessMode
from openmsmq.spark.decode.rows import row_of
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.pipelines.delivery import delivery, rollups
from openmsmq.spark.pipelines.delivery.tables import browse, managers_at
from openmsmq.wire.headers import base
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.runtime.computers import Computer as RunningComputer
from tests.runtime.computers import running
from tests.runtime.scripted_engine import free_port
from tests.spark.delivery_by_hand import expected
from tests.spark.delivery_rows import START_S, Row, draw_rows, row, table
from tests.strategies.messages import Draft
from tests.transfer.network import ALPHA, BETA, GAMMA, Computer, Network, addressed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPARED = (
    "message_id",
    "label",
    "source_queue_manager",
    "destination_queue_manager",
    "destination_queue",
    "sent_time",
    "priority",
    "transactional",
    "size_bytes",
    "outcome",
    "reason",
    "arrived",
    "acknowledge",
    "in_doubt",
    "reached_time",
    "received_time",
    "latency_reach_s",
    "latency_receive_s",
    "path",
    "dead_letter_reason",
    "found_in",
)
ADDRESS = "127.0.89.1"


def told(frame: DataFrame) -> dict[str, Row]:
    """Collect deliveries by message, as the loop gives them."""
    rows = [found.asDict() for found in frame.select(*COMPARED).collect()]
    assert len({found["message_id"] for found in rows}) == len(rows)
    return {found["message_id"]: _plain(found) for found in rows}


def _plain(found: Row) -> Row:
    plain = {name: _utc(value) for name, value in found.items()}
    plain["path"] = [(step["queue_manager"], _utc(step["time"])) for step in found["path"]]
    return plain


def _utc(value: Any) -> Any:
    # Spark gives times without a zone, in the time of this computer.
    return value.astimezone(UTC) if isinstance(value, datetime) else value


# Outcomes and sums of an enterprise drawn at random.


@pytest.fixture(scope="module")
def drawn(spark: SparkSession) -> Iterator[tuple[DataFrame, dict[str, Row]]]:
    rows = draw_rows(1, 250)
    frame = delivery(spark.createDataFrame(table(rows))).persist()
    yield frame, expected(rows)
    frame.unpersist()


@pytest.mark.timeout(300)
def test_every_message_has_the_outcome_that_a_look_at_all_rows_gives(
    drawn: tuple[DataFrame, dict[str, Row]],
) -> None:
    found, wanted = told(drawn[0]), drawn[1]
    assert found.keys() == wanted.keys()
    for identifier, one in wanted.items():
        assert found[identifier] == one, identifier
    assert {one["outcome"] for one in wanted.values()} == {
        *("received", "waiting", "dead_letter", "failed"),
        *("reached", "in_transit", "lost", "unknown"),
    }


def test_few_messages_have_the_outcomes_that_they_have_among_many(
    spark: SparkSession, drawn: tuple[DataFrame, dict[str, Row]]
) -> None:
    found = delivery(spark.createDataFrame(table(draw_rows(1, 250))), few=True)
    assert found.schema == drawn[0].schema
    assert told(found) == drawn[1]


def test_sums_by_queue_and_hour_are_those_of_the_messages(
    drawn: tuple[DataFrame, dict[str, Row]],
) -> None:
    frame, messages = drawn
    by_queue, by_hour = defaultdict(list), defaultdict(list)
    for one in messages.values():
        by_queue[one["destination_queue_manager"], one["destination_queue"]].append(one)
        sent = one["sent_time"]
        hour = None if sent is None else sent.replace(minute=0, second=0, microsecond=0)
        by_hour[hour].append(one)
    found = {
        (one["destination_queue_manager"], one["destination_queue"]): _sums(one.asDict())
        for one in rollups.by_queue(frame).collect()
    }
    assert found == {key: _summed(group) for key, group in by_queue.items()}
    hours = {_utc(one["hour"]): _sums(one.asDict()) for one in rollups.by_hour(frame).collect()}
    assert hours == {key: _summed(group) for key, group in by_hour.items()}


def _sums(found: Row) -> Row:
    names = (
        *("message_count", "dead_letter_count", "lost_count", "loss", "dead_letter_reasons"),
        *("arrived_count", "failed_after_arrival_count", "untraced_count"),
    )
    return {
        **{name: found[name] for name in names},
        **{
            name: found[name] if found[name] is None else pytest.approx(found[name])
            for name in found
            if name.startswith("latency")
        },
    }


def _summed(messages: list[Row]) -> Row:
    outcomes = [one["outcome"] for one in messages]
    bad = sum(outcome in ("dead_letter", "failed", "lost") for outcome in outcomes)
    reasons: dict[str, int] = defaultdict(int)
    for one in messages:
        if one["outcome"] == "dead_letter":
            reasons[one["dead_letter_reason"] or "other"] += 1
    return {
        "message_count": len(messages),
        "dead_letter_count": outcomes.count("dead_letter"),
        "lost_count": outcomes.count("lost"),
        "loss": bad / len(messages),
        "dead_letter_reasons": reasons,
        "arrived_count": sum(one["arrived"] for one in messages),
        "failed_after_arrival_count": sum(
            one["arrived"] and one["outcome"] in ("dead_letter", "failed", "lost")
            for one in messages
        ),
        "untraced_count": sum(
            one["outcome"] in ("in_transit", "unknown") and not (one["acknowledge"] or 0) & 3
            for one in messages
        ),
        **{
            f"latency_{what}_count": sum(one[f"latency_{what}_s"] is not None for one in messages)
            for what in ("reach", "receive")
        },
        **{
            f"latency_{what}_p{percent}_s": _percentile(
                [one[f"latency_{what}_s"] for one in messages], percent
            )
            for what in ("reach", "receive")
            for percent in (50, 95, 99)
        },
    }


def _percentile(values: list[float | None], percent: int) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.percentile(known, percent)) if known else None


DELIVERED, UNDELIVERED = ("received", "waiting", "reached"), ("dead_letter", "failed", "lost")


def test_counts_add_up_in_every_row_and_over_all_rows(
    drawn: tuple[DataFrame, dict[str, Row]],
) -> None:
    frame, messages = drawn
    total, *_ = rollups.part(rollups.sums(frame), rollups.Sum.ALL).collect()
    queues, hours, links = (
        [row.asDict() for row in make(frame).collect()]
        for make in (rollups.by_queue, rollups.by_hour, rollups.by_link)
    )
    for one in (total.asDict(), *queues, *hours):
        good, bad, between = (
            sum(one[f"{name}_count"] for name in names)
            for names in (DELIVERED, UNDELIVERED, ("in_transit", "unknown"))
        )
        assert good == one["delivered_count"]
        assert good + bad + between == one["message_count"]
        assert one["arrived_count"] == good + one["failed_after_arrival_count"]
        assert one["latency_reach_count"] <= one["arrived_count"]
        assert one["latency_receive_count"] <= one["received_count"]
    for name in ("message_count", "arrived_count", "untraced_count", "latency_reach_count"):
        assert sum(one[name] for one in queues) == total[name]
        assert sum(one[name] for one in hours) == total[name]
    for one in links:
        parts = one["arrived_count"] + one["undelivered_count"] + one["open_count"]
        assert parts == one["message_count"]
    # What failed on its way did so on one link; what failed in its queue on none.
    on_the_way = sum(one["undelivered_count"] for one in links)
    unplaced = sum(
        one["destination_queue_manager"] is None and one["outcome"] in UNDELIVERED
        for one in messages.values()
    )
    bad = sum(total[f"{name}_count"] for name in UNDELIVERED)
    there = sum(
        one["outcome"] in UNDELIVERED and one["path"][-1][0] == one["destination_queue_manager"]
        for one in messages.values()
    )
    assert on_the_way == bad - there - unplaced
    assert total["failed_after_arrival_count"] > 0


def test_sums_by_link_are_those_of_the_paths(drawn: tuple[DataFrame, dict[str, Row]]) -> None:
    frame, messages = drawn
    links: dict[tuple[str, str], list[tuple[float | None, bool, Row]]] = defaultdict(list)
    for one in messages.values():
        path, to = one["path"], one["destination_queue_manager"]
        for (source, left), (target, came) in pairwise(path):
            took_s = (came - left).total_seconds() if came and left else None
            links[source, target].append((took_s, True, one))
        if path[-1][0] != to:
            links[path[-1][0], to].append((None, False, one))
    found = {
        (one["source_queue_manager"], one["target_queue_manager"]): one
        for one in rollups.by_link(frame).collect()
    }
    assert found.keys() == links.keys()
    for key, passed in links.items():
        seconds = [took_s for took_s, _, _ in passed]
        bad = [
            one
            for _, arrived, one in passed
            if not arrived and one["outcome"] in ("dead_letter", "failed", "lost")
        ]
        assert found[key]["message_count"] == len(passed)
        assert found[key]["arrived_count"] == sum(arrived for _, arrived, _ in passed)
        assert found[key]["undelivered_count"] == len(bad)
        assert found[key]["latency_count"] == sum(took_s is not None for took_s in seconds)
        assert found[key]["loss"] == len(bad) / len(passed)
        dead = sum(one["outcome"] == "dead_letter" for one in bad)
        assert sum(found[key]["dead_letter_reasons"].values()) == dead
        for percent in (50, 95, 99):
            value = found[key][f"latency_p{percent}_s"]
            assert value == pytest.approx(_percentile(seconds, percent))


# What the one who asks may say.


def test_names_limits_and_whether_messages_were_taken_can_be_told(spark: SparkSession) -> None:
    source, there, far, stranger = (f"{digit * 8}-0000-4000-8000-{'0' * 12}" for digit in "abcd")
    to_there = {"source_qm": source, "destination": rf"PRIVATE={there}\1f"}
    # Nothing in the rows shows who this is.
    to_far = {"source_qm": source, "destination": rf"PRIVATE={far}\1f"}
    to_delta = {"source_qm": source, "destination": r"DIRECT=OS:delta\orders"}
    ids = [rf"{{{source}}}\{number}" for number in range(7)]
    journal = "ALPHA", "system$;journal"
    rows = [
        row("BETA", r"private$\orders", START_S + 5, message_id=ids[0], sent_s=START_S, **to_there),
        row(*journal, START_S + 1, message_id=ids[1], sent_s=START_S, **to_there),
        row(*journal, START_S, message_id=ids[2], acknowledge=5, sent_s=START_S, **to_there),
        # Sixty seconds before the last row came, and a second more.
        row(*journal, START_S + 40, message_id=ids[3], sent_s=START_S + 40, **to_far),
        row(*journal, START_S + 39, message_id=ids[4], sent_s=START_S + 39, **to_far),
        row(*journal, START_S + 100, message_id=ids[5], sent_s=START_S + 100, **to_far),
        # It is found with DELTA, so the report of a stranger who had it last is that of DELTA.
        row("DELTA", "orders", START_S + 9, message_id=ids[6], sent_s=START_S, **to_delta),
        row(
            *("ALPHA", "traces", START_S + 9),
            message_id=rf"{{{stranger}}}\1",
            source_qm=stranger,
            message_class=1,
            label=f"{source[:4].upper()}:00000006:00 received by {stranger} at some time",
            sent_s=START_S + 7,
        ),
    ]
    found = told(
        delivery(
            spark.createDataFrame(table(rows)),
            taken=True,
            lost_after_s=60,
            names={far.upper(): "GAMMA"},
        )
    )
    outcomes = [found[identifier]["outcome"] for identifier in ids[:6]]
    on_its_way = ["in_transit", "unknown", "in_transit"]
    assert outcomes == ["received", "unknown", "lost", *on_its_way]
    assert found[ids[5]]["destination_queue_manager"] == "GAMMA"
    assert found[ids[1]]["destination_queue"] == r"private$\orders"
    assert found[ids[0]]["path"][0][0] == "ALPHA"
    assert found[ids[6]]["path"][1:] == [("DELTA", datetime.fromtimestamp(START_S + 7, UTC))]


def test_a_table_that_is_none_of_messages_is_refused(spark: SparkSession) -> None:
    with pytest.raises(
        QueueProblem, match="has no column queue_manager, queue, arrived_time and 15 more"
    ):
        delivery(spark.createDataFrame([], "message_id string"))


# What our own queue managers write.

ORDERS, LEDGER, ADMIN, TRACES = (rf"private$\{n}" for n in ("orders", "ledger", "admin", "traces"))
TO_ADMIN = rf"TCP:{ALPHA}\PRIVATE$\admin"
REACH, RECEIVE = 0x05, 0x0E
"""What full acknowledgments ask for."""


class Enterprise:
    """ALPHA sends to GAMMA through BETA, and to BETA directly."""

    def __init__(self) -> None:
        self.network = network = Network()
        self.gamma = network.manager("GAMMA", GAMMA)
        self.gamma.create(ORDERS, journaling=True)
        there = str(self.gamma.identifier)
        hops = {"next_hops": {there: (GAMMA,)}}
        self.beta = network.manager("BETA", BETA, trace_reports=True, **hops)
        self.beta.create(ORDERS, quota_kb=2)
        self.beta.create(LEDGER, transactional=True)
        self.beta.create(TRACES)
        self.alpha = network.manager("ALPHA", ALPHA, next_hops={there: (BETA,)})
        self.alpha.create(ADMIN)
        self.trace_queue = Guid(self.beta.ok(api.GetQueue(TRACES)).queues[0].identifier)

    def send(self, name: str, **wishes: Any) -> str:
        wishes = {"admin_queue": TO_ADMIN, **wishes}
        (number,) = self.alpha.send(name, wishes.pop("body", b"body"), **wishes)
        self.network.run(1_000)
        return str(MessageId(self.alpha.identifier, number))

    def send_traced(self, name: str, **wishes: Any) -> str:
        opened = self.alpha.ok(api.OpenQueue(name, AccessMode.SEND))
        draft = decode(addressed(Draft(admin_queue=TO_ADMIN, **wishes).packet(), opened))
        assert isinstance(draft, UserMessage)
        header = msgspec.structs.replace(draft.base, flags=draft.base.flags | base.TRACE)
        packet = msgspec.structs.replace(draft, base=header, debug=DebugHeader(self.trace_queue))
        (number,) = self.alpha.ok(api.Send(opened.handle, [encode(packet)], 0)).numbers
        self.network.run(3_000)
        return str(MessageId(self.alpha.identifier, number))

    def rows(self) -> list[Row]:
        """Browse every queue of every queue manager."""
        return [
            row_of(entry, queue_manager=computer.name, queue=queue.path_name)
            for computer in (self.alpha, self.beta, self.gamma)
            for queue in computer.ok(api.ListQueues(everything=True)).queues
            for entry in _browse(computer, queue.path_name)
        ]


def _browse(computer: Computer, queue: str) -> list[api.Entry]:
    opened = computer.ok(api.OpenQueue(queue, AccessMode.PEEK))
    reply = computer.ask(api.Receive(opened.handle, 10_000, 0, peek=True))
    return reply.entries if isinstance(reply, api.Entries) else []


@pytest.mark.timeout(300)
def test_what_queue_managers_write_is_understood(spark: SparkSession) -> None:
    made = Enterprise()
    alpha, beta, gamma, network = made.alpha, made.beta, made.gamma, made.network
    far = gamma.ok(api.GetNames(ORDERS)).private_name
    near, ledger = rf"DIRECT=TCP:{BETA}\{ORDERS}", rf"DIRECT=TCP:{BETA}\{LEDGER}"
    wanted = {}
    passed_on = made.send_traced(far, acknowledge=RECEIVE)
    gamma.bodies(ORDERS, take=True)
    wanted[passed_on] = ("received", "ACK_RECEIVE")
    wanted[made.send(near, time_to_be_received_s=5, journal_on_failure=True)] = (
        "dead_letter",
        "NACK_RECEIVE_TIMEOUT",
    )
    network.run(10_000)
    wanted[made.send(near, acknowledge=REACH)] = ("waiting", "ACK_REACH_QUEUE")
    wanted[made.send(near, acknowledge=REACH, body=b"b" * 3_000)] = (
        "failed",
        "NACK_QUEUE_EXCEEDS_QUOTA",
    )
    copied = made.send(ledger, transactional=True, journal_on_success=True)
    beta.bodies(LEDGER, take=True)
    wanted[copied] = ("received", None)
    made.send(ledger, transactional=True)
    refused = made.send(near, transactional=True, journal_on_failure=True)
    wanted[refused] = ("dead_letter", "NACK_ACCESS_DENIED")
    network.down.add("127.0.0.77")
    late = r"DIRECT=TCP:127.0.0.77\private$\orders"
    wanted[made.send(late, time_to_reach_queue_s=5, journal_on_failure=True)] = (
        "dead_letter",
        "NACK_REACH_QUEUE_TIMEOUT",
    )
    missing = rf"DIRECT=TCP:{BETA}\private$\missing"
    short = {"time_to_reach_queue_s": 60, "journal_on_success": True}
    wanted[made.send(missing, acknowledge=REACH, **short)] = ("lost", None)
    wanted[made.send(missing, **short)] = ("unknown", None)
    on_its_way = made.send(missing, journal_on_success=True)
    wanted[on_its_way] = ("in_transit", None)
    network.run(400_000)
    made.beta.send(rf"DIRECT=TCP:{ALPHA}\{ADMIN}", b"", journal_on_success=True)
    network.run(1_000)

    found = told(delivery(spark.createDataFrame(table(made.rows()))))
    assert {name: (found[name]["outcome"], found[name]["reason"]) for name in wanted} == wanted
    # The administration queue has acknowledgments, which are no messages of their own.
    others = {row["outcome"] for name, row in found.items() if name not in wanted}
    assert len(found) == len(wanted) + 2, "the message behind, and BETA's own"
    assert others == {"waiting"}
    way = found[passed_on]["path"]
    assert [name for name, _ in way] == ["ALPHA", "BETA", "GAMMA"]
    assert found[passed_on]["received_time"] is not None
    assert found[copied]["destination_queue"] == LEDGER
    assert not any(row["in_doubt"] for row in found.values())
    assert alpha.identifier != beta.identifier


# The command.


APP = typer.Typer()
APP.command()(command.delivery)


def run_command(*options: str) -> Any:
    return CliRunner().invoke(APP, options, obj=Target("127.0.0.1"))


def test_every_queue_that_has_messages_is_browsed(spark: SparkSession, tmp_path: Path) -> None:
    computer = RunningComputer(tmp_path, "ALPHA", ADDRESS, free_port(ADDRESS))
    with running(computer), computer.connect() as manager:
        orders = manager.create_queue(r"private$\orders", journaling=True)
        admin = manager.create_queue(r"private$\admin")
        manager.create_queue(r"private$\empty")
        wishes = {"acknowledge": RECEIVE, "admin_queue": admin.format_name}
        orders.send("one", label="taken", journal_on_success=True, **wishes)
        orders.receive(timeout=5)
        orders.send("two", label="left")
        options = {"qm": computer.qm}
        found = browse(spark, options, ()).select("queue", "label", "taken").collect()
        (told_of,) = managers_at(options)
        assert (told_of.identity, told_of.name) == (computer.identifier, "ALPHA")
        assert told_of.started.timestamp() == manager.status().started_time_s
    assert sorted(map(tuple, found)) == [
        (r"private$\admin", "taken", False),
        (r"private$\orders", "left", False),
        (r"private$\orders;journal", "taken", False),
        ("system$;journal", "taken", False),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "name tables with --input DIR, or queues to browse"),
        (("--queue=a", "--browsed"), "--browsed says something about --input"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    result = run_command(f"--output={tmp_path / 'out'}", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    result = run_command(f"--output={tmp_path}", "--input=x")
    assert result.exit_code == 2
    assert "name a directory that is new or empty" in result.stderr

"""The pipeline `replay`: dead letters are sent again, each once, however often a run is cut off."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import openmsmq
from openmsmq.api.messages import Entry
from openmsmq.cli.app import app
from openmsmq.cli.pipeline import replay as replay_command
from openmsmq.client.blocking import Queue, QueueManager
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.names import parse_format_name
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.pipelines import replay as pipeline
from openmsmq.spark.pipelines.replay.audit import (
    IN_DOUBT,
    SENDING,
    SENT,
    Batch,
    Letter,
    Noted,
)
from openmsmq.spark.pipelines.replay.letters import reason_name
from openmsmq.spark.pipelines.replay.packets import message_again, packet_again
from openmsmq.spark.pipelines.replay.plan import SKIPPED, Method
from openmsmq.spark.pipelines.replay.sending import Sender
from openmsmq.wire import packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.resending import unsigned
from tests.runtime.computers import Computer
from tests.strategies.packets import user_messages

ADDRESS = "127.0.88.2"
NOWHERE = r"DIRECT=TCP:127.0.88.9\private$\far"
PLAIN = "system$;deadletter"
TRANSACTIONAL = "system$;deadxact"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def connection(alpha: Computer) -> Iterator[QueueManager]:
    with alpha.connect() as manager:
        yield manager


@pytest.fixture
def manager(connection: QueueManager) -> QueueManager:
    """The queue manager, without dead letters of other tests."""
    for name in (PLAIN, TRANSACTIONAL):
        connection.queue(name).purge()
    return connection


def make_queue(manager: QueueManager, *, transactional: bool) -> Queue:
    return manager.create_queue(f"private$\\q{next(NUMBERS)}", transactional=transactional)


def make_letters(queue: Queue, *bodies: str, **options) -> None:
    """Send messages and let them die: their queue is purged before anybody receives them."""
    transaction = openmsmq.SINGLE_MESSAGE if queue.properties().transactional else None
    for body in bodies:
        queue.send(
            body, journal_on_failure=True, recoverable=True, transaction=transaction, **options
        )
    queue.purge()


def bodies(queue: Queue) -> list[object]:
    return [message.body for message in queue.browse()]


# Packets.

DESTINATION = parse_format_name(r"DIRECT=OS:beta\private$\again")


def received(packet: bytes) -> ReceivedMessage:
    return ReceivedMessage(Entry(1, 0, 0, 0, packet), DEFAULT_FORMATTER)


@given(user_messages(), st.booleans())
def test_a_letter_that_is_not_changed_leaves_as_it_was(packet, transactional):
    packet = msgspec.structs.replace(packet, session=None, session_counted=False)
    again = packets.decode(
        packet_again(received(packets.encode(packet)), DESTINATION, transactional=transactional)
    )
    assert isinstance(again, packets.UserMessage)
    assert again.user.destination == DirectName(DESTINATION.wire_text)
    assert again.user.destination_manager == NIL_GUID
    assert again.user.recoverable
    assert again.user.hop_count == 0
    assert again.properties.message_class == MessageClass.NORMAL
    assert (again.transaction is not None) == transactional

    def rest(message):
        header = msgspec.structs.replace(
            message.user,
            destination=None,
            destination_manager=NIL_GUID,
            flags=message.user.flags & ~(user.HOP_COUNT | user.DELIVERY),
            padding=b"",
        )
        properties = msgspec.structs.replace(message.properties, message_class=0)
        return msgspec.structs.replace(
            message, user=header, properties=properties, transaction=None
        )

    # Who sends it again is not its signer.
    assert rest(again) == rest(unsigned(packet))


outgoing = st.fixed_dictionaries(
    {
        "body": st.binary(max_size=9) | st.text("aä😀", max_size=5),
        "label": st.text("aä", max_size=5),
        "priority": st.integers(0, 7),
        "correlation_id": st.binary(min_size=20, max_size=20),
        "response_queue": st.none() | st.just(r"DIRECT=OS:beta\private$\answers"),
        "admin_queue": st.none() | st.just(r"DIRECT=OS:alpha\private$\admin"),
        "acknowledge": st.sampled_from([0, 5, 14]),
        "time_to_reach_queue_s": st.none() | st.integers(0, 1 << 31),
        "time_to_be_received_s": st.none() | st.integers(0, 1 << 31),
        "journal_on_success": st.booleans(),
        "dead_letter_queue": st.none() | st.just(r"alpha\private$\dead"),
        "application_tag": st.integers(0, (1 << 32) - 1),
        "extension": st.binary(max_size=5),
        "trace_queue": st.none() | st.just(Guid(bytes(range(16)))),
    }
)


@given(outgoing, st.booleans())
def test_only_what_was_changed_is_different_in_a_changed_letter(options, transactional):
    builder = PacketBuilder(DESTINATION.wire_text, "alpha")
    made = OutgoingMessage(**options, journal_on_failure=True, recoverable=True)
    packet = builder.build(made, DEFAULT_FORMATTER, transactional)
    again = message_again(received(packet), {"label": "changed"})
    assert builder.build(again, DEFAULT_FORMATTER, transactional) == builder.build(
        msgspec.structs.replace(made, label="changed"), DEFAULT_FORMATTER, transactional
    )


@pytest.mark.parametrize(
    ("body", "body_type"), [("alt", None), (b"alt", 0), (b"alt", 0x1011), (b"\1\2\3\4", 3)]
)
def test_a_new_text_has_the_form_of_the_old_body(body, body_type):
    packet = PacketBuilder(DESTINATION.wire_text, "alpha").build(
        OutgoingMessage(body=body, body_type=body_type), DEFAULT_FORMATTER, False
    )
    again = message_again(received(packet), {"text": "neü"})
    wide = body_type in (None, 3)
    assert again.body == "neü".encode("utf-16-le" if wide else "utf-8")
    assert again.body_type == (8 if wide else body_type)


# Choosing.


def union(first, second):
    return first.union(second)


def test_reasons_are_read_as_people_write_them():
    assert reason_name("receive-timeout") == "NACK_RECEIVE_TIMEOUT"
    assert reason_name("NACK_QUEUE_PURGED") == "NACK_QUEUE_PURGED"
    assert reason_name("Unknown") == "unknown"
    with pytest.raises(BadOption, match=r"'late' is not one of .* receive-timeout"):
        reason_name("late")


def test_letters_are_chosen_by_all_conditions_together(spark):
    letters = spark.createDataFrame(
        [
            (1, "NACK_PURGED", 10, "Order 1", r"DIRECT=OS:alpha\private$\orders"),
            (2, "NACK_RECEIVE_TIMEOUT", 100, "order 2", r"DIRECT=TCP:10.0.0.1\PRIVATE$\orders"),
            (3, None, 1000, "50% off", r"DIRECT=OS:alpha\private$\re_orders"),
            (4, "NACK_PURGED", 1000, "500 off", None),
        ],
        "lookup_id bigint, reason string, age_s bigint, label string, destination string",
    )
    cases = [
        ({}, "1234"),
        ({"reasons": ["purged"]}, "14"),
        ({"reasons": ["purged", "unknown"]}, "134"),
        ({"older_than_s": 10}, "234"),
        ({"older_than_s": 10, "newer_than_s": 1000}, "2"),
        ({"label_like": "order*"}, "12"),
        ({"label_like": "50% *"}, "3"),
        ({"destination": r"private$\orders"}, "12"),
        ({"destination": r"direct=os:alpha\private$\*"}, "13"),
        ({"where": "label like 'o%' or lookup_id = 4", "reasons": ["purged"]}, "4"),
    ]
    chosen = [
        pipeline.select_dead_letters(letters, **conditions).selectExpr("lookup_id", f"{case} place")
        for case, (conditions, _) in enumerate(cases)
    ]
    found = {(row["place"], row["lookup_id"]) for row in functools.reduce(union, chosen).collect()}
    for case, (conditions, expected) in enumerate(cases):
        assert {number for place, number in found if place == case} == set(map(int, expected)), (
            conditions
        )


def test_a_file_without_a_function_that_works_is_refused(spark, tmp_path):
    letters = spark.range(1)
    file = tmp_path / "change.py"
    for content, problem in (
        (None, "No such file"),
        ("x = ", "SyntaxError"),
        ("x = 1", "has no function transform"),
        ("def transform(letters): return 1", "gives no data frame"),
        ("def transform(letters): return nothing", "NameError"),
    ):
        if content is not None:
            file.write_text(content)
        with pytest.raises(BadOption, match=problem):
            pipeline.load_transform(str(file))(letters)
    with pytest.raises(BadOption, match="'arrived_time' cannot be changed"):
        pipeline.setting({"arrived_time": "now()"})


# Cut off and repeated, with a queue manager that is real.


class Cut(Exception):
    """The run ends here, as if it was killed."""


class Scissors:
    """Cuts a run off before or after one of its steps."""

    def __init__(self, step: int, *, after: bool) -> None:
        self.left = step
        self.after = after

    def run(self, step, *arguments, **options):
        self.left -= 1
        if self.left == -1 and not self.after:
            raise Cut
        result = step(*arguments, **options)
        if self.left == -1:
            raise Cut
        return result


class CutSender(Sender):
    """A sender whose steps may be the last ones."""

    def __init__(self, manager: QueueManager, query: str, scissors: Scissors) -> None:
        super().__init__(manager, query)
        self.scissors = scissors

    def stage(self, batch, attempt, *, taking):
        return self.scissors.run(super().stage, batch, attempt, taking=taking)

    def commit(self, staged):
        self.scissors.run(super().commit, staged)

    def send(self, letter):
        self.scissors.run(super().send, letter)

    def remove(self, letters):
        for letter in letters:
            self.scissors.run(super().remove, [letter])


class Notebook:
    """Notes that outlive a run, without Spark."""

    def __init__(self, method: Method, letters: list[Letter]) -> None:
        self.method = method
        self.letters = letters
        self.notes: list[Noted] = []
        self.scissors = Scissors(-1, after=False)

    @property
    def batch(self) -> Batch:
        return Batch(1, self.method, self.letters, list(self.notes))

    def note(self, _run, letters, action, *, attempt=0, note=""):  # noqa: ARG002
        rows = [Noted(letter.key, action, attempt) for letter in letters]
        if rows:
            self.scissors.run(self.notes.extend, rows)

    def of(self, *actions: str) -> set[tuple[str, int]]:
        return self.batch.noted(*actions)


def letters_in(queue: Queue, address: str) -> list[Letter]:
    return [
        Letter(queue.name, message.lookup_id, str(message.id), address, {}, {})
        for message in queue.browse()
    ]


METHODS = {
    Method.TOGETHER: (True, True),
    Method.SENT_FIRST: (False, True),
    Method.ONE_BY_ONE: (False, False),
}
cuts = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=3)
spoiled = st.sampled_from([set(), {"1"}, {"2"}, {"1", "3"}])


@pytest.mark.parametrize("method", METHODS)
@given(cuts=cuts, spoiled=spoiled)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_run_that_is_cut_off_anywhere_loses_nothing_and_sends_nothing_twice(
    alpha, manager, method, cuts, spoiled
):
    of_letters, of_target = METHODS[method]
    dead = manager.queue(TRANSACTIONAL if of_letters else PLAIN)
    dead.purge()
    origin = make_queue(manager, transactional=of_letters)
    target = make_queue(manager, transactional=of_target)
    make_letters(origin, "1", "2", "3")
    letters = letters_in(dead, target.properties().format_name)
    names = {letter.key: body for letter, body in zip(letters, bodies(dead), strict=True)}
    notebook = Notebook(
        method,
        [
            msgspec.structs.replace(letter, changes={"label": "x" * 300})
            if names[letter.key] in spoiled
            else letter
            for letter in letters
        ],
    )
    for step, after in [*cuts, (-1, False)]:
        notebook.scissors = Scissors(step, after=after)
        with alpha.connect() as connection:
            sender = CutSender(connection, f"replay {target.name}", notebook.scissors)
            with contextlib.suppress(Cut):
                pipeline.send_batch(sender, notebook, "r", notebook.batch)
    arrived, left = bodies(target), set(bodies(dead))
    sent, doubtful = ({names[key] for key in notebook.of(each)} for each in (SENT, IN_DOUBT))
    assert len(set(arrived)) == len(arrived)
    assert left | set(arrived) == {"1", "2", "3"}
    assert spoiled <= left <= spoiled | doubtful
    assert sent <= set(arrived) <= sent | doubtful
    assert not spoiled & set(arrived)
    # Each time it is cut off, one letter at most comes into doubt, and only without transactions.
    assert len(doubtful) <= (len(cuts) if method is Method.ONE_BY_ONE else 0)
    assert not manager.in_doubt()


def test_letters_that_cannot_be_sent_stay_and_do_not_hold_up_the_others(alpha, manager):
    ledger = make_queue(manager, transactional=True)
    small = manager.create_queue(f"private$\\q{next(NUMBERS)}", transactional=True, quota_kb=1)
    make_letters(ledger, "1", "2", "3", "4")
    dead = manager.queue(TRANSACTIONAL)
    one, two, three, four = letters_in(dead, ledger.properties().format_name)
    dead.receive_by_lookup_id(two.lookup_id)
    three = msgspec.structs.replace(
        three, changes={"text": "x" * 2000}, address=small.properties().format_name
    )
    notebook = Notebook(Method.TOGETHER, [one, two, three, four])
    with alpha.connect() as connection:
        pipeline.send_batch(Sender(connection, "replay refused"), notebook, "r", notebook.batch)
    assert bodies(ledger) == ["1", "4"]
    assert bodies(dead) == ["3"]
    assert notebook.of(SKIPPED) == {two.key, three.key}
    assert notebook.of(SENT) == {one.key, four.key}


def test_a_letter_that_is_refused_at_first_and_sent_by_a_repeated_run_is_noted_as_sent(
    alpha, manager
):
    small = manager.create_queue(f"private$\\q{next(NUMBERS)}", transactional=True, quota_kb=1)
    make_letters(small, "1", "2")
    one, two = letters_in(manager.queue(TRANSACTIONAL), small.properties().format_name)
    two = msgspec.structs.replace(two, changes={"text": "x" * 2000})
    notebook = Notebook(Method.TOGETHER, [one, two])

    def run(step: int) -> None:
        notebook.scissors = Scissors(step, after=False)
        with alpha.connect() as connection, contextlib.suppress(Cut):
            sender = CutSender(connection, "replay refused at first", notebook.scissors)
            pipeline.send_batch(sender, notebook, "r", notebook.batch)

    # Staged and noted, but not committed; then committed, but not noted.
    run(2)
    assert notebook.of(SKIPPED) == {two.key}
    small.change(quota_kb=1000)
    run(2)
    assert bodies(small) == ["1", "x" * 2000]
    assert notebook.of(SENT) == set()
    run(-1)
    assert notebook.of(SENT) == {one.key, two.key}
    assert len(bodies(small)) == 2


def test_two_runs_do_not_work_on_the_same_letters_at_a_time(alpha, manager):
    origin, target = (make_queue(manager, transactional=False) for _ in range(2))
    make_letters(origin, "1", "2")
    dead = manager.queue(PLAIN)
    notebook = Notebook(Method.ONE_BY_ONE, letters_in(dead, target.properties().format_name))
    with alpha.connect() as first, alpha.connect() as second:
        assert Sender(first, "replay").hold(notebook.letters[1:]) == notebook.letters[1:]
        with pytest.raises(QueueProblem, match="somebody else is receiving the dead letter"):
            pipeline.send_batch(Sender(second, "replay"), notebook, "r", notebook.batch)
    assert (bodies(target), notebook.notes) == ([], [])
    assert bodies(dead) == ["1", "2"]


# With Spark.


def clock() -> datetime:
    return datetime(2026, 1, 31, 8, tzinfo=UTC)


@pytest.mark.timeout(300)
def test_a_plan_is_shown_first_and_then_sent_once_with_all_that_was_done_noted(
    spark, alpha, manager, tmp_path
):
    ledger = make_queue(manager, transactional=True)
    plain = make_queue(manager, transactional=False)
    make_letters(ledger, "1", "2", label="booking")
    make_letters(ledger, "far", label="far")
    make_letters(plain, "3", label="note")
    make_letters(plain, "4", label="to the ledger")
    options = {"qm": alpha.qm}
    letters = pipeline.dead_letters(spark, options).persist()
    change = pipeline.setting(
        {
            "text": "if(label = 'booking', concat(text, '!'), text)",
            "destination": rf"""case label when 'far' then r'{NOWHERE}'
                when 'to the ledger' then r'{ledger.name}' else destination end""",
        }
    )
    audit = pipeline.AuditTable(spark, str(tmp_path / "audit"), "me", clock)
    plan = audit.begin("r1", pipeline.plan_replay(letters, options, transform=change))
    letters.unpersist()
    rows = {row["label"]: row for row in plan.collect()}
    assert {label: row["method"] for label, row in rows.items()} == {
        "booking": Method.TOGETHER.value,
        "far": Method.TOGETHER.value,
        "note": Method.ONE_BY_ONE.value,
        "to the ledger": Method.SENT_FIRST.value,
    }
    assert {row["reason"] for row in rows.values()} == {"NACK_QUEUE_PURGED"}
    assert all(0 <= row["age_s"] < 600 for row in rows.values())
    assert rows["booking"]["changed"] == ["text"]
    assert rows["note"]["changed"] == []
    assert rows["note"]["new_destination"] == rows["note"]["destination"]
    assert (bodies(ledger), bodies(plain)) == ([], [])
    with pytest.raises(BadOption, match="r1 has a plan already"):
        audit.begin("r1", plan)

    for _ in range(2):
        pipeline.replay(audit, options, "r1")
        assert bodies(ledger) == ["1!", "2!", "4"] or bodies(ledger) == ["4", "1!", "2!"]
        assert bodies(plain) == ["3"]
        assert manager.outgoing_queue(NOWHERE).message_count == 1
        assert bodies(manager.queue(PLAIN)) == bodies(manager.queue(TRANSACTIONAL)) == []
    assert {message.label for message in ledger.browse()} == {"booking", "to the ledger"}
    results = audit.results("r1").collect()
    assert [row["action"] for row in results] == [SENT] * 5
    assert {(row["who"], row["time"].astimezone(UTC)) for row in results} == {("me", clock())}
    table = spark.read.parquet(str(tmp_path / "audit")).select("run", "action").collect()
    assert {row["run"] for row in table} == {"r1"}
    counts = Counter(row["action"] for row in table)
    assert counts == {"planned": 5, SENDING: 2, SENT: 5}
    with pytest.raises(BadOption, match="r2 has no plan"):
        pipeline.replay(audit, options, "r2")


@pytest.mark.timeout(300)
def test_what_another_run_has_begun_or_what_has_no_way_is_not_planned(
    spark, alpha, manager, tmp_path
):
    ledger = make_queue(manager, transactional=True)
    gone = make_queue(manager, transactional=False)
    plain = make_queue(manager, transactional=False)
    make_letters(gone, "1", label="nowhere to go")
    make_letters(plain, "2", label="begun")
    make_letters(plain, "3", label="free")
    gone.delete()
    options = {"qm": alpha.qm}
    letters = pipeline.dead_letters(spark, options).persist()
    audit = pipeline.AuditTable(spark, str(tmp_path / "audit"), "me", clock)
    chosen = pipeline.select_dead_letters(letters, label_like="begun")
    audit.begin("r1", pipeline.plan_replay(chosen, options, to=ledger.name))
    (batch,) = audit.open_batches("r1", "ALPHA")
    audit.note("r1", batch.letters, SENDING)
    plan = pipeline.plan_replay(letters, options, taken=audit.unfinished())
    rows = {row["label"]: row for row in audit.begin("r2", plan).collect()}
    assert {label: row["action"] for label, row in rows.items()} == {
        "nowhere to go": SKIPPED,
        "begun": SKIPPED,
        "free": "planned",
    }
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in rows["nowhere to go"]["note"]
    assert rows["begun"]["note"].startswith("run r1 has begun to send it")
    pipeline.replay(audit, options, "r1")
    assert bodies(ledger) == ["2"]
    assert audit.unfinished().isEmpty()
    letters.unpersist()
    with pytest.raises(BadOption, match="makes several rows of one dead letter"):
        pipeline.plan_replay(letters, options, transform=lambda rows: rows.union(rows))
    with pytest.raises(BadOption, match="leaves out lookup_id"):
        pipeline.plan_replay(letters, options, transform=lambda rows: rows.drop("lookup_id"))


# The command.


@pytest.fixture
def command(
    spark: object, alpha: Computer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[str], str]]:
    """The command as a person runs it, in the session that the tests have anyway."""
    monkeypatch.setattr(replay_command, "spark_session", lambda *_: nullcontext(spark))
    monkeypatch.setenv("LOGNAME", "operator")

    def run(*arguments: str, code: int = 0) -> tuple[list[str], str]:
        line = ["--qm", alpha.qm, "pipeline", "replay", *arguments]
        result = CliRunner().invoke(app, line)
        assert result.exit_code == code, (result.stderr, result.exception)
        return result.stdout.splitlines(), result.stderr

    return run


@pytest.mark.timeout(300)
def test_the_command_plans_and_sends_exactly_what_it_has_planned(command, manager, tmp_path):
    queue = make_queue(manager, transactional=True)
    make_letters(queue, "1", "2", label="order")
    change = tmp_path / "change.py"
    change.write_text("def transform(letters):\n    return letters.where(\"text <> '2'\")\n")
    audit = str(tmp_path / "audit")
    planned, said = command(
        "--audit", audit, "--reason", "queue-purged", "--newer-than", "1h", "--destination",
        queue.name, "--transform", str(change), "--set", "application_tag=5", "--set",
        "label=upper(label)", "--json",
    )  # fmt: skip
    row = json.loads("".join(planned))
    assert (row["action"], row["label"]) == ("planned", "order")
    assert row["changed"] == ["label", "application_tag"]
    assert "1 message would be sent" in said
    assert bodies(queue) == []
    run = said.split("--run ")[1].split()[0]
    make_letters(queue, "3", label="later")
    sent, _ = command("--audit", audit, "--run", run, "--send", "--json")
    result = json.loads("".join(sent))
    assert (result["message_id"], result["action"]) == (row["message_id"], SENT)
    assert result["who"].startswith("operator@")
    (message,) = queue.browse()
    assert (message.body, message.label, message.application_tag) == ("1", "ORDER", 5)
    assert sorted(bodies(manager.queue(TRANSACTIONAL))) == ["2", "3"]
    again, said = command("--audit", audit, "--run", run, "--send")
    assert again == [f"run {run}: nothing sent again, 1 had been sent before"]
    assert "has a plan, which is followed" in said
    assert len(bodies(queue)) == 1
    _, said = command("--audit", audit, "--older-than", "1h")
    assert said == "no dead letters match\n"


def test_options_that_make_no_sense_are_refused_before_spark_starts():
    for options, problem in (
        (["--older-than", "soon"], "--older-than soon: write a time such as 90s"),
        (["--set", "label"], "--set label: write COLUMN=SQL"),
        (["--set", "age_s=1"], "option set: 'age_s' cannot be changed"),
        (["--reason", "late"], "option reason: 'late' is not one of"),
        (["--run", "a/b"], "option run: 'a/b': write 1 to 64"),
    ):
        result = CliRunner().invoke(app, ["pipeline", "replay", "--audit", "a", *options])
        assert result.exit_code == 2
        assert problem in result.stderr

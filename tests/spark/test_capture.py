"""Captures on Spark: the same as read one after the other, and what sessions show together."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from openmsmq.analysis.kinds import OF_BYTES, AnomalyKind
from openmsmq.analysis.transports import Ports
from openmsmq.cli.app import app
from openmsmq.cli.pipeline import capture as capture_command
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.spark.pipelines.capture.conversations import read_conversations
from openmsmq.spark.pipelines.capture.files import SEEN_ORDER, open_and_read
from openmsmq.spark.pipelines.capture.rows import batches
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.golden import golden_capture
from tests.spark.recorded import capture_file, talk, trouble
from tests.strategies.captures import frames_of
from tests.transfer.network import ALPHA, BETA

TROUBLE = trouble()
OVER_HTTP = golden_capture("http-and-multicast").read_bytes()
HERE, THERE = Guid(b"0123456789abcdef"), Guid(b"fedcba9876543210")
SEQUENCE = SequenceId(7, 1_600_000_000)


def place(number: int, previous: int) -> UserMessage:
    """Return a message with its place in a sequence."""
    return UserMessage(
        UserHeader(HERE, message_number=number, flags=user.RECOVERABLE),
        MessageProperties.of(b"body"),
        transaction=TransactionHeader(SEQUENCE, number, previous),
    )


def up_to(number: int, message_number: int) -> UserMessage:
    """Return an order acknowledgment."""
    return order_packet(
        OrderAck.up_to(SEQUENCE, number),
        source=THERE,
        to="10.0.0.1",
        message_number=message_number,
        sent_time_s=1_700_000_000,
        time_to_reach_queue_s=60,
    )


DISORDER = talk(
    ("client", place(1, 0)),
    ("client", place(2, 1)),
    ("server", up_to(2, 1)),
    ("client", place(6, 5)),
    ("client", place(7, 6)),
    ("server", up_to(1, 2)),
)
"""Messages 3 to 5 are not there, and an acknowledgment goes back."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rotated capture in five files, another capture, and a file that is none."""
    path = tmp_path_factory.mktemp("captures")
    edges = [0, 9, 14, 22, 35, len(TROUBLE.frames)]
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        part = capture_file(TROUBLE.frames[start:end])
        # Names do not say the order; times do.
        (path / f"rotated{9 - number}.pcapng").write_bytes(part)
    (path / "disorder.pcapng").write_bytes(DISORDER)
    # A message of a stream, and parts of one of multicast, are in two files.
    frames = [(frame.time_ns, frame.data) for frame in frames_of(OVER_HTTP)]
    for number, part in enumerate((frames[:9], frames[9:18], frames[18:])):
        (path / f"http{9 - number}.pcapng").write_bytes(capture_file(part))
    (path / "garbage.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a garbage")
    return path


@pytest.fixture(scope="module")
def decoded(spark: Any, folder: Path) -> Any:
    from openmsmq.spark.pipelines import capture

    return capture.decode(spark, capture.find_files([str(folder)])).persist()


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()


def test_files_in_parallel_give_what_they_give_one_after_the_other(decoded, folder):
    seen = [
        one for path in folder.iterdir() for one in open_and_read(str(path), str(path), Ports())
    ]
    seen.sort(key=lambda one: [getattr(one, name) for name in SEEN_ORDER])
    expected = pa.Table.from_batches(batches(read_conversations(seen, Ports()))).to_pylist()
    assert sorted(rows_of(decoded), key=repr) == sorted(expected, key=repr)


def test_the_packets_are_those_that_packet_decode_shows(decoded, tmp_path):
    from openmsmq.spark.pipelines import capture

    expected: Counter[tuple[str, str]] = Counter()
    for data in (TROUBLE.file, DISORDER, OVER_HTTP):
        (tmp_path / "whole.pcapng").write_bytes(data)
        arguments = ["packet", "decode", "--json", str(tmp_path / "whole.pcapng")]
        shown = map(json.loads, CliRunner().invoke(app, arguments).stdout.splitlines())
        expected.update((one["packet"], one["summary"]) for one in shown if "packet" in one)
    found = Counter(
        (row["packet"], row["explanation"]) for row in rows_of(capture.packets(decoded))
    )
    assert found == expected


def test_sessions_are_compared_with_each_other(decoded):
    from openmsmq.spark.pipelines import capture

    rows = sorted(rows_of(capture.sessions(decoded)), key=lambda row: row["start_time"])
    scene = [row for row in rows if row["client_address"] in (ALPHA, BETA)]
    assert [row["resent_messages"] for row in scene] == [0, 0, 8, 0, 0]
    lost, again = scene[1:3]
    assert lost["file"].endswith("rotated9.pcapng")
    assert lost["last_file"].endswith("rotated6.pcapng")
    assert again["round_trip_p50_ms"] == pytest.approx(499.99, abs=0.01)
    assert again["round_trip_p95_ms"] == pytest.approx(9_999.99, abs=0.01)
    assert scene[0]["round_trip_p50_ms"] is None


def test_anomalies_between_sessions_are_found(decoded):
    from openmsmq.spark.pipelines import capture

    counts = capture.anomaly_counts(capture.anomalies(decoded))
    assert [(one.severity, one.kind, one.count) for one in counts] == [
        ("error", "damaged-capture", 1),
        ("error", "order-ack-back", 1),
        ("error", "refused-connection", 1),
        ("error", "sequence-gap", 1),
        ("error", "silent-peer", 1),
        ("warning", "resent-message", 8),
        ("warning", "connection-reset", 1),
        ("warning", "refused-post", 1),
        ("warning", "rejected-message", 1),
        ("warning", "unacknowledged-message", 1),
        ("warning", "unfinished-handshake", 1),
    ]
    first = {one.kind: one.first for one in counts}
    assert first["sequence-gap"] == (
        f"message {{{HERE}}}\\6 is number 6 of sequence 0x5f5e100000000007 and follows 5, but the "
        "last one seen was 2"
    )
    assert first["order-ack-back"] == (
        "10.0.0.2 acknowledged sequence 0x5f5e100000000007 up to 1 after it had acknowledged it "
        "up to 2"
    )
    assert first["resent-message"].endswith(f"went from {ALPHA} to {BETA} again: copy 2")
    alpha = TROUBLE.computers[ALPHA].identifier
    assert first["unacknowledged-message"] == (
        f"message {{{alpha}}}\\11 from {ALPHA} to {BETA} was not acknowledged before its session "
        "ended"
    )


def test_packet_decode_finds_between_sessions_what_spark_finds(decoded, tmp_path):
    from openmsmq.spark.pipelines import capture

    expected: Counter[tuple[str, str]] = Counter()
    for data in (TROUBLE.file, DISORDER, OVER_HTTP):
        (tmp_path / "whole.pcapng").write_bytes(data)
        arguments = ["packet", "decode", "--json", str(tmp_path / "whole.pcapng")]
        shown = map(json.loads, CliRunner().invoke(app, arguments).stdout.splitlines())
        expected.update((one["anomaly"], one["problem"]) for one in shown if "anomaly" in one)
    found = Counter(
        (row["kind"], row["description"])
        for row in rows_of(capture.anomalies(decoded))
        if row["kind"] not in OF_BYTES and row["kind"] != AnomalyKind.DAMAGED_CAPTURE
    )
    assert len(found) > 10
    assert found == expected


def test_messages_over_http_and_by_multicast_are_rows_like_others(decoded):
    from openmsmq.spark.pipelines import capture

    rows = rows_of(capture.packets(decoded))
    posts = [row for row in rows if row["packet"] == "Post"]
    by_http = sorted(
        (row for row in posts if row["protocol"] == "HTTP"), key=lambda row: row["time"]
    )
    place = "http://10.97.7.2:8080/MSMQ/PRIVATE$/"
    assert [(row["destination"], row["fate"], row["label"]) for row in by_http[:3]] == [
        (f"{place}nothing", "refused", None),
        (f"{place}orders", "acknowledged", "order"),
        (f"{place}orders", "acknowledged", "order"),
    ]
    assert [row["sequence_number"] for row in by_http] == [None, 1, 2, 2]
    assert all(row["round_trip_ms"] > 0 for row in by_http[1:])
    by_multicast = [row for row in posts if row["protocol"] == "PGM"]
    assert [(row["label"], row["fate"], row["session"]) for row in by_multicast] == [
        ("price", None, None)
    ] * 2
    assert len({row["message_id"] for row in posts}) == 6
    sessions = [row for row in rows_of(capture.sessions(decoded)) if row["handshake"] == "http"]
    assert sorted((row["client_messages"], row["ending"]) for row in sessions) == [
        (1, "open"),
        (1, "open"),
        (2, "open"),
    ]


def test_few_packets_are_followed_here_as_tasks_follow_them(spark, decoded, folder):
    from openmsmq.spark.pipelines import capture

    here = capture.tables_here(spark, capture.find_files([str(folder)]), Ports())
    assert list(here) == ["packets", "sessions", "anomalies"]
    for name, table in here.items():
        there = getattr(capture, name)(decoded)
        assert table.schema == there.schema
        assert sorted(rows_of(table), key=repr) == sorted(rows_of(there), key=repr)


def test_few_and_many_packets_are_written_and_counted_alike(spark, folder, tmp_path):
    from openmsmq.spark.pipelines import capture

    files = capture.find_files([str(folder)])
    few, many = (
        capture.write_and_count(spark, files, Ports(), str(tmp_path / str(few)), few=few)
        for few in (True, False)
    )
    assert few == many
    assert few[0]["packets"] > 0
    for name, count in few[0].items():
        for written in ("True", "False"):
            assert spark.read.parquet(str(tmp_path / written / name)).count() == count


def test_files_that_spark_reads_itself_give_the_same(spark, decoded, folder):
    from openmsmq.spark.pipelines import capture

    by_spark = capture.decode(spark, [f"file://{folder}/*.pcapng"])

    def nameless(frame: Any) -> list[str]:
        found = rows_of(frame)
        for row in found:
            for part in filter(None, row.values()):
                for name in ("file", "last_file"):
                    part[name] = Path(part[name]).name if name in part else None
        return sorted(map(repr, found))

    assert nameless(by_spark) == nameless(decoded)


@pytest.fixture
def command(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command as a person runs it, in the session that the tests have anyway."""
    monkeypatch.setattr(capture_command, "spark_session", lambda *_, **__: nullcontext(spark))

    def run(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["pipeline", "capture", *arguments])
        assert result.exit_code == code, (result.stderr, result.exception)
        return result

    return run


def test_the_command_writes_tables_and_says_what_it_found(command, folder, tmp_path, spark):
    output = tmp_path / "out"
    arguments = (str(folder), "--output", str(output))
    objects = [json.loads(line) for line in command(*arguments, "--json").stdout.splitlines()]
    assert objects[:3] == [
        {"table": name, "rows": rows, "path": str(output / name)}
        for name, rows in (("packets", 71), ("sessions", 9), ("anomalies", 18))
    ]
    assert objects[3] == {
        "anomaly": "damaged-capture",
        "severity": "error",
        "count": 1,
        "file": str(folder / "garbage.pcapng"),
        "first": "the capture is damaged at byte 8: byte-order mark 62 61 67 65",
    }
    assert len(objects) == 3 + 11
    for name in ("packets", "sessions", "anomalies"):
        assert spark.read.parquet(str(output / name)).count() > 0
    # Before anything is read, it is said what is wrong.
    assert command(*arguments, code=2).stderr == (
        f"openmsmq: --output {output} is there already: name a directory that is new or empty.\n"
    )
    absent = str(tmp_path / "*.pcap")
    assert command(absent, "--output", str(tmp_path / "other"), code=2).stderr == (
        f"openmsmq: there is no capture {absent}: name files, directories or patterns.\n"
    )


def test_the_command_shows_tables_to_people(command, folder, tmp_path):
    file, output = str(folder / "disorder.pcapng"), str(tmp_path / "out")
    lines = command(file, "--output", output, "--tcp-port", "1801").stdout.splitlines()
    assert lines[:5] == [
        "Table      Rows  Where",
        f"packets       6  {output}/packets",
        f"sessions      1  {output}/sessions",
        f"anomalies     2  {output}/anomalies",
        "",
    ]
    assert lines[5].split() == ["Anomaly", "Severity", "Count", "The", "first", "of", "them"]
    assert lines[6].startswith("order-ack-back  error         1  disorder.pcapng: 10.0.0.2 ack")


def test_it_is_said_when_nothing_is_wrong(capsys):
    capture_command.show("out", {"packets": 2, "sessions": 1, "anomalies": 0}, [])
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing is wrong."

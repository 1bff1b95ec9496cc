"""packet decode, Spark's captures and the simulator's watch understand a conversation alike."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from openmsmq.analysis.events import DatagramItem, Event, Moment, PacketItem
from openmsmq.analysis.kinds import OF_BYTES, AnomalyKind, Severity, severity
from openmsmq.analysis.traffic import Traffic, follow
from openmsmq.capture.link_layers import TcpSegment, UdpDatagram, read_ip, read_transport
from openmsmq.cli.app import app
from openmsmq.model.identity import Guid
from openmsmq.sim.checks.wire_watch import Flow, WireWatch, join
from openmsmq.sim.runner import make_world
from openmsmq.sim.scenarios.scenario import Options
from openmsmq.sim.violation import Violation
from openmsmq.wire import packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    UserMessage,
)
from tests.spark.recorded import talk, trouble
from tests.strategies.captures import frames_of

TROUBLE = trouble()
"""All that two queue managers said to each other while much went wrong."""


def shown_by_command(file: bytes, tmp_path: Path) -> list[dict[str, Any]]:
    """Return what `openmsmq packet decode` shows of a capture."""
    path = tmp_path / "traffic.pcapng"
    path.write_bytes(file)
    result = CliRunner().invoke(app, ["packet", "decode", "--json", str(path)])
    assert result.exit_code in (0, 1), result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows_of(file: bytes) -> list[Any]:
    """Return the rows of Spark's pipeline, without Spark."""
    pytest.importorskip("pyarrow")
    from openmsmq.spark.pipelines.capture.conversations import read_conversations
    from openmsmq.spark.pipelines.capture.files import Ports, read_file

    seen = read_file("x", io.BytesIO(file).read, Ports())
    ordered = sorted(seen, key=lambda one: (one.conversation, one.frame))
    return list(read_conversations(ordered, Ports()))


def watched(file: bytes) -> WireWatch:
    """Let the simulator's watch read a capture as if its own nodes had spoken."""
    world = make_world(0, Options(managers=2, faults=False))
    flows: dict[tuple[int, Any], Flow] = {}
    for event in follow(frames_of(file)):
        if isinstance(event, PacketItem):
            connection = event.connection
            if (connection.number, connection.client) not in flows:
                pair = [Flow(node) for node in world.nodes]
                join(*pair)
                flows[connection.number, connection.client] = pair[0]
                flows[connection.number, connection.server] = pair[1]
            world.books.wire.leaves(flows[connection.number, event.source], event.data)
    return world.books.wire


def test_what_two_queue_managers_said_is_read_alike_by_all(tmp_path):
    shown = shown_by_command(TROUBLE.file, tmp_path)
    rows = [row for row in rows_of(TROUBLE.file) if hasattr(row, "packet")]
    of_sessions = [row for row in rows if row.protocol == "TCP"]
    assert len(of_sessions) > 30
    assert Counter((one["packet"], one["summary"]) for one in shown if "packet" in one) == Counter(
        (row.packet, row.explanation) for row in rows
    )
    assert watched(TROUBLE.file).packet_count == len(of_sessions)


def test_what_is_wrong_in_sessions_is_told_alike(tmp_path):
    shown = Counter(
        (one["anomaly"], one["problem"])
        for one in shown_by_command(TROUBLE.file, tmp_path)
        if "anomaly" in one and one["anomaly"] not in ACROSS
    )
    rows = [row for row in rows_of(TROUBLE.file) if hasattr(row, "kind")]
    assert shown == Counter((row.kind, row.description) for row in rows)
    assert len(shown) == 5


ACROSS = {
    AnomalyKind.RESENT_MESSAGE,
    AnomalyKind.UNACKNOWLEDGED_MESSAGE,
    AnomalyKind.SEQUENCE_GAP,
    AnomalyKind.ORDER_ACK_BACK,
}
"""What Spark finds in its tables: `tests/spark/test_capture.py` compares these."""


def message(number: int = 1) -> UserMessage:
    header = UserHeader(Guid(b"0123456789abcdef"), message_number=number, flags=user.RECOVERABLE)
    return UserMessage(header, MessageProperties.of(b"body"))


ASK = EstablishConnection(EstablishHeader(Guid(b"0123456789abcdef")))
SETTLE = ConnectionParameters(ParametersHeader(500, 20_000, 64))
OPENING = [("client", ASK), ("server", ASK), ("client", SETTLE), ("server", SETTLE)]
SENT_9 = SessionAck(SessionHeader(sent_count=9))
BROKEN = packets.encode(message())
BROKEN = BROKEN[:62] + bytes(1) + BROKEN[63:]


@pytest.mark.parametrize(
    ("steps", "kind", "violation"),
    [
        (
            [("client", message()), ("server", SessionAck(SessionHeader(2)))],
            AnomalyKind.BAD_ACKNOWLEDGMENT,
            "BRAVO is no honest peer: .* acknowledged more messages",
        ),
        (
            [("server", SessionAck(SessionHeader(0, stored_base=1, stored_bits=1)))],
            AnomalyKind.BAD_ACKNOWLEDGMENT,
            "BRAVO is no honest peer: .* acknowledged more messages",
        ),
        (
            [("client", message()), ("client", SENT_9)],
            AnomalyKind.COUNT_MISMATCH,
            "ALPHA is no honest peer: .* says to have sent 9 messages",
        ),
        ([("client", BROKEN)], AnomalyKind.MALFORMED_PACKET, "ALPHA sent bytes that nobody can"),
        (
            [("client", b"GET / HTTP/1.1\r\n\r\n"), ("close", 0)],
            AnomalyKind.STRAY_BYTES,
            "",
        ),
    ],
)
def test_an_anomaly_is_noticed_by_all(steps, kind, violation, tmp_path):
    file = talk(*OPENING, *steps)
    assert kind in [row.kind for row in rows_of(file) if hasattr(row, "kind")]
    shown = shown_by_command(file, tmp_path)
    if kind in (AnomalyKind.MALFORMED_PACKET, AnomalyKind.STRAY_BYTES):
        assert [one for one in shown if "problem" in one]
    else:
        assert kind in [one.get("anomaly") for one in shown]
    if violation:
        with pytest.raises(Violation, match=violation):
            watched(file)


# However the bytes come, the conversation is the same.

SAID = [read_transport(read_ip(packet)) for _, packet in TROUBLE.frames]


def placeless(events: list[Event]) -> list[Any]:
    """Return events without the numbers of frames, which depend on how bytes were cut."""
    kept = []
    for event in events:
        if isinstance(event, PacketItem | DatagramItem):
            kept.append((event.source, event.data))
        elif hasattr(event, "kind"):
            kept.append((event.kind, event.description, event.time_ns, event.message_id))
        elif hasattr(event, "fate"):
            kept.append((event.fate, event.sent_ns, event.acknowledged_ns))
        else:
            kept.append((event.handshake, event.ending, event.client, event.server))
    return kept


def read(transports: list[tuple[TcpSegment | UdpDatagram, int]]) -> list[Any]:
    traffic = Traffic()
    events = [
        event
        for frame, (transport, time_ns) in enumerate(transports, 1)
        for event in traffic.add(transport, Moment(frame, time_ns))
    ]
    return placeless(events + traffic.finish())


WHOLE = read([(one, time_ns) for one, (time_ns, _) in zip(SAID, TROUBLE.frames, strict=True)])


@settings(max_examples=30)
@given(st.data())
def test_any_cut_of_the_same_bytes_gives_the_same_events(data):
    pieces = []
    for one, (time_ns, _) in zip(SAID, TROUBLE.frames, strict=True):
        size = len(one.payload)
        if isinstance(one, UdpDatagram) or size < 2:
            pieces.append((one, time_ns))
            continue
        cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=3)))
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            part = TcpSegment(
                one.source,
                one.destination,
                (one.sequence + start) % 2**32,
                one.flags,
                one.payload[start:end],
            )
            pieces.append((part, time_ns))
    assert read(pieces) == WHOLE


def test_the_words_for_bytes_are_about_the_capture():
    assert all(severity(kind) is not Severity.ERROR for kind in OF_BYTES)

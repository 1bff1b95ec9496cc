"""Captures become rows: the same whichever files have the frames, and whatever is in them."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.analysis import kinds
from openmsmq.analysis.events import DatagramItem, PacketItem
from openmsmq.analysis.kinds import AnomalyKind, Fate, Handshake, Severity, severity
from openmsmq.analysis.transports import Ports
from openmsmq.capture.link_layers import ACK, FIN, RST, SYN
from openmsmq.capture.recorder import tcp_packet, udp_packet
from openmsmq.model.identity import Guid
from openmsmq.spark.errors import SparkSideError
from openmsmq.spark.pipelines.capture.conversations import read_conversations
from openmsmq.spark.pipelines.capture.files import (
    BATCH_BYTES_MAX,
    SEEN_ORDER,
    Seen,
    open_and_read,
    read_file,
    seen_batches,
    seen_in,
)
from openmsmq.spark.pipelines.capture.names import find_files
from openmsmq.spark.pipelines.capture.rows import (
    ANOMALIES,
    PACKETS,
    SESSION_COLUMNS_ACROSS,
    SESSIONS,
    AnomalyRow,
    PacketRow,
    Row,
    SessionRow,
    batches,
)
from openmsmq.wire import packets
from openmsmq.wire.datagrams import PingPacket
from openmsmq.wire.headers import internal, user
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
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
from tests.spark.recorded import (
    CLIENT,
    SECOND_NS,
    SERVER,
    START_NS,
    capture_file,
    endpoint,
    talk,
    trouble,
)
from tests.strategies.captures import FILES, TimedFrame, fragments, frames_of, recordings, said_in
from tests.transfer.network import ALPHA, BETA, START_S

PING_PORT = endpoint("10.0.0.2", 3527)
TROUBLE = trouble()
ALPHA_ID = str(TROUBLE.computers[ALPHA].identifier)


def rows_of(*files: bytes) -> list[Row]:
    """Read files one after the other, without Spark."""
    seen = [
        one
        for number, data in enumerate(files, 1)
        for one in read_file(f"{number}.pcapng", io.BytesIO(data).read, Ports())
    ]
    seen.sort(key=lambda one: [getattr(one, name) for name in SEEN_ORDER])
    (back,) = [list(seen_in(seen_batches(seen)))]
    assert back == seen
    rows = list(read_conversations(back, Ports()))
    # Whatever the rows say, the tables can hold it.
    assert sum(batch.num_rows for batch in batches(rows, rows_max=7)) == len(rows)
    return rows


def of_kind(rows: Iterable[Row], kind: type[Any]) -> list[Any]:
    return [row for row in rows if isinstance(row, kind)]


def anomalies_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    return sorted((row.kind, row.description) for row in of_kind(rows, AnomalyRow))


def kinds_of(rows: Iterable[Row]) -> Counter[str]:
    return Counter(row.kind for row in of_kind(rows, AnomalyRow))


def placeless(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows without what says which file had them, in an order that does not depend on it."""
    known = [msgspec.structs.asdict(row) for row in rows]
    for row in known:
        for name in ("file", "last_file", "frame"):
            row.pop(name, None)
    return sorted(known, key=repr)


def frames_at(*steps: tuple[float, bytes]) -> bytes:
    """Return a capture of IP packets at seconds from its start."""
    return capture_file([(START_NS + int(at * SECOND_NS), packet) for at, packet in steps])


# The same as the scalar reader.


@settings(max_examples=60)
@given(recordings())
def test_the_packets_of_any_capture_are_those_that_packet_decode_shows(recording):
    expected = [
        (item.frame, str(item.source), str(item.destination), len(item.data), item_offset(item))
        for item in said_in(frames_of(recording.file))
    ]
    found = [
        (
            row.frame,
            f"{bracketed(row.source_address)}:{row.source_port}",
            f"{bracketed(row.destination_address)}:{row.destination_port}",
            row.size_bytes,
            row.stream_offset,
        )
        for row in of_kind(rows_of(recording.file), PacketRow)
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def item_offset(item: PacketItem | DatagramItem) -> int | None:
    return item.offset if isinstance(item, PacketItem) else None


def bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_capture_gives_rows_and_says_what_is_wrong(data):
    file = bytearray(TROUBLE.file)
    for _ in range(data.draw(st.integers(1, 6))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    del file[data.draw(st.integers(len(file) // 2, len(file))) :]
    rows = rows_of(bytes(file))
    assert all(row.kind in set(AnomalyKind) for row in of_kind(rows, AnomalyRow))
    assert all(row.severity == severity(AnomalyKind(row.kind)) for row in of_kind(rows, AnomalyRow))


# Files.


@settings(max_examples=40)
@given(st.sets(st.integers(1, len(TROUBLE.frames) - 1), max_size=4))
def test_it_does_not_matter_where_a_capture_was_rotated(cuts):
    edges = [0, *sorted(cuts), len(TROUBLE.frames)]
    parts = [capture_file(TROUBLE.frames[start:end]) for start, end in itertools.pairwise(edges)]
    assert placeless(rows_of(*reversed(parts))) == placeless(rows_of(TROUBLE.file))


def test_a_packet_that_lies_in_two_files_belongs_to_the_second():
    message = packets.encode(UserMessage(UserHeader(Guid(16)), MessageProperties.of(bytes(2_000))))
    first = frames_at(
        (0, tcp_packet(CLIENT, SERVER, 99, SYN)),
        (1, tcp_packet(CLIENT, SERVER, 100, ACK, message[:1_400])),
    )
    second = frames_at((2, tcp_packet(CLIENT, SERVER, 1_500, ACK, message[1_400:])))
    rows = rows_of(first, second)
    (row,) = of_kind(rows, PacketRow)
    assert (row.file, row.frame, row.size_bytes) == ("2.pcapng", 1, len(message))
    (summary,) = of_kind(rows, SessionRow)
    assert (summary.file, summary.last_file) == ("1.pcapng", "2.pcapng")
    assert summary.duration_s == 2
    # Each file alone has only a part of it.
    assert kinds_of(rows_of(first)) == {AnomalyKind.CUT_PACKET: 1}
    assert kinds_of(rows_of(second)) == {AnomalyKind.CUT_PACKET: 1}


def test_what_was_captured_at_both_ends_counts_once():
    skewed = capture_file([(at + 3_000, data) for at, data in TROUBLE.frames])
    once, twice = (
        [row for row in rows if not (isinstance(row, PacketRow) and row.protocol == "UDP")]
        for rows in (rows_of(TROUBLE.file), rows_of(TROUBLE.file, skewed))
    )
    assert [type(row) for row in twice] == [type(row) for row in once]
    assert kinds_of(twice) == kinds_of(once)
    assert placeless(of_kind(twice, PacketRow)) == placeless(of_kind(once, PacketRow))


def test_a_file_that_is_no_capture_does_not_hide_the_others(tmp_path):
    rows = rows_of(TROUBLE.file, b"garbage", b"")
    assert len(of_kind(rows, PacketRow)) == len(of_kind(rows_of(TROUBLE.file), PacketRow))
    bad = [row for row in of_kind(rows, AnomalyRow) if row.kind == AnomalyKind.UNREADABLE_FILE]
    assert sorted((row.file, row.frame, row.time, row.description) for row in bad) == [
        ("2.pcapng", None, None, "it starts with 67 61 72 62, neither pcapng nor pcap"),
        ("3.pcapng", None, None, "it starts with nothing, neither pcapng nor pcap"),
    ]
    (seen,) = open_and_read("absent.pcap", str(tmp_path / "absent.pcap"), Ports())
    assert seen.trouble == AnomalyKind.UNREADABLE_FILE
    assert seen.problem == "the file cannot be read: no such file or directory"
    (seen,) = open_and_read("a directory", str(tmp_path), Ports())
    assert seen.problem == "the file cannot be read: is a directory"
    (seen,) = open_and_read("\udcff.pcap", str(tmp_path / "absent.pcap"), Ports())
    assert seen.file == "\\udcff.pcap"


def test_a_disk_that_fails_ends_the_file_and_not_the_job():
    source = io.BytesIO(TROUBLE.file)

    def read(size: int) -> bytes:
        if source.tell() > 5_000:
            raise OSError(5, "Input/output error")
        return source.read(size)

    seen = list(read_file("x", read, Ports()))
    assert len(seen) > 10
    assert (seen[-1].trouble, seen[-1].problem) == (
        AnomalyKind.UNREADABLE_FILE,
        "the file cannot be read: input/output error",
    )


def test_batches_of_large_segments_are_small():
    size = BATCH_BYTES_MAX // 2 + 1
    seen = Seen(b"", "", 0, 0, 0, 6, b"", 0, b"", 0, payload=bytes(size))
    assert [batch.num_rows for batch in seen_batches([seen] * 5)] == [2, 2, 1]


def test_a_file_that_ends_early_and_one_that_is_damaged_are_told_apart():
    whole = frames_at((0, tcp_packet(CLIENT, SERVER, 99, SYN)), (1, b""))
    assert kinds_of(rows_of(whole[:-5]))[AnomalyKind.TRUNCATED_CAPTURE] == 1
    damaged = whole[:-4] + b"\xff" * 4 + bytes(40)
    assert kinds_of(rows_of(damaged))[AnomalyKind.DAMAGED_CAPTURE] == 1


def test_frames_that_were_cut_or_cannot_be_read_are_said_once_for_the_file():
    data = packets.encode(SessionAck(SessionHeader()))
    udp = udp_packet(CLIENT, PING_PORT, bytes(64))
    file = frames_at(
        (0, tcp_packet(CLIENT, SERVER, 100, ACK, data)[:-3]),
        (1, tcp_packet(CLIENT, SERVER, 200, ACK, data)[:-3]),
        (2, b"\x45" * 10),
        (3, fragments(udp, 7, 16)[0]),
        (4, udp[:-3]),
    )
    found = [text for kind, text in anomalies_of(rows_of(file)) if kind != AnomalyKind.CUT_PACKET]
    assert found == [
        "from 10.0.0.1: 67 bytes are missing in the capture",
        "from 10.0.0.1: the capture left out the last 3 bytes of a datagram",
        "the capture left out the ends of 3 frames: capture whole frames (snap length 0)",
        "1 fragmented IP packets are not whole",
        "1 frames cannot be read; the first is frame 3: an IPv4 header of 10 bytes; 20 needed",
    ]


def test_times_that_no_calendar_has_are_left_out():
    packet = tcp_packet(CLIENT, SERVER, 0, ACK, packets.encode(SessionAck(SessionHeader())))
    (row,) = of_kind(rows_of(capture_file([(1 << 63, packet)])), PacketRow)
    assert row.time is None
    (row,) = of_kind(rows_of(capture_file([(0, packet)])), PacketRow)
    assert row.time is None


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_format_of_captures_is_read(name):
    frames = [TimedFrame(101, at, packet) for at, packet in TROUBLE.frames]
    found = [(row.packet, row.frame) for row in of_kind(rows_of(FILES[name](frames)), PacketRow)]
    assert found == [(row.packet, row.frame) for row in of_kind(rows_of(TROUBLE.file), PacketRow)]


def test_names_of_files_directories_and_patterns_are_found(tmp_path):
    for name in ("a.pcapng", "b.pcap", "b.pcap1", "c.CAP", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "d.pcap").mkdir()
    found = [str(tmp_path / name) for name in ("a.pcapng", "b.pcap", "b.pcap1", "c.CAP")]
    assert find_files([str(tmp_path)]) == found
    assert find_files([str(tmp_path / "b*"), found[1], "s3a://x/y"]) == [*found[1:3], "s3a://x/y"]
    assert find_files([str(tmp_path / "notes.txt")]) == [str(tmp_path / "notes.txt")]
    with pytest.raises(SparkSideError, match=r"there is no capture .*/\*\.pcapng2: name files"):
        find_files([str(tmp_path / "*.pcapng2")])


# Sessions.


def test_a_scene_of_loss_and_resend_is_told_as_it_was():
    rows = rows_of(TROUBLE.file)
    told = [
        (
            row.client_address,
            row.handshake,
            row.ending,
            (row.client_messages, row.server_messages),
            row.unacknowledged_messages,
            (row.order_acks, row.final_acks),
        )
        for row in sorted(of_kind(rows, SessionRow), key=lambda row: row.start_time)
    ]
    assert told == [
        (ALPHA, "none", "refused", (0, 0), 0, (0, 0)),
        (ALPHA, "complete", "reset", (10, 2), 8, (1, 1)),
        (BETA, "complete", "closed", (2, 9), 1, (2, 0)),
        (ALPHA, "unfinished", "closed", (0, 0), 0, (0, 0)),
        (ALPHA, "unfinished", "open", (0, 0), 0, (0, 0)),
    ]
    assert [text for _, text in anomalies_of(rows)] == [
        "the connection was reset",
        "127.0.0.3:1801 refused 127.0.0.2:50001 a connection",
        f"127.0.0.3 says of message {{{ALPHA_ID}}}\\2: NACK_ACCESS_DENIED",
        "127.0.0.3 was silent for 40 s, so 127.0.0.2 ended the connection; messages that waited "
        "for an acknowledgment: 1",
        "the connection ended before a session was open",
    ]
    fates = Counter(row.fate for row in of_kind(rows, PacketRow) if row.message_id is not None)
    assert fates == {Fate.ACKNOWLEDGED: 14, Fate.UNACKNOWLEDGED: 9}
    pings = [row for row in of_kind(rows, PacketRow) if row.protocol == "UDP"]
    ask, _, answer = sorted(pings, key=lambda row: row.frame)
    assert (ask.packet, ask.session, answer.explanation) == (
        "PingPacket",
        None,
        f"cookie 2, from {TROUBLE.computers[BETA].identifier}",
    )


def test_a_message_has_the_columns_that_it_has_in_a_queue():
    found = of_kind(rows_of(TROUBLE.file), PacketRow)
    (message,) = (row for row in found if row.frame == 21)
    assert message.message_id == f"{{{ALPHA_ID}}}\\7"
    assert (message.source_qm, message.message_class_name) == (ALPHA_ID, "NORMAL")
    assert message.destination == r"DIRECT=TCP:127.0.0.3\PRIVATE$\ledger"
    assert (message.recoverable, message.transactional, message.priority) == (True, True, 0)
    assert (message.sequence_number, message.previous_number) == (1, 0)
    assert message.body_size_bytes == 1_000
    assert message.sent_time == (START_S + 66) * 1_000_000
    (final,) = (row for row in found if row.packet == "FinalAck")
    assert final.acknowledged_message_id == f"{{{ALPHA_ID}}}\\2"


def test_a_session_that_was_open_before_the_capture_is_understood_from_the_middle():
    frames = [frame for frame in TROUBLE.frames if frame[0] > (START_S + 17) * SECOND_NS]
    rows = rows_of(capture_file(frames))
    first = min(of_kind(rows, SessionRow), key=lambda row: row.start_time)
    assert (first.handshake, first.client_address, first.unacknowledged_messages) == (
        Handshake.NOT_CAPTURED,
        ALPHA,
        8,
    )
    assert AnomalyKind.COUNT_MISMATCH not in kinds_of(rows)
    assert AnomalyKind.BAD_ACKNOWLEDGMENT not in kinds_of(rows)


@pytest.mark.parametrize(
    ("lost", "unknown"),
    [
        # No header followed, which would have told how many messages were lost.
        (21, Fate.UNKNOWN),
        (35, Fate.ACKNOWLEDGED),
    ],
)
def test_a_frame_that_the_capture_has_lost_does_not_confuse_what_follows(lost, unknown):
    """Messages behind the gap are numbered by the next header, and acknowledged as they were."""
    whole = {(row.session, row.message_id): row for row in messages_of(TROUBLE.frames)}
    frames = TROUBLE.frames[: lost - 1] + TROUBLE.frames[lost:]
    kinds = kinds_of(rows_of(capture_file(frames)))
    assert kinds[AnomalyKind.MISSING_BYTES] == 1
    assert AnomalyKind.COUNT_MISMATCH not in kinds
    assert AnomalyKind.BAD_ACKNOWLEDGMENT not in kinds
    found = {(row.session, row.message_id): row for row in messages_of(frames)}
    assert len(whole) - 2 <= len(found) < len(whole)
    for key, row in found.items():
        assert row.fate in (whole[key].fate, unknown)
        assert row.acknowledged_time in (whole[key].acknowledged_time, None)


def messages_of(frames: list[tuple[int, bytes]]) -> list[PacketRow]:
    rows = of_kind(rows_of(capture_file(frames)), PacketRow)
    return [row for row in rows if row.message_id is not None]


def message(number: int = 1, *, recoverable: bool = True) -> UserMessage:
    flags = user.RECOVERABLE if recoverable else 0
    return UserMessage(
        UserHeader(Guid(b"0123456789abcdef"), message_number=number, flags=flags),
        MessageProperties.of(b"body"),
    )


ASK = EstablishConnection(EstablishHeader(Guid(b"0123456789abcdef")))
SETTLE = ConnectionParameters(ParametersHeader(500, 20_000, 64))
REFUSE = EstablishConnection(EstablishHeader(Guid(16)), InternalHeader(internal.REFUSED))
OPENING = [("client", ASK), ("server", ASK), ("client", SETTLE), ("server", SETTLE)]
COUNT_2 = SessionAck(SessionHeader(sent_count=2, recoverable_sent_count=2))
# No properties header is announced, which every message has.
BROKEN = packets.encode(message())
BROKEN = BROKEN[:62] + bytes(1) + BROKEN[63:]
ACK_1 = SessionAck(SessionHeader(1, stored_base=1, stored_bits=1))


@pytest.mark.parametrize(
    ("steps", "handshake", "expected"),
    [
        ([*OPENING, ("client", message()), ("server", ACK_1), ("close", 0)], "complete", {}),
        ([("client", ASK), ("server", REFUSE), ("close", 0)], "refused", {"refused-connection": 1}),
        ([("client", ASK), ("close", 0)], "unfinished", {"unfinished-handshake": 1}),
        ([("close", 0)], "none", {"unfinished-handshake": 1}),
        (
            [("client", b"GET / HTTP/1.1\r\n\r\n"), ("close", 0)],
            "none",
            {"stray-bytes": 1, "unfinished-handshake": 1},
        ),
        (
            [*OPENING, ("client", packets.encode(message())[:60] + bytes(80)), ("close", 0)],
            "complete",
            {"malformed-packet": 1, "stray-bytes": 1},
        ),
        (
            [*OPENING, ("client", BROKEN), ("client", message(2)), ("client", COUNT_2)],
            "complete",
            {"malformed-packet": 1},
        ),
        (
            [*OPENING, ("client", message()), ("server", SessionAck(SessionHeader(2)))],
            "complete",
            {"bad-acknowledgment": 1},
        ),
        (
            [*OPENING, ("client", message()), ("client", SessionAck(SessionHeader(sent_count=9)))],
            "complete",
            {"count-mismatch": 1},
        ),
    ],
)
def test_what_goes_wrong_in_a_session_is_said(steps, handshake, expected):
    rows = rows_of(talk(*steps))
    (summary,) = of_kind(rows, SessionRow)
    assert summary.handshake == handshake
    assert kinds_of(rows) == expected


def test_a_connection_that_nobody_answers_is_said():
    rows = rows_of(frames_at((0, tcp_packet(CLIENT, SERVER, 7, SYN))))
    assert kinds_of(rows) == {AnomalyKind.UNANSWERED_CONNECTION: 1}
    # When only one direction was captured, that is no proof.
    ack = packets.encode(ACK_1)
    one_way = [
        (0, tcp_packet(CLIENT, SERVER, 7, SYN)),
        (1, tcp_packet(CLIENT, SERVER, 8, ACK, ack)),
    ]
    assert kinds_of(rows_of(frames_at(*one_way))) == {}


def test_a_ping_that_is_answered_with_a_refusal_is_said():
    ping = PingPacket(Guid(16), 1)
    rows = rows_of(
        frames_at(
            (0, udp_packet(CLIENT, PING_PORT, ping.encode())),
            (1, udp_packet(PING_PORT, CLIENT, ping.answer(Guid(16), refuse=True).encode())),
            (2, udp_packet(CLIENT, PING_PORT, b"garbage")),
        )
    )
    assert kinds_of(rows) == {AnomalyKind.REFUSED_CONNECTION: 1, AnomalyKind.MALFORMED_PACKET: 1}


def test_ports_that_are_used_again_begin_another_session():
    ack = packets.encode(ACK_1)
    first = [
        (0, tcp_packet(CLIENT, SERVER, 0, SYN)),
        (1, tcp_packet(CLIENT, SERVER, 1, ACK, ack)),
        (2, tcp_packet(CLIENT, SERVER, 1 + len(ack), FIN | ACK)),
        (3, tcp_packet(SERVER, CLIENT, 0, RST)),
    ]
    again = [(at + 10, packet) for at, packet in first]
    third = [
        (20, tcp_packet(CLIENT, SERVER, 777, SYN)),
        (21, tcp_packet(CLIENT, SERVER, 778, ACK, ack)),
        (22, tcp_packet(CLIENT, SERVER, 9_000, SYN)),
        (23, tcp_packet(CLIENT, SERVER, 9_001, ACK, ack)),
    ]
    later = [(30, tcp_packet(CLIENT, SERVER, 1 << 31, ACK, ack))]
    rows = rows_of(frames_at(*first, *again, *third, *later))
    told = [(row.session[-2:], row.handshake, row.ending) for row in of_kind(rows, SessionRow)]
    assert told == [
        ("#1", "unfinished", "closed"),
        ("#2", "unfinished", "closed"),
        ("#3", "unfinished", "replaced"),
        ("#4", "unfinished", "replaced"),
        ("#5", "not captured", "open"),
    ]
    of_packets = [row.session[-2:] for row in of_kind(rows, PacketRow)]
    assert of_packets == ["#1", "#2", "#3", "#4", "#5"]


def test_a_capture_that_begins_inside_a_packet_is_nothing_to_worry_about():
    ack = packets.encode(ACK_1)
    rows = rows_of(
        frames_at(
            (0, tcp_packet(CLIENT, SERVER, 500, ACK, ack[10:] + ack)),
            (1, tcp_packet(SERVER, CLIENT, 900, ACK, ack)),
        )
    )
    assert len(of_kind(rows, PacketRow)) == 2
    assert {severity(AnomalyKind(kind)) for kind in kinds_of(rows)} == {Severity.INFO}


def test_who_is_the_client_is_known_from_the_middle_by_the_port_of_queue_managers():
    ack = packets.encode(ACK_1)
    file = frames_at(
        (0, tcp_packet(SERVER, CLIENT, 900, ACK, ack)),
        (1, tcp_packet(CLIENT, SERVER, 0, SYN)),
        (2, tcp_packet(SERVER, CLIENT, 0, SYN | ACK)),
    )
    told = [
        (row.client_port, row.handshake, row.ending) for row in of_kind(rows_of(file), SessionRow)
    ]
    assert told == [(50_000, "not captured", "replaced"), (50_000, "none", "open")]


# Words and columns.


def test_the_rows_have_the_columns_of_the_tables():
    for columns, kind in ((PACKETS, PacketRow), (SESSIONS, SessionRow), (ANOMALIES, AnomalyRow)):
        names = [column.name for column in columns if column.name not in SESSION_COLUMNS_ACROSS]
        assert names == list(kind.__struct_fields__)
        assert all(column.meaning.endswith(".") for column in columns)


def test_the_table_of_anomalies_has_every_kind_and_its_severity():
    table = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| .+ \|$", kinds.__doc__, re.MULTILINE)
    assert table == [(kind.value, severity(kind).value) for kind in AnomalyKind]


def test_the_guide_has_the_same_table_of_anomalies():
    guide = Path(__file__).parents[2] / "docs/guides/analyse-captures.md"
    rows = re.findall(r"^\| `.+\|$", kinds.__doc__, re.MULTILINE)
    assert "\n".join(rows) in guide.read_text(encoding="utf-8")

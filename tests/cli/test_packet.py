"""`openmsmq packet decode` shows what it is given, or says in one sentence why it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from openmsmq import __version__
from openmsmq.capture.link_layers import ACK
from openmsmq.capture.pcapng import frame_block
from openmsmq.capture.recorder import Recorder, tcp_packet
from openmsmq.cli import app as app_module
from openmsmq.cli.app import app
from openmsmq.model.identity import Guid
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.golden import golden, golden_capture
from tests.strategies.captures import endpoint

PING = golden("mqqb-4.1-frame-1-ping-request")
ESTABLISH = golden("mqqb-4.1-frame-3-establish-request")
PARAMETERS = golden("mqqb-4.1-frame-5-parameters-request")
SESSION_ACK = golden("mqqb-4.1-frame-8-session-ack")
QUERY = golden("mqsd-4-request")
CUT = golden("mqqb-4.1-frame-7-user-message")
CLIENT, SERVER = endpoint("10.0.0.1", 50_000), endpoint("10.0.0.2", 1801)
PING_PORT = endpoint("10.0.0.2", 3527)
TIME_NS = 1_700_000_000_000_001_000


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["packet", "decode", *arguments], input=stdin)


def refused(*arguments: str, stdin: bytes | None = None) -> str:
    """Run a command that must fail; give the one sentence it says."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("openmsmq: ").rstrip("\n")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    recorder = Recorder()
    file = tmp_path / "talk.pcapng"
    file.write_bytes(
        recorder.start()
        + recorder.datagram(CLIENT, PING_PORT, PING, TIME_NS)
        + recorder.opened(CLIENT, SERVER, TIME_NS + 1_000)
        + recorder.sent(CLIENT, SERVER, ESTABLISH, TIME_NS + 2_000)
        + recorder.sent(SERVER, CLIENT, PARAMETERS + SESSION_ACK, TIME_NS + 3_000)
    )
    return file


def test_hexadecimal_becomes_a_tree_with_offsets():
    result = run(SESSION_ACK.hex())
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "byte 0 of the stream"
    assert lines[1] == "SessionAck, 36 bytes: received 1, window 64"
    assert "0000  ├─ BaseHeader  (16 bytes)" in lines
    assert '0004  │  ├─ Signature  1380927820 (0x524f494c)  "LIOR"' in lines
    assert "0014     ├─ AckSequenceNumber  1 (0x0001)" in lines
    assert "\x1b" not in result.stdout


def test_bits_that_are_clear_are_shown_only_in_full():
    assert "TR traced" not in run(SESSION_ACK.hex()).stdout
    assert "TR traced  0" in run("--full", SESSION_ACK.hex()).stdout


def test_long_values_are_shortened_unless_asked_for_in_full():
    body = b"a" * 500
    message = packets.encode(UserMessage(UserHeader(Guid(16)), MessageProperties.of(body)))
    assert f"{body.hex()[:72]}…" in run(message.hex()).stdout
    assert body.hex() not in run(message.hex()).stdout
    assert body.hex() in run("--full", message.hex()).stdout


@pytest.mark.parametrize("form", ["binary", "hexadecimal", "utf-16", "dump"])
def test_a_file_may_hold_a_packet_in_any_form(tmp_path, form):
    file = tmp_path / "packet"
    file.write_bytes(
        {
            "binary": SESSION_ACK,
            "hexadecimal": SESSION_ACK.hex(" ").encode(),
            "utf-16": SESSION_ACK.hex(" ").encode("utf-16"),
            "dump": b"0000   " + SESSION_ACK.hex(" ").encode(),
        }[form]
    )
    assert "SessionAck, 36 bytes" in run(str(file)).stdout


def test_the_standard_input_is_read(capture):
    assert "SessionAck, 36 bytes" in run("-", stdin=SESSION_ACK).stdout
    assert run("--summary", "-", stdin=capture.read_bytes()).stdout.count("\n") == 5


def test_packets_back_to_back_are_all_shown():
    result = run("--summary", (ESTABLISH + PARAMETERS + SESSION_ACK).hex())
    assert result.exit_code == 0
    lines = [line.split()[:3] for line in result.stdout.splitlines()]
    assert lines == [
        ["0", "EstablishConnection", "572"],
        ["572", "ConnectionParameters", "32"],
        ["604", "SessionAck", "36"],
    ]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ([PING.hex()], "PingPacket, 24 bytes: cookie 4"),
        ([QUERY.hex()], "DirectoryQuery, 52 bytes"),
        (["--kind", "discovery", QUERY.hex()], "DirectoryQuery, 52 bytes"),
        (["--kind", "final-ack", bytes(36).hex()], "FinalAck, 36 bytes"),
    ],
)
def test_the_kind_is_found_or_told(arguments, title):
    assert run(*arguments).stdout.startswith(title)


def test_a_capture_is_one_line_per_packet(capture):
    result = run("--summary", str(capture))
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    client, server, ping = "10.0.0.1:50000", "10.0.0.2:1801", "10.0.0.2:3527"
    second = "2023-11-14T22:13:20."
    *lines, anomaly = lines
    assert [line[:6] for line in lines] == [
        ["1", second + "000001Z", client, "->", ping, "PingPacket"],
        ["5", second + "000003Z", client, "->", server, "EstablishConnection"],
        ["6", second + "000004Z", server, "->", client, "ConnectionParameters"],
        ["6", second + "000004Z", server, "->", client, "SessionAck"],
    ]
    # It acknowledges a message, and nobody has sent one.
    assert anomaly[:7] == [*lines[-1][:2], client, "->", server, "!", "bad-acknowledgment:"]


def test_a_capture_is_a_tree_per_packet_with_its_place(capture):
    lines = run(str(capture)).stdout.splitlines()
    assert lines[0] == "frame 1  2023-11-14T22:13:20.000001Z  10.0.0.1:50000 -> 10.0.0.2:3527"
    assert (
        "frame 6  2023-11-14T22:13:20.000004Z  10.0.0.2:1801 -> 10.0.0.1:50000  connection 1  "
        "byte 32 of the stream"
    ) in lines


def test_json_is_one_object_per_packet(capture):
    objects = [json.loads(line) for line in run("--json", str(capture)).stdout.splitlines()]
    *objects, anomaly = objects
    assert (anomaly["anomaly"], anomaly["problem"]) == (
        "bad-acknowledgment",
        "10.0.0.2 acknowledged more messages than 10.0.0.1 has sent",
    )
    assert [one["packet"] for one in objects] == [
        "PingPacket",
        "EstablishConnection",
        "ConnectionParameters",
        "SessionAck",
    ]
    last = objects[-1]
    del last["tree"]
    assert last == {
        "frame": 6,
        "time": "2023-11-14T22:13:20.000004Z",
        "source": "10.0.0.2:1801",
        "destination": "10.0.0.1:50000",
        "connection": 1,
        "stream_offset": 32,
        "size": 36,
        "packet": "SessionAck",
        "summary": "received 1, window 64",
    }
    flags = objects[1]["tree"][0]["children"][2]
    assert (flags["name"], flags["offset"], flags["size"], flags["value"]) == ("Flags", 2, 2, 11)


def test_one_connection_can_be_picked(capture):
    assert run("--summary", "--connection", "1", str(capture)).stdout.count("\n") == 4
    assert run("--summary", "--connection", "2", str(capture)).stdout == ""


def test_a_connection_that_is_not_there_is_told(capture):
    assert refused("--connection", "2", str(capture)) == (
        "there is no TCP connection 2 to show; --summary shows what there is."
    )


def test_other_ports_can_be_followed(capture):
    result = run("--summary", "--tcp-port", "9", "--udp-port", "3527", str(capture))
    assert result.stdout.count("\n") == 1


def test_a_malformed_packet_is_shown_as_far_as_it_goes_and_the_next_follows():
    broken = bytearray(
        packets.encode(UserMessage(UserHeader(Guid(16)), MessageProperties.of(b"body")))
    )
    broken[65] = 255
    result = run((bytes(broken) + SESSION_ACK).hex())
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "! MessagePropertiesHeader at offset 65: a label of 255 units" in result.stdout
    assert "0010  ├─ UserHeader  (48 bytes)" in result.stdout
    assert "0040  00 ff 00 00" in result.stdout
    assert "SessionAck, 36 bytes" in result.stdout


def test_a_packet_that_is_cut_short_is_shown_as_far_as_it_goes():
    result = run(CUT.hex())
    assert result.exit_code == 1
    assert "! 1650 bytes of a packet, but the stream ends before the rest of it" in result.stdout
    assert "S-1-5-21-3181267629-1039849782-3663111779-1000" in result.stdout
    assert "1258 bytes more; --full shows them" in result.stdout
    assert "more; --full shows them" not in run("--full", CUT.hex()).stdout
    summary = run("--summary", CUT.hex())
    assert summary.stdout.split("! ")[1].startswith("1650 bytes of a packet")


def test_bytes_that_are_no_packet_are_shown_as_they_are(tmp_path):
    file = tmp_path / "http.pcapng"
    recorder = Recorder()
    opened = recorder.start() + recorder.opened(CLIENT, SERVER, TIME_NS)
    file.write_bytes(opened + recorder.sent(CLIENT, SERVER, b"GET / HTTP/1.1\r\n\r\n", TIME_NS))
    result = run(str(file))
    assert result.exit_code == 1
    assert "! 18 bytes skipped: no packet starts here" in result.stdout
    assert "47 45 54 20 2f 20" in result.stdout
    (found,) = [json.loads(line) for line in run("--json", str(file)).stdout.splitlines()]
    assert found["data"] == b"GET / HTTP/1.1\r\n\r\n".hex()
    assert "packet" not in found


def test_malformed_datagrams_are_told_from_each_other_by_port(tmp_path):
    file = tmp_path / "datagrams.pcapng"
    recorder = Recorder()
    file.write_bytes(
        recorder.start()
        + recorder.datagram(CLIENT, PING_PORT, b"short", TIME_NS)
        + recorder.datagram(CLIENT, SERVER, b"short", TIME_NS)
    )
    result = run("--summary", str(file))
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.endswith("Ping at offset 0: 5 bytes, not 24")
    assert "DirectoryAnswer at offset 0" in second


def test_a_problem_without_addresses_has_none(tmp_path):
    file = tmp_path / "odd.pcapng"
    file.write_bytes(Recorder().start() + frame_block(b"\x45abc", TIME_NS))
    assert "1 frames cannot be read" in run("--summary", str(file)).stdout
    assert run(str(file)).stdout.startswith("frame 1  2023-11-14T22:13:20.000001Z\n! 1 frames")


def test_a_time_that_no_calendar_has_is_shown_as_seconds(tmp_path):
    file = tmp_path / "late.pcapng"
    late = frame_block(tcp_packet(CLIENT, SERVER, 0, ACK, SESSION_ACK), 2**63)
    file.write_bytes(Recorder().start() + late)
    recorded = file.read_bytes().replace(b"\x09\0\x01\0\x09\0\0\0", b"\x09\0\x01\0\x01\0\0\0")
    file.write_bytes(recorded)
    assert json.loads(run("--json", str(file)).stdout)["time"] == "922337203685477580.800000"


def test_letters_that_act_on_a_terminal_are_not_sent_to_it():
    header = UserHeader(Guid(16), destination=DirectName("OS:\x1b[2J\u202eevil"))
    message = packets.encode(UserMessage(header, MessageProperties.of(label="\x9b31m")))
    for arguments in ([], ["--summary"]):
        shown = run(*arguments, message.hex()).stdout
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
        assert r"OS:\x1b[2J\u202eevil" in shown


# Input that cannot be read.


def test_what_was_read_before_the_damage_is_shown(capture):
    capture.write_bytes(capture.read_bytes()[:-50])
    result = run("--summary", str(capture))
    assert result.exit_code == 2
    assert result.stdout.count("\n") == 2
    assert result.stderr.startswith("openmsmq: the capture is damaged at byte ")
    assert result.stderr.endswith("the file may be cut short.\n")


def test_nonsense_is_refused_with_a_hint():
    assert refused("nonsense").startswith(
        "'nonsense' is neither a file that exists nor hexadecimal digits; give a capture"
    )
    assert "x" * 60 + "…" in refused("x" * 5_000)


def test_bytes_without_a_signature_are_refused_with_a_hint():
    assert "say so with --kind" in refused("00 01 02")


def test_an_unknown_kind_is_refused_with_the_known_ones():
    sentence = refused("--kind", "letter", "00")
    assert sentence.startswith("--kind letter is unknown; it can be auto, session, ping,")


def test_files_that_hold_nothing_of_use_are_refused(tmp_path):
    empty, prose = tmp_path / "empty", tmp_path / "prose"
    empty.touch()
    prose.write_text("10 00\nDear reader")
    assert refused(str(empty)) == f"{empty} is empty."
    assert refused(str(prose)) == (
        f"{prose} is no capture and no hexadecimal text: line 2: 'Dear reader' is not hexadecimal."
    )
    assert refused(str(tmp_path)) == f"{tmp_path} is a directory; name a file in it."


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(SESSION_ACK)
    secret.chmod(0)
    assert refused(str(secret)) == f"{secret} cannot be read: Permission denied."


# The whole command.


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    source = str(Path(app_module.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "openmsmq.cli.app", *arguments],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_the_real_command_decodes_its_own_example():
    example = command("packet", "example")
    shown = command("packet", "decode", example.stdout.decode().strip(), PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, b"")
    text = shown.stdout.decode("ascii")
    assert "|- DestinationQueue  DIRECT=OS:beta\\private$\\orders" in text
    assert '"order 1"' in text


def test_the_version_is_told():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"openmsmq {__version__}\n")


def fails_unexpectedly() -> None:
    raise RuntimeError("the sky fell")


def test_an_unexpected_failure_is_one_sentence_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr(app_module, "_command", lambda _: lambda **_: fails_unexpectedly())
    monkeypatch.delenv("OPENMSMQ_DEBUG", raising=False)
    with pytest.raises(SystemExit) as stopped:
        app_module.main()
    assert stopped.value.code == 70
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "RuntimeError: the sky fell" in said
    assert "OPENMSMQ_DEBUG=1" in said


def test_an_unexpected_failure_can_be_looked_at(monkeypatch):
    monkeypatch.setattr(app_module, "_command", lambda _: lambda **_: fails_unexpectedly())
    monkeypatch.setenv("OPENMSMQ_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        app_module.main()


def test_json_lines_hold_nothing_that_a_terminal_would_obey():
    label = "a\x1b\x7f\x85\x9b\u202e\u2028\U000e0001\U0001f600\u00e9"
    message = UserMessage(UserHeader(Guid(16)), MessageProperties.of(b"", label))
    (line,) = run("--json", packets.encode(message).hex()).stdout.splitlines()
    assert line.isprintable()
    assert "\U0001f600\u00e9" in line
    properties = json.loads(line)["tree"][2]["children"]
    assert [part["value"] for part in properties if part["name"] == "Label"] == [label]


def test_a_closed_standard_input_is_told():
    code = "import sys; sys.stdin = None; from openmsmq.cli.app import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "packet", "decode", "-"], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (2, "openmsmq: the standard input is closed.\n")


def test_messages_over_http_and_by_multicast_are_shown():
    capture = str(golden_capture("http-and-multicast"))
    result = run("--summary", capture)
    assert result.exit_code == 0
    place = "http://10.97.7.2:8080/MSMQ/PRIVATE$/orders"
    for number in (1, 2):
        assert f"{place}, number {number} of a stream, body 14 bytes" in result.stdout
    lines = [line.split(maxsplit=6) for line in result.stdout.splitlines()]
    assert [line[5] for line in lines if line[5] in ("Post", "HttpAnswer")] == [
        "Post",
        "HttpAnswer",
        "Post",
        "Post",
        "HttpAnswer",
        "HttpAnswer",
        "Post",
        "Post",
        "Post",
        "HttpAnswer",
    ]
    assert "refused-post: 10.97.7.2 answered 400 to a message over HTTP" in result.stdout
    assert "RDATA" not in result.stdout
    shown = [json.loads(line) for line in run("--json", capture).stdout.splitlines()]
    by_multicast = [one for one in shown if one.get("packet") == "Post" and "connection" not in one]
    assert [one["destination"] for one in by_multicast] == ["239.1.1.1:8001"] * 2
    page = Path(__file__).parents[2] / "docs" / "guides" / "read-a-capture.md"
    part = page.read_text().partition("## HTTP and multicast")[2].partition("```\n")[2]
    printed = part.partition("```")[0].splitlines()
    assert len(printed) == 4
    assert set(printed) <= set(result.stdout.splitlines())
    # Other ports of HTTP are none of ours, and multicast has no port that says so.
    rest = run("--http-port", "81", "--summary", capture).stdout
    assert "HttpAnswer" not in rest
    assert rest.count(" Post ") == 2
    one = run("--connection", "2", capture).stdout
    assert one.count("Post, ") == 2

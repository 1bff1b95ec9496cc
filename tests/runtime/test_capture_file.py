"""The recording of sessions and datagrams, read back."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from openmsmq.analysis.events import DatagramItem, PacketItem
from openmsmq.capture.frames import read_frames
from openmsmq.capture.link_layers import (
    ACK,
    SYN,
    Endpoint,
    TcpSegment,
    read_ip,
    read_transport,
)
from openmsmq.manager.outputs import Connect, SendBytes
from openmsmq.model.identity import Guid
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.sessions.capture_file import CaptureFile, endpoint
from openmsmq.runtime.start_errors import StartError
from openmsmq.wire.datagrams import PingPacket
from tests.runtime.raw_client import packet
from tests.runtime.scripted_engine import Office, in_loop, office, soon
from tests.strategies.captures import said_in

HERE = "127.0.0.2"
THERE = "127.0.0.3"
FIRST, SECOND = (
    packet("OS:beta\\private$\\a", b"one"),
    packet("OS:beta\\private$\\a", b"two" * 9000),
)
PING = PingPacket(Guid(b"0123456789abcdef"), 7).encode()


def items(file: Path, desk: Office) -> list[PacketItem | DatagramItem]:
    with file.open("rb") as opened:
        return said_in(read_frames(opened.read), desk.port)


def openers(file: Path) -> list[Endpoint]:
    """Return the sources of the segments that open a connection."""
    with file.open("rb") as opened:
        frames = [read_transport(read_ip(frame.data)) for frame in read_frames(opened.read)]
    return [
        segment.source
        for segment in frames
        if isinstance(segment, TcpSegment) and segment.flags & (SYN | ACK) == SYN
    ]


@in_loop
async def test_what_went_over_sessions_and_the_ping_port_can_be_read_back(tmp_path):
    file = tmp_path / "traffic.pcapng"
    async with office(capture=str(file)) as desk, desk.neighbour() as peers:
        caller = await desk.called()
        await desk.engine.until("accepted")
        caller.writer.write(FIRST[:10])
        await desk.engine.until_data(2, 10)
        caller.writer.write(FIRST[10:])
        await desk.engine.until_data(2, len(FIRST))
        desk.engine.give(SendBytes(2, SECOND[:100]), SendBytes(2, SECOND[100:]))
        await soon(caller.reader.readexactly(len(SECOND)))
        desk.engine.give(Connect(1, THERE))
        await desk.engine.until("connected")
        desk.engine.give(SendBytes(1, FIRST))
        await soon((await peers.get()).reader.readexactly(len(FIRST)))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.bind((THERE, 0))
            asker.sendto(PING, (HERE, desk.port))
            await desk.engine.until("datagram")
        desk.pump.turn()
        # It can be read while it grows.
        found = items(file, desk)
    assert found == items(file, desk)
    assert [it.data for it in found] == [FIRST, SECOND, FIRST, PING]
    assert [type(it) for it in found] == [PacketItem] * 3 + [DatagramItem]
    here = endpoint(HERE, desk.port)
    assert [it.source == here for it in found] == [False, True, False, False]
    assert [it.destination == here for it in found] == [True, False, False, True]
    assert found[2].destination == endpoint(THERE, desk.port)
    assert [str(who).partition(":")[0] for who in openers(file)] == [THERE, HERE]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_recording_ends_when_it_is_long_enough(tmp_path):
    lines = []
    file = tmp_path / "traffic.pcapng"
    capture = CaptureFile(str(file), 4096, EventLog("text", "info", lines.append))
    here, there = endpoint(HERE, 1801), endpoint(THERE, 2000)
    capture.opened(there, here)
    for _ in range(100):
        capture.stream(there, here, bytes(100))
    capture.closed(there, here)
    capture.close()
    assert 3900 < file.stat().st_size <= 4096
    assert len(lines) == 1
    assert "capture-ended" in lines[0]
    assert "capture_max_bytes" in lines[0]


@in_loop
async def test_a_recording_that_cannot_be_written_does_not_disturb_the_sessions():
    async with office(capture="/dev/full") as desk:
        caller = await desk.called()
        caller.writer.write(FIRST)
        assert await desk.engine.until_data(2, len(FIRST)) == FIRST
        assert len(desk.logged("capture-ended")) == 1
        assert "no space left" in desk.logged("capture-ended")[0]


def test_a_recording_that_cannot_begin_is_an_error_at_the_start(tmp_path):
    with pytest.raises(StartError, match=r"absent/x.pcapng \(no such file"):
        CaptureFile(str(tmp_path / "absent/x.pcapng"), 4096, EventLog())

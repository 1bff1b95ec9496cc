"""The ports of the protocol, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from openmsmq.manager.outputs import Connect, SendDatagram
from openmsmq.model.limits import MSMQ_PORT, PING_PORT
from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.file import ServerConfig
from tests.runtime.scripted_engine import in_loop, office, soon

HERE, THERE = "127.0.18.2", "127.0.18.3"


@pytest.mark.spec("MQQB-2.1.1-02", "MQQB-2.1.1-03")
@in_loop
async def test_sessions_are_accepted_and_opened_on_port_1801_unless_told_otherwise() -> None:
    assert MSMQ_PORT == 1801
    assert ServerConfig(data="none", name="ALPHA").session_port == MSMQ_PORT
    async with office(HERE, session_port=MSMQ_PORT) as desk:
        assert desk.network.sessions.endpoints == [(HERE, 1801)]
        await desk.called(THERE)
        assert list(await desk.engine.until("accepted")) == [2, THERE]
        async with desk.neighbour(THERE) as arrivals:
            desk.engine.give(Connect(1, THERE))
            peer = await soon(arrivals.get())
            assert peer.writer.get_extra_info("sockname")[:2] == (THERE, 1801)


@pytest.mark.spec("MQQB-2.1.2-01", "MQQB-2.1.2-02")
@in_loop
async def test_answers_to_pings_are_heard_on_the_port_of_the_question_and_sent_to_it() -> None:
    assert PING_PORT == 3527
    assert ServerConfig(data="none", name="ALPHA").ping_port == PING_PORT
    loop = asyncio.get_running_loop()
    parameters = TransferConfig(ask_ping=True)
    async with office(HERE, ping_port=PING_PORT, parameters=parameters) as desk:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.setblocking(False)
            peer.bind((THERE, PING_PORT))
            desk.engine.give(SendDatagram(THERE, b"question"))
            data, source = await soon(loop.sock_recvfrom(peer, 100))
            assert data == b"question"
            peer.sendto(b"answer", source)
            assert list(await desk.engine.until("answer")) == [THERE, PING_PORT, b"answer"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.setblocking(False)
            peer.bind((THERE, 0))
            peer.sendto(b"from outside", (HERE, PING_PORT))
            _, port, _ = await desk.engine.until("datagram")
            assert port == peer.getsockname()[1]
            desk.engine.give(SendDatagram(THERE, b"accepted", port))
            assert (await soon(loop.sock_recvfrom(peer, 100)))[0] == b"accepted"


@pytest.mark.spec("MQQB-3.1.4.2-01")
@in_loop
async def test_a_queue_manager_that_stops_closes_its_sessions() -> None:
    async with office(HERE) as desk, desk.neighbour(THERE) as arrivals:
        caller = await desk.called(THERE)
        await desk.engine.until("accepted")
        desk.engine.give(Connect(1, THERE))
        called = await soon(arrivals.get())
        await desk.engine.until("connected")
        closing = asyncio.create_task(desk.network.close())
        assert await caller.has_been_cut()
        assert await called.has_been_cut()
        caller.writer.close()
        called.writer.close()
        await soon(closing)

"""The ping port, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from openmsmq.manager.outputs import SendDatagram
from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.start_errors import StartError
from tests.runtime.scripted_engine import free_port, in_loop, office, soon

HERE = "127.0.0.2"
THERE = "127.0.0.3"


ASKING = TransferConfig(ask_ping=True)


def peer_socket(port: int, address: str = THERE) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind((address, port))
    return made


@in_loop
async def test_a_datagram_is_heard_and_can_be_answered_where_it_came_from():
    loop = asyncio.get_running_loop()
    async with office() as desk:
        with peer_socket(0) as peer:
            port = peer.getsockname()[1]
            peer.sendto(b"question", (HERE, desk.config.ping_port))
            assert await desk.engine.until("datagram") == [THERE, port, b"question"]
            desk.engine.give(SendDatagram(THERE, b"answer", port))
            assert await soon(loop.sock_recvfrom(peer, 100)) == (
                b"answer",
                (HERE, desk.config.ping_port),
            )


@in_loop
async def test_a_question_goes_to_the_ping_port_and_its_answer_is_told_from_a_question():
    loop = asyncio.get_running_loop()
    async with office(parameters=ASKING) as desk:
        with peer_socket(desk.config.ping_port) as peer:
            desk.engine.give(SendDatagram(THERE, b"question"))
            data, (host, port) = await soon(loop.sock_recvfrom(peer, 100))
            assert (data, host) == (b"question", HERE)
            assert port != desk.config.ping_port
            peer.sendto(b"answer", (host, port))
            assert await desk.engine.until("answer") == [THERE, desk.config.ping_port, b"answer"]
            assert desk.engine.all("datagram") == []


@in_loop
async def test_what_comes_from_a_ping_port_is_not_taken_for_a_question():
    async with office() as desk:
        with peer_socket(desk.config.ping_port) as forger, peer_socket(0) as asker:
            forger.sendto(b"forged", (HERE, desk.config.ping_port))
            asker.sendto(b"asked", (HERE, desk.config.ping_port))
            await desk.engine.until("datagram")
            assert [data for *_, data in desk.engine.all("datagram")] == [b"asked"]


@in_loop
async def test_what_cannot_be_sent_is_dropped_and_harms_nobody():
    loop = asyncio.get_running_loop()
    async with office(parameters=ASKING) as desk:
        with peer_socket(desk.config.ping_port) as peer, peer_socket(0) as asker:
            desk.engine.give(
                SendDatagram("::1", b"other family"),
                SendDatagram("somewhere", b"no address"),
                SendDatagram("127.0.0.4", b"nobody there"),
                SendDatagram(THERE, bytes(100_000)),
                SendDatagram(THERE, b"fine"),
            )
            assert (await soon(loop.sock_recvfrom(peer, 100)))[0] == b"fine"
            asker.sendto(b"still there", (HERE, desk.config.ping_port))
            assert (await desk.engine.until("datagram"))[2] == b"still there"
        assert desk.ended == []


@in_loop
async def test_the_port_is_left_alone_by_those_who_do_not_answer():
    for ask in (False, True):
        quiet = TransferConfig(ask_ping=ask, answer_ping=False)
        async with office(parameters=quiet) as desk:
            peer_socket(desk.config.ping_port, HERE).close()
            desk.engine.give(SendDatagram(THERE, b"an answer all the same", 4000))
            desk.pump.turn()
            assert desk.ended == []


@in_loop
async def test_a_ping_port_that_is_taken_is_named():
    port = free_port(HERE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((HERE, port))
        with pytest.raises(StartError, match=f"{HERE} port {port} .*in use.*EnablePingService"):
            async with office(ping_port=port):
                pass

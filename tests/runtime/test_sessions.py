"""The connections between queue managers, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

import pytest

from openmsmq.manager.outputs import Connect, Disconnect, Resolve, SendBytes
from openmsmq.model.errors import ServiceNotAvailable
from openmsmq.model.queue import ConnectionStatus
from openmsmq.runtime.limits import (
    SESSION_DATA_PER_TURN_BYTES,
    SESSION_READ_BYTES,
    SESSION_WRITE_BUFFER_MAX_BYTES,
)
from openmsmq.runtime.server import ExitCode
from openmsmq.runtime.sessions import sessions
from openmsmq.runtime.start_errors import StartError
from tests.runtime.scripted_engine import in_loop, office, soon

HERE = "127.0.0.2"
THERE = "127.0.0.3"
ELSEWHERE = "127.0.0.4"


# Connections that others make.


@in_loop
async def test_a_peer_that_connects_gets_an_even_number_and_is_known_by_its_address():
    async with office() as desk:
        first = await desk.called()
        assert await desk.engine.until("accepted") == [2, THERE]
        await desk.called(ELSEWHERE)
        assert await desk.engine.until("accepted", 2) == [4, ELSEWHERE]
        first.writer.write(b"LIOR")
        assert await desk.engine.until_data(2, 4) == b"LIOR"
        first.writer.close()
        assert await desk.engine.until("lost") == [2]
        desk.engine.give(SendBytes(2, b"too late"), SendBytes(4, b"answer"))
        desk.engine.give(Disconnect(2))


@in_loop
async def test_a_peer_that_has_gone_before_anybody_looked_is_a_session_that_is_lost():
    async with office() as desk:
        with socket.socket() as peer:
            # Closed so, it is reset; and all that before the loop has a turn to accept it.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.connect((desk.config.address, desk.port))
        number, _ = await desk.engine.until("accepted")
        assert await desk.engine.until("lost") == [number]


@in_loop
async def test_bytes_go_both_ways_in_order_and_in_large_pieces():
    sent = bytes(range(256)) * 20_000
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        peer.writer.write(sent)
        assert await desk.engine.until_data(2, len(sent)) == sent
        assert max(len(data) for _, data in desk.engine.all("data")) > SESSION_READ_BYTES // 8
        desk.engine.give(*(SendBytes(2, sent[at : at + 1000]) for at in range(0, len(sent), 1000)))
        assert await soon(peer.reader.readexactly(len(sent))) == sent


@in_loop
async def test_small_packets_are_not_held_back(monkeypatch):
    async with office() as desk, desk.neighbour():
        made = []
        announce = sessions.Sessions.announce
        monkeypatch.setattr(
            sessions.Sessions,
            "announce",
            lambda self, connection, number: (
                made.append(connection.transport.get_extra_info("socket")),
                announce(self, connection, number),
            ),
        )
        await desk.called()
        desk.engine.give(Connect(1, THERE))
        await desk.engine.until("accepted")
        await desk.engine.until("connected")
        assert [it.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for it in made] == [1, 1]


@in_loop
async def test_what_comes_in_one_turn_over_several_sessions_shares_one_commit():
    async with office() as desk:
        with contextlib.ExitStack() as opened:
            peers = [
                opened.enter_context(socket.create_connection((HERE, desk.port))) for _ in range(5)
            ]
            await desk.engine.until("accepted", 5)
            desk.engine.persists_on_data = True
            # Nothing is read between these, because the loop does not run.
            for peer in peers:
                peer.sendall(b"packet")
            await desk.engine.until("persisted")
            assert len(desk.engine.all("data")) == 5
            assert desk.engine.all("persisted") == [[1]]


@in_loop
async def test_a_flood_is_made_durable_before_more_of_it_is_taken(monkeypatch):
    assert SESSION_DATA_PER_TURN_BYTES > SESSION_READ_BYTES
    monkeypatch.setattr(sessions, "SESSION_DATA_PER_TURN_BYTES", 12)
    async with office() as desk:
        with contextlib.ExitStack() as opened:
            peers = [
                opened.enter_context(socket.create_connection((HERE, desk.port))) for _ in range(5)
            ]
            await desk.engine.until("accepted", 5)
            desk.engine.persists_on_data = True
            for peer in peers:
                peer.sendall(b"packet")
            await desk.engine.until("data", 5)
            await desk.engine.until("persisted", 3)
            order = [what for what, *_ in desk.engine.heard if what in ("data", "persisted")]
            assert order == ["data", "data", "persisted"] * 2 + ["data", "persisted"]


@in_loop
async def test_one_address_may_have_only_so_many_connections():
    async with office(transfer_connections_per_peer_max=2) as desk:
        first = await desk.called()
        await desk.called()
        await desk.engine.until("accepted", 2)
        assert await (await desk.called()).has_been_cut()
        assert "transfer_connections_per_peer_max" in desk.logged("connection-refused")[0]
        await desk.called(ELSEWHERE)
        assert await desk.engine.until("accepted", 3) == [6, ELSEWHERE]
        first.writer.close()
        await desk.engine.until("lost")
        await desk.called()
        assert await desk.engine.until("accepted", 4) == [8, THERE]


@in_loop
async def test_all_together_may_have_only_so_many_connections():
    async with office(transfer_connections_max=2) as desk:
        await desk.called(THERE)
        first = await desk.called(ELSEWHERE)
        await desk.engine.until("accepted", 2)
        assert await (await desk.called(HERE)).has_been_cut()
        assert "transfer_connections_max" in desk.logged("connection-refused")[0]
        first.writer.close()
        await desk.engine.until("lost")
        await desk.called(HERE)
        assert await desk.engine.until("accepted", 3) == [6, HERE]


@in_loop
async def test_connections_made_here_do_not_count():
    async with office(transfer_connections_max=1) as desk, desk.neighbour():
        desk.engine.give(Connect(1, THERE), Connect(3, THERE))
        await desk.engine.until("connected", 2)
        await desk.called()
        await desk.engine.until("accepted")


@in_loop
async def test_the_engine_may_turn_a_peer_away_at_once():
    async with office() as desk:
        desk.engine.react = lambda facts: [Disconnect(facts[1])] if facts[0] == "accepted" else []
        peer = await desk.called()
        assert await peer.has_been_cut()
        assert [what for what, *_ in desk.engine.heard] == ["accepted"]


# Connections that are made here.


@in_loop
async def test_a_peer_sees_the_address_on_which_we_listen():
    async with office() as desk, desk.neighbour() as peers:
        desk.engine.give(Connect(1, THERE))
        assert await desk.engine.until("connected") == [1]
        peer = await soon(peers.get())
        assert peer.writer.get_extra_info("peername")[0] == HERE
        desk.engine.give(SendBytes(1, b"LI"), SendBytes(1, b"OR"))
        assert await soon(peer.reader.readexactly(4)) == b"LIOR"
        peer.writer.write(b"answer")
        assert await desk.engine.until_data(1, 6) == b"answer"
        peer.writer.close()
        assert await desk.engine.until("lost") == [1]


@in_loop
async def test_sessions_go_over_ipv6_too():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this computer has no IPv6")
    async with office("::1") as desk:
        # The only address of the loopback interface is our own.
        desk.engine.give(Connect(1, "::1"))
        await desk.engine.until("connected")
        assert await desk.engine.until("accepted") == [2, "::1"]


@pytest.mark.parametrize("address", [ELSEWHERE, "not-an-address", "", "255.255.255.255"])
@in_loop
async def test_a_peer_that_is_not_there_is_reported(address):
    async with office() as desk:
        desk.engine.give(Connect(7, address))
        failed = await desk.engine.until("failed")
        assert failed == [7, ConnectionStatus.SOCKET_CONNECT_FAILURE]


@in_loop
async def test_a_peer_that_does_not_answer_is_given_up_after_a_while():
    async with office(connect_timeout_ms=50) as desk:
        with contextlib.ExitStack() as opened:
            silent = opened.enter_context(socket.socket())
            silent.bind((THERE, desk.port))
            silent.listen(0)
            # With its line full, the system drops further attempts without a word.
            for _ in range(3):
                waiting = opened.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex((THERE, desk.port))
            desk.engine.give(Connect(1, THERE))
            failed = await desk.engine.until("failed")
            assert failed == [1, ConnectionStatus.SOCKET_CONNECT_FAILURE]
            assert "no connection within 50 ms" in desk.logged("session-failed")[0]


@in_loop
async def test_an_attempt_can_be_called_off():
    async with office() as desk, desk.neighbour() as peers:
        desk.engine.give(Connect(1, THERE), Disconnect(1), Connect(3, THERE))
        await desk.engine.until("connected")
        assert desk.engine.heard == [("connected", 3)]
        await soon(peers.get())
        assert peers.empty()


@in_loop
async def test_without_transfer_nothing_is_opened_and_nobody_is_reached():
    async with office(transfer=False) as desk:
        assert desk.network.sessions.endpoints == []
        desk.engine.give(Connect(1, THERE))
        failed = await desk.engine.until("failed")
        assert failed == [1, ConnectionStatus.TCP_NOT_ENABLED]


@in_loop
async def test_a_connection_wanted_before_the_ports_are_open_comes_from_the_right_address():
    async with office(listen=False) as desk, desk.neighbour() as peers:
        desk.engine.give(Connect(1, THERE))
        desk.pump.turn()
        await desk.network.listen()
        peer = await soon(peers.get())
        assert peer.writer.get_extra_info("peername")[0] == HERE


# Ends.


@in_loop
async def test_everything_that_was_written_arrives_before_the_end():
    data = bytes(8_000_000)
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        peer.writer.write(b"unread" * 100_000)
        desk.engine.give(SendBytes(2, data), SendBytes(2, b"last"), Disconnect(2))
        assert await soon(peer.reader.read()) == data + b"last"


@in_loop
async def test_nothing_is_heard_of_a_session_that_was_ended_here():
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        desk.engine.give(Disconnect(2))
        assert await soon(peer.reader.read()) == b""
        peer.writer.write(b"late")
        peer.writer.close()
        other = await desk.called(ELSEWHERE)
        other.writer.write(b"x")
        await desk.engine.until_data(4, 1)
        assert {session for what, session, *_ in desk.engine.heard if what != "accepted"} == {4}


@in_loop
async def test_a_peer_that_does_not_hang_up_is_cut_and_its_place_is_free_again(monkeypatch):
    monkeypatch.setattr(sessions, "SESSION_LINGER_MS", 20)
    async with office(transfer_connections_max=1) as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        desk.engine.give(Disconnect(2))
        assert await soon(peer.reader.read()) == b""
        await desk.until_logged("session-ended")
        await desk.called()
        await desk.engine.until("accepted", 2)


@in_loop
async def test_a_peer_that_takes_nothing_is_cut_before_it_takes_our_memory():
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        piece = bytes(1 << 20)
        for _ in range((SESSION_WRITE_BUFFER_MAX_BYTES >> 20) + 16):
            desk.engine.give(SendBytes(2, piece))
        assert await desk.engine.until("lost") == [2]
        assert desk.logged("session-cut")
        peer.writer.close()


@in_loop
async def test_a_stop_lets_pending_bytes_leave():
    data = bytes(8_000_000)
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        desk.engine.give(SendBytes(2, data))
        desk.pump.turn()
        closing = asyncio.create_task(desk.network.close())
        received = await soon(peer.reader.readexactly(len(data)))
        assert received == data
        assert await soon(peer.reader.read()) == b""
        peer.writer.close()
        await soon(closing)
        assert desk.engine.all("lost") == []


@in_loop
async def test_a_stop_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(sessions, "SESSION_LINGER_MS", 600_000)
    async with office(stop_timeout_ms=20) as desk:
        await desk.called()
        await desk.engine.until("accepted")
        desk.engine.give(SendBytes(2, bytes(8_000_000)), Connect(1, "192.0.2.1"))
        desk.pump.turn()
        await soon(desk.network.close())
        desk.engine.give(Connect(3, THERE), SendBytes(2, b"x"), Resolve("127.0.0.1"))
        desk.pump.turn()
        assert desk.engine.heard == [("accepted", 2, THERE)]
        await desk.until_logged("session-ended")


@in_loop
async def test_a_stopping_queue_manager_takes_nothing_in():
    async with office() as desk:
        peer = await desk.called()
        await desk.engine.until("accepted")
        desk.pump.refusal = ServiceNotAvailable("the queue manager is stopping")
        assert await (await desk.called()).has_been_cut()
        peer.writer.write(b"data")
        peer.writer.write_eof()
        await desk.until_logged("session-ended")
        assert desk.engine.heard == [("accepted", 2, THERE)]


@in_loop
async def test_after_a_defect_nothing_goes_in_or_out():
    async with office() as desk:
        peer, other = await desk.called(), await desk.called(ELSEWHERE)
        await desk.engine.until("accepted", 2)

        def fail(_):
            desk.engine.outputs.append(SendBytes(2, b"doubtful"))
            raise RuntimeError("a defect")

        desk.engine.react = fail
        peer.writer.write(b"data")
        await desk.engine.until("data")
        assert desk.ended == [ExitCode.DEFECT]
        other.writer.write(b"more")
        other.writer.write_eof()
        await desk.until_logged("session-ended")
        closing = asyncio.create_task(desk.network.close())
        assert await soon(peer.reader.read()) == b""
        await peer.close()
        await soon(closing)
        assert len(desk.engine.all("data")) == 1


@in_loop
async def test_a_port_that_is_taken_is_named():
    async with office() as desk:
        with pytest.raises(StartError, match=f"{HERE} port {desk.port} .*--no-transfer"):
            async with office(session_port=desk.port):
                pass

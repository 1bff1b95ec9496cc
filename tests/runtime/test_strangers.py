"""What strangers send waits while known peers have the time, over real sockets."""

from __future__ import annotations

from openmsmq.runtime.clocks import elapsed_ns
from openmsmq.runtime.limits import STRANGERS_TIME_AT_ONCE_MS, STRANGERS_WINDOW_MS
from openmsmq.runtime.sessions import strangers
from tests.runtime.scripted_engine import Office, in_loop, office
from tests.runtime.test_hostile_peers import small_office

KNOWN = "127.0.0.1"
STRANGE = "127.0.0.3"
MS = 1_000_000


def use_up(desk: Office, wait_ms: int) -> None:
    """Let a known peer have had all the time, and strangers more than theirs."""
    times, now_ns = desk.pump.times, elapsed_ns()
    times.known_took(now_ns - STRANGERS_WINDOW_MS * MS, now_ns + STRANGERS_WINDOW_MS * MS)
    later_ns = now_ns + STRANGERS_WINDOW_MS * MS
    took_ms = STRANGERS_TIME_AT_ONCE_MS + wait_ms // 10
    times.stranger_took(later_ns - took_ms * MS, later_ns)


@in_loop
async def test_a_stranger_waits_when_its_time_is_used_up_and_a_known_peer_does_not():
    async with office() as desk:
        stranger, known = await desk.called(STRANGE), await desk.called(KNOWN)
        await desk.engine.until("accepted", 2)
        use_up(desk, 500)
        stranger.writer.write(b"strange")
        known.writer.write(b"first")
        assert await desk.engine.until_data(4, 5) == b"first"
        known.writer.write(b"second")
        assert await desk.engine.until_data(4, 11) == b"firstsecond"
        assert desk.engine.data(2) == b""
        assert await desk.engine.until_data(2, 7) == b"strange"


@in_loop
async def test_nothing_more_is_read_of_a_stranger_who_waits():
    sent = bytes(range(256)) * 80_000
    async with office() as desk:
        stranger = await desk.called(STRANGE)
        await desk.engine.until("accepted")
        use_up(desk, 400)
        stranger.writer.write(sent)
        await desk.engine.until("data")
        assert len(desk.engine.data(2)) < len(sent) // 4
        assert await desk.engine.until_data(2, len(sent)) == sent


@in_loop
async def test_one_turn_takes_of_strangers_only_what_its_time_is_enough_for(monkeypatch):
    monkeypatch.setattr(strangers, "STRANGERS_TIME_AT_ONCE_MS", 0)
    async with office() as desk:
        peers = [await desk.called(STRANGE) for _ in range(3)]
        await desk.engine.until("accepted", 3)
        desk.engine.persists_on_data = True
        for peer in peers:
            peer.writer.write(b"packet")
        await desk.engine.until("persisted", 3)
        order = [what for what, *_ in desk.engine.heard if what in ("data", "persisted")]
        assert order == ["data", "persisted"] * 3


@in_loop
async def test_what_waits_counts_among_the_bytes_held_for_a_stranger(monkeypatch):
    async with small_office(monkeypatch, buffered_per_peer_max_bytes=1_000) as desk:
        stranger = await desk.called(STRANGE)
        await desk.engine.until("accepted")
        use_up(desk, 10_000)
        stranger.writer.write(bytes(2_000))
        assert await stranger.has_been_cut()
        assert await desk.engine.until("lost") == [2]
        assert desk.engine.data(2) == b""


@in_loop
async def test_a_turn_that_only_strangers_want_is_their_time(monkeypatch):
    counted: list[str] = []
    async with office() as desk:
        for name in ("stranger_took", "others_took"):
            monkeypatch.setattr(desk.pump.times, name, lambda *_, name=name: counted.append(name))
        stranger, known = await desk.called(STRANGE), await desk.called(KNOWN)
        await desk.engine.until("accepted", 2)
        desk.pump.turn()
        counted.clear()
        stranger.writer.write(b"strange")
        await desk.engine.until_data(2, 7)
        assert counted == ["stranger_took", "stranger_took"]
        counted.clear()
        known.writer.write(b"known")
        await desk.engine.until_data(4, 5)
        desk.pump.turn()
        assert counted == ["others_took"]

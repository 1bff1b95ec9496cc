"""Sessions over mutual TLS, over real sockets: who is let in as whom, and who is not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openmsmq.manager.outputs import Connect, Disconnect, SendBytes
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session_states import CloseReason
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from openmsmq.runtime.limits import SESSION_READ_BYTES, SESSION_WRITE_BUFFER_MAX_BYTES
from openmsmq.runtime.sessions import sessions
from openmsmq.runtime.sessions import tls as session_tls
from tests.runtime.scripted_engine import Office, Peer, free_port, in_loop, office, soon
from tests.runtime.session_certificates import DAY, NOW, Identity

HERE = "127.0.0.2"
THERE = "127.0.0.3"
ELSEWHERE = "127.0.0.4"

OURS = Identity("office")
SHOP = Identity("shop")
STRANGER = Identity("stranger")
AUTHORITY = Identity("authority", is_authority=True)
SHOP_RULE = PeerRule(name="shop", addresses=(THERE,), tls=True)


class Desk:
    """An office that has TLS, and those who come to it or wait for it with certificates."""

    def __init__(self, opened: Office, folder: Path, tls_port: int) -> None:
        self.office = opened
        self.engine = opened.engine
        self.folder = folder
        self.port = tls_port

    async def called(
        self, shown: Identity | None = SHOP, source: str = THERE, **options: Any
    ) -> Peer:
        """Connect to it with a certificate, and trust its own."""
        context = (shown or STRANGER).context(
            self.folder / "caller.pem", server_side=False, trusts=OURS
        )
        if shown is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(cadata=OURS.pem)
        for name, value in options.items():
            setattr(context, name, value)
        opened = asyncio.open_connection(
            HERE, self.port, local_addr=(source, 0), ssl=context, limit=1 << 26
        )
        self.office.peers.append(Peer(*await soon(opened)))
        return self.office.peers[-1]

    @contextlib.asynccontextmanager
    async def neighbour(
        self, shown: Identity = SHOP, trusts: Identity = OURS, port: int | None = None
    ) -> AsyncIterator[asyncio.Queue[Peer]]:
        """Wait at the other address with a certificate."""
        arrivals: asyncio.Queue[Peer] = asyncio.Queue()

        def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.office.peers.append(Peer(reader, writer))
            arrivals.put_nowait(self.office.peers[-1])

        context = shown.context(self.folder / "neighbour.pem", server_side=True, trusts=trusts)
        async with await asyncio.start_server(
            arrived, THERE, port or self.port, ssl=context, limit=1 << 26
        ):
            yield arrivals

    async def refusal(self, words: str, accepted: int = 0) -> str:
        """Wait until the log says why somebody was refused; no more may have come in."""
        await self.engine.until_true(lambda: self.office.logged("connection-refused"))
        line = self.office.logged("connection-refused")[-1]
        assert words in line
        assert len(self.engine.all("accepted")) == accepted
        return line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "shop.pem").write_text(SHOP.pem)
    (tmp_path / "authority.pem").write_text(AUTHORITY.pem)
    OURS.save(tmp_path / "own.pem")
    return tmp_path


@contextlib.asynccontextmanager
async def desk(
    folder: Path,
    *rules: PeerRule,
    address: str = HERE,
    listen: bool = True,
    own: str = "own.pem",
    **tls: Any,
) -> AsyncIterator[Desk]:
    """Run an office with TLS; `tls` changes its table."""
    port = free_port(HERE, THERE, ELSEWHERE)
    table = SessionTlsTable(
        **{"certificate": own, "peer_certificates": "peers", "port": port, **tls}
    )
    parameters = TransferConfig(peers=PeerPolicy(rules=rules or (SHOP_RULE,)))
    async with office(
        address, data=str(folder), parameters=parameters, session_tls=table, listen=listen
    ) as opened:
        try:
            yield Desk(opened, folder, port)
        finally:
            assert not [line for line in opened.lines if "Traceback" in line or "library" in line]


# Those who come.


@in_loop
async def test_who_shows_a_certificate_that_is_pinned_comes_in_as_the_rule_that_has_it(folder):
    async with desk(folder) as it:
        peer = await it.called()
        assert await it.engine.until("accepted") == [2, THERE, "shop"]
        peer.writer.write(b"LIOR")
        assert await it.engine.until_data(2, 4) == b"LIOR"
        it.engine.give(SendBytes(2, b"answer"))
        assert await soon(peer.reader.readexactly(6)) == b"answer"


@in_loop
async def test_a_fingerprint_in_the_rule_pins_a_certificate_whatever_its_file_is_called(folder):
    (folder / "peers" / "shop.pem").rename(folder / "peers" / "2026.pem")
    rule = PeerRule(name="branch", certificates=(SHOP.fingerprint,), tls=True)
    async with desk(folder, rule) as it:
        await it.called()
        assert await it.engine.until("accepted") == [2, THERE, "branch"]


@in_loop
async def test_a_name_counts_if_an_authority_vouches_for_it(folder):
    rule = PeerRule(name="branch", certificate_names=("SHOP.example",), tls=True)
    middle = Identity("middle", AUTHORITY, is_authority=True)
    (folder / "peers" / "shop.pem").unlink()
    async with desk(folder, rule, authorities="authority.pem") as it:
        await it.called(Identity("shop.example", middle))
        assert await it.engine.until("accepted") == [2, THERE, "branch"]


@in_loop
async def test_a_name_of_which_no_rule_has_heard_is_refused_with_what_to_write(folder):
    rule = PeerRule(name="branch", certificate_names=("shop.example",), tls=True)
    (folder / "peers" / "shop.pem").unlink()
    other = Identity("other.example", AUTHORITY)
    async with desk(folder, rule, authorities="authority.pem") as it:
        peer = await it.called(other)
        line = await it.refusal("no rule of [peers] names its certificate, for other.example")
        assert other.fingerprint in line
        assert await peer.has_been_cut()


@in_loop
async def test_one_who_is_trusted_for_himself_cannot_vouch_for_the_names_of_others(folder):
    greedy = Identity("greedy", is_authority=True)
    (folder / "peers" / "shop.pem").write_text(greedy.pem)
    branch = PeerRule(name="branch", certificate_names=("branch.example",))
    async with desk(folder, SHOP_RULE, branch, authorities="authority.pem") as it:
        await it.called(Identity("branch.example", greedy))
        await it.refusal("no rule of [peers] names its certificate")
        await it.called(greedy)
        assert await it.engine.until("accepted") == [4, THERE, "shop"]


@in_loop
async def test_a_stranger_is_refused_with_what_to_do(folder):
    async with desk(folder) as it:
        peer = await it.called(STRANGER)
        await it.refusal("no authority of [session_tls] vouches for it")
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            await soon(peer.reader.read())


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (NOW - 9 * DAY, NOW - 2 * DAY, "certificate has expired"),
        (NOW + 2 * DAY, NOW + 9 * DAY, "certificate is not yet valid"),
    ],
    ids=["expired", "not yet valid"],
)
@in_loop
async def test_a_pinned_certificate_is_good_only_in_its_time(folder, begin, end, words):
    old = Identity("shop", begin=begin, end=end)
    (folder / "peers" / "shop.pem").write_text(old.pem)
    async with desk(folder) as it:
        peer = await it.called(old)
        await it.refusal(words)
        with pytest.raises(ssl.SSLError, match="CERTIFICATE"):
            await soon(peer.reader.read())


@in_loop
async def test_an_authority_that_has_expired_vouches_for_nobody(folder):
    old = Identity("authority", is_authority=True, end=NOW - DAY)
    (folder / "authority.pem").write_text(old.pem)
    rule = PeerRule(name="branch", certificate_names=("shop.example",), tls=True)
    (folder / "peers" / "shop.pem").unlink()
    async with desk(folder, rule, authorities="authority.pem") as it:
        await it.called(Identity("shop.example", old))
        await it.refusal("certificate has expired")


@in_loop
async def test_who_shows_no_certificate_is_refused(folder):
    async with desk(folder) as it:
        peer = await it.called(None)
        await it.refusal("it showed no certificate, and has to")
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            await soon(peer.reader.read())


@in_loop
async def test_who_comes_from_elsewhere_than_his_rule_says_is_refused(folder):
    async with desk(folder) as it:
        await it.called(source=ELSEWHERE)
        await it.refusal(f"that of [peers] shop, which is not at {ELSEWHERE}")


@in_loop
async def test_a_rule_that_refuses_does_so_over_tls_too(folder):
    async with desk(folder, PeerRule(name="shop", refuse=True)) as it:
        await it.called()
        await it.refusal("[peers] shop has its certificate, and refuses it")


@in_loop
async def test_plain_bytes_at_the_tls_port_are_refused_with_a_sentence(folder):
    async with desk(folder) as it:
        reader, writer = await asyncio.open_connection(HERE, it.port, local_addr=(THERE, 0))
        it.office.peers.append(Peer(reader, writer))
        writer.write(b"\x10\x00\x03\x00LIOR" * 10)
        await it.refusal("what it sent is not TLS")
        assert await it.office.peers[-1].has_been_cut()


@in_loop
async def test_a_version_of_tls_that_is_not_safe_is_refused(folder):
    async with desk(folder) as it:
        with pytest.raises(ssl.SSLError), pytest.warns(DeprecationWarning, match="TLSv1"):
            await it.called(
                minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1
            )


@in_loop
async def test_tls_1_2_is_taken_and_1_3_preferred(folder):
    async with desk(folder) as it:
        new = await it.called()
        assert new.writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        old = await it.called(maximum_version=ssl.TLSVersion.TLSv1_2)
        assert old.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        assert await it.engine.until("accepted", 2) == [4, THERE, "shop"]


@in_loop
async def test_a_resumed_session_is_judged_like_a_new_one(folder):
    """TLS 1.2 lets a caller skip the proof that he gave before; the rules still count."""
    rule = PeerRule(name="branch", certificate_names=("shop.example",), tls=True)
    (folder / "peers" / "shop.pem").unlink()
    shop = Identity("shop.example", AUTHORITY)
    context = shop.context(folder / "caller.pem", server_side=False, trusts=OURS)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def call(port: int, session: ssl.SSLSession | None) -> ssl.SSLSocket:
        made = socket.create_connection((HERE, port), source_address=(THERE, 0), timeout=10)
        return context.wrap_socket(made, session=session)

    async with desk(folder, rule, authorities="authority.pem") as it:
        with await asyncio.to_thread(call, it.port, None) as first:
            assert not first.session_reused
            with await asyncio.to_thread(call, it.port, first.session) as second:
                assert second.session_reused
                assert await it.engine.until("accepted", 2) == [4, THERE, "branch"]


# Those without TLS.


@in_loop
async def test_an_address_whose_rule_wants_tls_gets_no_plain_session(folder):
    async with desk(folder) as it:
        plain = await it.office.called(THERE)
        assert await plain.has_been_cut()
        await it.refusal("it came without TLS, and [peers] shop has tls = true")
        await it.office.called(ELSEWHERE)
        assert await it.engine.until("accepted") == [2, ELSEWHERE]


@in_loop
async def test_one_host_of_a_network_may_be_let_in_plain(folder):
    network = PeerRule(name="shop", addresses=("127.0.0.0/24",), tls=True)
    host = PeerRule(name="old", addresses=(ELSEWHERE,))
    async with desk(folder, network, host) as it:
        assert await (await it.office.called(THERE)).has_been_cut()
        await it.office.called(ELSEWHERE)
        assert await it.engine.until("accepted") == [2, ELSEWHERE]
        await it.called(source=THERE)
        assert await it.engine.until("accepted", 2) == [4, THERE, "shop"]


@in_loop
async def test_where_tls_is_required_the_plain_port_is_closed_and_nobody_is_called_there(folder):
    async with desk(folder, required=True) as it, it.office.neighbour(ELSEWHERE):
        with pytest.raises(ConnectionRefusedError):
            await it.office.called(ELSEWHERE)
        it.engine.give(Connect(1, ELSEWHERE))
        _, status, reason = await it.engine.until("failed")
        assert status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
        assert (
            reason == "[session_tls] has required = true, and no rule of [peers] has this address"
        )
        await it.called()
        assert await it.engine.until("accepted") == [2, THERE, "shop"]


# Those who are called.


@in_loop
async def test_who_is_at_an_address_with_tls_is_called_there_and_has_to_be_the_right_one(folder):
    async with desk(folder) as it, it.neighbour() as arrivals:
        it.engine.give(Connect(1, THERE))
        assert await it.engine.until("connected") == [1, "shop"]
        peer = await soon(arrivals.get())
        assert peer.writer.get_extra_info("peername")[0] == HERE
        it.engine.give(SendBytes(1, b"LIOR"))
        assert await soon(peer.reader.readexactly(4)) == b"LIOR"
        peer.writer.write(b"answer")
        assert await it.engine.until_data(1, 6) == b"answer"


@in_loop
async def test_a_peer_may_have_another_port_as_a_tunnel_has(folder):
    port = free_port(THERE)
    async with desk(folder, ports={"shop": port}) as it, it.neighbour(port=port):
        it.engine.give(Connect(1, THERE))
        assert await it.engine.until("connected") == [1, "shop"]


@in_loop
async def test_a_stranger_at_the_address_of_a_peer_gets_nothing(folder):
    async with desk(folder) as it, it.neighbour(STRANGER), it.office.neighbour():
        it.engine.give(Connect(1, THERE))
        _, status, reason = await it.engine.until("failed")
        assert status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
        assert "its certificate is refused: no authority" in reason
        assert reason.removeprefix(f"port {it.port}: ") in it.office.logged("session-failed")[0]
        # Nor is it tried without TLS.
        assert not it.engine.all("connected")


@in_loop
async def test_another_peer_at_the_address_of_a_peer_gets_nothing(folder):
    other = PeerRule(name="branch", certificates=(STRANGER.fingerprint,))
    (folder / "peers" / "branch.pem").write_text(STRANGER.pem)
    async with desk(folder, SHOP_RULE, other) as it, it.neighbour(STRANGER):
        it.engine.give(Connect(1, THERE))
        _, _, reason = await it.engine.until("failed")
        assert f"is that of [peers] branch, and shop is at {THERE}" in reason


@in_loop
async def test_an_expired_certificate_of_who_is_called_is_refused(folder):
    old = Identity("shop", end=NOW - DAY)
    (folder / "peers" / "shop.pem").write_text(old.pem)
    async with desk(folder) as it, it.neighbour(old):
        it.engine.give(Connect(1, THERE))
        _, _, reason = await it.engine.until("failed")
        assert "its certificate is refused: certificate has expired" in reason


@in_loop
async def test_tls_at_the_port_of_one_who_has_none_fails_with_a_sentence(folder):
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x10\x00\x03\x00LIOR")
        writer.close()

    async with desk(folder) as it, await asyncio.start_server(deaf, THERE, it.port):
        it.engine.give(Connect(1, THERE))
        _, status, reason = await it.engine.until("failed")
        assert status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
        assert "no TLS: what it sent is not TLS" in reason


@in_loop
async def test_who_ends_the_handshake_of_tls_is_a_failure_with_a_sentence(folder):
    async def gone(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with desk(folder) as it, await asyncio.start_server(gone, THERE, it.port):
        it.engine.give(Connect(1, THERE))
        _, _, reason = await it.engine.until("failed")
        assert "it ended the connection in the handshake of TLS" in reason


@in_loop
async def test_who_says_nothing_in_the_handshake_is_given_up(folder):
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with desk(folder) as it, await asyncio.start_server(silent, THERE, it.port):
        config = msgspec.structs.replace(it.office.config, connect_timeout_ms=50)
        it.office.network.sessions._tls._config = config  # noqa: SLF001
        it.engine.give(Connect(1, THERE))
        _, _, reason = await it.engine.until("failed")
        assert "the handshake of TLS was not done within 50 ms" in reason


@in_loop
async def test_who_refuses_our_certificate_is_told_apart_from_a_broken_line(folder):
    SHOP.save(folder / "shop.pem")
    async with (
        desk(folder, PeerRule(name="shop"), address=THERE, own="shop.pem") as shop,
        desk(folder, ports={"shop": shop.port}) as it,
    ):
        it.engine.give(Connect(1, THERE))
        await it.engine.until("connected")
        assert await it.engine.until("lost") == [1, CloseReason.CERTIFICATE_REFUSED]
        await shop.refusal("no authority of [session_tls] vouches for it")
        line = it.office.logged("session-failed")[0]
        assert "it does not know our certificate" in line
        assert OURS.fingerprint in line


@in_loop
async def test_who_hangs_up_before_his_first_word_refuses_us_too(folder):
    async with desk(folder) as it, it.neighbour() as arrivals:
        it.engine.give(Connect(1, THERE))
        await it.engine.until("connected")
        (await soon(arrivals.get())).writer.close()
        assert await it.engine.until("lost") == [1, CloseReason.CERTIFICATE_REFUSED]
        assert "most likely its [peers] do not name our certificate" in it.office.lines[-2]
        it.engine.give(Connect(3, THERE))
        await it.engine.until("connected", 2)
        peer = await soon(arrivals.get())
        peer.writer.write(b"word")
        await it.engine.until_data(3, 4)
        peer.writer.close()
        assert await it.engine.until("lost", 2) == [3]


# Bytes.


@in_loop
async def test_bytes_go_both_ways_in_order_and_in_large_pieces(folder):
    sent = bytes(range(256)) * 20_000
    async with desk(folder) as it:
        peer = await it.called()
        await it.engine.until("accepted")
        peer.writer.write(sent)
        assert await it.engine.until_data(2, len(sent)) == sent
        assert max(len(data) for _, data in it.engine.all("data")) > SESSION_READ_BYTES // 8
        it.engine.give(*(SendBytes(2, sent[at : at + 1000]) for at in range(0, len(sent), 1000)))
        assert await soon(peer.reader.readexactly(len(sent))) == sent


@in_loop
async def test_bytes_that_come_with_the_last_of_the_handshake_are_not_left_lying(folder):
    context = SHOP.context(folder / "caller.pem", server_side=False, trusts=OURS)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = context.wrap_bio(incoming, outgoing)
    async with desk(folder) as it:
        reader, writer = await asyncio.open_connection(HERE, it.port, local_addr=(THERE, 0))
        it.office.peers.append(Peer(reader, writer))
        while True:
            try:
                caller.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await soon(reader.read(1 << 16)))
        caller.write(b"LIOR")
        writer.write(outgoing.read())
        assert await it.engine.until_data(2, 4) == b"LIOR"


@in_loop
async def test_the_last_bytes_of_a_session_arrive_before_its_end(folder):
    sent = bytes(range(256)) * 10_000
    async with desk(folder) as it:
        peer = await it.called()
        await it.engine.until("accepted")
        # It is still writing, which would reset a connection that is closed.
        peer.writer.write(b"x" * 100_000)
        it.engine.give(SendBytes(2, sent), Disconnect(2))
        assert await soon(peer.reader.read()) == sent
        assert it.engine.all("lost") == []


@in_loop
async def test_a_peer_that_takes_nothing_is_cut_before_it_takes_our_memory(folder):
    async with desk(folder) as it:
        peer = await it.called()
        await it.engine.until("accepted")
        peer.writer.transport.pause_reading()
        for _ in range(2 * SESSION_WRITE_BUFFER_MAX_BYTES // (1 << 20)):
            it.engine.give(SendBytes(2, bytes(1 << 20)))
            await asyncio.sleep(0)
        assert await it.engine.until("lost") == [2]
        assert "bytes that wait for it" in it.office.logged("session-cut")[0]


@in_loop
async def test_a_peer_that_makes_us_write_and_takes_nothing_gets_no_more_time(folder, monkeypatch):
    """What encryption adds to the bytes must not look like bytes that were taken."""
    monkeypatch.setattr(sessions, "SESSION_UNREAD_MS", 200)
    monkeypatch.setattr(sessions, "SESSIONS_LOOK_MS", 20)
    async with desk(folder) as it:
        peer = await it.called()
        await it.engine.until("accepted")
        peer.writer.transport.pause_reading()
        it.engine.give(SendBytes(2, bytes(12 << 20)))

        async def go_on() -> None:
            while True:
                it.engine.give(SendBytes(2, b"more"))
                await asyncio.sleep(0.01)

        more = asyncio.get_running_loop().create_task(go_on())
        try:
            assert await it.engine.until("lost") == [2]
        finally:
            more.cancel()
        assert "it has taken nothing" in it.office.logged("session-cut")[0]


@in_loop
async def test_a_stop_ends_sessions_over_tls_in_order(folder):
    async with desk(folder) as it:
        peer = await it.called()
        await it.engine.until("accepted")
        it.engine.give(SendBytes(2, b"last"))
        await asyncio.sleep(0)
        closing = asyncio.get_running_loop().create_task(it.office.network.close())
        assert await soon(peer.reader.read()) == b"last"
        await peer.close()
        await soon(closing)


# Limits.


@in_loop
async def test_handshakes_that_are_not_done_give_way_to_those_that_are(folder):
    async with desk(folder) as it:
        limits = it.office.network.sessions._limits  # noqa: SLF001
        bounds = msgspec.structs.replace(limits.bounds, half_open_max=4, half_open_grace_ms=0)
        limits.bounds = bounds
        with contextlib.ExitStack() as opened:
            for _ in range(20):
                opened.enter_context(
                    socket.create_connection((HERE, it.port), source_address=(ELSEWHERE, 0))
                )
            await it.called()
            assert (await it.engine.until("accepted"))[1:] == [THERE, "shop"]
            assert limits.half_open_count <= 4


@in_loop
async def test_both_ports_share_the_places_of_an_address(folder):
    rules = (SHOP_RULE, PeerRule(name="plain", addresses=(THERE,)))
    port = free_port(HERE, THERE)
    table = SessionTlsTable(certificate="own.pem", peer_certificates="peers", port=port)
    async with office(
        data=str(folder),
        parameters=TransferConfig(peers=PeerPolicy(rules=rules)),
        session_tls=table,
        transfer_connections_per_peer_max=2,
    ) as opened:
        it = Desk(opened, folder, port)
        await it.called()
        await it.engine.until("accepted")
        await opened.called(THERE)
        assert await it.engine.until("accepted", 2) == [4, THERE]
        assert await (await opened.called(THERE)).has_been_cut()
        with pytest.raises(ConnectionError):
            await it.called()
        assert "transfer_connections_per_peer_max" in opened.logged("connection-refused")[-1]


# Renewal.


@in_loop
async def test_a_new_certificate_is_shown_without_a_restart_and_open_sessions_go_on(
    folder, monkeypatch
):
    monkeypatch.setattr(session_tls, "TLS_FILES_LOOK_MS", 20)
    renewed = Identity("office")
    async with desk(folder) as it, it.neighbour(trusts=renewed):
        peer = await it.called()
        await it.engine.until("accepted")
        renewed.save(folder / "own.pem")
        await it.office.until_logged("session-certificate-changed")
        assert renewed.fingerprint in it.office.logged("session-certificate-changed")[0]
        it.engine.give(Connect(1, THERE))
        assert await it.engine.until("connected") == [1, "shop"]
        with pytest.raises(ssl.SSLCertVerificationError):
            await it.called()
        peer.writer.write(b"still here")
        assert await it.engine.until_data(2, 10) == b"still here"


@in_loop
async def test_files_that_do_not_fit_together_change_nothing_until_they_do(folder):
    renewed = Identity("office")
    own = {"own": "certificate.pem", "key": "key.pem"}
    (folder / "certificate.pem").write_text(OURS.pem)
    OURS.save(folder / "key.pem")
    async with desk(folder, **own) as it:
        (folder / "certificate.pem").write_text(renewed.pem)
        it.office.network.sessions.reload()
        [line] = it.office.logged("session-certificate-unusable")
        assert "key values mismatch" in line
        assert "the old one is still used" in line
        await it.called()
        assert await it.engine.until("accepted") == [2, THERE, "shop"]
        renewed.save(folder / "key.pem")
        it.office.network.sessions.reload()
        assert it.office.logged("session-certificate-changed")


@in_loop
async def test_a_certificate_of_a_peer_is_added_and_taken_away_without_a_restart(folder):
    async with desk(folder) as it:
        old = await it.called()
        await it.engine.until("accepted")
        both = folder / "peers" / "shop.pem"
        both.write_text(SHOP.pem + STRANGER.pem)
        it.office.network.sessions.reload()
        await it.called(STRANGER)
        await it.engine.until("accepted", 2)
        both.write_text(STRANGER.pem)
        it.office.network.sessions.reload()
        assert await it.engine.until("lost") == [2]
        assert "no longer trusted" in it.office.logged("session-cut")[0]
        assert await old.has_been_cut()
        assert it.engine.all("lost") == [[2]]


@in_loop
async def test_who_is_taken_out_is_cut_though_another_file_is_wrong(folder):
    async with desk(folder) as it:
        await it.called()
        await it.engine.until("accepted")
        (folder / "peers" / "shop.pem").write_text(STRANGER.pem)
        (folder / "peers" / "other.pem").write_text("nothing")
        (folder / "own.pem").write_text("nothing")
        it.office.network.sessions.reload()
        assert await it.engine.until("lost") == [2]
        [line] = it.office.logged("session-certificate-unusable")
        assert "other.pem has no certificate" in line
        assert "own.pem has no certificate in PEM; the old one is still used" in line
        await it.called()
        await it.refusal("no rule of [peers] names its certificate", accepted=1)


@in_loop
async def test_a_session_ends_when_its_certificate_does(folder, monkeypatch):
    monkeypatch.setattr(session_tls, "TLS_FILES_LOOK_MS", 20)
    async with desk(folder) as it:
        await it.called()
        await it.engine.until("accepted")
        trust = it.office.network.sessions._tls._trust  # noqa: SLF001
        assert trust is not None
        trust._clock_s = lambda: int((NOW + 366 * DAY).timestamp())  # noqa: SLF001
        assert await it.engine.until("lost") == [2]
        assert (
            "its certificate is no longer good: it has expired"
            in (it.office.logged("session-cut")[0])
        )


@in_loop
async def test_the_own_certificate_is_warned_about_before_its_end(folder):
    Identity("office", end=NOW + 3 * DAY).save(folder / "own.pem")
    async with desk(folder) as it:
        [line] = it.office.logged("session-certificate-ends")
        assert "it expires in 2 days: replace it" in line


# What keeps it from starting.


@in_loop
async def test_a_key_that_others_can_read_is_refused(folder):
    os.chmod(folder / "own.pem", 0o640)
    async with desk(folder, listen=False) as it:
        with pytest.raises(ConfigError, match="chmod 600"):
            await it.office.network.listen()


@in_loop
async def test_a_rule_with_tls_does_not_work_without_a_certificate(folder):
    async with desk(folder, listen=False, certificate="") as it:
        with pytest.raises(ConfigError, match=r"shop has tls = true, and \[session_tls\] has no"):
            await it.office.network.listen()


@in_loop
async def test_a_rule_with_tls_for_which_no_certificate_is_known_is_a_mistake_that_is_said(folder):
    (folder / "peers" / "shop.pem").unlink()
    async with desk(folder, listen=False) as it:
        with pytest.raises(ConfigError, match=r"put it into peers/shop\.pem"):
            await it.office.network.listen()


@in_loop
async def test_a_certificate_of_nobody_is_a_mistake_that_is_said(folder):
    (folder / "peers" / "shpo.pem").write_text(STRANGER.pem)
    async with desk(folder, listen=False) as it:
        with pytest.raises(ConfigError, match=r"shpo\.pem belongs to no rule"):
            await it.office.network.listen()

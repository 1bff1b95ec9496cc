"""Discovery by real datagrams: over loopback, and between computers on networks of their own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol.discovery.client import DirectoryFound, DiscoveryClient, Network
from openmsmq.protocol.discovery.server import DiscoveryFacts, answer_query
from openmsmq.runtime.directory import discovery
from openmsmq.runtime.directory.discovery import DiscoveryListener, discover
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.operating_system import interfaces
from openmsmq.runtime.operating_system.interfaces import local_networks, network_of
from openmsmq.runtime.start_errors import StartError
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery
from tests.runtime.namespaces import Host, Laboratory, required_laboratory
from tests.runtime.scripted_engine import free_port, in_loop, soon

ENTERPRISE = Guid(b"E" * 16)
HOME = Guid(b"H" * 16)
AWAY = Guid(b"A" * 16)
FAR = Guid(b"F" * 16)
LONG_MS = 20_000
"""A wait that is over only if something is wrong."""
SHORT_MS = 400
"""A wait whose end the test waits for."""
SOURCE = Path(__file__).parents[2] / "src"


def facts(site: Guid, *names: str) -> DiscoveryFacts:
    return DiscoveryFacts(ENTERPRISE, (site,), (ENTERPRISE,), names or ("PSC",))


def answering(site: Guid, *names: str) -> Callable[[bytes], bytes | None]:
    told = facts(site, *names)
    return lambda data: answer_query(data, told)


def client(wait_ms: int = LONG_MS) -> DiscoveryClient:
    return DiscoveryClient(ENTERPRISE, HOME, wait_ms=wait_ms)


def query(site: Guid = HOME, request: Guid = FAR) -> bytes:
    return DirectoryQuery(ENTERPRISE, request, site).encode()


@contextlib.asynccontextmanager
async def listening(
    address: str, port: int, answer: Callable[[bytes], bytes | None], **options: object
) -> AsyncIterator[DiscoveryListener]:
    listener = DiscoveryListener([address], answer, EventLog(level="error"), port=port, **options)
    listener.open()
    try:
        yield listener
    finally:
        listener.close()


def is_listening(listener: DiscoveryListener) -> bool:
    return any(door.sockets for door in listener.doors)


def peer(address: str, port: int = 0) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    return made


async def heard(by: socket.socket) -> tuple[bytes, tuple[str, int]]:
    return await soon(asyncio.get_running_loop().sock_recvfrom(by, 10_000))


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop work until something has happened."""
    deadline_s = time.perf_counter() + 10
    while not condition():
        assert time.perf_counter() < deadline_s
        await asyncio.sleep(0.005)


def waiting(by: socket.socket) -> list[bytes]:
    """What has come so far."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(by.recv(10_000))
    return found


# Over loopback.


@pytest.mark.spec("MQSD-2.1-01", "MQSD-3.2.5.1-12")
@in_loop
async def test_a_search_finds_the_server_of_the_own_site_at_once():
    port = free_port("127.0.0.2", "127.0.0.3", "127.255.255.255")
    async with listening("127.0.0.2", port, answering(HOME)):
        network = Network("127.0.0.3", "127.255.255.255")
        found = await soon(discover(client(), [network], port=port))
        assert found == DirectoryFound("127.0.0.2", network, (ENTERPRISE,))


@in_loop
async def test_the_servers_of_one_computer_all_hear_a_search():
    port = free_port("127.0.0.2", "127.0.0.4", "127.255.255.255")
    network = network_of("127.0.0.3/8")
    async with (
        listening("127.0.0.2", port, answering(AWAY, "AWAY1", "AWAY2")),
        listening("127.0.0.4", port, answering(FAR, "FAR")),
    ):
        # Two answers of other sites end the wait.
        found = await soon(discover(client(), [network], port=port))
        assert found is not None
        assert (found.site, found.servers) in [(AWAY, ("AWAY1", "AWAY2")), (FAR, ("FAR",))]
        async with listening("127.0.0.5", port, answering(HOME)):
            asker = peer("127.0.0.3")
            with asker:
                asker.sendto(query(), ("127.255.255.255", port))
                senders = {(await heard(asker))[1][0] for _ in range(3)}
            assert senders == {"127.0.0.2", "127.0.0.4", "127.0.0.5"}


@in_loop
async def test_a_server_of_another_site_alone_is_found_when_the_wait_is_over():
    port = free_port("127.0.0.2", "127.255.255.255")
    async with listening("127.0.0.2", port, answering(AWAY, "ONE", "TWO")):
        network = network_of("127.0.0.3/8")
        found = await soon(discover(client(SHORT_MS), [network], port=port))
        assert found == DirectoryFound("127.0.0.2", network, (ENTERPRISE,), AWAY, ("ONE", "TWO"))


@in_loop
async def test_nobody_there_is_noticed_in_time():
    port = free_port("127.0.0.3", "127.255.255.255")
    began = time.perf_counter()
    networks = [network_of("127.0.0.3/8"), network_of("127.0.0.4/8")]
    assert await soon(discover(client(SHORT_MS), networks, port=port)) is None
    assert time.perf_counter() - began >= 2 * SHORT_MS / 1000


@in_loop
async def test_a_client_that_has_found_a_server_asks_again_only_when_it_must():
    port = free_port("127.0.0.2", "127.255.255.255")
    networks = [network_of("127.0.0.3/8")]
    searcher = client(SHORT_MS)
    async with listening("127.0.0.2", port, answering(HOME)):
        found = await soon(discover(searcher, networks, port=port))
    assert found is not None
    assert await discover(searcher, networks, port=port) == found
    assert await soon(discover(searcher, networks, port=port, force=True)) is None
    assert await soon(discover(searcher, networks, port=port)) is None


@pytest.mark.spec("MQSD-2.2.2-03")
@in_loop
async def test_every_search_has_an_identifier_of_its_own():
    port = free_port("127.255.255.255")
    searcher = client(1)
    with peer("127.255.255.255", port) as ear:
        for _ in range(5):
            await soon(discover(searcher, [network_of("127.0.0.3/8")], port=port))
        queries = [DirectoryQuery.decode(data) for data in waiting(ear)]
    assert len({one.request_id for one in queries}) == 5
    assert {(one.enterprise, one.site) for one in queries} == {(ENTERPRISE, HOME)}


@in_loop
async def test_forged_malformed_and_foreign_answers_do_not_end_a_search():
    port = free_port("127.255.255.255")
    with peer("127.255.255.255", port) as ear, peer("127.0.0.66") as mouth:
        search = asyncio.ensure_future(discover(client(), [network_of("127.0.0.3/8")], port=port))
        data, where = await heard(ear)
        request = DirectoryQuery.decode(data).request_id
        right = DirectoryAnswer(request, (FAR,)).encode()
        for wrong in (
            b"",
            b"rubbish",
            bytes(9_000),
            data,
            right[:-1],
            right + bytes(2),
            DirectoryAnswer(AWAY, (FAR,)).encode(),
        ):
            mouth.sendto(wrong, where)
        mouth.sendto(right, where)
        found = await soon(search)
        assert found is not None
        assert (found.address, found.networks) == ("127.0.0.66", (FAR,))
        # Too late, and nobody is there any more to hear it.
        mouth.sendto(right, where)


@in_loop
async def test_a_flood_of_rubbish_does_not_hide_the_answer_of_another_address():
    port = free_port("127.255.255.255")
    with (
        peer("127.255.255.255", port) as ear,
        peer("127.0.0.66") as flood,
        peer("127.0.0.67") as server,
    ):
        search = asyncio.ensure_future(discover(client(), [network_of("127.0.0.3/8")], port=port))
        data, where = await heard(ear)
        request = DirectoryQuery.decode(data).request_id
        for _ in range(150):
            flood.sendto(DirectoryAnswer(FAR, (FAR,)).encode(), where)
        server.sendto(DirectoryAnswer(request, (FAR,)).encode(), where)
        found = await soon(search)
        assert found is not None
        assert found.address == "127.0.0.67"


@in_loop
async def test_a_cancelled_search_leaves_nothing_open_and_the_client_may_search_again():
    port = free_port("127.0.0.2", "127.255.255.255")
    searcher = client()
    networks = [network_of("127.0.0.3/8")]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(discover(searcher, networks, port=port), 0.05)
    assert not searcher.is_searching
    async with listening("127.0.0.2", port, answering(HOME)):
        assert await soon(discover(searcher, networks, port=port)) is not None


@in_loop
async def test_an_address_that_is_not_ours_is_not_waited_for():
    port = free_port("127.0.0.2", "127.255.255.255")
    places = [Network("203.0.113.9", "203.0.113.255"), network_of("127.0.0.3/8")]
    async with listening("127.0.0.2", port, answering(HOME)):
        found = await soon(discover(client(), places, port=port))
        assert found is not None
        assert found.network == places[1]


# The listener.


@in_loop
async def test_a_server_answers_what_is_sent_to_its_address_and_ignores_the_rest():
    port = free_port("127.0.0.2", "127.255.255.255")
    async with listening("127.0.0.2", port, answering(HOME)):
        with peer("127.0.0.3") as asker:
            for wrong in (b"", b"rubbish", query()[:-1], bytes(9_000), query() + bytes(200)):
                asker.sendto(wrong, ("127.0.0.2", port))
            asker.sendto(query(), ("127.0.0.2", port))
            data, where = await heard(asker)
            assert where == ("127.0.0.2", port)
            assert data == answer_query(query(), facts(HOME))
            assert waiting(asker) == []


@in_loop
async def test_who_asks_too_much_is_ignored_and_others_are_not():
    port = free_port("127.0.0.2", "127.255.255.255")
    moment = [Instant(5_000, 0)]
    async with listening("127.0.0.2", port, answering(HOME), clock=lambda: moment[0]):
        with peer("127.0.0.3") as greedy, peer("127.0.0.4") as modest:
            for _ in range(50):
                greedy.sendto(query(), ("127.0.0.2", port))
            modest.sendto(query(), ("127.0.0.2", port))
            await heard(modest)
            assert len(waiting(greedy)) == 20
            moment[0] = Instant(6_000, 1)
            greedy.sendto(query(), ("127.0.0.2", port))
            await heard(greedy)


@in_loop
async def test_a_flood_leaves_others_their_turn():
    port = free_port("127.0.0.2", "127.255.255.255")
    seconds = itertools.count()
    turns = [0]

    def answer(_: bytes) -> None:
        turns[-1] += 1

    async with listening(
        "127.0.0.2", port, answer, clock=lambda: Instant(1_000 * next(seconds), 0)
    ):
        with peer("127.0.0.3") as greedy:
            for _ in range(150):
                greedy.sendto(query(), ("127.0.0.2", port))
            while sum(turns) < 150:
                turns.append(0)
                await asyncio.sleep(0)
    assert max(turns) == discovery.DATAGRAMS_PER_TURN_MAX_COUNT


@in_loop
async def test_a_port_that_is_taken_is_named_and_nothing_stays_open():
    port = free_port("127.0.0.2", "127.0.0.4", "127.255.255.255")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.4", port))
        listener = DiscoveryListener(
            ["127.0.0.2", "127.0.0.4"], answering(HOME), EventLog(level="error"), port=port
        )
        with pytest.raises(StartError, match=f"127.0.0.4 port {port} .*in use"):
            listener.open()
        assert not is_listening(listener)
        async with listening("127.0.0.2", port, answering(HOME)) as open_one:
            assert is_listening(open_one)
        assert not is_listening(open_one)


@in_loop
async def test_a_server_with_two_addresses_on_a_network_answers_a_broadcast_once():
    port = free_port("127.0.0.2", "127.0.0.4", "127.255.255.255")
    listener = DiscoveryListener(
        ["127.0.0.2", "127.0.0.4"], answering(HOME), EventLog(level="error"), port=port
    )
    listener.open()
    with peer("127.0.0.3") as asker:
        asker.sendto(query(), ("127.255.255.255", port))
        assert (await heard(asker))[1] == ("127.0.0.2", port)
        asker.sendto(query(request=AWAY), ("127.0.0.4", port))
        data, where = await heard(asker)
        assert (DirectoryAnswer.decode(data).request_id, where[0]) == (AWAY, "127.0.0.4")
    listener.close()


@in_loop
async def test_there_is_nothing_to_hear_on_addresses_of_ipv6():
    listener = DiscoveryListener(["::1"], answering(HOME), EventLog(level="error"))
    listener.open()
    assert not is_listening(listener)
    listener.close()


@in_loop
async def test_a_server_that_listens_everywhere_hears_broadcasts_too():
    port = free_port("0.0.0.0")
    async with listening("::", port, answering(HOME)):
        found = await soon(discover(client(), [network_of("127.0.0.3/8")], port=port))
        assert found is not None


@pytest.mark.spec("MQSD-3.2.5-01")
@in_loop
async def test_an_answer_that_the_system_refuses_to_send_costs_nobody_the_server():
    port = free_port("127.0.0.2", "127.255.255.255")
    # No datagram is that long.
    answers = [bytes(100_000), b"fine"]
    async with listening("127.0.0.2", port, lambda _: answers.pop(0)) as listener:
        with peer("127.0.0.3") as asker:
            asker.sendto(query(), ("127.255.255.255", port))
            await until(lambda: len(answers) == 1)
            assert is_listening(listener)
            asker.sendto(query(), ("127.255.255.255", port))
            assert await heard(asker) == (b"fine", ("127.0.0.2", port))


@pytest.mark.spec("MQSD-3.2.5-02")
@in_loop
async def test_a_server_that_gets_no_socket_any_more_stops_and_says_so():
    port = free_port("127.0.0.2", "127.255.255.255")
    lines: list[str] = []
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)

    def answer(_: bytes) -> bytes:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, usual[1]))
        return bytes(100_000)

    listener = DiscoveryListener(
        ["127.0.0.2"], answer, EventLog(level="error", write=lines.append), port=port
    )
    listener.open()
    try:
        with peer("127.0.0.3") as asker:
            asker.sendto(query(), ("127.0.0.2", port))
            await until(lambda: not is_listening(listener))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        listener.close()
    (line,) = lines
    assert f"discovery-stopped door=discovery address=127.0.0.2 port={port}" in line
    assert "too many open files, after an answer could not be sent (message too long)" in line


# Between computers.


class Server:
    """A directory server that listens on a host, on the port of the specification."""

    def __init__(self, host: Host, address: str, answer: Callable[[bytes], bytes | None]) -> None:
        self.host = host
        self.lines: list[str] = []
        log = EventLog(write=self.lines.append)
        self._listener = DiscoveryListener([address], answer, log)
        host.do(self._listener.open)

    @property
    def is_listening(self) -> bool:
        return is_listening(self._listener)

    def close(self) -> None:
        self.host.do(self._listener.close)


@pytest.fixture
def two_networks() -> Iterator[Laboratory]:
    with required_laboratory("one", "two") as lab:
        yield lab


def search(host: Host, searcher: DiscoveryClient, *, force: bool = False) -> DirectoryFound | None:
    """Search on all networks of a host."""
    return host.run(lambda: discover(searcher, force=force))


@pytest.mark.spec("MQSD-3.1.4.1-03")
def test_a_computer_knows_its_networks(two_networks):
    host = two_networks.host("pc", one="10.97.1.9", two="10.97.2.9")
    host.ip("addr", "add", "10.97.1.10/24", "dev", "one")
    host.ip("addr", "add", "10.98.0.9/16", "dev", "two")
    host.ip("addr", "add", "10.99.0.9/32", "dev", "two")
    expected = {
        Network("10.97.1.9", "10.97.1.255"),
        Network("10.97.2.9", "10.97.2.255"),
        Network("10.98.0.9", "10.98.255.255"),
        Network("10.99.0.9", "255.255.255.255"),
    }
    assert set(host.do(local_networks)) == expected
    assert host.do(lambda: local_networks(["10.97.1.10", "::1", "203.0.113.1"])) == (
        Network("10.97.1.10", "10.97.1.255"),
    )
    assert host.do(lambda: local_networks(["127.0.0.7"])) == (
        Network("127.0.0.7", "127.255.255.255"),
    )
    host.ip("link", "set", "one", "down")
    assert {one.address for one in host.do(local_networks)} == {
        "10.97.2.9", "10.98.0.9", "10.99.0.9",
    }  # fmt: skip
    host.ip("link", "set", "two", "down")
    assert host.do(local_networks) == (Network("127.0.0.1", "127.255.255.255"),)


def test_a_computer_with_very_many_addresses_is_looked_at_in_part(two_networks, tmp_path):
    host = two_networks.host("pc", one="10.97.1.9")
    batch = tmp_path / "batch"
    lines = [f"addr add 10.98.{n // 250}.{n % 250 + 1}/32 dev one" for n in range(1_100)]
    batch.write_text("\n".join(lines), encoding="utf-8")
    host.ip("-batch", str(batch))
    assert len(host.do(local_networks)) == interfaces.INTERFACES_MAX_COUNT - 1


def test_a_dialled_network_is_told_from_others(two_networks):
    host = two_networks.host("pc")
    try:
        host.ip("tuntap", "add", "dev", "line", "mode", "tun")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the kernel has no tunnels, which stand in for a modem: {error.stderr}")
    host.ip("addr", "add", "10.97.5.1", "peer", "10.97.5.2", "dev", "line")
    host.ip("link", "set", "line", "up")
    assert host.do(local_networks) == (Network("10.97.5.1", "255.255.255.255", True),)


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_broadcast_finds_a_server_on_another_computer(two_networks, everywhere):
    server = two_networks.host("dc", one="10.97.1.1")
    pc = two_networks.host("pc", one="10.97.1.9")
    listener = Server(server, "0.0.0.0" if everywhere else "10.97.1.1", answering(HOME))
    found = search(pc, client())
    assert found == DirectoryFound("10.97.1.1", Network("10.97.1.9", "10.97.1.255"), (ENTERPRISE,))
    # A broadcast that no router passes on is heard as well.
    limited = [Network("10.97.1.9", "255.255.255.255")]
    again = pc.run(lambda: discover(client(), limited))
    assert again is not None
    assert again.address == "10.97.1.1"
    listener.close()


def test_a_server_of_the_own_site_on_the_second_network_beats_one_of_another_on_the_first(
    two_networks,
):
    other = two_networks.host("far", one="10.97.1.1")
    own = two_networks.host("dc", two="10.97.2.1")
    pc = two_networks.host("pc", one="10.97.1.9", two="10.97.2.9")
    servers = [
        Server(other, "10.97.1.1", answering(AWAY, "FAR")),
        Server(own, "10.97.2.1", answering(HOME)),
    ]
    found = search(pc, client(SHORT_MS))
    assert found is not None
    assert (found.address, found.same_site, found.servers) == ("10.97.2.1", True, ())

    # Without that server, the other site's is better than none; and its cable is cut, too.
    two_networks.cut("dc", "two")
    searcher = client(SHORT_MS)
    found = search(pc, searcher)
    assert found is not None
    assert (found.address, found.site, found.servers) == ("10.97.1.1", AWAY, ("FAR",))
    two_networks.cut("far", "one")
    assert search(pc, searcher, force=True) is None
    two_networks.mend("dc", "two")
    found = search(pc, searcher)
    assert found is not None
    assert found.address == "10.97.2.1"
    for server in servers:
        server.close()


def test_an_answer_on_the_first_network_is_kept_while_the_second_is_silent(two_networks):
    own = two_networks.host("dc", one="10.97.1.1")
    pc = two_networks.host("pc", one="10.97.1.9", two="10.97.2.9")
    server = Server(own, "10.97.1.1", answering(HOME))
    found = search(pc, client(SHORT_MS))
    assert found is not None
    assert found.network == Network("10.97.1.9", "10.97.1.255")
    server.close()


def test_a_server_on_two_networks_answers_once_on_each(two_networks):
    both = two_networks.host("dc", one="10.97.1.1", two="10.97.2.1")
    pc = two_networks.host("pc", one="10.97.1.9", two="10.97.2.9")
    lines: list[str] = []
    listener = DiscoveryListener(
        ["10.97.1.1", "10.97.2.1"], answering(HOME), EventLog(write=lines.append)
    )
    both.do(listener.open)
    assert len(lines) == 2

    async def senders(own: str, broadcast: str) -> list[str]:
        with peer(own) as asker:
            asker.sendto(query(), (broadcast, 1801))
            first = (await heard(asker))[1][0]
            # The answers of both doors would leave at the same time.
            asker.sendto(query(), (first, 1801))
            return [first, (await heard(asker))[1][0], *map(str, waiting(asker))]

    for net in ("10.97.1", "10.97.2"):
        for broadcast in (f"{net}.255", "255.255.255.255"):
            heard_from = pc.run(lambda net=net, to=broadcast: senders(f"{net}.9", to))
            assert heard_from == [f"{net}.1"] * 2
    both.do(listener.close)


def test_a_network_that_cannot_carry_a_broadcast_is_not_waited_for(two_networks):
    own = two_networks.host("dc", two="10.97.2.1")
    pc = two_networks.host("pc", one="10.97.1.9", two="10.97.2.9")
    server = Server(own, "10.97.2.1", answering(HOME))
    networks = pc.do(local_networks)
    pc.ip("link", "set", "one", "down")
    found = pc.run(lambda: discover(client(), networks))
    assert found is not None
    assert found.address == "10.97.2.1"
    server.close()


@pytest.mark.spec("MQSD-3.2.5-01")
def test_a_server_whose_answer_cannot_be_sent_opens_its_port_again(two_networks):
    dc = two_networks.host("dc", one="10.97.1.1")
    pc = two_networks.host("pc", one="10.97.1.9")
    refused: list[bytes] = []

    def answer(data: bytes) -> bytes | None:
        if not refused:
            # From now on nothing can be sent there.
            dc.ip("route", "add", "prohibit", "10.97.1.9/32")
        refused.append(data)
        return answer_query(data, facts(HOME))

    server = Server(dc, "10.97.1.1", answer)
    assert search(pc, client(SHORT_MS)) is None
    assert len(refused) == 1
    assert server.is_listening
    dc.ip("route", "del", "prohibit", "10.97.1.9/32")
    assert search(pc, client()) is not None
    assert not [line for line in server.lines if " error " in line]
    server.close()


@pytest.mark.spec("MQSD-3.2.5-02")
def test_a_server_that_cannot_open_its_port_again_stops_and_says_so(two_networks):
    dc = two_networks.host("dc", one="10.97.1.1")
    pc = two_networks.host("pc", one="10.97.1.9")

    def answer(data: bytes) -> bytes | None:
        dc.ip("addr", "del", "10.97.1.1/24", "dev", "one")
        return answer_query(data, facts(HOME))

    server = Server(dc, "10.97.1.1", answer)
    assert search(pc, client(SHORT_MS)) is None
    assert not server.is_listening
    (line,) = [line for line in server.lines if " error " in line]
    assert "discovery-stopped door=discovery address=10.97.1.1 port=1801" in line
    assert "after an answer could not be sent" in line
    server.close()


def test_the_command_finds_a_server_on_the_networks_of_its_computer(two_networks):
    dc = two_networks.host("dc", one="10.97.1.1")
    pc = two_networks.host("pc", one="10.97.1.9")
    server = Server(dc, "10.97.1.1", answering(HOME, "HQ1", "HQ2"))
    program = (
        "import typer; from openmsmq.cli.enterprise.discover import discover; typer.run(discover)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}

    def command(*arguments: str):
        return pc.command(sys.executable, "-c", program, *arguments, env=environment)

    run = command("--site", str(HOME), "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {
        "address": "10.97.1.1",
        "same_site": True,
        "site": None,
        "servers": [],
        "connected_networks": [str(ENTERPRISE)],
        "own_address": "10.97.1.9",
        "broadcast": "10.97.1.255",
    }
    run = command("--timeout", "0.2")
    assert run.returncode == 0, run.stderr
    assert "HQ1, HQ2" in run.stdout
    server.close()
    run = command("--timeout", "0.2", "--json")
    assert (run.returncode, run.stdout) == (4, "")
    assert "no directory server answered at 10.97.1.255 (from 10.97.1.9), port 1801" in run.stderr

"""Measure what a directory of 10,000 queue managers in 1,000 sites costs its queue managers.

    python -m scripts.large_organisation
    python -m scripts.large_organisation --sites 100 --managers 1000

An organisation is made up: sites on links, two gates and some farm members in each, public queues.
A real directory server gets it; a chain of real copies behind it reads it, hears of changes, and
routes by it. A crowd of connections, which do what copies do, shows what one server stands. The
figures stand in docs/concepts/large-organisations.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import random
import statistics
import time
from pathlib import Path
from typing import Final

import msgspec

import openmsmq
from bench.peers import openmsmq as single
from bench.peers.process import disk_directory, private_mb, processor_s
from openmsmq import aio
from openmsmq.client.blocking import QueueManager
from openmsmq.directory.codec import encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.rules import check
from openmsmq.model.directory import DirectoryObject, Position
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import PublicKey, QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.next_hops import Routes

SEED: Final = 1
GATES_PER_SITE: Final = 2
QUEUES_PER_MANAGER: Final = 2
LINKS_PER_SITE: Final = 3
KEYS_BYTES: Final = (148, 276)
"""Two public keys of each queue manager, of 1,024 and 2,048 bits."""
TIERS_COUNT: Final = 3
"""Copies in a chain: of a region, of a site, of a member of the site."""
CHANGES_COUNT: Final = 20
WRITTEN_AT_A_TIME: Final = 5_000
WITHIN_S: Final = 300.0


class Organisation:
    """What is made up."""

    def __init__(self, site_count: int, manager_count: int) -> None:
        draw = random.Random(SEED)
        self._draw = draw
        self.sites = [Site(identifier=self._guid(), name=f"Site{n:04}") for n in range(site_count)]
        self.managers = [self._manager(number) for number in range(manager_count)]
        self.queues = [
            QueueProperties(
                identifier=self._guid(),
                path_name=rf"{manager.computer_name}\orders{number}",
                kind=QueueKind.PUBLIC,
                manager=manager.identifier,
                label="orders of a farm",
                transactional=True,
            )
            for manager in self.managers
            for number in range(QUEUES_PER_MANAGER)
        ]
        pairs = {(draw.randrange(site), site) for site in range(1, site_count)}
        while len(pairs) < min(LINKS_PER_SITE * site_count, math.comb(site_count, 2)):
            one, other = sorted(draw.sample(range(site_count), 2))
            pairs.add((one, other))
        self.links = [self._link(one, other) for one, other in sorted(pairs)]

    @property
    def objects(self) -> list[DirectoryObject]:
        """All, each behind what it refers to."""
        return [*self.sites, *self.managers, *self.links, *self.queues]

    def _guid(self) -> Guid:
        return Guid(self._draw.randbytes(16))

    def _manager(self, number: int) -> QueueManagerInfo:
        site = number % len(self.sites)
        place = number // len(self.sites)
        name = f"S{site:04}M{place:03}"
        keys = tuple(
            PublicKey(
                "Microsoft Enhanced Cryptographic Provider v1.0", 1, self._draw.randbytes(size)
            )
            for size in KEYS_BYTES
        )
        return QueueManagerInfo(
            identifier=self._guid(),
            computer_name=name,
            qualified_computer_name=f"{name}.site{site:04}.example.org".lower(),
            addresses=(f"10.{site // 256}.{site % 256}.{place + 1}",),
            sites=(self.sites[site].identifier,),
            routing_server=place < GATES_PER_SITE,
            encryption_keys=keys,
        )

    def _link(self, one: int, other: int) -> RoutingLink:
        count = len(self.sites)
        gates = [
            self.managers[site + place * count].identifier
            for site in (one, other)
            for place in range(GATES_PER_SITE)
        ]
        return RoutingLink(
            identifier=self._guid(),
            site1=self.sites[one].identifier,
            site2=self.sites[other].identifier,
            cost=self._draw.randint(1, 100),
            site_gates=tuple(gates),
        )


class Meter:
    """Passes bytes on between a copy and its server, and counts them."""

    def __init__(self, server: str, home: Path) -> None:
        self._server = server
        self.path = home / "meter.sock"
        self.bytes_count = 0

    async def open(self) -> asyncio.Server:
        """Listen."""
        return await asyncio.start_unix_server(self._connected, self.path)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await asyncio.open_unix_connection(self._server.removeprefix("unix:"))
        # At the end copies still hold their lines.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(self._pass(reader, far[1]), self._pass(far[0], writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                self.bytes_count += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()


def say(what: str, value: float, unit: str) -> None:
    """Print a figure."""
    text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    print(f"{what:66} {text:>12} {unit}", flush=True)


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--managers", type=int, default=10_000)
    parser.add_argument("--copies", type=int, default=500, help="how many read at one server")
    options = parser.parse_args()
    made = Organisation(options.sites, options.managers)
    print(
        f"{len(made.sites):,} sites, {len(made.links):,} links, {len(made.managers):,} queue "
        f"managers, {len(made.queues):,} public queues"
    )
    image = measure_content(made)
    measure_routes(made, image)
    with disk_directory() as directory:
        asyncio.run(measure_servers(made, directory, options.copies))


def measure_content(made: Organisation) -> DirectoryImage:
    """Say how large it is, and what its rules cost."""
    sizes = [len(encode_object(each)) for each in made.objects]
    say("content of the directory", sum(sizes) / 1e6, "MB")
    say("one queue manager in it", len(encode_object(made.managers[0])), "bytes")
    say("one link in it", len(encode_object(made.links[0])), "bytes")
    image = DirectoryImage(made.objects)
    say(
        "rules for one change", _time_s(lambda: check(image, [_dearer(made.links[0])])) * 1000, "ms"
    )
    return image


def measure_routes(made: Organisation, image: DirectoryImage) -> None:
    """Say what routing tables cost at a gate and elsewhere."""
    gate, member = made.managers[0], made.managers[-1]

    def routes(own: QueueManagerInfo, of: DirectoryImage) -> Routes:
        return Routes(own.identifier, of.sites.values(), of.links.values(), of.managers.values())

    def first_way(own: QueueManagerInfo, of: DirectoryImage) -> None:
        assert routes(own, of).next_hops(made.managers[len(made.managers) // 2 + 1].identifier)

    say(
        "gate: routes from nothing until the first way",
        _time_s(lambda: first_way(gate, image)) * 1e3,
        "ms",
    )
    say("member: the same", _time_s(lambda: first_way(member, image)) * 1e3, "ms")
    known = routes(gate, image)
    begun_s = time.perf_counter()
    for each in made.managers[1:]:
        known.next_hops(each.identifier)
    say("gate: each further way", (time.perf_counter() - begun_s) / len(made.managers) * 1e6, "µs")


async def measure_servers(made: Organisation, directory: Path, crowd: int) -> None:
    """Say what a server, a chain of copies and a crowd cost."""
    with contextlib.ExitStack() as running:
        options = ["--no-transfer", "--directory-server", "--enterprise", "Example"]
        address, pid = running.enter_context(single.launch(directory / "o", "ORIGINAL", options))
        with openmsmq.connect(address, call_timeout_s=WITHIN_S) as original:
            begun_s = time.perf_counter()
            objects = made.objects
            for first in range(0, len(objects), WRITTEN_AT_A_TIME):
                original.write_directory(objects[first : first + WRITTEN_AT_A_TIME])
            say("directory server: to write it all", time.perf_counter() - begun_s, "s")
            say("directory server: private memory", private_mb(pid), "MB")
            await _measure_chain(made, directory, original, address, running)
        await _measure_crowd(made, address, pid, crowd)


async def _measure_chain(
    made: Organisation,
    directory: Path,
    original: QueueManager,
    address: str,
    running: contextlib.ExitStack,
) -> None:
    meter = Meter(address, directory)
    server = await meter.open()
    above, copies = f"unix:{meter.path}", []
    wanted = len(original.read_directory())
    for number in range(1, TIERS_COUNT + 1):
        begun_s = time.perf_counter()
        options = ["--no-transfer", "--directory", above, "--directory-server"]
        starting = single.launch(directory / f"c{number}", f"COPY{number}", options)
        above, pid = await asyncio.to_thread(running.enter_context, starting)
        copy = running.enter_context(openmsmq.connect(above, call_timeout_s=WITHIN_S))
        copies.append(copy)
        await asyncio.to_thread(_wait_for, copy, wanted)
        if number == 1:
            say(
                "copy: from the start of its process until it has all",
                time.perf_counter() - begun_s,
                "s",
            )
            say("copy: bytes over the line until then", meter.bytes_count / 1e6, "MB")
            say("copy: private memory", private_mb(pid), "MB")
    took_s, bytes_counts = [], []
    for number in range(min(CHANGES_COUNT, len(made.links) - 1)):
        positions = [copy.directory_changes().position for copy in copies[-1:]]
        before = meter.bytes_count
        waiting = asyncio.to_thread(_wait_for_change, copies[-1], positions[0])
        task = asyncio.create_task(waiting)
        await asyncio.sleep(0.5)
        begun_s = time.perf_counter()
        await asyncio.to_thread(original.write_directory, [_dearer(made.links[number])])
        took_s.append(await task - begun_s)
        await asyncio.sleep(0.5)
        bytes_counts.append(meter.bytes_count - before)
    say(
        f"a change is at the end of a chain of {TIERS_COUNT} copies, median",
        statistics.median(took_s),
        "s",
    )
    say("the same, longest", max(took_s), "s")
    say("a change: bytes over one line", statistics.median(bytes_counts), "bytes")
    server.close()


async def _measure_crowd(made: Organisation, address: str, pid: int, crowd: int) -> None:
    """Let many connections wait for a change, and read it as copies do."""
    settings = aio.Settings(address=address, call_timeout_s=WITHIN_S)
    clients = [await aio.connect(settings) for _ in range(crowd)]
    try:
        told = await clients[0].directory_changes()
        # Whoever waits is answered when it has moved.
        reading = [asyncio.create_task(_follow(each, told.position)) for each in clients]
        await asyncio.sleep(2)
        used_s, begun_s = processor_s(pid), time.perf_counter()
        await clients[0].write_directory([_dearer(made.links[-1])])
        await asyncio.gather(*reading)
        say(
            f"{crowd:,} copies at one server: all have a change after",
            time.perf_counter() - begun_s,
            "s",
        )
        used_s = processor_s(pid) - used_s
        say("of it the server's processor, for each copy", used_s / crowd * 1e6, "µs")
        now = (await clients[0].directory_changes()).position
        used_s = processor_s(pid)
        for _ in range(10):
            await asyncio.gather(*(each.directory_changes(now) for each in clients))
        used_s = processor_s(pid) - used_s
        say("a question without news: the server's processor", used_s / crowd / 10 * 1e6, "µs")
    finally:
        for each in clients:
            await each.close()


async def _follow(copy: aio.QueueManager, position: Position) -> None:
    while not await copy.wait_for_directory(position, WITHIN_S):
        pass
    assert (await copy.directory_changes(position)).changes


def _wait_for_change(copy: QueueManager, position: Position) -> float:
    while not copy.wait_for_directory(position, WITHIN_S):
        pass
    return time.perf_counter()


def _wait_for(copy: QueueManager, wanted: int) -> None:
    give_up_s = time.perf_counter() + WITHIN_S
    while not _has(copy, wanted):
        assert time.perf_counter() < give_up_s, "a copy never had all"
        time.sleep(0.1)


def _has(copy: QueueManager, wanted: int) -> bool:
    try:
        return len(copy.read_directory()) >= wanted
    except NoDirectory:
        return False


def _dearer(link: RoutingLink) -> RoutingLink:
    return msgspec.structs.replace(link, cost=link.cost + 1)


def _time_s(work: object) -> float:
    assert callable(work)
    took_s = []
    for _ in range(3):
        begun_s = time.perf_counter()
        work()
        took_s.append(time.perf_counter() - begun_s)
    return min(took_s)


if __name__ == "__main__":
    main()

"""Answers by memory that a queue manager shares with clients of its computer, between both ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq
from openmsmq.client.blocking import Queue, QueueManager
from openmsmq.runtime.limits import SLATES_MAX_COUNT
from openmsmq.storage.memory import MemoryStore
from tests.runtime.raw_client import wait_until
from tests.server_thread import ServerThread, start_server

COUNT = 90
QUEUE = r"private$\orders"
FOR_MORE = 1 << 40


@pytest.fixture(params=["uvloop", "asyncio"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    with start_server(
        str(tmp_path),
        store=MemoryStore(),
        api_socket=str(tmp_path / "api.sock"),
        event_loop=request.param,
    ) as running:
        yield running


@pytest.fixture
def address(server: ServerThread, tmp_path: Path) -> str:  # noqa: ARG001 -- it has to run
    with openmsmq.connect(f"unix:{tmp_path}/api.sock") as manager:
        queue = manager.create_queue(QUEUE)
        for number in range(COUNT):
            queue.send(bytes([number]) * 50_000)
    return f"unix:{tmp_path}/api.sock"


def fetched(queue: Queue, start: int = 0, bytes_max: int = 1 << 20) -> tuple[int, bytes, int]:
    """Where the entries are, what they are, and where to go on."""
    raw = queue.fetch_packets(start, FOR_MORE, bytes_max=bytes_max)
    return raw.slate, bytes(raw.entries), raw.next_start


def entries_of_all(manager: QueueManager) -> tuple[set[int], bytes]:
    queue, start, slates, entries = manager.queue(QUEUE), 0, set(), []
    while start < FOR_MORE:
        slate, data, start = fetched(queue, start)
        slates.add(slate)
        entries.append(data)
    return slates, b"".join(entries)


def test_by_slates_come_the_same_messages_as_without(address: str) -> None:
    with (
        openmsmq.connect(address) as plain,
        openmsmq.connect(address, slates=2) as quick,
    ):
        in_answers, wanted = entries_of_all(plain)
        on_slates, found = entries_of_all(quick)
    assert (in_answers, on_slates) == ({0}, {1, 2})
    assert found == wanted
    assert len(wanted) > COUNT * 50_000


def test_an_answer_lasts_until_its_slate_has_its_turn_again(address: str) -> None:
    with openmsmq.connect(address, slates=2) as manager:
        queue = manager.queue(QUEUE)
        first = queue.fetch_packets(0, FOR_MORE, bytes_max=1 << 20)
        kept = bytes(first.entries)
        second = queue.fetch_packets(first.next_start, FOR_MORE, bytes_max=1 << 20)
        assert bytes(first.entries) == kept != bytes(second.entries)
        queue.fetch_packets(second.next_start, FOR_MORE, bytes_max=1 << 20)
        assert bytes(first.entries) != kept


def test_what_does_not_fit_on_a_slate_comes_in_the_answer(address: str) -> None:
    with openmsmq.connect(address) as plain, openmsmq.connect(address, slates=1) as quick:
        wanted = fetched(plain.queue(QUEUE), bytes_max=1 << 40)
        assert fetched(quick.queue(QUEUE), bytes_max=1 << 40) == wanted
        for_slate = fetched(quick.queue(QUEUE), bytes_max=2 << 20)
    assert wanted[0] == 0
    assert wanted[2] == FOR_MORE
    assert for_slate[0] == 1


@pytest.mark.usefixtures("address")
def test_other_computers_get_no_slates(server: ServerThread) -> None:
    with openmsmq.connect(f"{server.host}:{server.port}", slates=2) as manager:
        assert entries_of_all(manager)[0] == {0}


def test_who_comes_when_all_slates_are_given_out_gets_answers_as_others_do(address: str) -> None:
    managers = [openmsmq.connect(address, slates=2) for _ in range(SLATES_MAX_COUNT // 2)]
    try:
        assert all(fetched(each.queue(QUEUE))[0] == 1 for each in managers)
        with openmsmq.connect(address, slates=2) as late:
            assert fetched(late.queue(QUEUE))[0] == 0
    finally:
        for each in managers:
            each.close()


def slates_here() -> int:
    """How many slates are mapped or open in this process, which has both ends."""
    mapped = Path("/proc/self/maps").read_text().count("memfd:slate")
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            mapped += "memfd:slate" in os.readlink(f"/proc/self/fd/{each}")
    return mapped


def test_slates_go_with_their_connection(address: str) -> None:
    # More of them than there may be at a time.
    for _ in range(SLATES_MAX_COUNT):
        with openmsmq.connect(address, slates=2) as manager:
            assert fetched(manager.queue(QUEUE))[0] == 1
            assert slates_here()
        wait_until(lambda: not slates_here())

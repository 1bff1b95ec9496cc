"""The bench of remote reading receives every message, and claims nothing unmeasured."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq
from bench import hostile_rpc, remote
from bench.__main__ import main
from bench.measure import Effort, Figure
from bench.peers import openmsmq_remote
from bench.peers.openmsmq_remote import Reader
from bench.peers.pair import Gate, Job, WorkerLate, run_together
from bench.peers.rpc_strangers import KINDS, QUEUE, VICTIM, Strangers


def test_readers_share_the_messages_of_a_queue_and_leave_none(tmp_path: Path) -> None:
    job = Job("orders", count=20, warm_up=4)
    with openmsmq_remote.start(tmp_path) as addresses:
        openmsmq_remote.prepare(addresses, job)
        share = Job("orders", count=10, warm_up=2)
        told = run_together(addresses, share, [openmsmq_remote.consume] * 2)
        with openmsmq.connect(addresses.split(",")[0]) as manager:
            assert manager.status().message_count == 0
    assert len(told) == 2
    assert all(each.start_s < each.end_s for each in told)


@pytest.mark.parametrize(("ours", "status"), [((500.0, 1000.0), 0), ((499.0, 1000.0), 1)])
def test_one_reader_has_to_reach_half_of_its_peer(ours: tuple[float, float], status: int) -> None:
    def measured(_: Effort) -> Iterator[Figure]:
        rates = {("OpenMSMQ", 1): ours[0], ("OpenMSMQ", 8): ours[1], ("RabbitMQ", 1): 1000.0}
        yield from remote.figures(rates, None)

    assert main(["measured"], {"measured": measured}) == status


def test_eight_readers_have_to_be_twice_as_fast_also_without_a_peer() -> None:
    def alone(_: Effort) -> Iterator[Figure]:
        yield from remote.figures({("OpenMSMQ", 1): 10.0, ("OpenMSMQ", 8): 20.0}, "no package")

    def slow(_: Effort) -> Iterator[Figure]:
        yield from remote.figures({("OpenMSMQ", 1): 10.0, ("OpenMSMQ", 8): 19.0}, "no package")

    assert main(["alone"], {"alone": alone}) == 3
    assert main(["slow"], {"slow": slow}) == 1


def test_hostile_callers_do_what_they_are_called_for_and_an_honest_one_is_served(
    tmp_path: Path,
) -> None:
    home = tmp_path / "remote"
    openmsmq_remote.add_accounts(home, VICTIM)
    done = {
        "stall": "binds that stall",
        "malformed": "malformed fragments",
        "huge": "KB",
        "unproved": "calls of nobody",
        "guesses": "wrong passwords",
        "endless": "further calls",
    }
    with openmsmq_remote.serve(tmp_path, "TARGET") as (addresses, _):
        with openmsmq.connect(addresses.split(",")[0]) as manager:
            manager.create_queue(QUEUE)
        host, _, port = addresses.split(",")[1].rpartition(":")
        for kind in KINDS:
            strangers = Strangers(kind, (host, int(port)), per_s=50)
            asyncio.run(_for_a_while(strangers, done[kind]))
        Reader((host, int(port))).__exit__()


async def _for_a_while(strangers: Strangers, wanted: str) -> None:
    """Let them go on until they have done what they are for."""
    task = asyncio.create_task(strangers.run(2))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(20):
            while not strangers.did[wanted]:  # noqa: ASYNC110 -- it is counted, not announced
                await asyncio.sleep(0.02)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert strangers.did[wanted]


def test_the_bench_of_hostile_callers_begins_no_round_that_would_end_too_late() -> None:
    most_s = hostile_rpc.TIME_MAX_S
    assert hostile_rpc.has_time(1, most_s / 2)
    assert not hostile_rpc.has_time(1, most_s / 2 + 1)
    assert hostile_rpc.has_time(2, most_s * 2 / 3)
    assert not hostile_rpc.has_time(2, most_s * 2 / 3 + 1)


def _goes_on(_address: str, _job: Job, gate: Gate) -> list[float]:
    gate.wait()
    threading.Event().wait()
    return []


def test_work_that_takes_too_long_is_told_from_work_that_fails() -> None:
    with pytest.raises(WorkerLate):
        run_together("", Job("orders", count=1), [_goes_on], 0.2)

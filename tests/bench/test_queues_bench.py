"""The bench of queues moves every message, and claims nothing that it has not measured."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import backlog, queues
from bench.__main__ import main
from bench.measure import Effort, Figure
from bench.peers import bound, openmsmq
from bench.peers.pair import Job, WorkerFailed, run_pair
from bench.queues import PACED, SCENARIOS, Peer

BATCHED = SCENARIOS[0]


@pytest.mark.parametrize("peer", [openmsmq, bound], ids=["openmsmq", "bound"])
def test_every_message_of_a_job_goes_from_the_producer_to_the_consumer(
    peer: Peer, tmp_path: Path
) -> None:
    job = Job("orders", count=600, warm_up=20)
    with peer.start(tmp_path) as address:
        peer.prepare(address, job)
        outcome = run_pair(address, job, peer.produce, peer.consume)
    assert outcome.count == 600
    assert outcome.rate == pytest.approx(600 / outcome.elapsed_s)


def test_at_a_pace_every_send_is_timed(tmp_path: Path) -> None:
    job = Job("orders", count=20, warm_up=1, per_second=200)
    with openmsmq.start(tmp_path) as address:
        openmsmq.prepare(address, job)
        outcome = run_pair(address, job, openmsmq.produce, openmsmq.consume)
    assert len(outcome.waits_s) == 20
    assert outcome.elapsed_s >= 19 / 200


def test_a_worker_that_fails_is_heard_of(tmp_path: Path) -> None:
    with openmsmq.start(tmp_path) as address, pytest.raises(WorkerFailed, match="QueueNotFound"):
        run_pair(address, Job("absent", count=1), openmsmq.produce, openmsmq.consume)


def test_a_bar_against_a_peer_that_is_not_there_is_not_measured_and_not_met(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reasons = {queues.RABBITMQ.NAME: "no package", queues.REDIS.NAME: "no package"}

    def alone(_: Effort) -> Iterator[Figure]:
        rates = {openmsmq.NAME: 50_000.0, bound.NAME: 100_000.0}
        yield from queues.rate_figures(BATCHED, rates, reasons)
        waits = {openmsmq.NAME: 0.001}
        yield from queues.wait_figures(PACED, waits, reasons)

    assert main(["alone"], {"alone": alone}) == 3
    printed = capsys.readouterr().out
    assert printed.count("not measured (no package; make bench-peers") == 3
    assert "pass" not in printed


@pytest.mark.parametrize(("rate", "status"), [(50_000.0, 0), (49_000.0, 1)])
def test_a_rate_has_to_reach_its_bar(rate: float, status: int) -> None:
    rates = {openmsmq.NAME: rate, "RabbitMQ": 12_500.0, "Redis Streams": 20_000.0, bound.NAME: 9e4}

    def measured(_: Effort) -> Iterator[Figure]:
        yield from queues.rate_figures(BATCHED, rates, {})

    assert main(["measured"], {"measured": measured}) == status


@pytest.mark.parametrize(("wait_s", "status"), [(0.0010, 0), (0.0011, 1)])
def test_a_wait_must_not_exceed_its_bar(wait_s: float, status: int) -> None:
    def measured(_: Effort) -> Iterator[Figure]:
        waits = {openmsmq.NAME: wait_s, "RabbitMQ": 0.0010}
        yield from queues.wait_figures(PACED, waits, {})

    assert main(["measured"], {"measured": measured}) == status


def test_the_backlog_runs_only_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    ran = []

    def million(_: Effort) -> Iterator[Figure]:
        ran.append("backlog")
        yield Figure("count", 1e6, "messages")

    assert main([], {"backlog": million}) == 0
    assert ran == []
    assert main(["backlog"], {"backlog": million}) == 0
    assert ran == ["backlog"]
    assert "1,000,000" in capsys.readouterr().out


def test_private_memory_leaves_out_the_pages_of_mapped_files(tmp_path: Path) -> None:
    size = 32 << 20
    file = tmp_path / "data"
    file.write_bytes(bytes(size))
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), size, prot=mmap.PROT_READ) as mapped,
    ):
        mapped.read()
        with_file = backlog.private_mb(os.getpid(), Path("/nowhere"))
        without = backlog.private_mb(os.getpid(), tmp_path)
    assert with_file - without == pytest.approx(size / 1e6, rel=0.1)

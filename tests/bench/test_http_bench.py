"""The bench of HTTP brings every message to its reader, and claims nothing unmeasured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq
from bench import http_posts
from bench.__main__ import main
from bench.measure import Effort, Figure
from bench.peers.openmsmq_http_pair import ONE_BY_ONE, PIPELINED, HttpPair
from bench.peers.pair import Job, run_pair
from tests.runtime.computers import wait_for


@pytest.mark.parametrize("pair", [ONE_BY_ONE, PIPELINED], ids=["one by one", "pipelined"])
def test_every_message_goes_over_http_from_one_queue_manager_to_the_other(
    pair: HttpPair, tmp_path: Path
) -> None:
    job = Job("orders", count=60, warm_up=6)
    with pair.start(tmp_path) as addresses:
        pair.prepare(addresses, job)
        outcome = run_pair(addresses, job, pair.produce, pair.consume)
        source, target, _ = addresses.split(",")
        with openmsmq.connect(target) as manager:
            answers = manager.status().vitals.http_answers
        with openmsmq.connect(source) as manager:
            # The last answers may still be on their way when the reader has all messages.
            wait_for(lambda: [each.message_count for each in manager.outgoing()] == [0])
    assert outcome.count == 60
    assert answers == {"200": 66}


@pytest.mark.parametrize(
    ("rates", "status"),
    [((1_000.0, 3_000.0), 0), ((999.0, 3_000.0), 1), ((1_000.0, 2_999.0), 1)],
)
def test_posts_have_to_reach_their_peer_and_pipelined_ones_three_times_it(
    rates: tuple[float, float], status: int
) -> None:
    def measured(_: Effort) -> Iterator[Figure]:
        named = {ONE_BY_ONE.NAME: rates[0], PIPELINED.NAME: rates[1], "RabbitMQ": 1_000.0}
        yield from http_posts.figures(named, None)

    assert main(["measured"], {"measured": measured}) == status


def test_without_the_peer_nothing_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    def alone(_: Effort) -> Iterator[Figure]:
        rates = {ONE_BY_ONE.NAME: 1e6, PIPELINED.NAME: 1e6}
        yield from http_posts.figures(rates, "no package")

    assert main(["alone"], {"alone": alone}) == 3
    assert "pass" not in capsys.readouterr().out

"""The bench of multicast hears what was sent, in its network, and judges by its bars."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import multicast
from bench.__main__ import main
from bench.measure import Effort, Figure
from bench.multicast import PGM, WAYS, Ways
from bench.peers import network
from bench.peers.multicast import Heard
from bench.peers.pair import Job
from openmsmq.protocol.pgm.limits import PGM_RATE_BYTES_PER_S

RATE = PGM_RATE_BYTES_PER_S
COUNT = 200


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    reason = network.missing()
    if reason is not None:
        pytest.skip(reason)
    with network.network(1 + multicast.RECEIVERS) as hosts:
        yield ",".join(hosts)


@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
def test_every_receiver_hears_what_was_sent(place: str, ways: Ways) -> None:
    heard = multicast.turn(place, Job("", COUNT), ways)
    assert [(each.count, each.is_whole) for each in heard] == [(COUNT, True)] * 2


def test_what_is_counted_is_the_rate_of_the_profile(place: str) -> None:
    heard = multicast.turn(place, Job("", COUNT, per_second=RATE), PGM)
    assert [each.count for each in heard] == [COUNT] * 2
    for each in heard:
        # A busy machine may be slower, and never faster.
        assert 0.3 * RATE < each.wire_bytes / each.elapsed_s < 1.2 * RATE


def heard(rate: float, *, wire: float = 0, is_whole: bool = True) -> list[Heard]:
    """Two receivers, of which one has heard twice as much."""
    return [Heard(round(rate * each), 1.0, round(wire), is_whole) for each in (1, 2)]


@pytest.mark.parametrize(
    ("pace", "pgm", "status"),
    [(1.0, 40.0, 0), (0.89, 40.0, 1), (1.03, 40.0, 1), (1.0, 39.0, 1)],
)
def test_both_bars_count(pace: float, pgm: float, status: int) -> None:
    def measured(_: Effort) -> Iterator[Figure]:
        slow = heard(1, wire=pace * RATE)
        yield from multicast.figures(slow, {"PGM": [heard(pgm)], "UDP": [heard(100.0)]}, "")

    assert main(["measured"], {"measured": measured}) == status


def test_what_was_missed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def measured(_: Effort) -> Iterator[Figure]:
        turns = {"PGM": [heard(90.0)], "UDP": [heard(100.0, is_whole=False)]}
        yield from multicast.figures(heard(1, wire=RATE), turns, "")

    assert main(["measured"], {"measured": measured}) == 0
    assert "2 of 2 receivers missed some" in capsys.readouterr().out


def test_where_there_is_no_network_nothing_is_claimed() -> None:
    def nowhere(_: Effort) -> Iterator[Figure]:
        yield from multicast.figures(None, {}, "only root may make network namespaces")

    assert main(["nowhere"], {"nowhere": nowhere}) == 3

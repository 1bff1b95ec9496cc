"""Multicast: whether PGM keeps to the rate of its profile, and how fast it is without a rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

from bench.measure import Effort, Figure
from bench.peers import multicast, network
from bench.peers.multicast import Heard
from bench.peers.pair import Gate, Job, Work, run_together
from openmsmq.protocol.pgm.limits import PGM_RATE_BYTES_PER_S

RECEIVERS: Final = 2
TURNS: Final = 3
COUNT: Final = 20_000
PACED_COUNT: Final = 600
Ways: TypeAlias = tuple[Work, Callable[[int, str, Job, Gate], list[float]]]
PGM: Final[Ways] = (multicast.send_by_pgm, multicast.hear_by_pgm)
WAYS: Final[dict[str, Ways]] = {
    "PGM": PGM,
    "UDP": (multicast.send_by_udp, multicast.hear_by_udp),
}
TITLE: Final = "without a rate, by a bare loop of UDP"
PACE_BARS: Final = (0.9, 1.02)
"""What has to come of the profile's rate at least, and at most."""
SHARE_BAR: Final = 0.4


def run(effort: Effort) -> Iterator[Figure]:
    """PGM to two receivers: at the profile's rate, and without one beside a bare loop of UDP."""
    reason = network.missing()
    if reason is not None:
        yield from figures(None, {}, reason)
        return
    share = effort.rounds / Effort().rounds
    count, paced = max(100, round(COUNT * share)), max(100, round(PACED_COUNT * share))
    with network.network(1 + RECEIVERS) as hosts:
        place = ",".join(hosts)
        slow = turn(place, Job("", paced, per_second=PGM_RATE_BYTES_PER_S), PGM)
        fast: dict[str, list[list[Heard]]] = {}
        for _ in range(TURNS):
            for name, ways in WAYS.items():
                fast.setdefault(name, []).append(turn(place, Job("", count), ways))
    yield from figures(slow, fast, "")


def turn(place: str, job: Job, ways: Ways) -> list[Heard]:
    """Have one sender, and receivers of all that it sends; give what each has heard."""
    send, hear = ways
    works = [send, *(partial(hear, number) for number in range(1, 1 + RECEIVERS))]
    return [multicast.read_told(each.waits_s) for each in run_together(place, job, works)[1:]]


def figures(
    slow: list[Heard] | None, fast: Mapping[str, list[list[Heard]]], reason: str
) -> Iterator[Figure]:
    """Judge what receivers have heard, at the rate and without; `reason` says why nothing was."""
    least, most = PACE_BARS
    pace = None
    if slow is not None:
        # Nobody may get more than the rate, and nobody less.
        pace = [each.wire_bytes / each.elapsed_s / PGM_RATE_BYTES_PER_S for each in slow]
    for name, found, bar, at_least in (
        ("at the profile's rate, slowest", min, least, True),
        ("at the profile's rate, fastest", max, most, False),
    ):
        value = None if pace is None else found(pace)
        yield Figure(name, value, "times", bar=bar, at_least=at_least, note=reason)
    if slow is None:
        yield Figure(TITLE, None, "times", bar=SHARE_BAR, at_least=True, note=reason)
        return
    rates = {name: max(map(_rate, turns)) for name, turns in fast.items()}
    yield Figure(TITLE, rates["PGM"] / rates["UDP"], "times", bar=SHARE_BAR, at_least=True)
    for name, rate in rates.items():
        heard = [each for turn in fast[name] for each in turn]
        count = sum(not each.is_whole for each in heard)
        note = f"{count} of {len(heard)} receivers missed some" if count else ""
        yield Figure(f"  {name}, slower receiver", rate, "payloads/s", note=note)


def _rate(turn: list[Heard]) -> float:
    """Return what the slower receiver of a turn has heard in a second."""
    return min(each.rate for each in turn)

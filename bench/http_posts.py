"""SRMP: durable messages from one application to another through two queue managers, over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from bench.measure import Effort, Figure
from bench.peers import rabbitmq
from bench.peers.openmsmq_http_pair import ONE_BY_ONE, PIPELINED
from bench.peers.pair import Job, Outcome, run_pair
from bench.peers.process import disk_directory
from bench.queues import INSTALL_HINT, Peer, fastest, sized

RABBITMQ: Final[Peer] = rabbitmq
PEERS: Final[tuple[Peer, ...]] = (ONE_BY_ONE, PIPELINED, RABBITMQ)
TURNS: Final = 5

BARS: Final = {ONE_BY_ONE.NAME: 1.0, PIPELINED.NAME: 3.0}
"""How many times as fast as RabbitMQ each has to be."""

JOBS: Final = {
    ONE_BY_ONE.NAME: Job("single", count=3_000, warm_up=300),
    PIPELINED.NAME: Job("pipelined", count=10_000, warm_up=1_000),
    RABBITMQ.NAME: Job("confirmed", count=3_000, warm_up=300, one_by_one=True),
}
"""One publish of RabbitMQ waits for the confirmation of the one before."""


def run(effort: Effort) -> Iterator[Figure]:
    """Durable 1 KiB to DIRECT=HTTP, by RabbitMQ with a publish that waits for its confirm."""
    share = effort.rounds / Effort().rounds
    outcomes: dict[str, list[Outcome]] = {}
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        reason = RABBITMQ.missing()
        peers = [each for each in PEERS if reason is None or each is not RABBITMQ]
        addresses = {each.NAME: running.enter_context(each.start(directory)) for each in peers}
        for number in range(TURNS):
            for peer in peers:
                job = sized(JOBS[peer.NAME], number, share)
                address = addresses[peer.NAME]
                peer.prepare(address, job)
                outcome = run_pair(address, job, peer.produce, peer.consume)
                outcomes.setdefault(peer.NAME, []).append(outcome)
    yield from figures(fastest(outcomes), reason)


def figures(rates: Mapping[str, float], reason: str | None) -> Iterator[Figure]:
    """Judge rates; `reason` says why RabbitMQ was not measured."""
    for name, bar in BARS.items():
        title = f"{name.rpartition(', ')[2]}, by confirmed publishes"
        if reason is None:
            times = rates[name] / rates[RABBITMQ.NAME]
            yield Figure(title, times, "times", bar=bar, at_least=True)
        else:
            note = f"{reason}; {INSTALL_HINT}"
            yield Figure(title, None, "times", bar=bar, at_least=True, note=note)
    for name, rate in rates.items():
        yield Figure(f"  {name}", rate, "messages/s")

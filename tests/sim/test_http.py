"""Runs in which all that leaves a node leaves over HTTP."""

from __future__ import annotations

import pytest

from openmsmq.sim.runner import make_world, run_seed, run_traced
from openmsmq.sim.scenarios.scenario import Options

POSTS = Options(names=("http",), managers=2, operations=8)


@pytest.mark.parametrize("seed", range(6))
def test_every_promise_is_kept_over_http(seed: int) -> None:
    result = run_seed(seed, POSTS)
    assert (result.sentence, result.detail) == ("", "")


def test_messages_go_over_http_and_over_nothing_else() -> None:
    world = make_world(2, POSTS)
    world.run()
    assert world.posts.post_count > 20
    assert world.network.connection_count == 0
    assert any(message.remote and message.arrivals for message in world.books.messages.values())


def test_http_and_sessions_stand_beside_each_other() -> None:
    mixed = Options(names=("http", "address"), managers=2, operations=8)
    assert run_seed(1, mixed).good


def test_the_same_seed_is_the_same_run() -> None:
    first, second = (run_traced(3, POSTS)[1].digest for _ in range(2))
    assert first == second

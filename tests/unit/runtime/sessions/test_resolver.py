from __future__ import annotations

import asyncio
import threading

import pytest

from openmsmq.runtime.limits import RESOLVER_QUESTIONS_MAX_COUNT
from openmsmq.runtime.sessions import resolver
from openmsmq.runtime.sessions.resolver import Addresses, Resolver, look_up
from tests.runtime.scripted_engine import in_loop, soon


class Answers:
    """What a resolver has said."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Addresses]] = []
        self._news = asyncio.Event()

    def __call__(self, host: str, addresses: Addresses) -> None:
        self.heard.append((host, addresses))
        self._news.set()

    async def count(self, count: int) -> list[tuple[str, Addresses]]:
        while len(self.heard) < count:
            self._news.clear()
            await soon(self._news.wait())
        return self.heard


class NameServer:
    """Answers when it is let to."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Addresses:
        with self._lock:
            self.asked.append(host)
            self._now += 1
            self.most = max(self.most, self._now)
        assert self.gate.wait(20)
        with self._lock:
            self._now -= 1
        return (f"10.0.0.{len(host)}",)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.2", "127.0.0.2"), ("::1", "::1"), ("[2001:DB8::7]", "2001:db8::7")],
)
@in_loop
async def test_an_address_is_answered_without_asking_but_not_before_the_call_is_over(host, address):
    answers = Answers()
    Resolver(answers, look_up=lambda _: pytest.fail("asked")).resolve(host)
    assert answers.heard == []
    assert await answers.count(1) == [(host, (address,))]


@in_loop
async def test_names_are_looked_up_a_few_at_a_time_and_all_are_answered():
    answers, server = Answers(), NameServer()
    asked = Resolver(answers, look_up=server)
    hosts = ["h" * length for length in range(1, 4 * RESOLVER_QUESTIONS_MAX_COUNT)]
    for host in hosts:
        asked.resolve(host)
    server.gate.set()
    heard = await answers.count(len(hosts))
    assert dict(heard) == {host: (f"10.0.0.{len(host)}",) for host in hosts}
    assert 1 < server.most <= RESOLVER_QUESTIONS_MAX_COUNT


@in_loop
async def test_a_name_asked_twice_is_looked_up_and_answered_once_and_again_later():
    answers, server = Answers(), NameServer()
    asked = Resolver(answers, look_up=server)
    asked.resolve("beta")
    asked.resolve("beta")
    server.gate.set()
    await answers.count(1)
    asked.resolve("beta")
    await answers.count(2)
    assert server.asked == ["beta", "beta"]


@in_loop
async def test_a_name_server_that_is_silent_counts_as_not_knowing_and_its_late_answer_as_nothing():
    answers, server = Answers(), NameServer()
    asked = Resolver(answers, look_up=server, timeout_ms=10)
    asked.resolve("beta")
    assert await answers.count(1) == [("beta", ())]
    server.gate.set()
    asked.resolve("127.0.0.1")
    asked.resolve("gamma")
    await answers.count(3)
    assert answers.heard[0] == ("beta", ())
    assert ("beta", ("10.0.0.4",)) not in answers.heard


@in_loop
async def test_more_questions_than_can_wait_are_answered_with_nothing(monkeypatch):
    monkeypatch.setattr(resolver, "RESOLVER_WAITING_MAX_COUNT", 2)
    answers, server = Answers(), NameServer()
    asked = Resolver(answers, look_up=server)
    hosts = [f"host-{number}" for number in range(RESOLVER_QUESTIONS_MAX_COUNT + 3)]
    for host in hosts:
        asked.resolve(host)
    assert await answers.count(1) == [(hosts[-1], ())]
    server.gate.set()
    assert len(await answers.count(len(hosts))) == len(hosts)


@in_loop
async def test_nothing_is_answered_after_the_end():
    answers, server = Answers(), NameServer()
    asked = Resolver(answers, look_up=server)
    asked.resolve("beta")
    asked.resolve("127.0.0.1")
    asked.close()
    server.gate.set()
    other = Answers()
    Resolver(other, look_up=server).resolve("gamma")
    await other.count(1)
    assert answers.heard == []


def test_the_system_knows_this_computer():
    assert {"127.0.0.1", "::1"} & set(look_up("localhost"))


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "nul\0"])
def test_what_cannot_be_a_name_has_no_address(host):
    assert look_up(host) == ()

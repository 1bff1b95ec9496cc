"""The web console: what ten people who look cost a queue manager at full load, and how fast it is.

Both are measured before one queue manager with many queues, one of which is very long. The load is
taken in turns, alone and with viewers; pages in turn with a bare page of Starlette, which does
nothing but answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import statistics
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

import openmsmq
import openmsmq.aio
from bench.measure import Effort, Figure
from bench.peers import openmsmq as single
from bench.peers.pair import Job, run_pair
from bench.peers.process import HOST, child, disk_directory, free_port, processor_s, wait_until
from openmsmq.console.names import segment
from openmsmq.runtime.api.tokens import create_token
from openmsmq.runtime.clocks import read_clocks
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS

QUEUES: Final = 10_000
MESSAGES: Final = 1_000_000
LONG: Final = r"private$\long"
LETTERS: Final = 500
VIEWERS: Final = 10
LOOK_S: Final = 5.0
"""How often a page of the console looks again, as its script does."""
TURN_S: Final = 10.0
"""How long one measurement of the load lasts: each viewer's page is looked at twice."""
TURNS: Final = 7
"""Pairs of measurements, alone and with viewers; the median of their ratios counts."""
CREATED_AT_ONCE_COUNT: Final = 200
"""Queues that are made in one go, so that they share the disk's flushes."""
LOST_BAR: Final = 0.95
PAGES: Final = 101
LIST_BAR_MS: Final = 300.0
PAGE_BAR_MS: Final = 100.0

LONG_PAGE: Final = f"/queues/{segment(LONG)}"
LIVE_PAGES: Final = (
    "/",
    "/queues",
    "/queues?sort=messages&down=1",
    LONG_PAGE,
    "/outgoing",
    "/dead-letters",
    "/connections",
    "/transactions",
    "/sessions",
    "/status",
)
"""What the viewers look at, one page each."""

_START_S: Final = 30.0
_BEGIN_S: Final = time.perf_counter()
_LINK: Final = re.compile(r"console at (http://\S+)/\n")
_FORM_TOKEN: Final = re.compile(r'name="form_token" value="([^"]*)"')
_BARE: Final = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
async def page(_):
    return HTMLResponse("<!doctype html><title>x</title><p>x</p>" * 100)
app = Starlette(routes=[Route("/", page)])
uvicorn.run(app, host=sys.argv[1], port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


def run(effort: Effort) -> Iterator[Figure]:
    """Full load alone and with ten viewers of live pages; two large pages beside a bare one."""
    share = effort.rounds / Effort().rounds
    queues, messages = max(100, round(QUEUES * share)), max(1_000, round(MESSAGES * share))
    with disk_directory() as directory, single.serve(directory) as (address, pid):
        home = directory / "openmsmq"
        _say(f"making {queues:,} queues, and one of {messages:,} messages")
        _fill(address, queues, messages)
        token, _ = create_token(
            home / "data" / "tokens.json",
            "viewers",
            (Scope.ADMIN,),
            now_s=read_clocks().unix_s,
            user=ADMINISTRATORS,
        )
        yield from _pages(address, home, token, queues, messages, share)
        yield from _load(address, pid, home, token, share)


def _fill(address: str, queues: int, messages: int) -> None:
    asyncio.run(_create(address, [rf"private$\branch-{number:05}" for number in range(queues - 1)]))
    with openmsmq.connect(address) as manager:
        manager.create_queue(LONG)
        doomed = manager.create_queue(r"private$\doomed")
        doomed.send_many(["x" * 500] * LETTERS, journal_on_failure=True, recoverable=True)
        doomed.purge()
    for _ in single.fill(address, "long", messages):
        pass


async def _create(address: str, names: list[str]) -> None:
    async with openmsmq.aio.connect(address) as manager:
        for start in range(0, len(names), CREATED_AT_ONCE_COUNT):
            part = names[start : start + CREATED_AT_ONCE_COUNT]
            await asyncio.gather(*(manager.create_queue(name) for name in part))


def _say(sentence: str) -> None:
    """Tell whoever waits how far it is; the figures go elsewhere."""
    print(
        f"  console: {time.perf_counter() - _BEGIN_S:.0f} s: {sentence}",
        file=sys.stderr,
        flush=True,
    )


# Pages.


class Browser:
    """Somebody who looks at pages over one connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        place = urllib.parse.urlsplit(address).netloc
        self._line = http.client.HTTPConnection(place, timeout=60)
        self._headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def sign_in(self, token: str) -> None:
        """Sign in with a token."""
        status, headers, page = self._ask("GET", "/sign-in")
        shown = _FORM_TOKEN.search(page)
        assert status == 200, f"/sign-in: {status} {page[:500]}"
        assert shown is not None, page[:500]
        form = urllib.parse.urlencode({"form_token": shown[1], "token": token})
        self._headers = {"Cookie": _cookie(headers), "Origin": self._address}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, headers, page = self._ask("POST", "/sign-in", form, kind)
        assert status == 303, f"/sign-in: {status} {page[:500]}"
        self._headers = {"Cookie": _cookie(headers)}

    def look(self, path: str, *, live: bool = False) -> float:
        """Get a page; gives how long that took, in seconds."""
        begin = time.perf_counter()
        status, _, page = self._ask("GET", path, None, {"X-Live": "1"} if live else {})
        taken_s = time.perf_counter() - begin
        assert status == 200, f"{path}: {status} {page[:500]}"
        return taken_s

    def _ask(
        self, method: str, path: str, form: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, str]:
        self._line.request(method, path, form, {**self._headers, **(headers or {})})
        answer = self._line.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def _cookie(headers: http.client.HTTPMessage) -> str:
    return headers["set-cookie"].partition(";")[0]


@contextlib.contextmanager
def console(address: str, home: Path) -> Iterator[str]:
    """Run a console before a queue manager; gives where it is."""
    log = home / "console.log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "openmsmq.cli.app", "--qm", address, "console"]
    command += ["--listen", f"{HOST}:0"]
    with child(command, log, _environment()) as process:
        wait_until(
            lambda: _LINK.search(log.read_text(errors="replace")) is not None,
            process,
            log,
            _START_S,
        )
        found = _LINK.search(log.read_text())
        assert found is not None
        yield found[1]


@contextlib.contextmanager
def _bare(home: Path) -> Iterator[str]:
    port, log = free_port(), home / "bare.log"
    command = [sys.executable, "-c", _BARE, HOST, str(port)]
    with child(command, log, _environment()) as process:
        wait_until(lambda: _answers(port), process, log, _START_S)
        yield f"http://{HOST}:{port}"


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), Browser(f"http://{HOST}:{port}") as browser:
        browser.look("/")
        return True
    return False


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _pages(
    address: str, home: Path, token: str, queues: int, messages: int, share: float
) -> Iterator[Figure]:
    names = {
        f"list of {queues:,} queues": ("/queues", LIST_BAR_MS),
        f"page of a queue of {messages:,}": (LONG_PAGE, PAGE_BAR_MS),
    }
    taken: dict[str, list[float]] = {name: [] for name in (*names, "bare")}
    with (
        console(address, home) as there,
        _bare(home) as bare,
        Browser(there) as person,
        Browser(bare) as nobody,
    ):
        person.sign_in(token)
        _say("looking at pages")
        for _ in range(max(5, round(PAGES * share))):
            for name, (path, _) in names.items():
                taken[name].append(person.look(path) * 1000)
            taken["bare"].append(nobody.look("/") * 1000)
    middle = {name: statistics.median(all_ms) for name, all_ms in taken.items()}
    for name, (_, bar) in names.items():
        low, _, high = statistics.quantiles(taken[name], n=4)
        yield Figure(f"{name}, median", middle[name], "ms", low, high, bar)
        yield Figure(f"  {name}, by a bare page", middle[name] / middle["bare"], "times")
    low, _, high = statistics.quantiles(taken["bare"], n=4)
    yield Figure("  a bare page of Starlette, median", middle["bare"], "ms", low, high)


# Load.


class Turn(msgspec.Struct, frozen=True):
    """What came of a turn."""

    rate: float
    processor_us: float
    """Processor time of the queue manager for each message."""


def _load(address: str, pid: int, home: Path, token: str, share: float) -> Iterator[Figure]:
    turn_s = max(1.0, TURN_S * share)
    # So many that a turn lasts long enough for every page to be looked at again.
    trial = _turn(address, pid, "trial", 20_000)
    count = max(1_000, round(trial.rate * turn_s))
    alone: list[Turn] = []
    viewed: list[Turn] = []
    looks: list[float] = []
    pairs_count = max(1, round(TURNS * share))
    for number in range(pairs_count):
        # Either comes first as often as the other.
        for is_viewed in (False, True) if number % 2 == 0 else (True, False):
            if is_viewed:
                with console(address, home) as there, viewing(there, token, looks):
                    viewed.append(_turn(address, pid, f"viewed-{number}", count))
            else:
                alone.append(_turn(address, pid, f"alone-{number}", count))
        kept = viewed[-1].rate / alone[-1].rate
        _say(f"load, pair {number + 1} of {pairs_count}: {kept:.3f} of it with {VIEWERS} viewers")
    pairs = sorted(one.rate / other.rate for one, other in zip(viewed, alone, strict=True))
    name = f"with {VIEWERS} viewers, by alone"
    quarter = len(pairs) // 4
    low, high = pairs[quarter], pairs[-1 - quarter]
    yield Figure(name, statistics.median(pairs), "times", low, high, LOST_BAR, at_least=True)
    for about, turns in (("alone", alone), (f"with {VIEWERS} viewers", viewed)):
        rate, used = (
            statistics.median(getattr(turn, field) for turn in turns)
            for field in ("rate", "processor_us")
        )
        note = f"{used:.2f} us of the queue manager's processor for each"
        yield Figure(f"  {about}", rate, "messages/s", note=note)
    yield Figure("  a page meanwhile, median", statistics.median(looks) * 1000, "ms")


def _turn(address: str, pid: int, queue: str, count: int) -> Turn:
    job = Job(queue, count, warm_up=2_000)
    single.prepare(address, job)
    before = processor_s(pid)
    outcome = run_pair(address, job, single.produce, single.consume)
    used_s = processor_s(pid) - before
    with openmsmq.connect(address) as manager:
        manager.delete_queue(rf"private$\{queue}")
    return Turn(outcome.rate, used_s * 1e6 / (count + job.warm_up))


@contextlib.contextmanager
def viewing(address: str, token: str, looks: list[float]) -> Iterator[None]:
    """Have ten people look at live pages; how long each page took is added to `looks`."""
    is_over = threading.Event()
    problems: list[BaseException] = []
    with contextlib.ExitStack() as opened:
        people = [opened.enter_context(Browser(address)) for _ in range(VIEWERS)]
        for place, person in enumerate(people):
            person.sign_in(token)
            # They have their pages open already: what is measured is that they look on.
            person.look(LIVE_PAGES[place % len(LIVE_PAGES)])
        watching = [
            threading.Thread(target=_watch, args=(person, place, is_over, looks, problems))
            for place, person in enumerate(people)
        ]
        for one in watching:
            one.start()
        try:
            yield
        finally:
            is_over.set()
            for one in watching:
                one.join()
    if problems:
        raise problems[0]


def _watch(
    person: Browser,
    place: int,
    is_over: threading.Event,
    looks: list[float],
    problems: list[BaseException],
) -> None:
    path = LIVE_PAGES[place % len(LIVE_PAGES)]
    # Not all at the same moment, as people are.
    pause_s = LOOK_S * place / VIEWERS
    try:
        while not is_over.wait(pause_s):
            looks.append(person.look(path, live=True))
            pause_s = LOOK_S
    except BaseException as error:
        problems.append(error)

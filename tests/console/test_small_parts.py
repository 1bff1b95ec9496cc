"""The history for small charts, attempts to sign in, and where a console may listen."""

from __future__ import annotations

import asyncio

import pytest

from openmsmq import Settings
from openmsmq.api.messages import QueueStatus
from openmsmq.console import limits
from openmsmq.console.asking.history import History
from openmsmq.console.bodies.downloads import attachment
from openmsmq.console.config import (
    BadConfig,
    ConsoleConfig,
    check_listen,
    is_loopback,
    read_listen,
)
from openmsmq.console.health import Kept
from openmsmq.console.rendering import chart
from openmsmq.console.sessions.attempts import Attempts, Source, source_of
from openmsmq.console.words import duration, lines, plain, rate, size
from tests.console.people import Clock


def queue(name: str = "a", **counts: int) -> QueueStatus:
    texts = {"path_name": name, "format_name": name, "label": ""}
    numbers = {
        field: 0
        for field in QueueStatus.__struct_fields__
        if field not in texts and field not in ("identifier", "service_type")
    }
    values = {**numbers, **texts, "identifier": bytes(16), "service_type": bytes(16), **counts}
    return QueueStatus(**values)  # type: ignore[arg-type]


def test_who_waits_for_an_answer_gets_it_and_does_not_ask_again() -> None:
    clock = Clock()
    asked: list[float] = []

    async def ask() -> int:
        asked.append(clock.now_s)
        await asyncio.sleep(0)
        # A queue manager that hangs: the answer is older than it may be when it comes.
        clock.now_s += limits.CALL_MAX_S
        return len(asked)

    async def look() -> None:
        kept = Kept(ask, clock)
        assert await asyncio.gather(*(kept.get() for _ in range(5))) == [1] * 5
        clock.now_s += limits.HEALTH_KEPT_S
        assert await kept.get() == 2

    asyncio.run(look())


@pytest.mark.parametrize(
    ("host", "names", "shown"),
    [
        ("127.0.0.1", ("console.example",), "127.0.0.1"),
        ("::1", (), "[::1]"),
        ("0.0.0.0", (), "0.0.0.0"),
        ("0.0.0.0", ("console.example", "b"), "console.example"),
        ("::", ("fd00::7",), "[fd00::7]"),
    ],
)
def test_what_is_printed_is_where_a_browser_can_go(
    host: str, names: tuple[str, ...], shown: str
) -> None:
    config = ConsoleConfig(host=host, port=0, own=Settings(), names=names)
    assert config.shown_host(host) == shown


def test_points_come_at_common_times_and_the_oldest_are_forgotten() -> None:
    clock = Clock()
    history = History(clock)
    for number in range(limits.HISTORY_POINTS_COUNT + 5):
        clock.now_s += limits.HISTORY_STEP_S
        history.note([queue(message_count=number)])
    points = history.points("a")
    assert len(points) == limits.HISTORY_POINTS_COUNT
    assert points[-1] == limits.HISTORY_POINTS_COUNT + 4
    assert points[0] == 5


def test_what_is_noted_within_a_step_is_one_point() -> None:
    clock = Clock()
    history = History(clock)
    for count in (1, 2, 3):
        history.note([queue(message_count=count)])
    assert history.points("a") == [3]
    assert history.rates("a") is None


def test_rates_are_those_of_the_last_minute() -> None:
    clock = Clock()
    history = History(clock)
    for step in range(20):
        clock.now_s += limits.HISTORY_STEP_S
        history.note([queue(in_count=step * 50, out_count=step * 20, purged_count=step * 10)])
    rates = history.rates("a")
    assert rates is not None
    assert (rates.came, rates.went) == (5.0, 3.0)


def test_charts_of_rates_have_a_point_between_any_two_looks() -> None:
    clock = Clock()
    history = History(clock)
    assert history.rate_points("a") == ([], [])
    for came, went in ((0, 0), (100, 20), (100, 30), (5, 0)):
        clock.now_s += limits.HISTORY_STEP_S
        history.note([queue(in_count=came, out_count=went)])
    clock.now_s += limits.HISTORY_STEP_S
    history.note([queue("another")])
    # It was begun anew before the fourth, and nobody looked at it with the fifth.
    assert history.rate_points("a") == ([10.0, 0.0, None, None], [2.0, 1.0, None, None])


def test_a_queue_manager_that_has_started_anew_has_no_rate_for_a_moment() -> None:
    clock = Clock()
    history = History(clock)
    for count in (100, 3):
        clock.now_s += limits.HISTORY_STEP_S
        history.note([queue(in_count=count)])
    assert history.rates("a") is None


def test_queues_that_are_gone_are_forgotten_and_there_are_never_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HISTORY_QUEUES_MAX_COUNT", 3)
    clock = Clock()
    history = History(clock)
    history.note([queue(str(number), message_count=1) for number in range(5)])
    assert [bool(history.points(str(number))) for number in range(5)] == [True] * 3 + [False] * 2
    for _ in range(2 * limits.HISTORY_POINTS_COUNT):
        clock.now_s += limits.HISTORY_STEP_S
        history.note([queue("4", message_count=1)])
    assert history.points("0") == []
    assert history.points("4")


def test_a_chart_fits_its_frame() -> None:
    assert chart([]) == chart([5]) == chart([0, 0, 0]) == ""
    line = chart([0, None, 10, 5])
    assert line.split()[0] == "2.0,22.0"
    assert line.split()[1].endswith(",2.0")
    assert len(line.split()) == 3


# Attempts.


def test_attempts_come_back_one_by_one() -> None:
    attempts = Attempts(0.0)
    burst = limits.ATTEMPTS_BURST_COUNT
    one, other = Source("a"), Source("b")
    assert [attempts.wait_s(one, 0.0) for _ in range(burst)] == [0] * burst
    assert attempts.wait_s(one, 0.0) == limits.ATTEMPT_PAUSE_S
    assert attempts.wait_s(other, 0.0) == 0
    assert attempts.wait_s(one, limits.ATTEMPT_PAUSE_S) == 0
    assert attempts.wait_s(one, limits.ATTEMPT_PAUSE_S) > 0


def test_many_addresses_together_have_a_limit_and_are_forgotten() -> None:
    attempts = Attempts(0.0)
    count = limits.SOURCES_MAX_COUNT + 9
    waits = [attempts.wait_s(Source(str(number)), 0.0) for number in range(count)]
    assert waits.count(0) == limits.ATTEMPTS_ALL_BURST_COUNT


def test_nobody_from_elsewhere_uses_up_the_attempts_of_users_of_this_computer() -> None:
    attempts = Attempts(0.0)
    for number in range(2 * limits.ATTEMPTS_ALL_BURST_COUNT):
        attempts.wait_s(Source(str(number)), 0.0)
    assert attempts.wait_s(Source("192.0.2.1"), 0.0) > 0
    assert attempts.wait_s(Source("user 7", is_user=True), 0.0) == 0


OURS = ("127.0.0.1", 1880)


@pytest.mark.parametrize(
    ("theirs", "ours", "user", "source"),
    [
        (("127.0.0.1", 5), OURS, 7, Source("user 7", is_user=True)),
        # Another address of this computer is no other user.
        (("127.9.9.9", 5), OURS, 7, Source("user 7", is_user=True)),
        (("::ffff:127.0.0.1", 5), ("::ffff:127.0.0.1", 1880), 7, Source("user 7", is_user=True)),
        (("192.0.2.1", 5), ("192.0.2.1", 1880), 7, Source("user 7", is_user=True)),
        # Who is not known gets nothing by choosing another address.
        (("127.0.0.1", 5), OURS, None, Source("this computer")),
        (("127.9.9.9", 5), OURS, None, Source("this computer")),
        (("::1", 5), ("::1", 1880), None, Source("this computer")),
        (("192.0.2.1", 5), ("192.0.2.9", 1880), 7, Source("192.0.2.1")),
        # One computer elsewhere has as many addresses of IPv6 as it likes.
        (("2001:db8::1", 5), ("2001:db8:1::9", 1880), 7, Source("2001:db8::/64")),
        (("2001:db8::ffff:2", 5), ("2001:db8:1::9", 1880), 7, Source("2001:db8::/64")),
        (("fe80::1%eth0", 5), ("fe80::9%eth0", 1880), 7, Source("fe80::/64")),
        (("nonsense", 5), OURS, 7, Source("nonsense")),
        (None, OURS, 7, Source("")),
    ],
)
def test_who_tries_is_a_user_of_this_computer_or_an_address(
    theirs: tuple[str, int] | None, ours: tuple[str, int], user: int | None, source: Source
) -> None:
    def owner_of(their_end: tuple[str, int], our_end: tuple[str, int]) -> int | None:
        assert "ffff" not in their_end[0] + our_end[0], "the kernel knows it as IPv4"
        return user

    assert source_of(theirs, ours, owner_of) == source


# Words.


def test_words() -> None:
    assert [duration(seconds) for seconds in (0, 59, 3600, 90_061)] == [
        "0 s",
        "59 s",
        "1 h",
        "1 d 1 h",
    ]
    assert [rate(value) for value in (0, 0.5, 12.34)] == ["0/s", "30.0/min", "12.3/s"]
    assert [size(value) for value in (0, 1023, 1536, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
    ]
    assert plain("a\u202eb\x00", 80) == "a\\u202eb\\x00"
    assert plain("x" * 99, 10) == "xxxxxxxxx…"
    assert lines("a\r\nb\tc\x1b[0m") == "a\nb\tc\\x1b[0m"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        (r"private$\orders", "private-orders"),
        ("../../etc/passwd", "etc-passwd"),
        ('a"; filename="b.exe', "a-filename-b.exe"),
        ("\r\nSet-Cookie: x", "Set-Cookie-x"),
        ("\u202e", "message"),
    ],
)
def test_the_name_of_a_download_is_harmless(name: str, safe: str) -> None:
    assert attachment(name)["Content-Disposition"] == f'attachment; filename="{safe}"'


# Where it listens.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:1880", ("127.0.0.1", 1880)),
        ("[::1]:90", ("::1", 90)),
        ("0.0.0.0", ("0.0.0.0", 1880)),
        ("8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_where_to_listen_is_read(text: str, found: tuple[str, int]) -> None:
    assert read_listen(text) == found


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_beyond_loopback_tls_is_needed(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(BadConfig, match="without TLS"):
        check_listen(host, has_tls=False, allows_plain=False)
    check_listen(host, has_tls=True, allows_plain=False)
    check_listen(host, has_tls=False, allows_plain=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    check_listen(host, has_tls=False, allows_plain=False)

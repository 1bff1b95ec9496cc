"""Commands that watch a queue manager: queues, connections, sessions, metrics, searches."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

import openmsmq as mq
from openmsmq.cli.queues.listing import Found, Rates
from openmsmq.cli.views.output import age_text
from tests.cli.conftest import NUMBERS, command_line, environment
from tests.unit.client.test_metrics import parsed
from tests.unit.client.test_metrics import queue as status_of


@pytest.fixture
def family(openmsmq):
    """The beginning of the names of three queues, with 0, 1 and 2 messages."""
    name = f"private$\\family{next(NUMBERS)}"
    for count, each in enumerate("abc"):
        openmsmq("queue", "create", f"{name}-{each}")
        for _ in range(count):
            openmsmq("send", f"{name}-{each}", "--body", "x")
    return name


def listed(openmsmq, *options):
    result = openmsmq("queue", "list", "--json", *options)
    return [found["path_name"][-1] for found in result.objects]


def test_a_list_is_filtered_sorted_and_cut(openmsmq, family):
    assert listed(openmsmq, "--filter", f"{family}-*") == ["a", "b", "c"]
    assert listed(openmsmq, "--filter", family, "--reverse") == ["c", "b", "a"]
    assert listed(openmsmq, "--filter", family, "--sort", "messages") == ["c", "b", "a"]
    assert listed(openmsmq, "--filter", family, "--sort", "age", "--limit", "1") == ["b"]
    cut = openmsmq("queue", "list", "--filter", family, "--limit", "2")
    assert "2 of 3 queues that fit" in cut.err
    assert "Oldest" in openmsmq("queue", "list", "--filter", family, "--sort", "age").out
    assert openmsmq("queue", "list", "--filter", "nowhere").out == "no queue fits nowhere\n"
    assert "'colour' is not one of" in openmsmq.refused("queue", "list", "--sort=colour", code=2)


def test_what_moves_is_shown_again_and_again(openmsmq, family):
    looks = ("--filter", family, "--watch", "--interval=0.1", "--looks=2")
    found = openmsmq("queue", "list", "--json", *looks).objects
    assert [each["path_name"][-1] for each in found] == ["a", "b", "c"] * 2
    assert [each["in_per_s"] for each in found] == [None] * 3 + [0] * 3
    tables = openmsmq("queue", "list", *looks).out.split("\n\n")
    assert len(tables) == 2
    assert all("In/s" in table and "3 of 3 queues" in table for table in tables)


def test_an_interrupt_ends_a_watch_without_a_word(server, family):
    watch = subprocess.Popen(
        command_line(
            "--qm", server.address, "queue", "list", "--filter", family, "--watch", "--json"
        ),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with watch:
        assert watch.stdout is not None
        assert watch.stderr is not None
        assert json.loads(watch.stdout.readline())["path_name"].startswith(family)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=30) == 0
        assert watch.stderr.read() == ""


def test_rates_are_what_came_and_went_between_two_looks():
    rates = Rates()

    def look(now_s, came, left):
        queue = status_of("q", in_count=came, out_count=left)
        (seen,) = rates.look(Found([queue], 1, 0), int(now_s * 1e9))
        return seen["in_per_s"], seen["out_per_s"]

    assert look(100, 5, 1) == (None, None)
    assert look(102, 25, 2) == (10, 0.5)
    assert look(103, 25, 2) == (0, 0)
    # It was started again, and has counted 4 since.
    assert look(105, 4, 0) == (2, 0)


@pytest.mark.parametrize(
    ("age_s", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (7_260, "2 h 1 min"),
        (7_219, "2 h"),
        (86_400 * 3 + 7_200, "3 d 2 h"),
    ],
)
def test_ages_are_said_in_their_two_largest_units(age_s, text):
    assert age_text(age_s) == text


def test_connections_are_listed_and_closed(openmsmq, server, queue):
    with mq.connect(server.address) as other:
        work = other.begin()
        other.queue(queue).send("x")
        found = next(
            each
            for each in openmsmq("connection", "list", "--json").objects
            if [handle["queue"] for handle in each["open"]] == [queue]
        )
        assert found["open"] == [{"queue": queue, "access": "send", "waiting_count": 0}]
        assert (found["door"], found["is_own"]) == ("tcp", False)
        table = openmsmq("connection", "list").out
        assert f"{queue} (send)" in table
        number = str(found["number"])
        assert openmsmq("connection", "close", number).out == f"closed connection {number}\n"
        with pytest.raises((ConnectionError, mq.MsmqError)):
            work.commit()
    assert "has ended, or never was" in openmsmq.refused("connection", "close", number)
    left = {str(each["number"]) for each in openmsmq("connection", "list", "--json").objects}
    assert number not in left


def test_a_queue_manager_without_sessions_says_so(openmsmq):
    assert openmsmq("session", "list").out == "there is no session\n"
    assert openmsmq("session", "list", "--json").out == ""


def test_a_queue_manager_to_which_nobody_sends_says_so(openmsmq):
    assert openmsmq("sequence", "list").out == "no transactional message has come from elsewhere\n"
    assert openmsmq("sequence", "list", "--rejected", "--json").out == ""


def test_metrics_are_printed_as_prometheus_reads_them(openmsmq, queue):
    openmsmq("send", queue, "--body", "x")
    _, samples = parsed(openmsmq("metrics").out)
    found = {(sample.name, sample.labels): sample.value for sample in samples}
    assert found["openmsmq_queue_messages", (("queue", queue),)] == 1
    assert found["openmsmq_up", ()] == 1
    assert found["openmsmq_disk_free_bytes", ()] > 0


def test_status_says_how_disk_and_loop_are(openmsmq):
    found = openmsmq("status", "--json").object
    assert found["free_disk_bytes"] > 0
    assert found["commit_count"] > 0
    # Other tests share the queue manager, and may leave some.
    in_doubt = openmsmq("transaction", "list", "--json").objects
    assert (found["session_count"], found["in_doubt_count"]) == (0, len(in_doubt))
    lines = openmsmq("status").out
    for words in ("size of the store", "free on its disk", "commits", "sessions"):
        assert f"\n  {words} " in lines


def test_a_queue_shows_what_came_and_went(openmsmq, queue):
    assert "0 came; none left" in openmsmq("queue", "show", queue).out
    for body in ("a", "b", "c"):
        openmsmq("send", queue, "--body", body)
    openmsmq("receive", queue)
    openmsmq("queue", "purge", queue)
    openmsmq("send", queue, "--body", "d")
    shown = openmsmq("queue", "show", queue).out
    assert "4 came; 1 received, 2 purged" in shown
    assert "oldest message" in shown


def test_a_text_is_looked_for_in_bodies_and_labels(openmsmq, queue):
    openmsmq("send", queue, "--body", "first order")
    openmsmq("send", queue, "--body", "second", "--label", "an order")
    openmsmq("send", queue, "--body", "grüße", "--label", "greeting")

    def found(*options):
        return [each["text"] for each in openmsmq("peek", queue, "--json", *options).objects]

    assert found("--grep", "order") == ["first order"]
    assert found("--grep", "order", "--all") == ["first order", "second"]
    assert found("--grep", "rüß") == ["grüße"]
    sentence = openmsmq.refused("peek", queue, "--grep", "nowhere", code=3)
    assert sentence == f"none of 3 messages in {queue} has 'nowhere'."
    assert "without an option" in openmsmq.refused(
        "peek", queue, "--grep", "x", "--seek", "first", code=2
    )

"""`openmsmq outgoing` shows what waits to leave for other computers, holds it and releases it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openmsmq.api.messages import ConnectionAttempt, OutgoingStatus
from openmsmq.cli.queues.journal import SYSTEM_JOURNAL
from openmsmq.cli.queues.outgoing import (
    OUTGOING_KEYS,
    outgoing_object,
    print_outgoing,
)
from openmsmq.model.queue import CONNECTION_WORDS, ConnectionStatus
from tests.cli.conftest import ServerProcess

NOWHERE = "127.0.99.99"
NUMBERS = itertools.count(1)


@pytest.fixture
def remote(openmsmq: Any) -> Iterator[str]:
    """The name of a queue on a computer that nobody answers for."""
    name = rf"DIRECT=TCP:{NOWHERE}\private$\q{next(NUMBERS)}"
    yield name
    for found in openmsmq("outgoing", "list", "--json").objects:
        if found["message_count"]:
            openmsmq("outgoing", "purge", found["format_name"])


@pytest.fixture
def beta(tmp_path: Path) -> Iterator[ServerProcess]:
    """A second computer."""
    process = ServerProcess(tmp_path / "beta", "--name=BETA")
    yield process
    process.stop()


def shown(openmsmq, name):
    return openmsmq("outgoing", "show", name, "--json").object


def listed(openmsmq):
    return {
        found["format_name"].casefold(): found["message_count"]
        for found in openmsmq("outgoing", "list", "--json").objects
        if found["message_count"]
    }


def test_nothing_waits_before_anything_was_sent(openmsmq, beta):
    result = openmsmq("--qm", beta.address, "outgoing", "list")
    assert result.out == (
        "there are no outgoing queues: nothing waits to leave for another computer\n"
    )
    assert openmsmq("--qm", beta.address, "outgoing", "list", "--json").out == ""


@pytest.mark.usefixtures("remote")
@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        (rf"DIRECT=TCP:{NOWHERE}\private$\orders", rf"DIRECT=TCP:{NOWHERE}\private$\orders"),
        (r"DIRECT=OS:nobody.invalid\private$\a", r"DIRECT=OS:nobody.invalid\private$\a"),
        (r"nobody.invalid\private$\b", r"DIRECT=OS:nobody.invalid\private$\b"),
        (
            "PRIVATE=2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11\\7",
            "PRIVATE=2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11\\7",
        ),
    ],
)
def test_what_is_sent_elsewhere_waits_under_the_name_it_was_sent_to(openmsmq, name, format_name):
    openmsmq("send", name, "--body", "x", "--count", "3")
    assert listed(openmsmq)[format_name.casefold()] == 3
    for known_as in (name, format_name, name.upper()):
        assert shown(openmsmq, known_as)["message_count"] == 3


def test_the_list_is_a_table_for_people(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    heading, *rows = openmsmq("outgoing", "list").out.splitlines()
    assert heading.split() == ["Queue", "Messages", "Size", "State", "Next", "hops"]
    (row,) = [row.split() for row in rows if row.casefold().startswith(remote.casefold())]
    assert row[1] == "1"


def test_a_person_reads_first_why_the_message_has_not_left(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    # By now the attempt may be under way, or have failed: either is said in one sentence.
    sentence, title, *facts = openmsmq("outgoing", "show", remote).out.splitlines()
    assert NOWHERE in sentence
    assert sentence.endswith(".")
    assert title.casefold() == remote.casefold()
    assert {line.split("  ")[1].strip() for line in facts[:4]} == {
        "state",
        "next hops",
        "messages",
        "in flight",
    }


def test_a_paused_queue_says_so_until_it_is_resumed(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    assert openmsmq("outgoing", "pause", remote).out == f"paused {remote}\n"
    found = shown(openmsmq, remote)
    assert (found["paused"], found["state"]) == (True, "ONHOLD")
    assert openmsmq("outgoing", "show", remote).out.startswith("The queue is paused: resume it")
    assert openmsmq("outgoing", "resume", remote).out == f"resumed {remote}\n"
    assert not shown(openmsmq, remote)["paused"]


def test_programs_read_what_was_done(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    for verb, facts in (
        ("pause", {"paused": True}),
        ("resume", {"paused": False}),
        ("resend", {"resent": True}),
        ("purge", {"purged": 1}),
    ):
        assert openmsmq("outgoing", verb, remote, "--json").object == {"queue": remote, **facts}


def test_a_purge_empties_the_outgoing_queue_and_counts(openmsmq, remote):
    openmsmq("send", remote, "--body", "x", "--count", "12")
    assert openmsmq("outgoing", "purge", remote).out == f"deleted 12 messages from {remote}\n"
    assert remote.casefold() not in listed(openmsmq)


def test_waiting_messages_are_looked_at_and_stay(openmsmq, remote):
    sent = [openmsmq("send", remote, "--body", body).out.strip() for body in ("1", "2", "3")]

    def looked(*options: str) -> list[str]:
        found = openmsmq("outgoing", "peek", remote, "--json", *options).objects
        return [message["text"] for message in found]

    assert looked() == ["1"]
    assert looked("--all") == ["1", "2", "3"]
    assert looked("--count", "2") == ["1", "2"]
    assert looked("--id", sent[1]) == ["2"]
    assert "body" in openmsmq("outgoing", "peek", remote).out
    assert shown(openmsmq, remote)["message_count"] == 3


def test_a_message_that_does_not_wait_there_is_missed(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    sentence = openmsmq.refused("outgoing", "peek", remote, "--lookup-id", "1", code=3)
    assert "MQ_ERROR_MESSAGE_NOT_FOUND" in sentence


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "resend", "purge", "peek"])
def test_a_queue_that_nothing_was_sent_to_is_not_there(openmsmq, remote, verb):
    assert "MQ_ERROR_QUEUE_NOT_ACTIVE" in openmsmq.refused("outgoing", verb, remote)


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "resend", "purge", "peek"])
def test_a_queue_of_this_computer_is_not_an_outgoing_one(openmsmq, queue, verb):
    sentence = openmsmq.refused("outgoing", verb, queue)
    assert "MQ_ERROR_UNSUPPORTED_ACCESS_MODE" in sentence


def test_offline_holds_everything_back_until_online(openmsmq, remote):
    openmsmq("send", remote, "--body", "x")
    assert openmsmq("offline").out == "ALPHA is offline\n"
    try:
        assert openmsmq("status", "--json").object["online"] is False
        assert "offline" in openmsmq("status").out
        assert shown(openmsmq, remote)["explanation"] == (
            "This queue manager is offline: bring it online to send."
        )
    finally:
        back = openmsmq("online", "--json").object
    assert back == {"manager_name": "ALPHA", "online": True}
    assert openmsmq("status", "--json").object["online"] is True


def test_status_counts_outgoing_queues_that_have_messages(openmsmq, remote):
    for number in (1, 2):
        openmsmq("send", f"{remote}{number}", "--body", "x")
    assert openmsmq("status", "--json").object["outgoing_count"] == 2
    openmsmq("outgoing", "purge", f"{remote}1")
    assert openmsmq("status", "--json").object["outgoing_count"] == 1
    assert "1 with messages" in openmsmq("status").out


def test_transactional_messages_are_counted_in_their_sequence(openmsmq, remote):
    openmsmq("send", remote, "--body", "x", "--transactional")
    openmsmq("send", remote, "--body", "y", "--transactional", "--count", "4")
    found = shown(openmsmq, remote)
    assert found["sequence"]
    assert (found["message_count"], found["next_number"]) == (5, 6)
    assert "next number 6" in openmsmq("outgoing", "show", remote).out


def test_a_message_that_cannot_arrive_in_time_goes_to_the_dead_letters(openmsmq, remote, queue):
    sent = openmsmq(
        *("send", remote, "--body", "late", "--time-to-reach-queue", "1", "--deadletter"),
        *("--ack", "full-reach-queue", "--admin-queue", queue),
    ).out.strip()
    acknowledged = openmsmq("receive", queue, "--timeout", "20", "--json").object
    assert acknowledged["correlation_id"] == sent
    assert acknowledged["message_class_name"] == "NACK_REACH_QUEUE_TIMEOUT"
    (letter,) = [
        found for found in openmsmq("deadletter", "--json").objects if found["message_id"] == sent
    ]
    assert (letter["text"], letter["reason"]) == ("late", "NACK_REACH_QUEUE_TIMEOUT")
    assert letter["destination"].casefold() == remote.casefold()


@pytest.mark.parametrize("kind", [(), ("--transactional",)])
def test_dead_letters_for_other_computers_are_sent_there_again(openmsmq, remote, kind):
    options = ("--body", "x", "--label", "kept", "--deadletter", *kind)
    sent = openmsmq("send", remote, *options).out.strip()
    openmsmq("outgoing", "purge", remote)
    again = openmsmq("deadletter", "--requeue", "--id", sent, *kind, "--json").object
    assert (again["message_id"], again["requeued"]) == (sent, True)
    waiting = openmsmq("outgoing", "peek", remote, "--json").object
    assert (waiting["text"], waiting["label"]) == ("x", "kept")
    assert waiting["transactional"] == bool(kind)
    assert waiting["message_class_name"] == "NORMAL"


def test_messages_wait_for_a_computer_that_is_down_and_arrive_when_it_is_back(
    openmsmq, server, beta, queue
):
    at_beta = ("--qm", beta.address)
    for name, kind in (("plain", ()), ("ledger", ("--transactional",))):
        openmsmq(*at_beta, "queue", "create", rf"private$\{name}", *kind)
    beta.stop()
    plain, ledger = (rf"DIRECT=TCP:{beta.address}\private$\{name}" for name in ("plain", "ledger"))
    # The other computer answers to an address: it does not know the name of this one.
    admin_queue = rf"DIRECT=TCP:{server.address}\{queue}"
    asked = ("--ack", "full-reach-queue", "--admin-queue", admin_queue)
    sent = openmsmq(
        "send", plain, "--body", "one", "--journal", "--recoverable", *asked
    ).out.strip()
    openmsmq("send", ledger, "--body", "two", "--transactional", "--count", "2")
    assert listed(openmsmq).items() >= {plain.casefold(): 1, ledger.casefold(): 2}.items()

    beta.start()
    for name in (plain, ledger):
        openmsmq("outgoing", "resume", name)
    first = openmsmq(*at_beta, "receive", r"private$\plain", "--timeout", "20", "--json").object
    assert (first["message_id"], first["text"]) == (sent, "one")
    for _ in range(2):
        taken = openmsmq(*at_beta, "receive", r"private$\ledger", "--timeout", "20", "--json")
        assert (taken.object["text"], taken.object["transactional"]) == ("two", True)
    arrived = openmsmq("receive", queue, "--timeout", "20", "--json").object
    assert (arrived["correlation_id"], arrived["message_class_name"]) == (sent, "ACK_REACH_QUEUE")
    kept = openmsmq("receive", SYSTEM_JOURNAL, "--timeout", "20", "--json").object
    assert kept["message_id"] == sent


FULL = OutgoingStatus(
    format_name=r"DIRECT=OS:beta\private$\orders",
    state="CONNECTED",
    explanation="The first message is being sent to beta right now.",
    paused=False,
    message_count=3,
    message_bytes=4096,
    unread_count=5,
    next_hops=["IP=10.0.0.7", "IP=10.0.0.8"],
    address="10.0.0.7",
    in_flight_count=2,
    sequence=0x0000000100000002,
    next_number=9,
    unacknowledged_count=3,
    last_acknowledged_number=5,
    last_ack_time_s=60,
    resend_count=1,
    resend_time_s=120,
    history=[
        ConnectionAttempt(ConnectionStatus.DNS_FAILURE, 0, []),
        ConnectionAttempt(ConnectionStatus.ESTABLISHED, 30, ["10.0.0.7"]),
        ConnectionAttempt(0x80001234, 40, ["10.0.0.8"]),
    ],
)


def test_everything_that_is_known_is_shown(capsys):
    print_outgoing(FULL)
    assert capsys.readouterr().out == (
        "The first message is being sent to beta right now.\n"
        "DIRECT=OS:beta\\private$\\orders\n"
        "  state                  CONNECTED\n"
        "  next hops              IP=10.0.0.7, IP=10.0.0.8\n"
        "  session with           10.0.0.7\n"
        "  messages               3 (4.0 KiB)\n"
        "  in flight              2\n"
        "  sequence               0x0000000100000002, next number 9\n"
        "  not acknowledged       3\n"
        "  acknowledged           up to number 5, at 1970-01-01T00:01:00Z\n"
        "  sent again             1 time, next at 1970-01-01T00:02:00Z\n"
        "  arrived, not received  5\n"
        "\n"
        "Time                  Attempt            Addresses\n"
        "1970-01-01T00:00:00Z  address not found\n"
        "1970-01-01T00:00:30Z  session open       10.0.0.7\n"
        "1970-01-01T00:00:40Z  0x80001234         10.0.0.8\n"
    )


def test_programs_get_all_fields_with_times_and_words():
    found = outgoing_object(FULL)
    assert list(found) == list(OUTGOING_KEYS)
    kept = set(OutgoingStatus.__struct_fields__)
    assert {f"{key}_s" if key.endswith("_time") else key for key in found} == kept
    assert (found["last_ack_time"], found["resend_time"]) == (
        "1970-01-01T00:01:00Z",
        "1970-01-01T00:02:00Z",
    )
    assert found["history"][1] == {
        "time": "1970-01-01T00:00:30Z",
        "status": "established",
        "addresses": ["10.0.0.7"],
    }


def test_every_status_of_a_connection_has_words():
    assert set(CONNECTION_WORDS) == set(ConnectionStatus)

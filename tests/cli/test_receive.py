"""`openmsmq receive` and `openmsmq peek` show the messages that were chosen."""

from __future__ import annotations

import base64
import os
import subprocess
import time

import msgspec
import pytest

from openmsmq.api.messages import Entry
from openmsmq.cli.views.message import MESSAGE_KEYS, message_object
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.packets import decode, encode
from tests.cli.conftest import command_line, environment
from tests.strategies.messages import Draft


def texts(result):
    return [message["text"] for message in result.objects]


def send(openmsmq, queue, *bodies):
    return [openmsmq("send", queue, "--body", body).out.strip() for body in bodies]


def test_the_object_of_a_message_has_the_documented_keys(openmsmq, queue):
    send(openmsmq, queue, "x")
    assert openmsmq("peek", queue, "--json").object.keys() == MESSAGE_KEYS.keys()


def test_receiving_takes_a_message_and_peeking_leaves_it(openmsmq, queue):
    send(openmsmq, queue, "1", "2")
    assert texts(openmsmq("peek", queue, "--json")) == ["1"]
    assert texts(openmsmq("peek", queue, "--json")) == ["1"]
    assert texts(openmsmq("receive", queue, "--json")) == ["1"]
    assert texts(openmsmq("receive", queue, "--json")) == ["2"]


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_an_empty_queue_has_an_exit_code_of_its_own(openmsmq, queue, command):
    sentence = openmsmq.refused(command, queue, "--timeout", "0.05", code=3)
    assert "MQ_ERROR_IO_TIMEOUT" in sentence


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_a_count_gives_so_many_in_order_of_priority(openmsmq, queue, command):
    send(openmsmq, queue, "1", "2")
    openmsmq("send", queue, "--body", "urgent", "--priority", "7")
    assert texts(openmsmq(command, queue, "--count", "2", "--json")) == ["urgent", "1"]


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_all_gives_all_that_are_there(openmsmq, queue, command):
    send(openmsmq, queue, "1", "2", "3")
    assert texts(openmsmq(command, queue, "--all", "--json")) == ["1", "2", "3"]


def test_fewer_messages_than_asked_for_are_no_error(openmsmq, queue):
    send(openmsmq, queue, "1", "2")
    assert texts(openmsmq("receive", queue, "--count", "5", "--json")) == ["1", "2"]


def test_all_of_a_transactional_queue_takes_several_transactions(openmsmq, ledger):
    openmsmq("send", ledger, "--body", "x", "--count", "250", "--transactional")
    assert len(openmsmq("receive", ledger, "--count", "150", "--json").objects) == 150
    assert len(openmsmq("receive", ledger, "--all", "--json").objects) == 100


@pytest.mark.parametrize("command", ["receive", "peek"])
@pytest.mark.parametrize("kind", ["queue", "ledger"])
def test_a_message_is_found_by_its_identifier(openmsmq, request, command, kind):
    queue = request.getfixturevalue(kind)
    option = ["--transactional"] if kind == "ledger" else []
    sent = [
        openmsmq("send", queue, "--body", body, *option).out.strip() for body in ("1", "2", "3")
    ]
    assert texts(openmsmq(command, queue, "--id", sent[1], "--json")) == ["2"]


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_an_answer_is_found_by_the_question(openmsmq, queue, command):
    question, _ = send(openmsmq, queue, "1", "2")
    openmsmq("send", queue, "--body", "answer", "--correlation-id", question)
    found = openmsmq(command, queue, "--correlation-id", question, "--json")
    assert texts(found) == ["answer"]


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_messages_are_found_by_lookup_identifier_and_beside_it(openmsmq, queue, command):
    send(openmsmq, queue, "1", "2", "3", "4")
    places = [
        message["lookup_id"] for message in openmsmq("peek", queue, "--all", "--json").objects
    ]

    def found(*arguments):
        return texts(openmsmq(command, queue, *arguments, "--json"))

    assert found("--lookup-id", str(places[1])) == ["2"]
    assert found("--lookup-id", str(places[1]), "--seek", "next") == ["3"]
    assert found("--lookup-id", str(places[1]), "--seek", "previous") == ["1"]
    assert found("--seek", "last") == ["4"]


def test_a_message_that_is_not_there_has_the_exit_code_of_no_message(openmsmq, queue):
    sentence = openmsmq.refused("receive", queue, "--lookup-id", "1", code=3)
    assert "MQ_ERROR_MESSAGE_NOT_FOUND" in sentence


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--id", "a", "--lookup-id", "1"), "different messages"),
        (("--count", "2", "--all"), "give one of them"),
        (("--timeout", "-1"), "--timeout -1"),
        (("--timeout", "nan"), "--timeout nan"),
        (("--count", "0"), "--count"),
        (("--seek", "middle"), "--seek middle is unknown"),
        (("--seek", "next"), "needs --lookup-id"),
        (("--seek", "last", "--lookup-id", "1"), "takes no --lookup-id"),
    ],
)
def test_options_that_make_no_sense_are_explained(openmsmq, queue, arguments, problem):
    assert problem in openmsmq.refused("receive", queue, *arguments, code=2)


def test_a_person_sees_the_facts_and_the_text(openmsmq, queue):
    openmsmq("send", queue, "--body", "line 1\nline\x1b 2", "--label", "greeting")
    shown = openmsmq("receive", queue).out
    assert "greeting" in shown
    assert "line 1" in shown
    assert "\x1b" not in shown
    assert r"line\x1b 2" in shown


def test_a_person_is_told_of_a_body_that_is_no_text(openmsmq, queue, tmp_path):
    (tmp_path / "body").write_bytes(b"\x00\xff" * 1000)
    openmsmq("send", queue, f"--body-file={tmp_path / 'body'}")
    assert "2.0 KiB" in openmsmq("receive", queue).out


def test_a_waiting_reader_gets_the_message_that_comes(openmsmq, queue, server):
    waiting = subprocess.Popen(
        command_line("--qm", server.address, "receive", queue, "--timeout", "inf", "--json"),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    while not openmsmq("queue", "show", queue, "--json").object["waiting_count"]:
        time.sleep(0.02)
    send(openmsmq, queue, "at last")
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert '"at last"' in out


def test_what_could_not_be_shown_stays_in_a_transactional_queue(openmsmq, ledger, server):
    openmsmq("send", ledger, "--body", "x", "--transactional")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_line("--qm", server.address, "receive", ledger, "--json"),
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert openmsmq("peek", ledger, "--json").object["abort_count"] == 1


def test_a_message_with_a_name_that_is_none_still_comes_out():
    packet = decode(Draft(body=b"what is left").packet())
    user = msgspec.structs.replace(packet.user, response_queue=DirectName("nonsense"))
    data = encode(msgspec.structs.replace(packet, user=user))
    shown = message_object(ReceivedMessage(Entry(1, 0, 0, 0, data), DEFAULT_FORMATTER))
    assert shown["response_queue"] == "DIRECT=nonsense"
    assert shown["text"] == "what is left"


def test_what_is_left_of_a_packet_that_cannot_be_read_comes_out():
    shown = message_object(ReceivedMessage(Entry(7, 0, 1, 0, b"nonsense"), DEFAULT_FORMATTER))
    assert (shown["lookup_id"], shown["abort_count"]) == (7, 1)
    assert base64.b64decode(shown["packet"]) == b"nonsense"
    assert shown["problem"]
    assert "label" not in shown


@pytest.mark.parametrize("search", [(), ("--grep", "1")], ids=["all", "grep"])
def test_peeking_ends_without_a_word_when_nobody_reads_what_it_shows(
    openmsmq, queue, server, search
):
    send(openmsmq, queue, "1", "11", "12")
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        command_line("--qm", server.address, "peek", queue, "--all", *search),
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")

"""`openmsmq message`: a message is copied, changed and sent again, and none is lost or doubled."""

from __future__ import annotations

import base64

import pytest

BOTH = pytest.mark.parametrize("kind", ["queue", "ledger"])


def put(openmsmq, queue, *options, body="hello"):
    return openmsmq("send", queue, "--body", body, *in_transaction(queue), *options).out.strip()


def in_transaction(queue):
    return ["--transactional"] if "\\t" in queue else []


def there(openmsmq, queue):
    return openmsmq("peek", queue, "--all", "--json").objects


def empty(openmsmq, queue):
    return openmsmq("queue", "show", queue, "--json").object["message_count"] == 0


def deaths(openmsmq, queue, sent):
    """Let a message die, and give the queue where its letter is."""
    openmsmq("queue", "purge", queue)
    letters = "system$;deadxact" if in_transaction(queue) else "system$;deadletter"
    assert sent in {each["message_id"] for each in there(openmsmq, letters)}
    return letters


# Copies.


@BOTH
@pytest.mark.parametrize("to", ["queue", "ledger"])
def test_a_copy_is_sent_and_the_message_stays(openmsmq, request, kind, to):
    source = request.getfixturevalue(kind)
    target = rf"private$\{'t' if to == 'ledger' else 'q'}-{kind}-{to}"
    openmsmq("queue", "create", target, *in_transaction(target))
    sent = put(openmsmq, source, "--label", "L", "--application-tag", "7")
    done = openmsmq("message", "copy", source, target, "--id", sent, "--json").object
    assert done["message_id"] == sent
    assert done["transactional"] is (to == "ledger")
    (copy,) = there(openmsmq, target)
    assert copy["message_id"] == done["sent_as"] != sent
    assert (copy["text"], copy["label"], copy["application_tag"]) == ("hello", "L", 7)
    assert [each["message_id"] for each in there(openmsmq, source)] == [sent]


def test_a_copy_can_be_tried_out(openmsmq, queue, ledger):
    put(openmsmq, queue)
    (message,) = there(openmsmq, queue)
    place = str(message["lookup_id"])
    said = openmsmq("message", "copy", queue, ledger, "--lookup-id", place, "--dry-run").out
    assert said == (
        f"would send a copy of {message['message_id']} from {queue} to {ledger}, in a "
        "transaction; the message here stays\n"
    )
    assert empty(openmsmq, ledger)


def test_who_says_not_which_message_is_asked(openmsmq, queue):
    for verb in (["copy", queue, queue], ["edit", queue, "--label", "x"]):
        assert "which message?" in openmsmq.refused("message", *verb, code=2)
    assert "which messages?" in openmsmq.refused("message", "resend", queue, code=2)


def test_what_is_not_there_cannot_be_copied(openmsmq, queue):
    sent = put(openmsmq, queue)
    assert "QUEUE_NOT_FOUND" in openmsmq.refused(
        "message", "copy", queue, r"private$\none", "--id", sent
    )
    openmsmq.refused("message", "copy", queue, queue, "--lookup-id", "1", code=3)
    openmsmq.refused("message", "copy", queue, queue, "--id", "nonsense")


# Changes.


@BOTH
@pytest.mark.parametrize("take_out", [True, False])
def test_a_changed_message_is_new_and_the_rest_of_it_stays(openmsmq, request, kind, take_out):
    queue = request.getfixturevalue(kind)
    sent = put(
        openmsmq,
        queue,
        *("--label", "old", "--application-tag", "7", "--time-to-be-received", "900"),
        *("--response-queue", r"private$\answers", "--deadletter", "--correlation-id", "ab" * 20),
    )
    done = openmsmq(
        *("message", "edit", queue, "--id", sent, "--label", "new", "--body", "other"),
        *(["--take-out"] if take_out else []),
        "--json",
    ).object
    assert done["changes"]["label"] == ["old", "new"]
    before, after = done["changes"].pop("body")
    assert base64.b64decode(before).decode("utf-16-le") == "hello"
    assert base64.b64decode(after).decode("utf-16-le") == "other"
    assert list(done["changes"]) == ["label"]
    found = {each["message_id"]: each for each in there(openmsmq, queue)}
    assert found.keys() == ({done["sent_as"]} if take_out else {sent, done["sent_as"]})
    new = found[done["sent_as"]]
    assert (new["text"], new["label"], new["application_tag"]) == ("other", "new", 7)
    assert (new["time_to_be_received_s"], new["journal_on_failure"]) == (900, True)
    assert new["response_queue"].lower().endswith(r"private$\answers")
    assert new["correlation_id"] == r"{abababab-abab-abab-abab-abababababab}\2880154539"


def test_a_try_shows_what_is_different_line_by_line(openmsmq, queue):
    sent = put(openmsmq, queue, "--label", "old", body="one\ntwo\nthree")
    shown = openmsmq(
        *("message", "edit", queue, "--id", sent, "--body", "one\n2\nthree", "--label", "new"),
        *("--priority", "6", "--time-to-be-received", "60", "--recoverable", "--dry-run"),
    ).out.splitlines()
    assert "  -two" in shown
    assert "  +2" in shown
    assert "label: 'old' -> 'new'" in shown
    assert "priority: 3 -> 6" in shown
    assert "recoverable: no -> yes" in shown
    assert "time_to_be_received_s: none -> 60.0" in shown
    assert shown[-1] == f"would send this to {queue}; nothing was done"
    (message,) = there(openmsmq, queue)
    assert message["message_id"] == sent


def test_bytes_are_changed_by_a_file(openmsmq, queue, tmp_path):
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff")
    sent = put(openmsmq, queue)
    arguments = ("message", "edit", queue, "--id", sent, "--body-file", str(file))
    assert "body: 10 B -> 2 B" in openmsmq(*arguments, "--dry-run").out
    openmsmq(*arguments, "--take-out")
    (message,) = there(openmsmq, queue)
    assert base64.b64decode(message["body"]) == b"\x00\xff"
    assert message["body_type"] == 0


def test_what_a_message_said_can_be_taken_away(openmsmq, queue):
    sent = put(
        openmsmq, queue, "--response-queue", queue, "--time-to-be-received", "60", "--recoverable"
    )
    openmsmq(
        *("message", "edit", queue, "--id", sent, "--take-out", "--response-queue", ""),
        *("--time-to-be-received", "inf", "--no-recoverable"),
    )
    (message,) = there(openmsmq, queue)
    assert message["response_queue"] is None
    assert message["time_to_be_received_s"] is None
    assert message["recoverable"] is False


def test_a_label_cannot_make_a_terminal_do_something(openmsmq, queue):
    sent = put(openmsmq, queue, "--label", "\x1b[2Jx")
    shown = openmsmq("message", "edit", queue, "--id", sent, "--label", "\x1b[31m", "--dry-run")
    assert "\x1b" not in shown.out


def test_what_makes_no_sense_is_refused(openmsmq, queue):
    sent = put(openmsmq, queue)
    edit = ("message", "edit", queue, "--id", sent)
    assert "what is to be changed?" in openmsmq.refused(*edit, code=2)
    assert "two bodies" in openmsmq.refused(*edit, "--body", "a", "--body-file", "b", code=2)
    assert "--ack often" in openmsmq.refused(*edit, "--ack", "often", code=2)
    assert "priority" in openmsmq.refused(*edit, "--priority", "8")
    assert "time_to_be_received_s" in openmsmq.refused(*edit, "--time-to-be-received", "-1")
    assert "identifier" in openmsmq.refused(*edit, "--correlation-id", "x")
    (message,) = there(openmsmq, queue)
    assert message["message_id"] == sent


# Sending again.


@BOTH
def test_a_dead_letter_goes_where_it_was_going(openmsmq, request, kind):
    queue = request.getfixturevalue(kind)
    sent = put(openmsmq, queue, "--deadletter")
    letters = deaths(openmsmq, queue, sent)
    tried = openmsmq("message", "resend", letters, "--id", sent, "--dry-run").out
    how = "in one transaction with taking it out" if kind == "ledger" else "and then take it out"
    assert how in tried
    assert empty(openmsmq, queue)
    done = openmsmq("message", "resend", letters, "--id", sent, "--json").object
    (again,) = there(openmsmq, queue)
    assert again["message_id"] == done["sent_as"]
    assert (again["text"], again["message_class"]) == ("hello", 0)
    openmsmq.refused("peek", letters, "--id", sent, code=3)


@BOTH
def test_what_a_journal_has_is_sent_again_and_stays(openmsmq, request, kind):
    queue = request.getfixturevalue(kind)
    openmsmq("queue", "change", queue, "--journal")
    for number in range(3):
        put(openmsmq, queue, body=str(number))
    openmsmq("receive", queue, "--all")
    journal = f"{queue};journal"
    said = openmsmq("message", "resend", journal, "--count", "2")
    assert said.out == "sent 2 messages again\n"
    assert [each["text"] for each in there(openmsmq, queue)] == ["0", "1"]
    assert len(there(openmsmq, journal)) == 3
    openmsmq("message", "resend", journal, "--all", "--take-out")
    assert [each["text"] for each in there(openmsmq, queue)] == ["0", "1", "0", "1", "2"]
    assert empty(openmsmq, journal)


def test_a_letter_can_go_elsewhere(openmsmq, queue, ledger):
    sent = put(openmsmq, queue, "--deadletter")
    letters = deaths(openmsmq, queue, sent)
    openmsmq("message", "resend", letters, "--id", sent, "--to", ledger)
    (again,) = there(openmsmq, ledger)
    assert (again["text"], again["transactional"]) == ("hello", True)


def test_a_message_that_is_where_it_was_going_is_not_sent_again(openmsmq, queue):
    sent = put(openmsmq, queue)
    result = openmsmq("message", "resend", queue, "--id", sent, code=1)
    assert "it is where it was going" in result.err
    assert len(there(openmsmq, queue)) == 1


def test_what_cannot_be_sent_again_stays_and_the_others_go(openmsmq, ledger):
    dead = rf"{ledger}-dead"
    openmsmq("queue", "create", dead, "--transactional")
    for target in (ledger, rf"{ledger}-gone"):
        if target != ledger:
            openmsmq("queue", "create", target, "--transactional")
        put(openmsmq, target, "--dead-letter-queue", dead)
        openmsmq("queue", "purge", target)
    openmsmq("queue", "delete", rf"{ledger}-gone")
    result = openmsmq("message", "resend", dead, "--all", code=1)
    assert result.out == "sent 1 message again; 1 could not be\n"
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in result.err
    assert len(there(openmsmq, ledger)) == len(there(openmsmq, dead)) == 1

"""`openmsmq journal` and `openmsmq deadletter` show what was kept, and give it back."""

from __future__ import annotations

import time

import pytest


def letters(openmsmq, *options):
    return openmsmq("deadletter", *options, "--json").objects


def wait_for_letter(openmsmq, **wanted):
    """Wait until a message that is on its way to the dead letters is there."""
    for _ in range(400):
        for letter in letters(openmsmq):
            if wanted.items() <= letter.items():
                return letter
        time.sleep(0.05)
    raise AssertionError(f"{wanted} did not become a dead letter")


def test_the_journal_of_a_queue_has_what_was_received(openmsmq, queue):
    openmsmq("queue", "change", queue, "--journal")
    assert openmsmq("journal", queue).out == f"no messages in {queue};journal\n"
    assert openmsmq("journal", queue, "--json").objects == []
    for body in ("1", "2"):
        openmsmq("send", queue, "--body", body)
    openmsmq("receive", queue, "--all")
    assert [each["text"] for each in openmsmq("journal", queue, "--json").objects] == ["1", "2"]
    assert openmsmq("journal", queue).out.count("NORMAL") == 2
    assert len(openmsmq("journal", queue, "--count", "1", "--json").objects) == 1
    assert openmsmq("journal", queue, "--receive", "--count", "1", "--json").object["text"] == "1"
    assert openmsmq("journal", queue, "--purge", "--json").object["purged"] == 1


def test_the_journal_of_the_system_has_what_was_sent(openmsmq, queue):
    sent = openmsmq("send", queue, "--body", "kept", "--journal").out.strip()
    found = openmsmq("journal", "--id", sent, "--json").object
    assert found["text"] == "kept"
    assert openmsmq("journal", "--receive", "--id", sent, "--json").object["text"] == "kept"
    openmsmq.refused("journal", "--receive", "--id", sent, code=3)


def test_the_journal_may_be_named_itself(openmsmq, queue):
    openmsmq("queue", "change", queue, "--journal")
    openmsmq("send", queue, "--body", "tea")
    openmsmq("receive", queue)
    for name in (f"{queue};journal", rf".\{queue}\Journal$", rf"FormatName:DIRECT=OS:.\{queue}"):
        assert openmsmq("journal", name, "--json").object["text"] == "tea"


def test_dead_letters_of_the_other_kind_are_mentioned(openmsmq, ledger):
    openmsmq("send", ledger, "--body", "x", "--transactional", "--deadletter")
    openmsmq("queue", "purge", ledger)
    assert "in system$;deadxact: `openmsmq deadletter` with --tr" in openmsmq("deadletter").out
    assert "deadxact" not in openmsmq("deadletter", "--json").out
    openmsmq("deadletter", "--transactional", "--purge")
    assert "deadxact" not in openmsmq("deadletter").out


def test_an_expired_message_is_a_dead_letter_and_says_why(openmsmq, queue):
    openmsmq("send", queue, "--body", queue, "--deadletter", "--time-to-be-received", "0")
    letter = wait_for_letter(openmsmq, text=queue)
    assert letter["reason"] == "NACK_RECEIVE_TIMEOUT"
    assert letter["destination"].lower() == rf"direct=os:alpha\{queue}"
    assert "NACK_RECEIVE_TIMEOUT" in openmsmq("deadletter").out
    taken = openmsmq("deadletter", "--receive", "--id", letter["message_id"], "--json").object
    assert (taken["text"], taken["reason"]) == (queue, "NACK_RECEIVE_TIMEOUT")


def test_a_purged_message_is_a_dead_letter(openmsmq, queue):
    sent = openmsmq("send", queue, "--body", "x", "--deadletter").out.strip()
    openmsmq("queue", "purge", queue)
    assert openmsmq("deadletter", "--id", sent, "--json").object["message_id"] == sent
    shown = openmsmq("deadletter", "--receive", "--id", sent).out
    assert shown.startswith(sent)


@pytest.mark.parametrize("kind", ["queue", "ledger"])
def test_a_dead_letter_is_sent_again(openmsmq, request, kind):
    queue = request.getfixturevalue(kind)
    transactional = ["--transactional"] if kind == "ledger" else []
    sent = openmsmq("send", queue, "--body", "x", "--deadletter", *transactional).out.strip()
    openmsmq("queue", "purge", queue)
    done = openmsmq("deadletter", *transactional, "--requeue", "--id", sent, "--json").object
    assert (done["message_id"], done["requeued"], done["error"]) == (sent, True, None)
    again = openmsmq("receive", queue, "--json").object
    assert (again["text"], again["message_class"]) == ("x", 0)
    assert again["message_id"] != sent
    assert sent not in {letter["message_id"] for letter in letters(openmsmq, *transactional)}


def test_a_dead_letter_whose_queue_is_gone_stays(openmsmq, queue):
    sent = openmsmq("send", queue, "--body", "x", "--deadletter").out.strip()
    openmsmq("queue", "delete", queue)
    wait_for_letter(openmsmq, message_id=sent)
    result = openmsmq("deadletter", "--requeue", "--id", sent, code=1)
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in result.err
    assert "could not be" in result.out
    assert openmsmq("deadletter", "--id", sent, "--json").object["text"] == "x"


def test_all_dead_letters_can_be_deleted(openmsmq, ledger):
    openmsmq("send", ledger, "--body", "x", "--deadletter", "--transactional")
    openmsmq("queue", "purge", ledger)
    assert openmsmq("deadletter", "--transactional", "--purge", "--json").object["purged"] >= 1
    assert "no messages in system$;deadxact\n" in openmsmq("deadletter", "--transactional").out


def test_two_things_at_once_are_refused(openmsmq):
    sentence = openmsmq.refused("deadletter", "--purge", "--requeue", code=2)
    assert "--requeue and --purge" in sentence

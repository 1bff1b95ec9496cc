"""`openmsmq queue` creates, shows, changes, empties, moves and deletes queues."""

from __future__ import annotations

import pytest

import openmsmq as mq


def shown(openmsmq, name):
    return openmsmq("queue", "show", name, "--json").object


def test_a_created_queue_has_what_it_was_given(openmsmq):
    name = r"private$\made"
    created = openmsmq(
        *("queue", "create", name, "--transactional", "--journal", "--quota-kb", "100"),
        *("--journal-quota-kb", "50", "--label", "All orders", "--authenticate"),
        *("--privacy", "body", "--json"),
    ).object
    assert created == shown(openmsmq, name)
    assert created["path_name"] == name
    assert created["format_name"].lower() == r"direct=os:alpha\private$\made"
    assert created["transactional"]
    assert created["journaling"]
    assert (created["quota_kb"], created["journal_quota_kb"]) == (100, 50)
    assert created["label"] == "All orders"
    assert created["authenticate"]
    assert created["privacy"] == "body"


def test_a_queue_without_wishes_is_plain(openmsmq, queue):
    found = shown(openmsmq, queue)
    assert not found["transactional"]
    assert not found["journaling"]
    assert (found["quota_kb"], found["privacy"], found["label"]) == (None, "optional", "")


def test_a_name_that_is_taken_is_refused(openmsmq, queue):
    assert "MQ_ERROR_QUEUE_EXISTS" in openmsmq.refused("queue", "create", queue.upper())


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (r"private$\a;b;c", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("system$;journal", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("public", "MQ_ERROR_NO_DS"),
    ],
)
def test_a_name_that_no_queue_can_have_is_refused(openmsmq, name, error):
    assert error in openmsmq.refused("queue", "create", name)


def test_queues_are_listed_and_the_others_on_demand(openmsmq, queue):
    names = [found["path_name"] for found in openmsmq("queue", "list", "--json").objects]
    assert queue in names
    assert names == sorted(names)
    everything = {
        found["path_name"] for found in openmsmq("queue", "list", "--all", "--json").objects
    }
    assert everything > {*names, f"{queue};journal", "system$;deadxact"}
    table = openmsmq("queue", "list").out
    assert table.startswith("Queue")
    assert queue in table


def test_the_names_of_a_queue_lead_to_each_other(openmsmq, queue):
    names = openmsmq("queue", "names", queue, "--json").object
    assert names["path_name"].lower() == rf"alpha\{queue}"
    assert names["format_name"].lower() == rf"direct=os:alpha\{queue}"
    assert names["private_name"].startswith("PRIVATE=")
    for name in names.values():
        assert openmsmq("queue", "names", name, "--json").object == names
    assert names["private_name"] in openmsmq("queue", "names", queue).out
    elsewhere = openmsmq("queue", "names", r"beta\private$\a", "--json").object
    assert elsewhere["private_name"] is None
    assert "MQ_ERROR_NO_DS" in openmsmq.refused("queue", "names", "public")


def test_a_changed_queue_keeps_what_was_not_changed(openmsmq, queue):
    openmsmq("queue", "change", queue, "--label", "new", "--quota-kb", "7")
    changed = openmsmq("queue", "change", queue, "--journal", "--privacy", "none", "--json").object
    assert changed == shown(openmsmq, queue)
    assert (changed["label"], changed["quota_kb"]) == ("new", 7)
    assert (changed["journaling"], changed["privacy"]) == (True, "none")
    openmsmq("queue", "change", queue, "--no-journal", "--quota-kb", "unlimited")
    assert (shown(openmsmq, queue)["journaling"], shown(openmsmq, queue)["quota_kb"]) == (
        False,
        None,
    )


def test_a_change_of_nothing_is_explained(openmsmq, queue):
    assert "at least one" in openmsmq.refused("queue", "change", queue, code=2)


def test_a_quota_that_is_no_number_is_explained(openmsmq, queue):
    sentence = openmsmq.refused("queue", "change", queue, "--quota-kb", "lots", code=2)
    assert "'lots' is no quota" in sentence


def test_a_full_queue_refuses_messages_by_name(openmsmq, queue):
    openmsmq("queue", "change", queue, "--quota-kb", "1")
    sentence = openmsmq.refused("send", queue, "--body", "x" * 1000)
    assert "MQ_ERROR_INSUFFICIENT_RESOURCES" in sentence


def test_a_person_sees_the_facts(openmsmq, queue):
    facts = openmsmq("queue", "show", queue).out
    assert facts.startswith(queue)
    assert "unlimited" in facts


def test_a_deleted_queue_is_gone(openmsmq, queue):
    openmsmq("send", queue, "--body", "x")
    assert openmsmq("queue", "delete", queue).out == f"deleted {queue}, with 1 message\n"
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in openmsmq.refused("queue", "show", queue)
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in openmsmq.refused("queue", "delete", queue)


def test_a_purge_empties_the_queue_and_counts(openmsmq, queue):
    openmsmq("send", queue, "--body", "x", "--count", "12")
    assert openmsmq("queue", "purge", queue).out == f"deleted 12 messages from {queue}\n"
    purged = openmsmq("queue", "purge", queue, "--json").object
    assert purged == {"queue": queue, "purged": 0}


@pytest.fixture
def reserved(openmsmq, server, queue):
    """A queue of which a reader has reserved the first two of three messages."""
    openmsmq("send", queue, "--body", "x", "--count", "3")
    with mq.connect(server.address) as manager:
        manager.queue(queue).reserve("stream", 0, count=2)
    return queue


def test_a_reservation_is_shown_with_its_reader(openmsmq, reserved):
    found = shown(openmsmq, reserved)
    stop = found["last_arrival_number"]
    assert found["reserved_for"] == "stream"
    assert (found["reserved_start"], found["reserved_stop"]) == (0, stop)
    facts = openmsmq("queue", "show", reserved).out
    assert f"for stream, arrival numbers 0 to {stop - 1}\n" in facts


def test_without_a_reservation_none_is_shown(openmsmq, queue):
    found = shown(openmsmq, queue)
    assert found["reserved_for"] is found["reserved_start"] is found["reserved_stop"] is None
    assert "reserved" not in openmsmq("queue", "show", queue).out


def test_a_reservation_is_released(openmsmq, reserved):
    assert len(openmsmq("peek", reserved, "--all", "--json").objects) == 1
    assert openmsmq("queue", "purge", reserved, "--json").object["purged"] == 1
    said = openmsmq("queue", "release", reserved).out
    assert said.startswith(f"released what stream had reserved in {reserved}, arrival numbers 0 to")
    assert said.endswith("everybody can receive it now\n")
    assert openmsmq("queue", "release", reserved).out == f"nothing is reserved in {reserved}\n"
    assert len(openmsmq("receive", reserved, "--all", "--json").objects) == 2


def test_a_program_hears_what_was_released(openmsmq, reserved):
    before = shown(openmsmq, reserved)
    keys = ("reserved_for", "reserved_start", "reserved_stop")
    released = openmsmq("queue", "release", reserved, "--json").object
    assert released == {"queue": reserved, **{key: before[key] for key in keys}}
    again = openmsmq("queue", "release", reserved, "--json").object
    assert again == {"queue": reserved, **dict.fromkeys(keys)}
    sentence = openmsmq.refused("queue", "release", r"private$\none")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in sentence


def bodies(openmsmq, name):
    result = openmsmq("receive", name, "--all", "--json")
    return [(message["text"], message["move_count"]) for message in result.objects]


def test_all_messages_move_to_a_subqueue_and_back(openmsmq, queue):
    openmsmq("send", queue, "--body", "low", "--priority", "0", "--recoverable")
    openmsmq("send", queue, "--body", "high", "--priority", "7")
    moved = openmsmq("queue", "move", queue, f"{queue};later", "--json").object
    assert (moved["moved"], moved["left"]) == (2, 0)
    openmsmq.refused("peek", queue, code=3)
    openmsmq("queue", "move", f"{queue};later", queue)
    assert bodies(openmsmq, queue) == [("high", 2), ("low", 2)]


def test_a_chosen_message_moves_alone(openmsmq, queue):
    sent = [openmsmq("send", queue, "--body", body).out.strip() for body in ("1", "2", "3")]
    openmsmq("queue", "move", queue, f"{queue};poison", "--id", sent[1])
    assert bodies(openmsmq, f"{queue};poison") == [("2", 1)]
    openmsmq("queue", "move", queue, f"{queue};poison", "--count", "1")
    assert bodies(openmsmq, queue) == [("3", 0)]


def test_many_messages_move_in_few_steps(openmsmq, queue):
    openmsmq("send", queue, "--body", "x", "--count", "1100")
    moved = openmsmq("queue", "move", queue, f"{queue};later", "--json").object
    assert moved["moved"] == 1100
    assert shown(openmsmq, f"{queue};later")["message_count"] == 1100


def test_messages_do_not_move_to_another_queue(openmsmq, queue, ledger):
    openmsmq("send", queue, "--body", "x")
    assert "MQ_ERROR" in openmsmq.refused("queue", "move", queue, ledger)
    assert shown(openmsmq, queue)["message_count"] == 1

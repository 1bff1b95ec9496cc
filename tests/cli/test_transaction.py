"""`openmsmq transaction` shows transactions in doubt and ends them."""

from __future__ import annotations

import pytest

import openmsmq as mq


@pytest.fixture
def prepared(ledger, server):
    """A transaction that sends one message and is prepared, but not committed."""
    with mq.connect(server.address) as manager:
        work = manager.begin()
        manager.queue(ledger).send("undecided", transaction=work)
        work.prepare()
        return str(work.unit_of_work)


@pytest.fixture
def part(ledger, server):
    """A part of a batch that a query has yet to commit."""
    with mq.connect(server.address) as manager:
        work = manager.begin()
        manager.queue(ledger).send("staged", transaction=work)
        work.prepare(query="orders by hour", batch=7)
        return str(work.unit_of_work)


def in_doubt(openmsmq):
    return {
        found["transaction_id"]: found
        for found in openmsmq("transaction", "list", "--json").objects
    }


def test_a_transaction_in_doubt_is_listed_and_committed(openmsmq, ledger, prepared):
    found = in_doubt(openmsmq)[prepared]
    assert (found["sent_count"], found["received_count"]) == (1, 0)
    assert prepared in openmsmq("transaction", "list").out
    openmsmq.refused("peek", ledger, code=3)
    assert openmsmq("transaction", "commit", prepared).out == f"committed {prepared}\n"
    assert openmsmq("receive", ledger, "--json").object["text"] == "undecided"
    assert prepared not in in_doubt(openmsmq)


def test_a_transaction_in_doubt_is_aborted(openmsmq, ledger, prepared):
    openmsmq("transaction", "abort", prepared)
    openmsmq.refused("peek", ledger, code=3)
    assert prepared not in in_doubt(openmsmq)


def test_a_part_of_a_batch_names_its_query(openmsmq, prepared, part):
    found = in_doubt(openmsmq)
    assert (found[part]["query"], found[part]["batch"]) == ("orders by hour", 7)
    assert (found[prepared]["query"], found[prepared]["batch"]) == (None, None)
    lines = openmsmq("transaction", "list").out.splitlines()
    assert lines[0].endswith("Query           Batch  Xid")
    assert any(line.endswith("orders by hour      7") for line in lines if part in line)
    assert not any("orders" in line for line in lines if prepared in line)
    openmsmq("transaction", "abort", prepared)
    openmsmq("transaction", "abort", part)


def test_a_part_of_a_batch_is_not_committed_alone(openmsmq, part):
    sentence = openmsmq.refused("transaction", "commit", part)
    assert "batch 7 of 'orders by hour', which commits as a whole" in sentence
    assert openmsmq("transaction", "abort", part).out == f"aborted {part}\n"
    assert part not in in_doubt(openmsmq)


def test_a_query_is_forgotten_with_its_parts(openmsmq, prepared, part):
    assert openmsmq("transaction", "forget", "orders by hour").out == "forgot orders by hour\n"
    found = in_doubt(openmsmq)
    assert prepared in found
    assert part not in found


def test_a_transaction_that_nobody_knows_is_refused(openmsmq):
    unknown = "00112233-4455-6677-8899-aabbccddeeff"
    sentence = openmsmq.refused("transaction", "commit", unknown)
    assert "MQ_ERROR_TRANSACTION_SEQUENCE" in sentence


def test_a_name_that_is_no_transaction_is_refused(openmsmq):
    assert "'seven' is not a GUID" in openmsmq.refused("transaction", "abort", "seven")

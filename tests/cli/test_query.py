"""`openmsmq query` shows what is remembered of queries, and forgets it."""

from __future__ import annotations

import pytest

import openmsmq as mq


@pytest.fixture
def written(server):
    """Two queries that have written batches."""
    with mq.connect(server.address) as manager:
        manager.commit_batch("nightly copy", 3, [])
        manager.commit_batch("orders", 7, [], checkpoint="c1")
    yield
    with mq.connect(server.address) as manager:
        for query in manager.queries():
            manager.forget_query(query.query)


def listed(openmsmq, *arguments):
    return {
        found["query"]: (found["batch"], found["checkpoint"])
        for found in openmsmq("query", "list", "--json", *arguments).objects
    }


@pytest.mark.usefixtures("written")
def test_queries_are_listed_with_their_last_batches(openmsmq):
    assert listed(openmsmq) == {"nightly copy": (3, None), "orders": (7, "c1")}
    assert listed(openmsmq, "--prefix", "ord") == {"orders": (7, "c1")}
    lines = openmsmq("query", "list").out.splitlines()
    assert lines[0].split() == ["Query", "Batch", "Committed", "Owner", "Checkpoint"]
    assert lines[1].startswith("nightly copy      3  ")
    assert lines[2].endswith("  c1")


@pytest.mark.usefixtures("written")
def test_a_query_is_forgotten_and_its_name_is_free_for_another_checkpoint(openmsmq, server):
    assert openmsmq("query", "forget", "orders").out == "forgot orders\n"
    assert listed(openmsmq) == {"nightly copy": (3, None)}
    with mq.connect(server.address) as manager:
        assert manager.commit_batch("orders", 0, [], checkpoint="c2") is True


def test_a_queue_manager_without_queries_says_so(openmsmq):
    assert openmsmq("query", "list").out == "no query is remembered\n"

"""Batches of queries: parts of many senders that commit together, exactly once."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Persist
from openmsmq.model.clock import Instant
from openmsmq.model.limits import (
    ASIDE_FROM_BYTES,
    QUERIES_LISTED_MAX_COUNT,
    QUERIES_OVER_MAX_COUNT,
    QUERY_IDLE_S,
    QUERY_NAME_MAX_BYTES,
    QUERY_SINGLE_IDLE_S,
    STAGED_MAX_AGE_S,
)
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.sids import LOCAL_SYSTEM
from openmsmq.storage import records
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch, StoreFull
from tests.property.snapshots import snapshot
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, START_S, Office, error_name

QUERY = "orders by hour"
SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
INVALID = "MQ_ERROR_INVALID_PARAMETER"
NEW = api.BatchCommitted(False)
BEFORE = api.BatchCommitted(True)


@pytest.fixture(params=[1, ASIDE_FROM_BYTES], ids=["aside", "stored twice"])
def office(request: pytest.FixtureRequest) -> Office:
    return Office(aside_min_bytes=request.param)


def active(office: Office, *sent: bytes) -> api.Begun:
    """Begin a transaction that sends these."""
    begun = office.ok(api.Begin())
    assert isinstance(begun, api.Begun)
    packets = [Draft(body=body, transactional=True).packet() for body in sent]
    office.ok(api.Send(office.open(LEDGER, AccessMode.SEND), packets, begun.transaction))
    return begun


def part(office: Office, *sent: bytes, query: str = QUERY, batch: int = 0) -> bytes:
    """Prepare a part of a batch that sends these; gives its lasting name."""
    begun = active(office, *sent)
    office.ok(api.Prepare(begun.transaction, query, batch))
    return begun.unit_of_work


def refused_part(office: Office, *, query: str = QUERY) -> str:
    """Prepare a part that is refused; gives the name of the error."""
    return office.error(api.Prepare(active(office, b"late").transaction, query, 0))


def commit(
    office: Office, *parts: bytes, query: str = QUERY, batch: int = 0, checkpoint: str = ""
) -> api.AnyReply:
    reply = office.ok(api.CommitBatch(query, batch, list(parts), checkpoint))
    assert isinstance(reply, api.BatchCommitted)
    return reply


def last(office: Office, query: str = QUERY) -> int:
    batch = office.ok(api.GetBatch(query)).batch
    assert isinstance(batch, int)
    return batch


def waiting(office: Office) -> list[tuple[str, int]]:
    """The prepared transactions: query and batch of each."""
    found = office.ok(api.ListTransactions()).transactions
    return sorted((work.query, work.batch) for work in found)


def remembered(office: Office) -> set[str]:
    """The queries of which the store knows something."""
    rows = office.driver.node.store.scan(*records.kind_range(b"B"), 99)
    return {records.batch_of(key) for key, _ in rows}


# Committing.


def test_the_parts_of_a_batch_appear_together_in_the_order_in_which_they_are_named(
    office: Office,
) -> None:
    first, second, third = (part(office, body, body + b"'") for body in (b"a", b"b", b"c"))
    assert waiting(office) == [(QUERY, 0)] * 3
    assert office.bodies(LEDGER) == []
    assert last(office) == -1
    assert commit(office, third, first, second) == NEW
    assert office.bodies(LEDGER) == [b"c", b"c'", b"a", b"a'", b"b", b"b'"]
    assert waiting(office) == []
    assert last(office) == 0
    assert office.ok(api.GetStatus()).transaction_count == 0


def test_a_batch_of_no_parts_counts_too(office: Office) -> None:
    assert commit(office, batch=4) == NEW
    assert last(office) == 4
    assert commit(office, batch=4) == BEFORE


def test_parts_that_are_not_named_were_written_by_somebody_who_failed(office: Office) -> None:
    part(office, b"failed attempt")
    part(office, b"of an earlier batch", batch=0)
    good = part(office, b"good", batch=1)
    part(office, b"doubled task", batch=1)
    part(office, b"of the next batch", batch=2)
    part(office, b"of another query", query="other")
    assert commit(office, good, batch=1) == NEW
    assert office.bodies(LEDGER) == [b"good"]
    assert waiting(office) == [(QUERY, 2), ("other", 0)]


def test_a_part_can_receive_as_well(office: Office) -> None:
    office.send(b"taken", b"left", name=LEDGER)
    begun = office.ok(api.Begin())
    office.ok(api.Receive(office.open(LEDGER), transaction=begun.transaction))
    office.ok(api.Prepare(begun.transaction, QUERY, 0))
    other = part(office, b"sent")
    commit(office, begun.unit_of_work, other)
    assert office.bodies(LEDGER) == [b"left", b"sent"]


def test_a_batch_that_comes_again_is_recognised(office: Office) -> None:
    unit = part(office, b"one")
    assert commit(office, unit) == NEW
    for again in (unit, bytes(16)):
        assert commit(office, again) == BEFORE
    assert commit(office, batch=7) == NEW
    assert (office.bodies(LEDGER), last(office)) == ([b"one"], 7)


@pytest.mark.parametrize("checkpoint", ["", "c1"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_batch_older_than_the_last_one_is_refused_with_a_sentence(
    office: Office, checkpoint: str, restart: bool
) -> None:
    commit(office, batch=7, checkpoint=checkpoint)
    if restart:
        office.restart()
    for request in (
        api.GetBatch(QUERY, 3, checkpoint),
        api.Prepare(active(office, b"new row").transaction, QUERY, 3, checkpoint),
        api.CommitBatch(QUERY, 3, [], checkpoint),
    ):
        reply = office.ask(request)
        assert error_name(reply) == SEQUENCE
        assert isinstance(reply, api.Failed)
        assert "is older than the last one written, 7: an older copy" in reply.detail
    assert (last(office), waiting(office)) == (7, [])


@pytest.mark.parametrize("batch", [0, 7, 8])
@pytest.mark.parametrize("other", ["", "c2"])
def test_a_batch_of_another_checkpoint_is_refused_whatever_its_number(
    office: Office, batch: int, other: str
) -> None:
    commit(office, batch=7, checkpoint="c1")
    office.restart()
    for request in (
        api.GetBatch(QUERY, batch, other),
        api.Prepare(active(office, b"new row").transaction, QUERY, batch, other),
        api.CommitBatch(QUERY, batch, [], other),
    ):
        reply = office.ask(request)
        assert error_name(reply) == SEQUENCE
        assert isinstance(reply, api.Failed)
        assert f"`openmsmq query forget {QUERY!r}`" in reply.detail
    assert (last(office), waiting(office)) == (7, [])
    assert commit(office, batch=7, checkpoint="c1") == BEFORE
    assert commit(office, batch=8, checkpoint="c1") == NEW
    office.ok(api.ForgetQuery(QUERY))
    assert commit(office, batch=batch, checkpoint=other) == NEW


def test_a_batch_that_comes_again_with_more_rows_is_another_one(office: Office) -> None:
    """A copy of the checkpoint that lacks the last batch plans it anew, with what came since."""
    office.ok(api.CommitBatch(QUERY, 7, [], "c1", 4))
    office.restart()
    for fewer in (0, 3, 4, -1):
        assert office.ok(api.CommitBatch(QUERY, 7, [], "c1", fewer)) == BEFORE
    reply = office.ask(api.CommitBatch(QUERY, 7, [], "c1", 5))
    assert error_name(reply) == SEQUENCE
    assert isinstance(reply, api.Failed)
    assert "was written with 4 rows, and comes again with 5" in reply.detail


def test_a_batch_that_comes_again_with_another_end_is_another_one(office: Office) -> None:
    """It has as many rows, and they are others: its number alone would let them vanish."""
    office.ok(api.CommitBatch(QUERY, 7, [], "c1", 4, "here"))
    office.restart()
    for rows, end in ((4, "here"), (5, "here"), (4, "")):
        assert office.ok(api.CommitBatch(QUERY, 7, [], "c1", rows, end)) == BEFORE
    for rows in (0, 1, 4, 5):
        reply = office.ask(api.CommitBatch(QUERY, 7, [], "c1", rows, "elsewhere"))
        assert error_name(reply) == SEQUENCE
        assert isinstance(reply, api.Failed)
        assert "was written, and comes again with another end: an older copy" in reply.detail
        assert "Put the newer checkpoint back" in reply.detail
    assert office.ok(api.CommitBatch(QUERY, 8, [], "c1", 0, "elsewhere")) == NEW
    # Nothing can be missing or there twice if neither has rows.
    assert office.ok(api.CommitBatch(QUERY, 8, [], "c1", 0, "farther")) == BEFORE
    assert office.error(api.CommitBatch(QUERY, 8, [], "c1", 1, "farther")) == SEQUENCE


def test_a_batch_that_was_noted_without_a_checkpoint_gets_one_with_the_next(
    office: Office,
) -> None:
    """As versions have written it that did not know of checkpoints."""
    commit(office, batch=7)
    assert commit(office, batch=7, checkpoint="c1") == BEFORE
    assert commit(office, batch=8, checkpoint="c1") == NEW
    assert office.error(api.CommitBatch(QUERY, 9, [], "c2")) == SEQUENCE


def test_a_record_without_a_checkpoint_is_read() -> None:
    old = msgspec.msgpack.encode({"batch": 7, "committed_time_s": 1, "owner": "o"})
    assert records.decode_record(old, records.BatchRecord) == records.BatchRecord(7, 1, "o", "", -1)


def test_a_checkpoint_that_has_written_nothing_leaves_the_name_to_another(office: Office) -> None:
    begun = active(office, b"killed before the commit")
    office.ok(api.Prepare(begun.transaction, QUERY, 0, "c1"))
    assert office.ok(api.GetBatch(QUERY, 0, "c2")).batch == -1
    begun = active(office, b"good")
    office.ok(api.Prepare(begun.transaction, QUERY, 0, "c2"))
    assert commit(office, begun.unit_of_work, checkpoint="c2") == NEW
    assert (office.bodies(LEDGER), waiting(office)) == ([b"good"], [])


def test_a_part_that_comes_too_late_is_refused(office: Office) -> None:
    commit(office, batch=3)
    for batch in (0, 3):
        begun = active(office, b"late")
        assert office.error(api.Prepare(begun.transaction, QUERY, batch)) == SEQUENCE
        office.ok(api.Prepare(begun.transaction, QUERY, 4))
    assert waiting(office) == [(QUERY, 4)] * 2


@pytest.mark.parametrize("restart", [False, True])
def test_a_batch_with_a_part_that_is_missing_is_not_committed(
    office: Office, restart: bool
) -> None:
    good = part(office, b"good")
    elsewhere = part(office, b"other", query="other")
    later = part(office, b"later", batch=1)
    own = active(office, b"own")
    office.ok(api.Prepare(own.transaction))
    gone = part(office, b"gone")
    office.ok(api.Resolve(gone, False))
    if restart:
        office.restart()
    for wrong in (elsewhere, later, own.unit_of_work, gone, bytes(16), good):
        assert office.error(api.CommitBatch(QUERY, 0, [good, wrong])) == SEQUENCE
    assert office.bodies(LEDGER) == []
    assert last(office) == -1
    assert commit(office, good) == NEW
    assert office.bodies(LEDGER) == [b"good"]


def test_an_active_transaction_is_no_part(office: Office) -> None:
    begun = active(office, b"one")
    assert office.error(api.CommitBatch(QUERY, 0, [begun.unit_of_work])) == SEQUENCE


@pytest.mark.parametrize("restart", [False, True])
def test_a_part_is_not_committed_alone_but_can_be_aborted(office: Office, restart: bool) -> None:
    begun = active(office, b"one")
    office.ok(api.Prepare(begun.transaction, QUERY, 5))
    refusals = [api.Resolve(begun.unit_of_work, True), api.Commit(begun.transaction)]
    if restart:
        office.restart()
        refusals.pop()
    for request in refusals:
        reply = office.ask(request)
        assert error_name(reply) == SEQUENCE
        assert isinstance(reply, api.Failed)
        if not restart or isinstance(request, api.Resolve):
            assert f"batch 5 of {QUERY!r}" in reply.detail
    assert waiting(office) == [(QUERY, 5)]
    office.ok(api.Resolve(begun.unit_of_work, False))
    assert waiting(office) == []
    assert office.error(api.CommitBatch(QUERY, 5, [begun.unit_of_work])) == SEQUENCE


def test_a_batch_can_be_given_up(office: Office) -> None:
    part(office, b"earlier", batch=3)
    part(office, b"given up", batch=4)
    kept = part(office, b"kept", batch=5)
    part(office, b"of another query", query="other", batch=4)
    office.ok(api.AbortBatch(QUERY, 4))
    office.ok(api.AbortBatch(QUERY, 4))
    assert waiting(office) == [(QUERY, 5), ("other", 4)]
    assert last(office) == -1, "it may be written again"
    again = part(office, b"again", batch=4)
    assert commit(office, again, batch=4) == NEW
    assert commit(office, kept, batch=5) == NEW
    assert office.bodies(LEDGER) == [b"again", b"kept"]


def test_who_has_another_checkpoint_gives_up_nothing(office: Office) -> None:
    commit(office, batch=0, checkpoint="c1")
    begun = active(office, b"kept")
    office.ok(api.Prepare(begun.transaction, QUERY, 1, "c1"))
    for other in ("", "c2"):
        office.ok(api.AbortBatch(QUERY, 1, other))
        assert waiting(office) == [(QUERY, 1)]
    office.ok(api.AbortBatch(QUERY, 1, "c1"))
    assert waiting(office) == []


# Restarts.


def test_parts_survive_a_restart_and_so_does_the_number_of_the_batch(office: Office) -> None:
    units = [part(office, b"one", batch=2), part(office, b"two", batch=2)]
    office.restart()
    assert waiting(office) == [(QUERY, 2)] * 2
    assert commit(office, *units, batch=2) == NEW
    office.restart()
    assert office.bodies(LEDGER) == [b"one", b"two"]
    assert (last(office), waiting(office)) == (2, [])
    assert commit(office, *units, batch=2) == BEFORE
    assert office.error(api.Prepare(active(office, b"x").transaction, QUERY, 2)) == SEQUENCE


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_without_an_answer_is_asked_for_again(office: Office, committed: bool) -> None:
    unit = part(office, b"one")
    part(office, b"failed attempt")
    office.driver.request(office.app, api.CommitBatch(QUERY, 0, [unit]))
    office.restart(committed=committed)
    assert office.bodies(LEDGER) == ([b"one"] if committed else [])
    assert commit(office, unit) == (BEFORE if committed else NEW)
    assert office.bodies(LEDGER) == [b"one"]
    assert waiting(office) == []


# Limits.


@pytest.mark.parametrize(
    ("query", "good"),
    [
        ("", False),
        ("x" * QUERY_NAME_MAX_BYTES, True),
        ("x" * (QUERY_NAME_MAX_BYTES + 1), False),
        ("ü" * (QUERY_NAME_MAX_BYTES // 2), True),
        ("ü" * (QUERY_NAME_MAX_BYTES // 2 + 1), False),
        ("a query\x1b[2J", False),
    ],
)
def test_a_query_has_a_name_that_people_can_read(office: Office, query: str, good: bool) -> None:
    requests: list[api.AnyRequest] = [
        api.GetBatch(query),
        api.CommitBatch(query, 0, []),
        api.AbortBatch(query, 0),
    ]
    if query:
        # Not to have a checkpoint is allowed.
        requests += [api.GetBatch(QUERY, 0, query), api.CommitBatch(QUERY, 0, [], query)]
        requests.append(api.CommitBatch(QUERY, 0, [], "", 0, query))
        # Without one a transaction is no part of a batch.
        requests.insert(0, api.Prepare(active(office, b"x").transaction, query, 0))
    for request in requests:
        assert (error_name(office.ask(request)) != INVALID) is good, request


@pytest.mark.parametrize("batch", [-1, 1 << 63])
def test_batches_are_numbered_from_zero(office: Office, batch: int) -> None:
    work = active(office, b"x").transaction
    for request in (
        api.Prepare(work, QUERY, batch),
        api.CommitBatch(QUERY, batch, []),
        api.AbortBatch(QUERY, batch),
    ):
        assert office.error(request) == INVALID
    highest = (1 << 63) - 1
    office.ok(api.Prepare(work, QUERY, highest))
    assert commit(office, batch=highest) == NEW
    office.restart()
    assert last(office) == highest


def test_a_part_that_nobody_commits_is_given_up_when_another_needs_room() -> None:
    office = Office(staged_bytes_max=1400)
    part(office, bytes(300), query="dead")
    own = active(office, bytes(500))
    office.ok(api.Prepare(own.transaction))
    office.pass_time(STAGED_MAX_AGE_S)
    begun = active(office)
    handle = office.open(LEDGER, AccessMode.SEND)
    send = api.Send(
        handle, [Draft(body=bytes(500), transactional=True).packet()], begun.transaction
    )
    assert office.error(send) == FULL
    assert waiting(office) == [("", 0), ("dead", 0)]
    office.pass_time(1)
    office.ok(send)
    office.ok(api.Prepare(begun.transaction, QUERY, 0))
    assert waiting(office) == [("", 0), (QUERY, 0)]
    office.restart()
    assert waiting(office) == [("", 0), (QUERY, 0)]


def test_the_query_that_has_been_idle_for_longest_makes_room(office: Office) -> None:
    office = Office(queries_max=2)
    for query in ("first", "second"):
        commit(office, query=query, batch=3)
        office.pass_time(10)
    commit(office, query="first", batch=4)
    office.pass_time(QUERY_IDLE_S - 11)
    assert office.error(api.CommitBatch("third", 0, [])) == FULL
    assert last(office, "third") == -1
    commit(office, query="second", batch=3)
    office.pass_time(1)
    commit(office, query="third", batch=0)
    assert [last(office, query) for query in ("first", "second", "third")] == [4, -1, 0]
    assert remembered(office) == {"first", "third"}
    office.restart()
    assert [last(office, query) for query in ("first", "second", "third")] == [4, -1, 0]
    commit(office, query="first", batch=5)


def test_names_of_single_data_frames_expire_by_use_and_streams_stay(office: Office) -> None:
    """A name for each data frame: `foreachBatch` with `query=f"orders-{n}"`, for days."""
    office = Office(queries_max=20)
    commit(office, query="a stream", batch=7, checkpoint="c1")
    commit(office, query="c2", checkpoint="c2")
    commit(office, query="numbered", batch=1)
    for number in range(200):
        commit(office, part(office, b"x", query=f"orders-{number}"), query=f"orders-{number}")
        office.pass_time(QUERY_SINGLE_IDLE_S // 17 + 1)
    assert [last(office, query) for query in ("a stream", "c2", "numbered")] == [7, 0, 1]
    assert remembered(office) == {
        *("a stream", "c2", "numbered"),
        *(f"orders-{number}" for number in range(183, 200)),
    }
    assert len(office.bodies(LEDGER)) == 200


def test_a_name_that_was_just_used_is_not_forgotten_and_the_error_says_what_to_do() -> None:
    office = Office(queries_max=2)
    for query in ("first", "second"):
        commit(office, query=query)
    office.pass_time(QUERY_SINGLE_IDLE_S - 1)
    reply = office.ask(api.CommitBatch("third", 0, []))
    assert error_name(reply) == FULL
    assert isinstance(reply, api.Failed)
    for word in ("option batch", "`openmsmq query list`", "`openmsmq query forget`"):
        assert word in reply.detail
    office.pass_time(1)
    assert commit(office, query="third") == NEW
    assert remembered(office) == {"second", "third"}


def test_queries_are_listed_in_parts_by_name(office: Office) -> None:
    office.pass_time(5)
    names = [f"q{number:04}" for number in range(QUERIES_LISTED_MAX_COUNT + 2)]
    for name in reversed(names):
        commit(office, query=name, batch=3, checkpoint="c1")

    def listed(prefix: str = "", after: str = "") -> list[str]:
        return [query.query for query in office.ok(api.ListQueries(prefix, after)).queries]

    first = office.ok(api.ListQueries()).queries[0]
    assert first == api.QueryStatus(names[0], 3, START_S + 5, str(LOCAL_SYSTEM), "c1")
    assert listed() == names[:QUERIES_LISTED_MAX_COUNT]
    assert listed(after=names[QUERIES_LISTED_MAX_COUNT - 1]) == names[QUERIES_LISTED_MAX_COUNT:]
    assert listed(after=names[-1]) == []
    assert listed("q000", "q0007") == ["q0008", "q0009"]


def test_a_query_without_room_keeps_its_parts(office: Office) -> None:
    office = Office(queries_max=1)
    commit(office, query="first", batch=1)
    unit = part(office, b"one")
    assert office.error(api.CommitBatch(QUERY, 0, [unit])) == FULL
    assert waiting(office) == [(QUERY, 0)]
    office.pass_time(QUERY_IDLE_S)
    assert commit(office, unit) == NEW
    assert office.bodies(LEDGER) == [b"one"]


# A full disk.


def test_a_refused_commit_can_be_tried_again(office: Office) -> None:
    commit(office, batch=0)
    units = [part(office, b"one", batch=1), part(office, b"two", batch=1)]
    part(office, b"failed attempt", batch=1)
    assert office.fail(api.CommitBatch(QUERY, 1, units)) == [FULL]
    assert office.bodies(LEDGER) == []
    assert last(office) == 0
    assert waiting(office) == [(QUERY, 1)] * 3
    assert commit(office, *units, batch=1) == NEW
    assert office.bodies(LEDGER) == [b"one", b"two"]
    assert (last(office), waiting(office)) == (1, [])


def test_a_refused_first_commit_leaves_no_batch_behind(office: Office) -> None:
    unit = part(office, b"one")
    requests = [
        api.CommitBatch(QUERY, 0, [unit]),
        api.GetBatch(QUERY),
        api.CommitBatch(QUERY, 0, []),
    ]
    assert office.fail(*requests) == [FULL, FULL, FULL]
    assert last(office) == -1
    assert commit(office, unit) == NEW


def test_a_refused_prepare_is_no_part(office: Office) -> None:
    begun = active(office, b"one")
    refused = office.fail(
        api.Prepare(begun.transaction, QUERY, 0), api.CommitBatch(QUERY, 0, [begun.unit_of_work])
    )
    assert refused == [FULL, FULL]
    assert (last(office), waiting(office), office.bodies(LEDGER)) == (-1, [], [])
    office.ok(api.Commit(begun.transaction))  # It is a transaction of its own again.
    assert office.bodies(LEDGER) == [b"one"]


def test_refused_aborts_leave_the_parts(office: Office) -> None:
    unit = part(office, b"one")
    assert office.fail(api.AbortBatch(QUERY, 0)) == [FULL]
    assert waiting(office) == [(QUERY, 0)]
    assert commit(office, unit) == NEW


def test_a_refused_query_pushes_no_other_out() -> None:
    office = Office(queries_max=1)
    commit(office, query="first", batch=3)
    office.pass_time(QUERY_IDLE_S)
    assert office.fail(api.CommitBatch(QUERY, 0, [])) == [FULL]
    assert (last(office, "first"), last(office)) == (3, -1)
    office.restart()
    assert remembered(office) == {"first"}


@pytest.mark.parametrize("fails", [False, True])
def test_a_part_whose_sender_leaves_while_it_is_committed(office: Office, fails: bool) -> None:
    begun = active(office, b"one")
    node, other = office.driver.node, office.driver.connect()
    office.driver.request(office.app, api.Prepare(begun.transaction, QUERY, 0))
    call = office.driver.request(other, api.CommitBatch(QUERY, 0, [begun.unit_of_work]))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    office.driver.lose(office.app)
    if fails:
        node.store.fail_next(StoreFull)
    assert node.commit(persist, office.driver.now) is not fails
    office.driver.pump()
    office.app = other
    answer = office.driver.take_answers()[other, call]
    assert error_name(answer) == (FULL if fails else "BatchCommitted")
    assert office.bodies(LEDGER) == ([] if fails else [b"one"])
    assert (last(office), waiting(office)) == (-1 if fails else 0, [])
    assert office.ok(api.GetStatus()).transaction_count == 0


def test_a_part_says_since_when_it_waits(office: Office) -> None:
    office.pass_time(7)
    unit = part(office, b"one", b"two", batch=9)
    office.restart()
    [found] = office.ok(api.ListTransactions()).transactions
    assert found == api.InDoubt(unit, START_S + 7, 2, 0, QUERY, 9, str(LOCAL_SYSTEM))


def test_a_query_that_will_not_come_again_is_forgotten_with_its_parts(office: Office) -> None:
    commit(office, part(office, b"one"))
    part(office, b"two", batch=1)
    part(office, b"other", query="another")
    office.ok(api.ForgetQuery(QUERY))
    office.ok(api.ForgetQuery(QUERY))
    assert (last(office), waiting(office)) == (-1, [("another", 0)])
    office.restart()
    assert (last(office), remembered(office)) == (-1, set())
    assert office.bodies(LEDGER) == [b"one"]


def test_what_is_prepared_late_for_a_query_that_is_over_is_refused(office: Office) -> None:
    office.ok(api.ForgetQuery(QUERY, is_over=True))
    assert refused_part(office) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert waiting(office) == []
    part(office, b"other", query="another")
    assert waiting(office) == [("another", 0)]


def test_only_the_last_queries_that_are_over_are_known(office: Office) -> None:
    for number in range(QUERIES_OVER_MAX_COUNT + 1):
        office.ok(api.ForgetQuery(f"{QUERY} {number}", is_over=True))
    part(office, b"one", query=f"{QUERY} 0")
    assert refused_part(office, query=f"{QUERY} 1") == "MQ_ERROR_TRANSACTION_SEQUENCE"


def test_a_refused_forgetting_forgets_nothing(office: Office) -> None:
    commit(office, part(office, b"one"))
    assert office.fail(api.ForgetQuery(QUERY)) == [FULL]
    assert last(office) == 0


# What is set aside.


def written(office: Office, request: api.AnyRequest) -> list[bytes]:
    """Return all values that a request stores."""
    seen: list[bytes] = []
    plain_commit = MemoryStore.commit

    def commit_and_tell(store: MemoryStore, batch: Batch) -> None:
        seen.extend(value for _, value in batch.changes if value is not None)
        seen.extend(value for _, values in batch.aside for value in values)
        plain_commit(store, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStore, "commit", commit_and_tell)
        office.ok(request)
    return seen


def test_a_large_part_is_written_once_and_its_commit_names_it() -> None:
    office = Office()
    large = active(office, b"L" * ASIDE_FROM_BYTES)
    small = active(office, b"S" * 1000)
    for begun, body, again in ((large, b"L" * 900, 0), (small, b"S" * 900, 1)):
        prepared = written(office, api.Prepare(begun.transaction))
        assert sum(body in value for value in prepared) == 1
        committed = written(office, api.Resolve(begun.unit_of_work, commit=True))
        assert sum(body in value for value in committed) == again
    assert office.bodies(LEDGER) == [b"L" * ASIDE_FROM_BYTES, b"S" * 1000]


def test_what_is_set_aside_is_not_in_memory_any_more() -> None:
    office = Office(aside_min_bytes=1)
    begun = active(office, b"somewhere")

    def is_in_memory() -> bool:
        return any("somewhere" in fact for fact in snapshot(office.driver.manager).values())

    assert is_in_memory()
    office.ok(api.Prepare(begun.transaction))
    assert not is_in_memory()


def test_what_was_set_aside_is_as_if_it_had_been_stored_at_its_commit() -> None:
    """Time of arrival, marks and place are those of a transaction that sets nothing aside."""
    found = []
    for least in (1, ASIDE_FROM_BYTES):
        office = Office(aside_min_bytes=least)
        office.send(b"before", name=LEDGER)
        units = [part(office, *(b"%d%d" % (i, j) for j in range(3))) for i in range(2)]
        office.driver.now = Instant(7_000, START_S + 7)
        office.send(b"meanwhile", name=LEDGER)
        commit(office, *units)
        found.append(office.driver.node.store.scan(*records.kind_range(b"E"), 99))
    assert found[0] == found[1]
    assert len(found[0]) == 8


def test_parts_that_are_set_aside_and_parts_that_are_not_keep_their_order() -> None:
    office = Office(aside_min_bytes=1000)
    units = [part(office, b"%d" % i * (1000 if i % 2 else 10)) for i in range(6)]
    office.restart()
    commit(office, *units)
    assert [body[:1] for body in office.bodies(LEDGER)] == [b"%d" % i for i in range(6)]


def test_what_is_set_aside_for_a_queue_that_is_gone_goes_nowhere() -> None:
    office = Office(aside_min_bytes=1)
    other = r"private$\other"
    office.ok(api.CreateQueue(other, transactional=True))
    begun = active(office, b"kept")
    handle = office.open(other, AccessMode.SEND)
    office.ok(api.Send(handle, [Draft(transactional=True).packet()] * 2, begun.transaction))
    office.ok(api.Prepare(begun.transaction, QUERY, 0))
    for _ in range(2):
        assert office.ok(api.ListTransactions()).transactions[0].sent_count == 3
        office.restart()
    office.ok(api.DeleteQueue(other))
    commit(office, begun.unit_of_work)
    assert office.bodies(LEDGER) == [b"kept"]


@pytest.mark.parametrize("gone", [False, True], ids=["both", "only the second"])
def test_each_queue_gets_its_own_of_what_is_set_aside(gone: bool) -> None:
    office = Office(aside_min_bytes=1)
    other = r"private$\other"
    office.ok(api.CreateQueue(other, transactional=True))
    begun = active(office, b"first", b"second")
    handle = office.open(other, AccessMode.SEND)
    packets = [Draft(body=body, transactional=True).packet() for body in (b"third", b"fourth")]
    office.ok(api.Send(handle, packets, begun.transaction))
    office.ok(api.Prepare(begun.transaction, QUERY, 0))
    if gone:
        office.ok(api.DeleteQueue(LEDGER))
    commit(office, begun.unit_of_work)
    if not gone:
        assert office.bodies(LEDGER) == [b"first", b"second"]
    assert office.bodies(other) == [b"third", b"fourth"]


def test_what_is_set_aside_counts_for_its_owner_also_after_a_restart() -> None:
    """The bytes of parts that wait are limited, and a restart gives nobody room for more."""
    body = b"x" * 1000
    for least in (1, ASIDE_FROM_BYTES):
        office = Office(aside_min_bytes=least, staged_bytes_max=5_000)
        for number in range(3):
            part(office, body, batch=0, query=f"query {number}")
        for _ in range(2):
            handle, packets = (
                office.open(LEDGER, AccessMode.SEND),
                [Draft(body=body * 2, transactional=True).packet()],
            )
            assert office.error(api.Send(handle, packets, office.begin())) == FULL
            office.restart()

"""Transactions: sends, receives and moves that take effect together, or not at all."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.messages.housekeeping import SLICE_ROWS
from openmsmq.manager.outputs import Persist
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import ASIDE_FROM_BYTES
from openmsmq.model.queue import AccessMode
from openmsmq.storage import records
from openmsmq.storage.port import Batch, StoreFull
from openmsmq.storage.records import TransactionRecord
from openmsmq.wire.headers.transaction import TransactionHeader
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies, error_name, message

ADMIN = r"private$\admin"
ADMIN_NAME = r"OS:ALPHA\private$\admin"
SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"
USAGE = "MQ_ERROR_TRANSACTION_USAGE"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"


@pytest.fixture(params=[1, ASIDE_FROM_BYTES], ids=["aside", "stored twice"])
def office(request: pytest.FixtureRequest) -> Office:
    office = Office(aside_min_bytes=request.param)
    office.ok(api.CreateQueue(ADMIN))
    return office


def packet(body: bytes, **wishes: object) -> bytes:
    return Draft(body=body, transactional=True, **wishes).packet()  # type: ignore[arg-type]


def sends(office: Office, transaction: int, *sent: bytes, name: str = LEDGER) -> None:
    handle = office.open(name, AccessMode.SEND)
    office.ok(api.Send(handle, [packet(body) for body in sent], transaction))


def test_what_a_transaction_sends_appears_together_when_it_commits(office: Office) -> None:
    office.ok(api.CreateQueue(r"private$\second", transactional=True))
    work = office.begin()
    sends(office, work, b"one", b"two")
    sends(office, work, b"three", name=r"private$\second")
    assert office.bodies(LEDGER) == office.bodies(r"private$\second") == []
    office.ok(api.Commit(work))
    assert office.bodies(LEDGER) == [b"one", b"two"]
    assert office.bodies(r"private$\second") == [b"three"]


@pytest.mark.spec("MQMQ-2.2.20.5-04", "MQMQ-2.2.20.5-05", "MQMQ-2.2.20.5-06", "MQMQ-2.2.20.5-07")
def test_the_first_and_the_last_message_of_a_transaction_say_so(office: Office) -> None:
    office.send(b"before", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    sends(office, work, b"one", b"two", b"three")
    office.ok(api.Commit(work))
    entries = office.ok(api.Receive(office.open(LEDGER), 3)).entries
    headers = [message(entry).transaction for entry in entries]
    assert all(isinstance(header, TransactionHeader) for header in headers)
    marks = [(h.first_in_transaction, h.last_in_transaction) for h in headers if h is not None]
    assert marks == [(True, False), (False, False), (False, True)]
    (first,) = {h.transaction_number for h in headers if h is not None}
    office.restart()
    work = office.begin()
    sends(office, work, b"four")
    office.ok(api.Commit(work))
    (entry,) = office.ok(api.Receive(office.open(LEDGER))).entries
    header = message(entry).transaction
    assert header is not None
    assert (header.first_in_transaction, header.last_in_transaction) == (True, True)
    assert header.transaction_number != first, "no other transaction has it, before or after"


def test_messages_arrive_alike_whether_all_of_them_are_plain_or_not() -> None:
    def arrived(**wishes: object) -> list[api.Entry]:
        office = Office()
        work, handle = office.begin(), office.open(LEDGER, AccessMode.SEND)
        plain = [packet(b"one", priority=7), packet(b"two", priority=0)]
        office.ok(api.Send(handle, [*plain, packet(b"three", **wishes)], work))
        office.ok(api.Commit(work))
        first, second, _ = office.ok(api.Receive(office.open(LEDGER), 3)).entries
        return [first, second]

    # One that expires has more to be written down, and takes the others along on its way.
    assert arrived() == arrived(time_to_be_received_s=9)


def test_what_a_transaction_sends_is_forgotten_when_it_aborts(office: Office) -> None:
    work = office.begin()
    sends(office, work, b"one")
    office.ok(api.Abort(work))
    assert office.bodies(LEDGER) == []
    assert office.ok(api.GetStatus()).transaction_count == 0


def test_a_received_message_is_locked_until_the_transaction_ends(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    handle = office.open(LEDGER)
    [lookup_id] = office.lookup_ids(LEDGER)
    work = office.begin()
    assert bodies(office.ok(api.Receive(handle, transaction=work))) == [b"one"]
    assert office.error(api.Receive(handle)) == "MQ_ERROR_IO_TIMEOUT"
    locked = "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"
    assert office.error(api.Seek(handle, "current", lookup_id)) == locked
    target = office.open(LEDGER + ";sub", AccessMode.MOVE)
    assert office.error(api.Move(handle, lookup_id, target)) == locked
    assert office.error(api.Seek(handle, "current", lookup_id, peek=True)) == USAGE
    office.ok(api.Abort(work))
    [entry] = office.ok(api.Receive(handle, peek=True)).entries
    assert (entry.lookup_id, entry.abort_count) == (lookup_id, 1)
    work = office.begin()
    office.ok(api.Receive(handle, transaction=work))
    office.ok(api.Commit(work))
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0


def _reads(handle: int, cursor: int, lookup_id: int, identifier: bytes) -> list[api.AnyRequest]:
    """All ways to look at the first message of a queue."""
    return [
        api.Receive(handle, peek=True),
        api.Receive(handle, 10, peek=True),
        api.Receive(handle, peek=True, cursor=cursor),
        api.Receive(handle, peek=True, cursor=cursor),
        api.Seek(handle, "first", peek=True),
        api.Seek(handle, "previous", lookup_id + 1, peek=True),
        api.Seek(handle, "next", lookup_id - 1, peek=True),
        api.Seek(handle, "current", lookup_id, peek=True),
        api.Find(handle, identifier, peek=True),
    ]


def test_others_see_what_a_transaction_holds_if_it_lets_them(office: Office) -> None:
    [number] = office.send(b"one", name=LEDGER, time_to_be_received_s=60)
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    handle = office.open(LEDGER)
    [lookup_id] = office.lookup_ids(LEDGER)
    for allow_peek in (True, False, True):
        cursor = office.ok(api.CreateCursor(handle)).cursor
        work = office.begin()
        taken = api.Seek(handle, "current", lookup_id, transaction=work, allow_peek=allow_peek)
        office.ok(taken)
        for read in _reads(handle, cursor, lookup_id, identifier):
            reply = office.ask(read)
            seen = bodies(reply) if isinstance(reply, api.Entries) else []
            assert seen == ([b"one"] if allow_peek else []), read
        assert office.error(api.Receive(handle)) == "MQ_ERROR_IO_TIMEOUT"
        office.ok(api.Abort(work))
    work = office.begin()
    office.ok(api.Seek(handle, "first", transaction=work, allow_peek=True))
    office.pass_time(60)
    assert office.bodies(LEDGER) == [b"one"], "it does not expire while it is held"
    office.ok(api.Purge(handle))
    assert office.bodies(LEDGER) == [], "it was purged"
    office.ok(api.Commit(work))
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0


def test_a_held_message_that_others_see_is_left_to_its_transaction(office: Office) -> None:
    """Even while so many messages expire that a read meets some whose time is up."""
    office.send(b"one", name=LEDGER, time_to_be_received_s=5)
    crowd = Draft(time_to_be_received_s=5, recoverable=False).packet()
    office.ok(api.Send(office.open(ORDERS, AccessMode.SEND), [crowd] * (2 * SLICE_ROWS + 1)))
    handle, work = office.open(LEDGER), office.begin()
    office.ok(api.Seek(handle, "first", transaction=work, allow_peek=True))
    office.driver.now = Instant(5000, START_S + 5)
    assert bodies(office.ok(api.Receive(handle, peek=True))) == [b"one"]
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 1


def test_a_distributed_transaction_is_refused(office: Office) -> None:
    assert office.error(api.Begin(distributed=True)) == "MQ_ERROR_DTC_CONNECT"
    assert office.ok(api.GetStatus()).transaction_count == 0


def test_a_move_in_a_transaction_happens_when_it_commits(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    sub = LEDGER + ";sub"
    handle, target = office.open(LEDGER), office.open(sub, AccessMode.MOVE)
    [lookup_id] = office.lookup_ids(LEDGER)
    for end, left, there in ((api.Abort, [b"one"], []), (api.Commit, [], [b"one"])):
        work = office.begin()
        office.ok(api.Move(handle, lookup_id, target, work))
        assert office.bodies(LEDGER) == office.bodies(sub) == []
        office.ok(end(work))
        assert (office.bodies(LEDGER), office.bodies(sub)) == (left, there)


@pytest.mark.parametrize("moved", [False, True])
def test_a_waiting_read_gets_what_an_abort_gives_back(office: Office, moved: bool) -> None:
    office.send(b"one", name=LEDGER)
    handle, work = office.open(LEDGER), office.begin()
    if moved:
        target = office.open(LEDGER + ";sub", AccessMode.MOVE)
        office.ok(api.Move(handle, office.lookup_ids(LEDGER)[0], target, work))
    else:
        office.ok(api.Receive(handle, transaction=work))
    waiting = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    office.driver.request(office.app, api.Abort(work))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, waiting]) == [b"one"]


@pytest.mark.parametrize(
    "request_",
    [api.Commit(99), api.Abort(99), api.Prepare(99), api.Resolve(bytes(16), True)],
    ids=repr,
)
def test_a_transaction_that_is_not_there_cannot_end(
    office: Office, request_: api.AnyRequest
) -> None:
    assert office.error(request_) == SEQUENCE


def test_a_transaction_belongs_to_its_connection_and_ends_once(office: Office) -> None:
    work = office.begin()
    other = office.driver.connect()
    for end in (api.Commit(work), api.Abort(work), api.Prepare(work)):
        assert office.error(end, other) == SEQUENCE
    office.ok(api.Commit(work))
    assert office.error(api.Commit(work)) == SEQUENCE
    sender = office.open(LEDGER, AccessMode.SEND)
    assert office.error(api.Send(sender, [packet(b"late")], work)) == SEQUENCE


def test_a_transaction_takes_only_from_transactional_queues(office: Office) -> None:
    office.send(b"one")
    work, handle = office.begin(), office.open(ORDERS)
    assert office.error(api.Receive(handle, transaction=work)) == USAGE
    assert office.error(api.Seek(handle, "first", transaction=work)) == USAGE
    sender = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.Send(sender, [packet(b"one")], work)) == USAGE


def test_transactions_have_limits() -> None:
    office = Office(transactions_max=1, transaction_messages_max=2, transaction_bytes_max=1000)
    office.send(b"one", name=LEDGER)
    work = office.begin()
    assert office.error(api.Begin()) == FULL
    sends(office, work, b"one", b"two")
    sender = office.open(LEDGER, AccessMode.SEND)
    assert office.error(api.Send(sender, [packet(b"three")], work)) == FULL
    assert office.error(api.Receive(office.open(LEDGER), transaction=work)) == FULL
    office.ok(api.Abort(work))
    assert office.error(api.Send(sender, [packet(bytes(900))], office.begin())) == FULL


def test_a_lost_connection_aborts_its_transactions(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    sends(office, work, b"two")
    office.driver.lose(office.app)
    office.driver.pump()
    office.app = office.driver.connect()
    assert office.bodies(LEDGER) == [b"one"]


# Prepared transactions.


def prepared(office: Office) -> bytes:
    """Prepare a transaction that takes `one` and sends `two`; gives its lasting name."""
    office.send(b"one", name=LEDGER)
    begun = office.ok(api.Begin())
    office.ok(api.Receive(office.open(LEDGER), transaction=begun.transaction))
    sends(office, begun.transaction, b"two")
    office.ok(api.Prepare(begun.transaction))
    assert isinstance(begun.unit_of_work, bytes)
    return begun.unit_of_work


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("commit", "left"), [(True, [b"two"]), (False, [b"one"])])
def test_a_prepared_transaction_waits_for_its_coordinator(
    office: Office, commit: bool, left: list[bytes], restart: bool
) -> None:
    name = prepared(office)
    if restart:
        office.restart()
    else:
        office.driver.lose(office.app)
        office.driver.pump()
        office.app = office.driver.connect()
    assert office.bodies(LEDGER) == []
    [doubt] = office.ok(api.ListTransactions()).transactions
    assert (doubt.unit_of_work, doubt.sent_count, doubt.received_count) == (name, 1, 1)
    office.ok(api.Resolve(name, commit))
    assert office.bodies(LEDGER) == left
    assert office.ok(api.ListTransactions()).transactions == []
    assert office.error(api.Resolve(name, commit)) == SEQUENCE
    office.restart()
    assert office.bodies(LEDGER) == left


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("commit", "left"), [(True, ([], [b"one"])), (False, ([b"one"], []))])
def test_a_prepared_move_waits_with_the_rest(
    office: Office, commit: bool, left: tuple[list[bytes], list[bytes]], restart: bool
) -> None:
    office.send(b"one", name=LEDGER)
    sub = LEDGER + ";sub"
    target, begun = office.open(sub, AccessMode.MOVE), office.ok(api.Begin())
    [lookup_id] = office.lookup_ids(LEDGER)
    office.ok(api.Move(office.open(LEDGER), lookup_id, target, begun.transaction))
    office.ok(api.Prepare(begun.transaction))
    if restart:
        office.restart()
    assert (office.bodies(LEDGER), office.bodies(sub)) == ([], []), "nobody else has it meanwhile"
    office.ok(api.Resolve(begun.unit_of_work, commit))
    assert (office.bodies(LEDGER), office.bodies(sub)) == left


@pytest.mark.parametrize("together", [True, False])
def test_a_store_in_which_a_message_is_held_twice_can_be_used(
    office: Office, together: bool
) -> None:
    office.send(b"one", name=LEDGER)
    work = office.ok(api.Begin())
    office.ok(api.Receive(office.open(LEDGER), transaction=work.transaction))
    office.ok(api.Prepare(work.transaction))
    store, key = office.driver.node.store, records.transaction_key(Guid(work.unit_of_work))
    record = records.decode_record(store.get(key) or b"", TransactionRecord)
    if together:
        record = msgspec.structs.replace(record, held=record.held * 2)
    else:
        key = records.transaction_key(Guid(bytes(16)))
    store.commit(Batch([(key, records.encode_record(record))]))
    office.restart()
    assert office.bodies(LEDGER) == []
    for waiting in office.ok(api.ListTransactions()).transactions:
        office.ok(api.Resolve(waiting.unit_of_work, commit=False))
    assert office.bodies(LEDGER) == [b"one"]


def test_a_prepared_transaction_takes_no_more_work(office: Office) -> None:
    work = office.begin()
    office.ok(api.Prepare(work))
    sender = office.open(LEDGER, AccessMode.SEND)
    assert office.error(api.Send(sender, [packet(b"late")], work)) == SEQUENCE
    assert office.error(api.Prepare(work)) == SEQUENCE
    office.ok(api.Commit(work))


def test_an_active_transaction_ends_with_the_power(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    sends(office, work, b"two")
    office.restart()
    assert office.bodies(LEDGER) == [b"one"]
    assert office.ok(api.GetStatus()).transaction_count == 0


# A full disk.


def test_a_refused_commit_can_be_tried_again(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    work, handle = office.begin(), office.open(LEDGER)
    office.ok(api.Receive(handle, transaction=work))
    sends(office, work, b"two")
    assert office.fail(api.Commit(work)) == [FULL]
    assert office.bodies(LEDGER) == []
    office.ok(api.Commit(work))
    assert office.bodies(LEDGER) == [b"two"]


def test_a_message_given_to_a_transaction_was_not_refused_by_the_disk(office: Office) -> None:
    """Else a commit would consume a message that its application never saw."""
    office.send(b"one", name=LEDGER)
    work, handle = office.begin(), office.open(LEDGER)
    [taken, refused] = office.fail(
        api.Receive(handle, transaction=work), api.CreateQueue(r"private$\a")
    )
    assert (taken, refused) == ("Entries", FULL)
    office.ok(api.Commit(work))
    assert office.bodies(LEDGER) == []


def test_a_refused_begin_leaves_no_transaction_behind(office: Office) -> None:
    assert office.fail(api.Begin(), api.CreateQueue(r"private$\a")) == [FULL, FULL]
    assert office.ok(api.GetStatus()).transaction_count == 0


def test_what_was_received_in_a_transaction_whose_begin_was_refused_is_there_for_all(
    office: Office,
) -> None:
    office.send(b"one", name=LEDGER)
    handle = office.open(LEDGER)
    guessed = office.begin() + 1
    told = office.fail(
        api.ChangeQueue(ORDERS, label="new"), api.Begin(), api.Receive(handle, transaction=guessed)
    )
    assert told == [FULL, FULL, "Entries"]
    assert bodies(office.ok(api.Receive(handle))) == [b"one"]


def test_an_active_transaction_aborts_even_when_the_disk_is_full(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    assert office.fail(api.Abort(work)) == ["Done"]
    assert office.bodies(LEDGER) == [b"one"]


def test_a_prepared_transaction_stays_so_when_the_disk_refuses_its_abort(office: Office) -> None:
    name = prepared(office)
    assert office.fail(api.Resolve(name, False)) == [FULL]
    assert office.bodies(LEDGER) == []
    office.ok(api.Resolve(name, False))
    assert office.bodies(LEDGER) == [b"one"]


def test_a_refused_prepare_leaves_the_transaction_active(office: Office) -> None:
    work = office.begin()
    sends(office, work, b"one")
    assert office.fail(api.Prepare(work)) == [FULL]
    sends(office, work, b"two")
    office.ok(api.Commit(work))
    assert office.bodies(LEDGER) == [b"one", b"two"]


def test_no_coordinator_hears_of_a_transaction_that_the_disk_does_not_have(office: Office) -> None:
    work = office.begin()
    assert office.fail(api.Prepare(work), api.ListTransactions()) == [FULL, FULL]
    assert office.ok(api.ListTransactions()).transactions == []


@pytest.mark.parametrize("end", [api.Commit, api.Prepare])
def test_a_transaction_whose_application_leaves_before_a_refusal_aborts(
    office: Office, end: type[api.Commit] | type[api.Prepare]
) -> None:
    office.send(b"one", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    node = office.driver.node
    office.driver.request(office.app, end(work))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    office.driver.lose(office.app)
    node.store.fail_next(StoreFull)
    assert not node.commit(persist, office.driver.now)
    office.driver.pump()
    office.app = office.driver.connect()
    assert office.bodies(LEDGER) == [b"one"]
    assert office.ok(api.GetStatus()).transaction_count == 0


# Locked messages that expire, are purged, or lose their queue.


def test_a_locked_message_does_not_expire_before_it_is_given_back(office: Office) -> None:
    wishes = {"admin_queue": ADMIN_NAME, "acknowledge": 0x8, "time_to_be_received_s": 5}
    office.send(b"one", name=LEDGER, **wishes)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    office.pass_time(10)
    assert office.driver.manager.next_wake_ms(office.driver.now) is None, "nothing is due"
    assert office.classes(ADMIN) == []
    office.ok(api.Abort(work))
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0
    assert office.classes(ADMIN) == [0xC002]


def test_a_locked_message_whose_time_is_up_can_still_be_received(office: Office) -> None:
    office.send(b"one", name=LEDGER, time_to_be_received_s=5, journal_on_failure=True)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    office.pass_time(10)
    office.ok(api.Commit(work))
    assert office.bodies("system$;deadxact") == []


@pytest.mark.parametrize(("commit", "reason"), [(True, 0x4000), (False, 0xC001)])
def test_a_purged_message_does_not_come_back_from_a_transaction(
    office: Office, commit: bool, reason: int
) -> None:
    office.send(b"one", name=LEDGER, admin_queue=ADMIN_NAME, acknowledge=0xE)
    work, handle = office.begin(), office.open(LEDGER)
    office.ok(api.Receive(handle, transaction=work))
    assert office.ok(api.Purge(handle)) == api.Removed(0)
    assert office.classes(ADMIN) == []
    office.ok(api.Commit(work) if commit else api.Abort(work))
    assert office.classes(ADMIN) == [reason]
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0


@pytest.mark.parametrize("refused", [False, True], ids=["accepted", "refused"])
@pytest.mark.parametrize("later", [False, True], ids=["same turn", "next turn"])
@pytest.mark.parametrize("prepared", [False, True], ids=["active", "prepared"])
def test_a_purge_that_comes_while_an_abort_waits_for_the_disk_removes_what_it_gives_back(
    office: Office, prepared: bool, later: bool, refused: bool
) -> None:
    office.send(b"one", name=LEDGER, admin_queue=ADMIN_NAME, acknowledge=0xE)
    work, handle = office.begin(), office.open(LEDGER)
    office.ok(api.Receive(handle, transaction=work))
    if prepared:
        office.ok(api.Prepare(work))
    driver, now = office.driver, office.driver.now
    driver.request(office.app, api.Abort(work))
    under_way = driver.node.take() if later else []
    purge = driver.request(office.app, api.Purge(handle))
    if later:
        driver.wake()
        [persist] = [output for output in under_way if isinstance(output, Persist)]
        if refused:
            driver.node.store.fail_next(StoreFull)
        driver.node.commit(persist, now)
        driver.pump()
    else:
        driver.pump(fail=refused)
    answer = driver.take_answers()[office.app, purge]
    if refused:
        assert error_name(answer) == FULL
        if prepared:
            office.ok(api.Abort(work))
        assert office.bodies(LEDGER) == [b"one"]
        assert office.ok(api.Purge(handle)) == api.Removed(1)
    else:
        assert answer == api.Removed(0)
    assert office.bodies(LEDGER) == []
    assert office.classes(ADMIN) == [0xC001]
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0
    office.restart()
    assert office.bodies(LEDGER) == []


@pytest.mark.parametrize(("commit", "reason"), [(True, 0x4000), (False, 0xC000)])
def test_a_locked_message_of_a_deleted_queue_ends_with_its_transaction(
    office: Office, commit: bool, reason: int
) -> None:
    office.send(b"one", name=LEDGER, admin_queue=ADMIN_NAME, acknowledge=0xE)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    office.ok(api.DeleteQueue(LEDGER))
    office.ok(api.Commit(work) if commit else api.Abort(work))
    assert office.classes(ADMIN) == [reason]
    store = office.driver.node.store
    assert store.scan(b"X", b"Y", 10) == [], "the deletion has come to its end"
    assert office.ok(api.GetStatus()).message_count == 1


def test_a_message_sent_to_a_queue_that_is_deleted_before_the_commit_is_a_dead_letter(
    office: Office,
) -> None:
    work = office.begin()
    wishes = {"admin_queue": ADMIN_NAME, "acknowledge": 0xE, "journal_on_failure": True}
    sender = office.open(LEDGER, AccessMode.SEND)
    office.ok(api.Send(sender, [packet(b"one", **wishes)], work))
    office.ok(api.DeleteQueue(LEDGER))
    office.ok(api.Commit(work))
    assert office.bodies("system$;deadxact") == [b"one"]
    assert office.classes(ADMIN) == [0xC000]


def test_a_read_that_waits_in_a_transaction_ends_with_it(office: Office) -> None:
    work, handle = office.begin(), office.open(LEDGER)
    call = office.driver.request(office.app, api.Receive(handle, timeout_ms=None, transaction=work))
    office.ok(api.Commit(work))
    office.driver.take_answers()
    sender = office.open(LEDGER, AccessMode.SEND)
    office.driver.request(office.app, api.Send(sender, [packet(b"one")], api.OWN_TRANSACTION))
    office.driver.pump()
    assert error_name(office.driver.take_answers()[office.app, call]) == SEQUENCE
    assert office.bodies(LEDGER) == [b"one"]

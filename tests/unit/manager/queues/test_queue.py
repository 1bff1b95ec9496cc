"""Creating, changing, opening and deleting queues, with the errors applications expect."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.outputs import Persist
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.storage.port import StoreFull
from tests.property.driver import Driver
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

ONE = "01020304-0506-0708-090a-0b0c0d0e0f10"
DIRECT_A = r"DIRECT=OS:.\private$\a"
UNSUPPORTED = "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.CreateQueue(ORDERS), "MQ_ERROR_QUEUE_EXISTS"),
        (api.CreateQueue(ORDERS.upper()), "MQ_ERROR_QUEUE_EXISTS"),
        (api.CreateQueue(""), "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (api.CreateQueue(r"private$\a;journal"), "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (api.CreateQueue(r"private$\a;sub"), "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (api.CreateQueue("system$;deadletter"), "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (api.CreateQueue("public"), "MQ_ERROR_NO_DS"),
        (api.CreateQueue(r"beta\private$\a"), "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"),
        (api.CreateQueue(r"private$\order_queue$"), "MQ_ERROR_ACCESS_DENIED"),
        (api.CreateQueue(r"private$\NOTIFY_QUEUE$"), "MQ_ERROR_ACCESS_DENIED"),
        (api.CreateQueue(r"private$\a", label="x" * 125), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.CreateQueue(r"private$\a", quota_kb=-1), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.CreateQueue(r"private$\a", quota_kb=1 << 32), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.CreateQueue(r"private$\a", privacy=3), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.ChangeQueue(r"private$\no", label="x"), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.ChangeQueue(ORDERS, label="x" * 125), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.ChangeQueue(ORDERS, journal_quota_kb=-1), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.ChangeQueue(ORDERS, privacy=9), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (api.ChangeQueue(ORDERS + ";journal", label="x"), "MQ_ERROR_PROPERTY_NOTALLOWED"),
        (api.ChangeQueue("system$;journal", quota_kb=1), "MQ_ERROR_PROPERTY_NOTALLOWED"),
        (api.DeleteQueue(r"private$\no"), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.DeleteQueue(ORDERS + ";sub"), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.DeleteQueue(ORDERS + ";journal"), "MQ_ERROR_ACCESS_DENIED"),
        (api.DeleteQueue("system$;deadxact"), "MQ_ERROR_ACCESS_DENIED"),
        (api.DeleteQueue(f"DL={ONE}"), "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (api.GetQueue(r"private$\no"), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.GetQueue(ORDERS + ";sub"), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.GetQueue("DIRECT=nonsense"), "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (api.GetQueue(r"DIRECT=OS:beta\private$\a"), "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"),
        (api.OpenQueue(r"private$\no", AccessMode.RECEIVE), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.OpenQueue(r"private$\no;sub", AccessMode.RECEIVE), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.OpenQueue(ORDERS + ";sub", AccessMode.SEND), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (api.OpenQueue(ORDERS + ";journal", AccessMode.SEND), "MQ_ERROR_ACCESS_DENIED"),
        (api.OpenQueue(ORDERS + ";journal", AccessMode.MOVE), "MQ_ERROR_ACCESS_DENIED"),
        (api.OpenQueue("system$;deadletter", AccessMode.SEND), "MQ_ERROR_ACCESS_DENIED"),
        (api.OpenQueue("DIRECT=nonsense", AccessMode.SEND), "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (api.OpenQueue(f"DL={ONE}", AccessMode.RECEIVE), UNSUPPORTED),
        (api.OpenQueue("MULTICAST=234.1.1.1:80", AccessMode.PEEK), UNSUPPORTED),
        (api.OpenQueue("DIRECT=HTTP://alpha/msmq/a", AccessMode.RECEIVE), UNSUPPORTED),
        (api.OpenQueue(f"{DIRECT_A},{DIRECT_A}", AccessMode.RECEIVE), UNSUPPORTED),
        (api.OpenQueue(f"MACHINE={ONE};DEADLETTER", AccessMode.SEND), UNSUPPORTED),
        (api.OpenQueue(f"PRIVATE={ONE}\\10;JOURNAL", AccessMode.SEND), UNSUPPORTED),
        (api.OpenQueue(ORDERS, AccessMode.PEEK_ADMIN), "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
        (api.OpenQueue(ORDERS, AccessMode.RECEIVE_ADMIN), "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
        (api.OpenQueue(ORDERS, 3), "MQ_ERROR_INVALID_PARAMETER"),
        (api.OpenQueue(ORDERS, AccessMode.SEND, 7), "MQ_ERROR_INVALID_PARAMETER"),
        (
            api.OpenQueue(ORDERS, AccessMode.SEND, ShareMode.DENY_RECEIVE),
            "MQ_ERROR_UNSUPPORTED_ACCESS_MODE",
        ),
        (api.CloseQueue(99), "MQ_ERROR_INVALID_HANDLE"),
        (api.Hello(), "MQ_ERROR_INVALID_PARAMETER"),
    ],
    ids=repr,
)
def test_a_request_that_cannot_be_met_says_why(
    office: Office, request_: api.AnyRequest, error: str
) -> None:
    assert office.error(request_) == error


def _all_queues(office: Office) -> dict[str, api.QueueStatus]:
    queues = office.ok(api.ListQueues(everything=True)).queues
    return {queue.path_name: queue for queue in queues}


def test_a_question_about_a_subqueue_does_not_create_it(office: Office) -> None:
    for request in (
        api.GetQueue(ORDERS + ";sub"),
        api.DeleteQueue(ORDERS + ";sub"),
        api.OpenQueue(ORDERS + ";sub", AccessMode.SEND),
    ):
        office.error(request)
    names = [queue.path_name for queue in office.ok(api.ListQueues(everything=True)).queues]
    assert ORDERS + ";sub" not in names


def test_a_subqueue_comes_into_being_when_it_is_opened_to_read_or_to_move(office: Office) -> None:
    office.open(ORDERS + ";sub", AccessMode.MOVE)
    assert office.ok(api.GetQueue(ORDERS + ";sub")).queues[0].open_count == 1
    assert office.error(api.OpenQueue(ORDERS + ";SUB", AccessMode.SEND)) == "MQ_ERROR_ACCESS_DENIED"


def test_everything_about_a_queue_survives_a_restart(office: Office) -> None:
    office.ok(
        api.CreateQueue(
            r"private$\a", journaling=True, quota_kb=7, journal_quota_kb=8, label="one", privacy=2
        )
    )
    office.open(r"private$\a;sub")
    office.ok(api.ChangeQueue(r"private$\a", label="two", authentication_required=True))
    before = office.ok(api.GetQueue(r"private$\a"))
    office.restart()
    assert office.ok(api.GetQueue(r"private$\a")) == before
    assert office.ok(api.GetQueue(r"private$\a;sub")).queues[0].message_count == 0


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        ((AccessMode.RECEIVE, 0), (AccessMode.RECEIVE, 0), True),
        ((AccessMode.RECEIVE, 0), (AccessMode.PEEK, 0), True),
        ((AccessMode.RECEIVE, 1), (AccessMode.RECEIVE, 0), False),
        ((AccessMode.RECEIVE, 1), (AccessMode.PEEK, 0), False),
        ((AccessMode.PEEK, 1), (AccessMode.RECEIVE, 0), False),
        ((AccessMode.RECEIVE, 0), (AccessMode.RECEIVE, 1), False),
        ((AccessMode.PEEK, 0), (AccessMode.PEEK, 1), False),
        ((AccessMode.SEND, 0), (AccessMode.RECEIVE, 1), True),
        ((AccessMode.RECEIVE, 1), (AccessMode.SEND, 0), True),
        ((AccessMode.RECEIVE, 1), (AccessMode.MOVE, 0), True),
    ],
)
def test_readers_share_unless_one_denies_it(
    office: Office, first: tuple[AccessMode, int], second: tuple[AccessMode, int], allowed: bool
) -> None:
    other = office.driver.connect()
    handle = office.open(ORDERS, first[0], ShareMode(first[1]))
    reply = office.ask(api.OpenQueue(ORDERS, *second), other)
    assert isinstance(reply, api.Opened) is allowed
    if not allowed:
        office.ok(api.CloseQueue(handle))
        office.ok(api.OpenQueue(ORDERS, *second), other)


def test_a_lost_connection_gives_its_share_back(office: Office) -> None:
    office.open(ORDERS, share=ShareMode.DENY_RECEIVE)
    office.driver.lose(office.app)
    office.driver.pump()
    office.app = office.driver.connect()
    office.open(ORDERS, share=ShareMode.DENY_RECEIVE)


def test_a_refused_open_leaves_no_handle_behind(office: Office) -> None:
    assert (
        office.fail(api.CreateQueue(r"private$\a"), api.OpenQueue(ORDERS, AccessMode.RECEIVE, 1))
        == ["MQ_ERROR_INSUFFICIENT_RESOURCES"] * 2
    )
    assert office.ok(api.GetQueue(ORDERS)).queues[0].open_count == 0
    office.open(ORDERS, share=ShareMode.DENY_RECEIVE)


def test_a_refused_subqueue_was_never_there(office: Office) -> None:
    refused = office.fail(api.OpenQueue(ORDERS + ";sub", AccessMode.RECEIVE))
    assert refused == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert office.error(api.GetQueue(ORDERS + ";sub")) == "MQ_ERROR_QUEUE_NOT_FOUND"
    office.open(ORDERS + ";sub")


@pytest.mark.parametrize(
    "change",
    [
        api.CreateQueue(r"private$\a"),
        api.ChangeQueue(ORDERS, label="changed", journaling=True, journal_quota_kb=1),
        api.DeleteQueue(ORDERS),
    ],
    ids=repr,
)
def test_a_refused_change_of_queues_changes_nothing(office: Office, change: Any) -> None:
    office.send(b"one")
    before = _all_queues(office)
    assert office.fail(change) == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert _all_queues(office) == before
    assert office.bodies() == [b"one"]


def test_what_came_in_while_a_refused_batch_was_under_way_falls_with_it() -> None:
    driver = Driver(ManagerConfig(name="ALPHA"), Instant(0, START_S))
    app = driver.connect()
    node = driver.node
    driver.request(app, api.CreateQueue(ORDERS))
    [persist] = node.take()
    driver.request(app, api.OpenQueue(ORDERS, AccessMode.SEND))
    driver.request(app, api.Send(1, [Draft().packet()]))
    assert node.take() == [], "one batch at a time is under way"
    assert isinstance(persist, Persist)
    node.store.fail_next(StoreFull)
    assert not node.commit(persist, driver.now)
    driver.pump()
    answers = driver.take_answers().values()
    assert [type(answer) for answer in answers] == [api.Failed] * 3
    reply = driver.call(app, api.CreateQueue(ORDERS))
    assert isinstance(reply, api.Queues)
    assert reply.queues[0].message_count == 0


def test_a_deleted_queue_ends_what_others_do_with_it(office: Office) -> None:
    handle = office.open(LEDGER)
    assert office.ask(api.Receive(handle, timeout_ms=None)) is None
    other = office.driver.connect()
    office.driver.request(other, api.DeleteQueue(LEDGER))
    office.driver.pump()
    replies = office.driver.take_answers()
    assert [reply for (app, _), reply in replies.items() if app == other] == [api.Done()]
    [waiting] = [reply for (app, _), reply in replies.items() if app == office.app]
    assert isinstance(waiting, api.Failed)
    assert office.error(api.Receive(handle)) == "MQ_ERROR_QUEUE_DELETED"
    assert office.error(api.Purge(handle)) == "MQ_ERROR_QUEUE_DELETED"
    office.ok(api.CloseQueue(handle))
    office.ok(api.CreateQueue(LEDGER))
    assert office.bodies(LEDGER) == []


def test_nothing_of_a_deleted_queue_stays_in_the_store(office: Office) -> None:
    office.ok(api.CreateQueue(r"private$\admin"))
    store = office.driver.node.store
    before = dict(store.scan(b"", b"\xff", 1000))
    office.ok(api.CreateQueue(r"private$\a", journaling=True))
    office.send(b"one", b"two", name=r"private$\a", time_to_be_received_s=60)
    handle = office.open(r"private$\a")
    office.ok(api.Receive(handle))
    office.ok(api.DeleteQueue(r"private$\a"))
    after = dict(store.scan(b"", b"\xff", 1000))
    assert after.keys() == before.keys()


def test_the_messages_of_a_deleted_queue_are_reported_and_dead_letters(office: Office) -> None:
    office.ok(api.CreateQueue(r"private$\admin"))
    admin = r"OS:ALPHA\private$\admin"
    office.send(b"one", admin_queue=admin, acknowledge=0xE, journal_on_failure=True)
    office.ok(api.DeleteQueue(ORDERS))
    assert office.classes(r"private$\admin") == [0xC000]
    assert office.bodies("system$;deadletter") == [b"one"]


def test_a_deletion_that_a_crash_interrupts_goes_on_after_it(office: Office) -> None:
    office.send(b"one", journal_on_failure=True)
    office.driver.request(office.app, api.DeleteQueue(ORDERS))
    office.restart()
    assert office.error(api.GetQueue(ORDERS)) == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert office.bodies("system$;deadletter") == [b"one"]
    store = office.driver.node.store
    assert store.scan(b"X", b"Y", 10) == []


def test_a_full_disk_puts_the_removal_of_a_deleted_queue_off(office: Office) -> None:
    office.send(b"one", journal_on_failure=True)
    node = office.driver.node
    office.driver.request(office.app, api.DeleteQueue(ORDERS))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    node.commit(persist, office.driver.now)
    node.take()
    node.manager.wake(office.driver.now)
    assert office.driver.pump(fail=True)
    due_ms = node.manager.next_wake_ms(office.driver.now)
    assert due_ms is not None
    assert due_ms > office.driver.now.ticks_ms, "it must not try again at once"
    office.pass_time(1)
    assert office.bodies("system$;deadletter") == [b"one"]


@pytest.mark.parametrize(
    "name", [ORDERS, "ALPHA\\" + ORDERS, "DIRECT=OS:.\\" + ORDERS, "DIRECT=OS:alpha\\" + ORDERS]
)
def test_a_queue_is_found_by_all_its_names(office: Office, name: str) -> None:
    assert office.ok(api.OpenQueue(name, AccessMode.RECEIVE)).path_name == ORDERS


def test_there_are_never_more_queues_handles_and_cursors_than_configured() -> None:
    office = Office(queues_max=7, open_queues_max=1)
    full = "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert office.error(api.CreateQueue(r"private$\a")) == full
    assert office.error(api.OpenQueue(ORDERS + ";sub", AccessMode.RECEIVE)) == full
    handle = office.open(ORDERS)
    assert office.error(api.OpenQueue(ORDERS, AccessMode.RECEIVE)) == full
    office.ok(api.CreateCursor(handle))
    assert office.error(api.CreateCursor(handle)) == full


def test_the_status_counts_queues_messages_and_connections(office: Office) -> None:
    office.send(b"one")
    office.begin()
    status = office.ok(api.GetStatus())
    assert (status.queue_count, status.message_count, status.connection_count) == (2, 1, 1)
    assert (status.transaction_count, status.now_s) == (1, START_S)
    assert status.manager == bytes(office.driver.manager.identifier)

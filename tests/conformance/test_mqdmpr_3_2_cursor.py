"""Cursors: their states, and what each event makes of them. [MQDMPR 3.2, 3.1.7.1.1, 3.1.7.1.2]"""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, Office, bodies, error_name

ILLEGAL = "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
RECEIVED = "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
TIMEOUT = "MQ_ERROR_IO_TIMEOUT"
CLOSED = "MQ_ERROR_INVALID_HANDLE"


class Walk:
    """A cursor on `orders`, and its events."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.handle = office.open()
        self.cursor: int = office.ok(api.CreateCursor(self.handle)).cursor

    def request(
        self, *, peek: bool, move_on: bool = False, timeout_ms: int | None = 0
    ) -> api.Receive:
        return api.Receive(
            self.handle, timeout_ms=timeout_ms, peek=peek, cursor=self.cursor, next=move_on
        )

    def peek(self) -> bytes | str:
        """Get Message For Peek; gives a body, or the name of an error."""
        return self._ask(self.request(peek=True))

    def peek_next(self) -> bytes | str:
        """Get Next Message For Peek."""
        return self._ask(self.request(peek=True, move_on=True))

    def take(self) -> bytes | str:
        """Get Next Message For Dequeue."""
        return self._ask(self.request(peek=False))

    def _ask(self, request: api.Receive) -> bytes | str:
        reply = self.office.ask(request)
        return bodies(reply)[0] if isinstance(reply, api.Entries) else error_name(reply)


@pytest.fixture
def office() -> Office:
    return Office()


def take_elsewhere(office: Office, place: int = 0) -> None:
    """Receive a message without the cursor."""
    office.ok(api.Seek(office.open(), "current", office.lookup_ids()[place]))


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.1-01",
    "MQDMPR-3.1.7.1.1-02",
    "MQDMPR-3.2.7.1-01",
    "MQDMPR-3.2.7.1-02",
)
def test_a_new_cursor_stands_before_the_first_message_of_the_queue_of_its_handle(
    office: Office,
) -> None:
    office.send(b"one", b"two")
    office.send(b"another", name=LEDGER)
    first, second = Walk(office), Walk(office)
    assert first.cursor != second.cursor
    assert first.peek_next() == ILLEGAL, "it is unread"
    assert first.peek() == b"one"
    assert first.peek_next() == b"two"
    assert second.peek() == b"one", "each cursor has a place of its own"
    elsewhere = api.Receive(office.open(LEDGER), peek=True, cursor=first.cursor)
    assert office.error(elsewhere) == CLOSED, "it goes over the queue of its handle"
    assert office.error(api.CreateCursor(office.open(ORDERS, AccessMode.SEND)))


@pytest.mark.spec("MQDMPR-3.1.7.1.1-02", "MQDMPR-3.2.7.1-02")
def test_there_is_no_cursor_on_a_queue_that_is_gone(office: Office) -> None:
    handle = office.open()
    office.ok(api.DeleteQueue(ORDERS))
    assert office.error(api.CreateCursor(handle)) == "MQ_ERROR_QUEUE_DELETED"


@pytest.mark.spec("MQDMPR-3.1.7.1.2-01", "MQDMPR-3.1.7.1.2-02")
def test_a_closed_cursor_is_gone_and_others_stay(office: Office) -> None:
    office.send(b"one")
    closed, stays = Walk(office), Walk(office)
    assert closed.peek() == stays.peek() == b"one"
    office.ok(api.CloseCursor(closed.cursor))
    assert closed.peek() == CLOSED
    assert stays.peek() == b"one"
    assert office.error(api.CloseCursor(closed.cursor)) == CLOSED


@pytest.mark.spec("MQDMPR-3.1.7.1.2-02")
def test_a_read_that_waits_by_a_closed_cursor_gets_nothing(office: Office) -> None:
    walk = Walk(office)
    call = office.driver.request(office.app, walk.request(peek=False, timeout_ms=None))
    office.driver.request(office.app, api.CloseCursor(walk.cursor))
    office.driver.pump()
    ended = office.driver.take_answers()
    office.send(b"one")
    assert office.bodies() == [b"one"]
    assert error_name(ended[office.app, call]) == "MQ_ERROR_OPERATION_CANCELLED"


@pytest.mark.spec("MQDMPR-3.2.1.2-01", "MQDMPR-3.2.1.2-03")
def test_a_cursor_knows_its_queue_its_place_and_whether_it_has_read_there(office: Office) -> None:
    """Handle, queue, place and state: what it has is what its next answers depend on."""
    office.send(b"one", b"two")
    walk = Walk(office)
    assert walk.peek_next() == ILLEGAL, "Unread"
    assert (walk.peek(), walk.peek()) == (b"one", b"one"), "Read, and it stays there"
    assert walk.peek_next() == b"two"
    waiting = office.driver.request(
        office.app, walk.request(peek=True, move_on=True, timeout_ms=None)
    )
    office.driver.pump()
    assert office.driver.take_answers() == {}, "WaitPeek"
    office.driver.request(office.app, api.Cancel(waiting))
    office.driver.pump()
    assert walk.take() == b"two"
    taking = office.driver.request(office.app, walk.request(peek=False, timeout_ms=None))
    office.driver.pump()
    assert (office.app, taking) not in office.driver.take_answers(), "WaitReceive"


@pytest.mark.spec("MQDMPR-3.2.7.2-01", "MQDMPR-3.2.7.2-02")
def test_a_peek_reads_where_the_cursor_is_and_stays_there(office: Office) -> None:
    walk = Walk(office)
    assert walk.peek() == TIMEOUT, "unread, and nothing is there"
    office.send(b"one", b"two")
    assert walk.peek() == b"one"
    office.send(b"urgent", priority=7)
    assert walk.peek() == b"one", "what comes before it does not matter any more"
    take_elsewhere(office, place=1)
    assert walk.peek() == RECEIVED
    assert walk.peek() == RECEIVED, "it has not moved"


@pytest.mark.spec("MQDMPR-3.2.7.3-01", "MQDMPR-3.2.7.3-02")
def test_a_peek_of_the_next_message_moves_the_cursor_on(office: Office) -> None:
    office.send(b"one", b"two", b"three", b"four")
    walk = Walk(office)
    assert walk.peek_next() == ILLEGAL, "unread"
    assert walk.peek() == b"one"
    assert walk.peek_next() == b"two"
    assert walk.peek() == b"two", "it is there now"
    take_elsewhere(office, place=2)
    assert walk.peek_next() == b"four", "what is not available is passed over"
    assert walk.peek_next() == TIMEOUT
    office.send(b"five")
    assert walk.peek_next() == b"five", "it waited at the end"


@pytest.mark.spec("MQDMPR-3.2.7.4-01", "MQDMPR-3.2.7.4-03")
def test_a_receive_takes_the_message_at_the_cursor_which_is_unread_then(office: Office) -> None:
    office.send(b"one", b"two", b"three", b"four")
    walk = Walk(office)
    assert walk.take() == b"one", "unread: the next one that is available"
    assert walk.peek() == b"two", "unread again"
    assert walk.take() == b"two"
    assert walk.take() == b"three"
    assert walk.peek() == b"four"
    take_elsewhere(office)
    assert walk.take() == RECEIVED, "read, and somebody else has it"
    assert office.bodies() == []


@pytest.mark.spec("MQDMPR-3.2.7.4-02")
def test_a_receive_that_must_not_wait_does_not(office: Office) -> None:
    walk = Walk(office)
    assert walk.take() == TIMEOUT
    assert office.ok(api.GetQueue(ORDERS)).queues[0].waiting_count == 0
    office.send(b"late")
    assert office.bodies() == [b"late"], "nobody waited for it"


@pytest.mark.spec("MQDMPR-3.2.7.5-01", "MQDMPR-3.2.7.5-02")
@pytest.mark.parametrize("peek", [True, False])
def test_the_message_that_comes_is_where_a_waiting_cursor_stands(
    office: Office, peek: bool
) -> None:
    walk = Walk(office)
    call = office.driver.request(office.app, walk.request(peek=peek, timeout_ms=None))
    office.driver.pump()
    sender = office.open(ORDERS, AccessMode.SEND)
    packets = [Draft(body=body).packet() for body in (b"one", b"two")]
    office.driver.request(office.app, api.Send(sender, packets))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, call]) == [b"one"]
    if peek:
        assert walk.peek() == b"one", "read"
        assert walk.peek_next() == b"two"
    else:
        assert walk.peek() == b"two", "unread, behind the one it has taken"


@pytest.mark.spec("MQDMPR-3.2.7.6-01")
@pytest.mark.parametrize("peek", [True, False])
def test_a_cursor_that_waited_in_vain_can_be_used_on(office: Office, peek: bool) -> None:
    """What it sees of what comes later is more than the specification lets it (C-122)."""
    walk = Walk(office)
    call = office.driver.request(office.app, walk.request(peek=peek, timeout_ms=1000))
    office.pass_time(1)
    assert error_name(office.driver.take_answers()[office.app, call]) == TIMEOUT
    assert walk.peek_next() == ILLEGAL, "it is as unread as before"
    office.send(b"late")
    assert walk.peek() == b"late"


@pytest.mark.spec("MQDMPR-3.1.1.16-02", "MQDMPR-3.2.1.2-02")
def test_no_handle_of_a_queue_or_a_cursor_is_given_twice(office: Office) -> None:
    seen: list[int] = []
    for _ in range(3):
        app = office.driver.connect()
        handle = office.open(app=app)
        seen += [handle, office.open(LEDGER, app=app)]
        seen.append(office.ok(api.CreateCursor(handle), app).cursor)
        office.ok(api.CloseQueue(handle), app)
        seen.append(office.open(app=app))
    assert len(set(seen)) == len(seen) == 12

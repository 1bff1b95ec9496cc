"""Verbs as steps: what they ask, without any connection."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.client.context import ClientContext
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.client.queue import CursorHandle, QueueHandle
from openmsmq.client.steps import Ahead, Collect, Until, VerbRun
from openmsmq.client.verbs import queue as queue_verbs
from openmsmq.client.verbs import read as read_verbs
from openmsmq.client.verbs.queue import SEND_MAX_COUNT, SENDS_AHEAD_MAX_COUNT
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE, TransactionHandle
from openmsmq.model.errors import (
    BufferOverflow,
    InsufficientResources,
    StaleHandle,
    TransactionSequence,
)
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.queue import AccessMode

MANAGER = Guid(bytes(range(16)))
WELCOME = api.Welcome(1, "OpenMSMQ", "ALPHA", bytes(MANAGER))
OPENED = api.Opened(5, r"private$\q", r"DIRECT=OS:ALPHA\PRIVATE$\q", r"OS:ALPHA\PRIVATE$\q", False)
PACKET = PacketBuilder(OPENED.direct_name, "ALPHA").build(
    OutgoingMessage(body="late"), DEFAULT_FORMATTER, False
)
ENTRY = api.Entry(9, 0, 0, 0, PACKET)


@pytest.fixture
def queue() -> QueueHandle:
    context = ClientContext()
    context.connected(WELCOME)
    return QueueHandle(context, r"private$\q", DEFAULT_FORMATTER)


def answer(run: VerbRun[Any], *outcomes: Any) -> Any:
    """Answer the steps of a verb one after the other; give the step after them."""
    step: Any = None
    for outcome in outcomes:
        step = run.answered(outcome)
    return step


def test_a_queue_is_opened_once_for_each_access(queue: QueueHandle) -> None:
    run = VerbRun(lambda: read_verbs.receive(queue, 1.5))
    assert run.start() == api.OpenQueue(r"private$\q", AccessMode.RECEIVE)
    assert answer(run, OPENED) == api.Receive(5, 1, 1500)
    again = VerbRun(lambda: read_verbs.peek(queue))
    assert again.start() == api.Receive(5, 1, None, True)
    sending = VerbRun(lambda: queue_verbs.send(queue, "x"))
    assert sending.start() == api.OpenQueue(r"private$\q", AccessMode.SEND)


def test_a_queue_is_opened_again_on_a_new_connection(queue: QueueHandle) -> None:
    run = VerbRun(lambda: read_verbs.receive(queue))
    run.start()
    answer(run, OPENED)
    queue.context.connected(WELCOME)
    run = VerbRun(lambda: read_verbs.receive(queue))
    assert run.start() == api.OpenQueue(r"private$\q", AccessMode.RECEIVE)


def test_a_handle_of_a_connection_that_was_replaced_meanwhile_is_not_kept(
    queue: QueueHandle,
) -> None:
    run = VerbRun(lambda: read_verbs.receive(queue))
    run.start()
    queue.context.connected(WELCOME)
    answer(run, OPENED)
    assert queue.handle(AccessMode.RECEIVE) is None


def test_a_send_gives_the_identifier_that_the_queue_manager_made(queue: QueueHandle) -> None:
    run = VerbRun(lambda: queue_verbs.send(queue, "x"))
    run.start()
    assert isinstance(answer(run, OPENED), api.Send)
    assert answer(run, api.Sent([77], 0)) is None
    assert run.result == MessageId(MANAGER, 77)


def test_a_single_message_is_a_transaction_of_its_own(queue: QueueHandle) -> None:
    run = VerbRun(lambda: queue_verbs.send(queue, "x", transaction=SINGLE_MESSAGE))
    run.start()
    assert answer(run, OPENED).transaction == -1


def test_many_messages_go_in_calls_of_bounded_size_and_number(queue: QueueHandle) -> None:
    calls = SENDS_AHEAD_MAX_COUNT + 2
    count = SEND_MAX_COUNT * calls
    run = VerbRun(lambda: queue_verbs.send_many(queue, range(count)))
    run.start()
    step = answer(run, OPENED)
    waiting: list[int] = []
    most = sent = 0
    while step is not None:
        if isinstance(step, Ahead):
            assert isinstance(step.request, api.Send)
            assert len(step.request.packets) == SEND_MAX_COUNT
            waiting.append(sent)
            most = max(most, len(waiting))
            step = answer(run, sent)
            sent += 1
        else:
            assert step == Collect(waiting.pop(0))
            step = answer(run, api.Sent(list(range(SEND_MAX_COUNT)), 0))
    assert (sent, most) == (calls, SENDS_AHEAD_MAX_COUNT)
    assert len(run.result) == count


def test_a_refusal_among_many_is_raised_after_the_calls_under_way(queue: QueueHandle) -> None:
    run = VerbRun(lambda: queue_verbs.send_many(queue, range(2 * SEND_MAX_COUNT)))
    run.start()
    assert answer(run, OPENED, 1, 2) == Collect(1)
    assert answer(run, api.Failed(InsufficientResources.code, "full")) == Collect(2)
    with pytest.raises(InsufficientResources) as raised:
        answer(run, api.Sent(list(range(SEND_MAX_COUNT)), 0))
    assert raised.value.__notes__ == [f"{SEND_MAX_COUNT} of the messages were sent."]


def test_an_iterable_is_not_begun_again_after_a_loss(queue: QueueHandle) -> None:
    run = VerbRun(lambda: queue_verbs.send_many(queue, iter(["a"])))
    run.start()
    assert isinstance(answer(run, OPENED), Ahead)
    with pytest.raises(OutcomeUnknown, match="send_many"):
        run.lost(ConnectionLost("gone"))


def test_a_message_for_a_reader_who_gave_up_goes_to_the_next(queue: QueueHandle) -> None:
    given_up = api.Receive(5, timeout_ms=None)
    queue.gave_up(given_up)
    run = VerbRun(lambda: read_verbs.receive(queue))
    step = run.start()
    assert isinstance(step, Until)
    assert not step.condition()
    queue.keep(given_up, api.Entries([ENTRY]))
    assert step.condition()
    assert answer(run, 0) is None
    assert run.result.body == "late"
    assert not queue.has_late


def test_a_reader_who_gave_up_for_nothing_leaves_nothing(queue: QueueHandle) -> None:
    given_up = api.Receive(5, timeout_ms=None)
    queue.gave_up(given_up)
    queue.keep(given_up, api.Failed(0xC00E0008, "cancelled"))
    run = VerbRun(lambda: read_verbs.receive(queue))
    assert run.start() == api.OpenQueue(r"private$\q", AccessMode.RECEIVE)


def test_nobody_waits_for_answers_of_a_lost_connection(queue: QueueHandle) -> None:
    queue.gave_up(api.Receive(5, timeout_ms=None))
    queue.context.connected(WELCOME)
    assert queue.is_settled()


def test_a_peek_that_was_given_up_does_not_matter(queue: QueueHandle) -> None:
    peek = api.Receive(5, timeout_ms=None, peek=True)
    queue.gave_up(peek)
    queue.keep(peek, api.Entries([ENTRY]))
    assert not queue.has_late


def test_a_message_received_in_a_transaction_is_kept_for_that_one(queue: QueueHandle) -> None:
    given_up = api.Receive(5, timeout_ms=None, transaction=3)
    queue.gave_up(given_up)
    queue.keep(given_up, api.Entries([ENTRY]))
    assert queue.take_kept(0) is None
    assert queue.take_kept(4) is None
    assert queue.take_kept(3) == ENTRY


def test_a_cursor_is_stale_on_another_connection(queue: QueueHandle) -> None:
    cursor = CursorHandle(queue, AccessMode.PEEK)
    run = VerbRun(lambda: read_verbs.cursor_next(cursor))
    run.start()
    assert answer(run, OPENED) == api.CreateCursor(5)
    assert answer(run, api.CursorCreated(8)) == api.Receive(5, 1, 0, True, 8, False)
    assert answer(run, api.Entries([ENTRY])) is None
    moving = VerbRun(lambda: read_verbs.cursor_next(cursor))
    assert moving.start() == api.Receive(5, 1, 0, True, 8, True)
    queue.context.connected(WELCOME)
    with pytest.raises(StaleHandle):
        VerbRun(lambda: read_verbs.cursor_next(cursor)).start()
    assert VerbRun(lambda: read_verbs.cursor_close(cursor)).start() is None


def locked(queue: QueueHandle) -> VerbRun[Any]:
    """Lock a message, and begin to take it out."""
    run = VerbRun(lambda: read_verbs.begin_receive(queue))
    run.start()
    assert answer(run, OPENED) == api.Receive(5, timeout_ms=None, lock=True)
    assert answer(run, api.Entries([ENTRY])) is None
    assert run.result.lookup_id == ENTRY.lookup_id
    ending = VerbRun(lambda: read_verbs.end_receive(queue, run.result))
    assert ending.start() == api.EndReceive(5, ENTRY.lookup_id, True)
    return ending


def test_a_locked_message_is_taken_out_once(queue: QueueHandle) -> None:
    assert answer(locked(queue), api.Done()) is None
    with pytest.raises(TransactionSequence, match="not locked"):
        VerbRun(lambda: read_verbs.end_receive(queue, ENTRY.lookup_id)).start()


def test_a_lock_whose_end_was_refused_is_still_there(queue: QueueHandle) -> None:
    with pytest.raises(InsufficientResources):
        answer(locked(queue), api.Failed(InsufficientResources.code, "full"))
    again = VerbRun(lambda: read_verbs.end_receive(queue, ENTRY.lookup_id))
    assert again.start() == api.EndReceive(5, ENTRY.lookup_id, True)


@pytest.mark.parametrize("remove", [True, False])
def test_a_lock_does_not_survive_its_connection(queue: QueueHandle, remove: bool) -> None:
    ending = locked(queue)
    queue.context.connected(WELCOME)
    with pytest.raises(OutcomeUnknown, match="EndReceive"):
        ending.lost(ConnectionLost("gone"))
    late = VerbRun(lambda: read_verbs.end_receive(queue, ENTRY.lookup_id, remove=remove))
    if remove:
        with pytest.raises(StaleHandle, match="others may have received it"):
            late.start()
    else:
        assert late.start() is None, "it has been given back already"


def test_a_locked_message_for_a_reader_who_gave_up_goes_to_the_next_who_locks(
    queue: QueueHandle,
) -> None:
    given_up = api.Receive(5, timeout_ms=None, lock=True)
    queue.gave_up(given_up)
    queue.keep(given_up, api.Entries([ENTRY]))
    assert queue.take_kept(0) is None
    run = VerbRun(lambda: read_verbs.begin_receive(queue))
    assert run.start() is None
    assert run.result.body == "late"
    ending = VerbRun(lambda: read_verbs.end_receive(queue, run.result))
    assert ending.start() == api.EndReceive(5, ENTRY.lookup_id, True)


def test_a_cursor_that_met_too_large_a_body_stands_there(queue: QueueHandle) -> None:
    cursor = CursorHandle(queue, AccessMode.PEEK)
    run = VerbRun(lambda: read_verbs.cursor_next(cursor, body_max_bytes=3))
    run.start()
    answer(run, OPENED)
    assert answer(run, api.CursorCreated(8)) == api.Receive(
        5, 1, 0, True, 8, False, body_max_bytes=3
    )
    with pytest.raises(BufferOverflow):
        answer(run, api.Failed(BufferOverflow.code, "9 bytes"))
    moving = VerbRun(lambda: read_verbs.cursor_next(cursor))
    assert moving.start() == api.Receive(5, 1, 0, True, 8, True)


def test_a_transaction_is_good_for_its_connection_only(queue: QueueHandle) -> None:
    transaction = TransactionHandle(queue.context)
    transaction.begun(api.Begun(4, bytes(16)), queue.context.generation)
    assert transaction.number == 4
    queue.context.connected(WELCOME)
    with pytest.raises(TransactionSequence, match="lost"):
        _ = transaction.number
    with pytest.raises(TransactionSequence, match="aborted"):
        _ = transaction.number


def test_removing_goes_on_until_nothing_is_left(queue: QueueHandle) -> None:
    run = VerbRun(lambda: queue_verbs.remove_range(queue, 0, 99))
    run.start()
    assert answer(run, OPENED) == api.RemoveRange(5, 0, 99)
    assert answer(run, api.Removed(4, 7)) == api.RemoveRange(5, 7, 99)
    assert answer(run, api.Removed(2)) is None
    assert run.result == 6

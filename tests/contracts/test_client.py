"""What applications can rely on, whichever client they use: one suite for both.

The server runs on a thread, with its store in memory; connections are lost when a relay between
the two is told to lose them.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openmsmq as mq
from openmsmq.api.messages import PLACE_FORMAT
from openmsmq.client.settings import Settings
from openmsmq.model import errors
from openmsmq.model.identity import MessageId
from openmsmq.model.message import MessageClass
from openmsmq.model.transaction import TransactionState
from openmsmq.runtime.limits import READ_ANSWER_MAX_COUNT
from openmsmq.storage.memory import MemoryStore
from tests.contracts.awaited import connect_awaited
from tests.contracts.certificates import write_certificate
from tests.server_thread import ServerThread, start_server

ORDERS = r"private$\orders"
DEADLINE_S = 20.0
EVERYTHING = 1 << 56


class Relay:
    """Passes bytes between clients and a server, until it loses a connection on command."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._changed = threading.Condition()
        self._deaf = False
        self._swallowed = 0
        self._passing: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def swallow_answers(self) -> None:
        """Let calls through from now on, but no answers."""
        self._deaf = True
        self._swallowed = 0

    def lose(self, *, after_answers: bool = False) -> None:
        """Lose all connections, at once or after the next answer was swallowed."""
        with self._changed:
            if after_answers:
                assert self._changed.wait_for(lambda: self._swallowed > 0, DEADLINE_S)
            self._deaf = False
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _shut(end)

    def close(self) -> None:
        _shut(self._listener)
        self._listener.close()
        self._accepting.join()
        self.lose()
        for passing in self._passing:
            passing.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            with self._changed:
                self._pairs.append((client, server))
            for source, target, answers in ((client, server, False), (server, client, True)):
                ends = (source, target, answers)
                passing = threading.Thread(target=self._pass, args=ends, daemon=True)
                self._passing.append(passing)
                passing.start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if answers and self._deaf:
                    with self._changed:
                        self._swallowed += 1
                        self._changed.notify_all()
                    continue
                target.sendall(data)
        except OSError:
            pass
        _shut(target)
        source.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


Connect = Callable[..., Any]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    with start_server(str(tmp_path), store=MemoryStore()) as running:
        yield running


@pytest.fixture
def address(server: ServerThread) -> str:
    return f"{server.host}:{server.port}"


@pytest.fixture(params=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Connect with either client; what is still open at the end is closed."""
    with ExitStack() as opened:
        if request.param == "blocking":

            def connecting(settings: Settings) -> Any:
                return mq.connect(settings)

        else:
            runner = opened.enter_context(asyncio.Runner())

            def connecting(settings: Settings) -> Any:
                return connect_awaited(runner, settings)

        def connect_to(address: str, **settings: Any) -> Any:
            settings = {"call_timeout_s": DEADLINE_S, "reconnect_within_s": DEADLINE_S, **settings}
            manager = connecting(Settings(address=address, **settings))
            opened.callback(manager.close)
            return manager

        yield connect_to


@pytest.fixture
def manager(connect: Connect, address: str) -> Any:
    return connect(address)


@pytest.fixture
def orders(manager: Any) -> Any:
    return manager.create_queue(ORDERS)


@pytest.fixture
def ledger(manager: Any) -> Any:
    return manager.create_queue(r"private$\ledger", transactional=True)


@pytest.fixture
def relay(address: str) -> Iterator[Relay]:
    host, _, port = address.partition(":")
    relay = Relay((host, int(port)))
    yield relay
    relay.close()


def bodies(messages: Any) -> list[object]:
    return [message.body for message in messages]


# Queues.


def test_a_queue_is_created_listed_changed_and_deleted(manager: Any) -> None:
    queue = manager.create_queue(ORDERS, label="Orders", quota_kb=100, journaling=True)
    (listed,) = manager.queues()
    assert (listed.label, listed.quota_kb, listed.journaling) == ("Orders", 100, True)
    assert queue.change(label="New", quota_kb=200).label == "New"
    assert queue.properties().quota_kb == 200
    assert manager.exists(ORDERS)
    queue.delete()
    assert not manager.exists(ORDERS)
    assert manager.queues() == []


def test_a_queue_that_is_not_there_is_named_in_the_error(manager: Any) -> None:
    with pytest.raises(errors.QueueNotFound, match="nothing"):
        manager.queue(r"private$\nothing").receive(0)
    with pytest.raises(errors.QueueNotFound):
        manager.delete_queue(r"private$\nothing")


def test_a_queue_cannot_be_created_twice(manager: Any, orders: Any) -> None:
    with pytest.raises(errors.QueueExists):
        manager.create_queue(ORDERS)
    assert orders.count() == 0


def test_an_illegal_path_name_is_refused(manager: Any) -> None:
    with pytest.raises(errors.IllegalPathName):
        manager.create_queue("a;b;c")


def test_the_queue_manager_says_how_it_is(manager: Any, orders: Any) -> None:
    orders.send("x")
    status = manager.status()
    assert (status.manager_name, status.queue_count, status.message_count) == ("ALPHA", 1, 1)
    assert manager.name == "ALPHA"


def test_names_are_translated_both_ways(manager: Any, orders: Any) -> None:
    format_name = manager.format_name(ORDERS)
    assert format_name == orders.format_name
    assert manager.path_name(format_name) == rf"ALPHA\{ORDERS}"
    by_number = manager.names(ORDERS).private_name
    assert manager.path_name(by_number) == rf"ALPHA\{ORDERS}"
    assert manager.format_name(r"beta\private$\a") == r"DIRECT=OS:beta\PRIVATE$\a"
    with pytest.raises(errors.QueueNotFound):
        manager.format_name(r"private$\nothing")
    with pytest.raises(errors.NoDirectory):
        manager.format_name("public")
    with pytest.raises(errors.IllegalFormatName):
        manager.path_name("DIRECT=")


# Sending and receiving.


def test_a_message_arrives_with_its_properties(orders: Any) -> None:
    identifier = orders.send(
        "order 1",
        label="order",
        priority=5,
        recoverable=True,
        correlation_id=bytes(range(20)),
        response_queue=orders,
        application_tag=7,
        extension=b"extra",
        time_to_be_received_s=60,
        journal_on_failure=True,
    )
    message = orders.receive(timeout=5)
    assert message.id == identifier
    assert message.source_qm == identifier.source
    assert (message.body, message.label, message.priority) == ("order 1", "order", 5)
    assert message.recoverable
    assert message.correlation_id == bytes(range(20))
    assert str(message.response_queue) == orders.format_name
    assert (message.application_tag, message.extension) == (7, b"extra")
    assert message.time_to_be_received_s == 60
    assert message.journal_on_failure
    assert message.message_class == MessageClass.NORMAL
    assert abs((message.arrived_time - message.sent_time).total_seconds()) <= 1
    assert orders.count() == 0


def test_messages_come_by_priority_then_in_order(orders: Any) -> None:
    for body, priority in [("a", 3), ("b", 7), ("c", 3), ("d", 0)]:
        orders.send(body, priority=priority)
    assert bodies(orders.messages(timeout=0)) == ["b", "a", "c", "d"]


def test_receiving_from_an_empty_queue_times_out(orders: Any) -> None:
    with pytest.raises(mq.ReceiveTimeout):
        orders.receive(timeout=0.01)
    with pytest.raises(mq.ReceiveTimeout):
        orders.peek(timeout=0)


def test_peeking_leaves_the_message(orders: Any) -> None:
    orders.send_many([1, 2, 3])
    assert orders.peek(timeout=5).body == 1
    assert bodies(orders.peek_many(10, timeout=5)) == [1, 2, 3]
    assert orders.count() == 3


def test_many_messages_keep_their_order_and_identifiers(orders: Any) -> None:
    wanted = [f"order {number}" for number in range(1000)]
    sent = orders.send_many(iter(wanted), label="bulk")
    assert len(set(sent)) == 1000
    found: list[Any] = []
    while len(found) < 1000:
        found += orders.receive_many(300, timeout=5)
    assert [message.body for message in found] == wanted
    assert [message.id for message in found] == sent
    assert {message.label for message in found} == {"bulk"}


def test_whole_messages_can_be_sent_with_changes(orders: Any) -> None:
    message = mq.OutgoingMessage(body=b"raw", label="a", priority=1)
    orders.send(message)
    orders.send(message, label="b")
    orders.send_many([message, "text"], priority=0)
    found = [(m.body, m.label, m.priority) for m in orders.messages(timeout=0)]
    assert found == [
        (b"raw", "a", 1),
        (b"raw", "b", 1),
        (b"raw", "a", 0),
        ("text", "", 0),
    ]


def test_a_body_that_cannot_be_written_stops_the_rest_and_says_how_many_went(orders: Any) -> None:
    many = [*["fine"] * 256, object(), "never"]
    with pytest.raises(mq.FormatterError) as raised:
        orders.send_many(many)
    assert raised.value.__notes__ == ["256 of the messages were sent."]
    assert orders.count() == 256


def test_a_full_queue_refuses_and_says_how_many_went(manager: Any) -> None:
    queue = manager.create_queue(r"private$\small", quota_kb=1)
    with pytest.raises(errors.InsufficientResources):
        queue.send(bytes(4096))
    assert queue.count() == 0


@pytest.mark.parametrize("formatter", ["json", "xml"])
def test_a_queue_writes_and_reads_with_its_formatter(manager: Any, formatter: str) -> None:
    queue = manager.create_queue(ORDERS, formatter=formatter)
    queue.send(["a", "b"])
    assert queue.peek(0).body == ["a", "b"]
    plain = manager.queue(ORDERS).receive(0)
    assert plain.body == plain.body_bytes
    assert b"b" in plain.body_bytes


def test_a_receiver_that_waits_gets_what_another_connection_sends(
    address: str, orders: Any
) -> None:
    sender = mq.connect(address)

    def send_when_somebody_waits() -> None:
        other = sender.queue(ORDERS)
        while not other.properties().waiting_count:
            pass
        other.send("late")

    helper = threading.Thread(target=send_when_somebody_waits)
    helper.start()
    assert orders.receive(timeout=DEADLINE_S).body == "late"
    helper.join()
    sender.close()


# By identifier, lookup identifier and cursor.


def test_messages_are_found_by_identifier(orders: Any) -> None:
    first, second = orders.send("first"), orders.send("second")
    assert orders.peek_by_id(second).body == "second"
    assert orders.receive_by_id(str(second)).body == "second"
    assert orders.receive_by_id(first.to_bytes()).body == "first"
    with pytest.raises(mq.ReceiveTimeout):
        orders.receive_by_id(first)


def test_an_answer_is_found_by_its_correlation_identifier(orders: Any) -> None:
    question = orders.send("question")
    orders.send("answer", correlation_id=question)
    assert orders.peek_by_correlation_id(question).body == "answer"
    answer = orders.receive_by_correlation_id(question)
    assert MessageId.from_bytes(answer.correlation_id) == question


def test_lookup_identifiers_walk_both_ways(orders: Any) -> None:
    orders.send_many(["a", "b", "c"])
    first = orders.peek_by_lookup_id(seek="first")
    second = orders.peek_by_lookup_id(first.lookup_id, mq.SeekAction.NEXT)
    assert second.body == "b"
    assert orders.peek_by_lookup_id(second.lookup_id, "previous").body == "a"
    assert orders.peek_by_lookup_id(seek="last").body == "c"
    assert orders.receive_by_lookup_id(second.lookup_id).body == "b"
    with pytest.raises(errors.MessageNotFound):
        orders.peek_by_lookup_id(second.lookup_id)


def test_a_cursor_walks_through_the_queue(orders: Any) -> None:
    orders.send_many(["a", "b", "c"])
    with orders.cursor() as cursor:
        assert cursor.peek().body == "a"
        assert cursor.next().body == "b"
        assert cursor.peek().body == "b"
        assert cursor.receive().body == "b"
        assert cursor.peek().body == "c"
        with pytest.raises(mq.ReceiveTimeout):
            cursor.next()
    assert bodies(orders.browse()) == ["a", "c"]


def test_browsing_leaves_everything(orders: Any) -> None:
    orders.send_many(range(5))
    assert bodies(orders.browse()) == [0, 1, 2, 3, 4]
    assert orders.count() == 5


def test_leaving_a_loop_over_messages_loses_none(orders: Any) -> None:
    orders.send_many(["a", "b", "c"])
    for message in orders.messages(timeout=0):
        assert message.body == "a"
        break
    assert orders.count() == 2


def test_a_body_larger_than_its_reader_takes_stays(orders: Any) -> None:
    identifier = orders.send(bytes(100))
    lookup_id = orders.peek(0).lookup_id
    limit = {"body_max_bytes": 99}
    with orders.cursor() as cursor:
        for read in (
            lambda: orders.receive(0, **limit),
            lambda: orders.receive_many(5, 0, **limit),
            lambda: orders.peek(0, **limit),
            lambda: orders.peek_many(5, 0, **limit),
            lambda: orders.begin_receive(0, **limit),
            lambda: orders.receive_by_id(identifier, **limit),
            lambda: orders.peek_by_id(identifier, **limit),
            lambda: orders.receive_by_correlation_id(bytes(20), **limit),
            lambda: orders.peek_by_correlation_id(bytes(20), **limit),
            lambda: orders.receive_by_lookup_id(lookup_id, **limit),
            lambda: orders.peek_by_lookup_id(lookup_id, **limit),
            lambda: cursor.next(**limit),
            lambda: cursor.peek(**limit),
            lambda: cursor.receive(**limit),
        ):
            with pytest.raises(errors.BufferOverflow, match="100 bytes"):
                read()
    assert orders.receive(0, body_max_bytes=100).body == bytes(100)


def test_a_message_is_locked_and_then_taken_out_or_given_back(orders: Any) -> None:
    orders.send_many(["a", "b"])
    first = orders.begin_receive(0)
    assert bodies(orders.browse()) == ["b"]
    orders.end_receive(first, remove=False)
    assert bodies(orders.browse()) == ["a", "b"]
    again = orders.begin_receive(0)
    assert again.lookup_id == first.lookup_id
    orders.end_receive(again)
    assert bodies(orders.browse()) == ["b"]
    with pytest.raises(errors.TransactionSequence):
        orders.end_receive(again)


def test_messages_are_read_and_removed_by_arrival_number(orders: Any) -> None:
    orders.send_many(["low", "high"], priority=1)
    orders.send("urgent", priority=7)
    stop = orders.properties().last_arrival_number + 1
    assert len(orders.fetch_range(0, stop)) == 3
    assert orders.remove_range(0, stop) == 3
    assert orders.remove_range(0, stop) == 0
    assert orders.count() == 0


# Reading very many by arrival number.


def test_very_many_messages_are_fetched_side_by_side(orders: Any) -> None:
    orders.send_many(["low", "high"], priority=1)
    orders.send("urgent", priority=7)
    entries = orders.fetch_range(0, EVERYTHING)
    found = orders.fetch_packets(0, EVERYTHING)
    sizes = struct.unpack(f"<{len(found.sizes) // 4}I", found.sizes)
    assert found.lookup_ids == b"".join(entry.lookup_id.to_bytes(8, "big") for entry in entries)
    at = 0
    for entry, size in zip(entries, sizes, strict=True):
        one = msgspec.msgpack.decode(found.entries[at : at + size], type=bytes)
        place = (entry.arrived_time_s, entry.moved_time_s, entry.abort_count, entry.move_count)
        assert struct.unpack_from(PLACE_FORMAT, one) == place
        assert one[struct.calcsize(PLACE_FORMAT) :] == entry.packet
        at += size
    start, count = 0, 0
    while start < EVERYTHING:
        some = orders.fetch_packets(start, EVERYTHING, count=2)
        count += len(some.sizes) // 4
        start = some.next_start
    assert count == 3


def test_a_reader_reserves_reads_again_and_completes(manager: Any, orders: Any) -> None:
    orders.send_many(["a", "b", "c"])
    first = orders.fetch_range(0, EVERYTHING)[0].arrival_number
    assert orders.measure(0, count=2) == first + 2
    stop = orders.reserve("stream", 0, count=2)
    assert stop == first + 2
    assert bodies(orders.browse()) == ["c"]
    assert orders.reserve("stream", 0, count=2) == stop
    status = orders.properties()
    assert (status.reserved_for, status.reserved_start, status.reserved_stop) == ("stream", 0, stop)
    with pytest.raises(errors.SharingViolation, match="stream"):
        orders.reserve("other", 0)
    assert orders.complete("stream", stop) == 2
    assert orders.complete("stream", stop) == 0
    assert orders.reserve("stream", stop) == stop + 1
    manager.release(ORDERS)
    assert bodies(orders.messages(timeout=0)) == ["c"]


def test_very_many_messages_are_completed_in_one_call(orders: Any) -> None:
    orders.send_many(["x"] * 10_050)
    some = orders.fetch_packets(0, EVERYTHING, count=1 << 40)
    assert len(some.sizes) == 4 * READ_ANSWER_MAX_COUNT, "no answer is larger"
    assert orders.complete("stream", orders.reserve("stream", 0)) == 10_050
    assert orders.count() == 0


def test_a_reservation_survives_a_restart_of_the_queue_manager(
    connect: Connect, tmp_path: Path
) -> None:
    folder = str(tmp_path / "data")
    with start_server(folder) as first:
        port = first.port
        manager = connect(f"{first.host}:{port}")
        queue = manager.create_queue(ORDERS)
        queue.send_many(["a", "b"], recoverable=True)
        stop = queue.reserve("stream", 0, count=1)
    with start_server(folder, api_port=port):
        assert bodies(queue.browse()) == ["b"]
        assert queue.reserve("stream", 0, count=1) == stop
        assert queue.complete("stream", stop) == 1


def test_lost_answers_to_a_reader_change_nothing(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    orders.send_many(["a", "b"])
    queue = connect(relay.address).queue(ORDERS)
    queue.open(mq.AccessMode.RECEIVE)
    for ask, answer in (
        (lambda: bool(queue.reserve("stream", 0, count=1)), True),
        (lambda: queue.complete("stream", EVERYTHING), 0),
        (lambda: queue.count(), 1),
    ):
        relay.swallow_answers()
        losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
        losing.start()
        assert ask() == answer
        losing.join()
    assert bodies(orders.browse()) == ["b"]


# Journals, subqueues, purging, opening.


def test_a_journal_keeps_copies_of_what_was_received(manager: Any) -> None:
    queue = manager.create_queue(ORDERS, journaling=True)
    queue.send("kept")
    queue.receive(0)
    assert bodies(queue.journal.browse()) == ["kept"]


def test_a_message_names_its_own_dead_letter_queue(manager: Any, orders: Any) -> None:
    failed = manager.create_queue(r"private$\failed")
    orders.send("x", dead_letter_queue=failed)
    assert orders.peek(0).dead_letter_queue == r"ALPHA\private$\failed"
    orders.purge()
    letter = failed.receive(DEADLINE_S)
    assert (letter.body, letter.message_class) == ("x", MessageClass.NACK_QUEUE_PURGED)


def test_messages_move_to_a_subqueue_and_back(orders: Any) -> None:
    orders.send("poison")
    orders.move(orders.peek(0), "rejected")
    rejected = orders.subqueue("rejected")
    moved = rejected.peek(0)
    assert (moved.body, moved.move_count) == ("poison", 1)
    assert abs((moved.moved_time - moved.arrived_time).total_seconds()) <= 1
    assert orders.count() == 0
    rejected.move(moved.lookup_id, orders)
    assert orders.receive(0).body == "poison"


def test_purging_empties_the_queue(orders: Any) -> None:
    orders.send_many(range(10))
    assert orders.purge() == 10
    assert orders.count() == 0


def test_an_access_mode_allows_that_only(manager: Any, orders: Any) -> None:
    orders.send("x")
    peeking = manager.open(ORDERS, mq.AccessMode.PEEK)
    assert peeking.peek(0).body == "x"
    with pytest.raises(errors.AccessDenied):
        peeking.receive(0)
    with pytest.raises(errors.AccessDenied):
        peeking.send("y")


@pytest.mark.usefixtures("orders")
def test_one_reader_can_keep_others_out(manager: Any) -> None:
    alone = manager.open(ORDERS, mq.AccessMode.RECEIVE, mq.ShareMode.DENY_RECEIVE)
    with pytest.raises(errors.SharingViolation):
        manager.open(ORDERS, mq.AccessMode.RECEIVE)
    alone.close()
    manager.open(ORDERS, mq.AccessMode.RECEIVE).close()
    with pytest.raises(errors.QueueNotFound):
        manager.open(r"private$\nothing", mq.AccessMode.SEND)


def test_a_closed_queue_opens_itself_again(orders: Any) -> None:
    orders.send("x")
    orders.close()
    assert orders.receive(0).body == "x"


# Transactions.


def test_a_transaction_takes_effect_when_its_block_ends(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send("a", transaction=transaction)
        ledger.send_many(["b", "c"], transaction=transaction)
        with pytest.raises(mq.ReceiveTimeout):
            ledger.peek(0)
    assert transaction.state is TransactionState.COMMITTED
    found = list(ledger.messages(timeout=0))
    assert bodies(found) == ["a", "b", "c"]
    assert [(m.transaction.first, m.transaction.last) for m in found] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_an_exception_undoes_a_transaction(manager: Any, ledger: Any) -> None:
    ledger.send("a", transaction=mq.SINGLE_MESSAGE)
    transaction = manager.begin()

    def fail_in_it() -> None:
        with transaction:
            assert ledger.receive(0, transaction=transaction).body == "a"
            ledger.send("b", transaction=transaction)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_it()
    assert transaction.state is TransactionState.ABORTED
    (again,) = ledger.messages(timeout=0)
    assert (again.body, again.abort_count) == ("a", 1)


def test_a_transaction_that_is_over_takes_no_more(manager: Any, ledger: Any) -> None:
    transaction = manager.begin()
    transaction.abort()
    with pytest.raises(errors.TransactionSequence, match="aborted"):
        ledger.send("x", transaction=transaction)
    with pytest.raises(errors.TransactionSequence):
        transaction.commit()


def test_a_transaction_of_another_connection_is_not_taken_for_one_of_this(
    manager: Any, ledger: Any, connect: Connect, address: str
) -> None:
    # Both are the first of their connection, so they have the same number.
    ours, other = manager.begin(), connect(address)
    theirs = other.begin()
    there = other.queue(ledger.name)
    for use in (
        lambda: there.send("x", transaction=ours),
        lambda: there.send_many(["x"], transaction=ours),
        lambda: there.receive(0, transaction=ours),
        lambda: there.receive_by_lookup_id(1, transaction=ours),
    ):
        with pytest.raises(errors.TransactionUsage, match="another connection"):
            use()
    theirs.commit()
    ours.commit()
    assert ledger.count() == 0


def test_a_transactional_queue_wants_transactions(ledger: Any, orders: Any) -> None:
    with pytest.raises(errors.TransactionUsage):
        ledger.send("x")
    with pytest.raises(errors.TransactionUsage):
        orders.send("x", transaction=mq.SINGLE_MESSAGE)


def test_others_look_at_what_a_transaction_holds_if_it_lets_them(manager: Any, ledger: Any) -> None:
    ledger.send("x", transaction=mq.SINGLE_MESSAGE)
    lookup_id = ledger.peek(0).lookup_id
    with manager.transaction() as transaction:
        options = {"transaction": transaction, "allow_peek": True}
        assert ledger.receive_by_lookup_id(lookup_id, **options).body == "x"
        assert ledger.peek(0).body == "x"
        with pytest.raises(errors.MessageLocked):
            ledger.receive_by_lookup_id(lookup_id)
    assert ledger.count() == 0


def test_there_are_no_distributed_transactions(manager: Any) -> None:
    with pytest.raises(errors.NoTransactionCoordinator, match="prepare"):
        manager.begin(distributed=True)


def test_a_prepared_transaction_waits_for_its_coordinator(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send("x", transaction=transaction)
        transaction.prepare()
    (waiting,) = manager.in_doubt()
    assert waiting.unit_of_work == transaction.unit_of_work
    assert waiting.sent_count == 1
    manager.resolve(waiting.unit_of_work, commit=True)
    assert manager.in_doubt() == []
    assert ledger.receive(0).body == "x"


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_is_ended_by_its_holder(
    manager: Any, ledger: Any, commit: bool
) -> None:
    transaction = manager.begin()
    ledger.send("x", transaction=transaction)
    transaction.prepare()
    transaction.commit() if commit else transaction.abort()
    assert manager.in_doubt() == []
    assert ledger.count() == commit


# Batches.


def part(manager: Any, ledger: Any, body: str, batch: int = 0) -> bytes:
    """Prepare a part of a batch; gives its lasting name."""
    transaction = manager.begin()
    ledger.send(body, transaction=transaction)
    transaction.prepare(query="hourly", batch=batch)
    return bytes(transaction.unit_of_work)


def test_the_parts_of_a_batch_commit_together_and_once(manager: Any, ledger: Any) -> None:
    assert manager.last_batch("hourly") == -1
    second, first = (part(manager, ledger, body) for body in ("second", "first"))
    part(manager, ledger, "failed")
    assert [(work.query, work.batch) for work in manager.in_doubt()] == [("hourly", 0)] * 3
    assert manager.commit_batch("hourly", 0, [first, second]) is True
    assert manager.commit_batch("hourly", 0, [first, second]) is False
    assert manager.last_batch("hourly") == 0
    assert bodies(ledger.messages(timeout=0)) == ["first", "second"]
    with pytest.raises(errors.TransactionSequence, match="committed already"):
        part(manager, ledger, "late")


def test_only_the_last_batch_of_a_checkpoint_comes_again(manager: Any) -> None:
    assert manager.has_batch("daily", 7, checkpoint="c1") is False
    assert manager.commit_batch("daily", 7, [], checkpoint="c1", row_count=4) is True
    assert manager.has_batch("daily", 7, checkpoint="c1") is True
    assert manager.commit_batch("daily", 7, [], checkpoint="c1", row_count=4) is False
    assert manager.has_batch("daily", 8, checkpoint="c1") is False
    for refused in (
        lambda: manager.has_batch("daily", 6, checkpoint="c1"),
        lambda: manager.has_batch("daily", 8, checkpoint="c2"),
        lambda: manager.commit_batch("daily", 7, [], checkpoint="c1", row_count=5),
    ):
        with pytest.raises(errors.TransactionSequence, match="'daily'"):
            refused()
    [found] = manager.queries(prefix="dai")
    assert (found.query, found.batch, found.checkpoint) == ("daily", 7, "c1")
    manager.forget_query("daily")
    assert manager.queries(prefix="dai") == []


def test_a_part_of_a_batch_commits_only_with_it(manager: Any, ledger: Any) -> None:
    transaction = manager.begin()
    ledger.send("x", transaction=transaction)
    transaction.prepare(query="hourly", batch=3)
    with pytest.raises(errors.TransactionSequence, match="batch 3"):
        transaction.commit()
    with pytest.raises(errors.TransactionSequence, match="write it again"):
        manager.commit_batch("hourly", 3, [bytes(16)])
    manager.abort_batch("hourly", 3)
    assert manager.in_doubt() == []
    assert ledger.count() == 0


def test_a_lost_answer_to_a_commit_of_a_batch_is_asked_for_again(
    connect: Connect, relay: Relay, manager: Any, ledger: Any
) -> None:
    unit = part(manager, ledger, "once")
    other = connect(relay.address)
    assert other.last_batch("hourly") == -1
    relay.swallow_answers()
    losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
    losing.start()
    assert other.commit_batch("hourly", 0, [unit]) is False, "the first answer was lost"
    losing.join()
    assert bodies(ledger.browse()) == ["once"]


# Connections.


@pytest.mark.slow
def test_nobody_at_the_address_is_said_clearly(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(mq.ConnectionLost, match="no queue manager answers"):
        connect(f"127.0.0.1:{port}", start_wait_s=0.1)


def test_a_silent_server_is_not_waited_for(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(mq.ConnectionLost, match="Is it running"):
            connect(f"127.0.0.1:{port}", connect_timeout_s=0.05)


def test_a_unix_socket_is_a_way_in(connect: Connect, server: ServerThread) -> None:
    path = server.server.socket_path
    assert path is not None
    assert connect(str(path)).name == "ALPHA"


def test_a_token_opens_the_door(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open sesame\n", encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    token = str(tmp_path / "token")
    with start_server(str(tmp_path), store=MemoryStore(), token_file=token) as server:
        address = f"{server.host}:{server.port}"
        assert connect(address, token="open sesame").name == "ALPHA"
        with pytest.raises(errors.AccessDenied, match="token"):
            connect(address, token="wrong")


def test_tls_carries_everything_and_trusts_only_whom_it_is_told_to(
    connect: Connect, tmp_path: Path
) -> None:
    certificate = write_certificate(tmp_path / "alpha.pem")
    with start_server(str(tmp_path), store=MemoryStore(), tls_cert=certificate) as server:
        address = f"{server.host}:{server.port}"
        queue = connect(address, tls=certificate).create_queue(ORDERS)
        large = [bytes([number]) * 300_000 for number in range(10)]
        queue.send_many(large)
        assert bodies(queue.messages(timeout=0)) == large
        with pytest.raises(mq.ConnectionLost, match="certificate"):
            connect(address, tls=True)


def test_tls_with_a_port_that_has_none_is_told_at_once(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open sesame\n", encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    for options in ({}, {"token_file": str(tmp_path / "token")}):
        with start_server(str(tmp_path), store=MemoryStore(), **options) as server:
            found = f"^port {server.port} of {server.host} does not speak TLS: connect without tls"
            with pytest.raises(mq.ConnectionLost, match=found):
                connect(f"{server.host}:{server.port}", tls=True, token="open sesame")


def test_a_port_that_speaks_only_tls_is_told_at_once(connect: Connect, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "alpha.pem")
    with start_server(str(tmp_path), store=MemoryStore(), tls_cert=certificate) as server:
        found = f"^port {server.port} of {server.host} speaks only TLS: connect with tls=True, or"
        with pytest.raises(mq.ConnectionLost, match=found):
            connect(f"{server.host}:{server.port}")


def test_a_queue_manager_that_comes_back_with_tls_is_not_waited_for(
    connect: Connect, tmp_path: Path
) -> None:
    certificate = write_certificate(tmp_path / "alpha.pem")
    with start_server(str(tmp_path), store=MemoryStore()) as server:
        port = server.port
        manager = connect(f"127.0.0.1:{port}", reconnect_within_s=10 * DEADLINE_S)
    with (
        start_server(str(tmp_path), store=MemoryStore(), tls_cert=certificate, api_port=port),
        pytest.raises(mq.ConnectionLost, match="speaks only TLS"),
    ):
        manager.queues()


@pytest.mark.parametrize("tls", [False, True])
def test_whoever_hangs_up_on_every_greeting_is_not_said_to_speak_tls_or_not(
    connect: Connect, tls: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:
        answering = threading.Thread(target=_hang_up, args=(rude, 2))
        answering.start()
        with pytest.raises(mq.ConnectionLost) as lost:
            connect(f"127.0.0.1:{rude.getsockname()[1]}", tls=tls)
        answering.join(DEADLINE_S)
        assert not answering.is_alive()
    assert "TLS:" not in str(lost.value)


def _hang_up(listener: socket.socket, times: int) -> None:
    for _ in range(times):
        listener.accept()[0].close()


def test_settings_connect_another_process_alike(connect: Connect, manager: Any) -> None:
    settings = pickle.loads(pickle.dumps(manager.settings))
    assert connect(settings.address).name == manager.name


def test_a_closed_connection_says_so(manager: Any, orders: Any) -> None:
    manager.close()
    with pytest.raises(mq.ConnectionLost, match="closed"):
        orders.send("x")


def test_an_idle_connection_that_was_lost_is_replaced_unnoticed(
    connect: Connect, relay: Relay
) -> None:
    manager = connect(relay.address)
    queue = manager.create_queue(ORDERS)
    queue.send("before")
    relay.lose()
    queue.send("after")
    assert bodies(queue.messages(timeout=0)) == ["before", "after"]


def test_a_lost_answer_to_a_send_is_reported_and_never_repeated(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    queue = connect(relay.address).queue(ORDERS)
    queue.send("first")
    relay.swallow_answers()
    losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
    losing.start()
    with pytest.raises(mq.OutcomeUnknown, match="Send"):
        queue.send("second")
    losing.join()
    queue.send("third")
    assert bodies(orders.messages(timeout=0)) == ["first", "second", "third"]


def test_a_lost_answer_to_a_receive_is_reported(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    orders.send("x")
    queue = connect(relay.address).queue(ORDERS)
    queue.peek(0)
    queue.open(mq.AccessMode.RECEIVE)
    relay.swallow_answers()
    losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
    losing.start()
    with pytest.raises(mq.OutcomeUnknown, match="Receive"):
        queue.receive(0)
    losing.join()
    assert queue.count() == 0


def test_a_lost_answer_to_a_question_is_asked_for_again(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    orders.send("x")
    queue = connect(relay.address).queue(ORDERS)
    assert queue.peek(0).body == "x"
    relay.swallow_answers()
    losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
    losing.start()
    assert queue.peek(0).body == "x"
    losing.join()


def test_many_sends_whose_answers_are_lost_are_reported(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    queue = connect(relay.address).queue(ORDERS)
    queue.send("first")
    relay.swallow_answers()
    losing = threading.Thread(target=relay.lose, kwargs={"after_answers": True})
    losing.start()
    with pytest.raises(mq.OutcomeUnknown, match="0 were accepted"):
        queue.send_many(iter(["a", "b"]))
    losing.join()
    assert bodies(orders.messages(timeout=0)) == ["first", "a", "b"]


def test_a_transaction_does_not_survive_its_connection(
    connect: Connect, relay: Relay, ledger: Any
) -> None:
    manager = connect(relay.address)
    queue = manager.queue(ledger.name)
    lost = manager.begin()
    queue.send("x", transaction=lost)
    relay.lose()
    with pytest.raises(errors.TransactionSequence, match="lost"):
        queue.send("y", transaction=lost)
    assert lost.state is TransactionState.ABORTED
    assert ledger.count() == 0


def test_a_prepared_transaction_survives_its_connection(
    connect: Connect, relay: Relay, ledger: Any
) -> None:
    manager = connect(relay.address)
    transaction = manager.begin()
    manager.queue(ledger.name).send("x", transaction=transaction)
    transaction.prepare()
    relay.lose()
    transaction.commit()
    assert ledger.receive(0).body == "x"


def test_a_cursor_does_not_survive_its_connection(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    orders.send_many(["a", "b"])
    cursor = connect(relay.address).queue(ORDERS).cursor()
    assert cursor.peek().body == "a"
    relay.lose()
    with pytest.raises(errors.StaleHandle):
        cursor.next()


def test_a_lock_does_not_survive_its_connection(
    connect: Connect, relay: Relay, orders: Any
) -> None:
    orders.send("a")
    queue = connect(relay.address).queue(ORDERS)
    message = queue.begin_receive(0)
    relay.lose()
    assert orders.receive(DEADLINE_S).body == "a"
    assert queue.count() == 0
    with pytest.raises(errors.StaleHandle, match="others may have received it"):
        queue.end_receive(message)


def test_a_call_without_an_answer_ends_in_time(connect: Connect, relay: Relay, orders: Any) -> None:
    queue = connect(relay.address, call_timeout_s=1.0).queue(ORDERS)
    queue.send("x")
    relay.swallow_answers()
    with pytest.raises(mq.OutcomeUnknown, match="in time"):
        queue.send("y")
    relay.lose()
    assert orders.count() == 2


def test_a_lost_connection_is_given_up_after_a_while(connect: Connect, relay: Relay) -> None:
    manager = connect(relay.address, reconnect_within_s=0)
    relay.close()
    with pytest.raises(mq.ConnectionLost):
        manager.status()


def test_a_restart_of_the_queue_manager_is_survived(connect: Connect, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with start_server(folder) as first:
        port = first.port
        manager = connect(f"{first.host}:{port}")
        queue = manager.create_queue(ORDERS)
        queue.send("kept", recoverable=True)
        assert queue.peek(0).body == "kept"
    with start_server(folder, api_port=port):
        assert queue.receive(5).body == "kept"
        queue.send("more")
        assert queue.count() == 1


def test_a_reader_that_waits_survives_a_restart(connect: Connect, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    found: list[object] = []
    with start_server(folder) as first:
        port = first.port
        queue = connect(f"{first.host}:{port}").create_queue(ORDERS)
        reading = threading.Thread(target=lambda: found.append(queue.receive().body))
        reading.start()
        with mq.connect(f"{first.host}:{port}") as other:
            while not other.queue(ORDERS).properties().waiting_count:
                pass
    with start_server(folder, api_port=port) as second:
        with mq.connect(f"{second.host}:{port}") as other:
            other.queue(ORDERS).send("after")
        reading.join()
    assert found == ["after"]


# What only one of the clients has to show.


def test_threads_share_a_connection(address: str) -> None:
    with mq.connect(address) as manager:
        queue = manager.create_queue(ORDERS)
        answers = manager.create_queue(r"private$\answers")
        found: list[object] = []

        def work() -> None:
            for message in queue.messages(timeout=DEADLINE_S):
                if message.body == "stop":
                    return
                answers.send(message.body)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        queue.send_many(range(200))
        while len(found) < 200:
            found += bodies(answers.receive_many(50, timeout=DEADLINE_S))
        queue.send_many(["stop"] * 4)
        for worker in workers:
            worker.join()
        assert sorted(found) == list(range(200))  # type: ignore[type-var]


@pytest.fixture
def obeys_interrupts() -> Iterator[None]:
    """What runs in the background may have been told to ignore the keyboard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("obeys_interrupts")
def test_an_interrupt_from_the_keyboard_loses_no_message(address: str) -> None:
    me = threading.get_ident()
    with mq.connect(address) as manager, mq.connect(address) as other:
        queue = manager.create_queue(ORDERS)

        def interrupt() -> None:
            while not other.queue(ORDERS).properties().waiting_count:
                pass
            signal.pthread_kill(me, signal.SIGINT)

        helper = threading.Thread(target=interrupt)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            queue.receive()
        helper.join()
        other.queue(ORDERS).send("x")
        assert queue.receive(DEADLINE_S).body == "x"


def test_tasks_share_a_connection_and_a_cancelled_read_loses_nothing(address: str) -> None:
    from openmsmq import aio

    async def scenario() -> list[object]:
        async with aio.connect(address) as manager:
            queue = await manager.create_queue(ORDERS)
            found: list[object] = []
            for round_ in range(50):
                reading = asyncio.create_task(queue.receive())
                sending = asyncio.create_task(queue.send(round_))
                for _ in range(round_ % 7):
                    await asyncio.sleep(0)
                reading.cancel()
                await sending
                try:
                    found.append((await reading).body)
                except asyncio.CancelledError:
                    found.append((await queue.receive(DEADLINE_S)).body)
            return found

    assert asyncio.run(scenario()) == list(range(50))


def test_the_lazy_names_of_the_package_are_there() -> None:
    for name in dir(mq):
        assert getattr(mq, name) is not None
    with pytest.raises(AttributeError):
        _ = mq.nothing  # type: ignore[attr-defined]

"""The application interface over real sockets, with the server on a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.api import messages as api
from openmsmq.api.framing import encode_frame, encode_frames
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    MessageStorageFailed,
    OperationCancelled,
    ReceiveTimeout,
    ServiceNotAvailable,
    UnsupportedOperation,
)
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.server import ExitCode
from openmsmq.storage import records
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch, StoreFailed, StoreFull, StoreInUse
from tests.runtime.raw_client import RawClient, body, connect, packet, wait_until
from tests.server_thread import ServerThread, start_server


class CountingStore(MemoryStore):
    """Counts commits, and can be told to let them wait."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[int] = []
        self.gate: threading.Event | None = None

    def commit(self, batch: Batch) -> None:
        if self.gate is not None:
            assert self.gate.wait(20)
        super().commit(batch)
        self.commits.append(len(batch.changes))


class BrokenStore(MemoryStore):
    """Has a defect: its reads fail as no store may fail."""

    broken = False

    def scan(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        if self.broken:
            raise RuntimeError("a defect")
        return super().scan(start, stop, limit, reverse=reverse)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def server(tmp_path: Path, store: CountingStore) -> Iterator[ServerThread]:
    with start_server(str(tmp_path), store=store, api_socket="none") as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[RawClient]:
    with connect(server.host, server.port) as connected:
        yield connected


def failed_as(reply: api.AnyReply, kind: type) -> bool:
    return isinstance(reply, api.Failed) and reply.code == kind.code


# Greeting.


def test_hello_is_answered_with_who_the_queue_manager_is(server):
    with RawClient.tcp(server.host, server.port) as client:
        welcome = client.hello()
        assert isinstance(welcome, api.Welcome)
        assert welcome.manager_name == "ALPHA"
        assert welcome.manager == server.server.manager_id
        assert welcome.software.startswith("OpenMSMQ ")


def test_a_client_of_another_version_is_told_so(server):
    with RawClient.tcp(server.host, server.port) as client:
        reply = client.hello(version=2)
        assert failed_as(reply, UnsupportedOperation)
        assert "version 1" in reply.detail
        assert "version 2" in reply.detail
        assert client.is_hung_up_on()


def test_a_call_before_hello_is_refused(server):
    with RawClient.tcp(server.host, server.port) as client:
        assert failed_as(client.call(api.GetStatus()), InvalidParameter)
        assert client.is_hung_up_on()


def test_a_second_hello_is_an_error_but_not_the_end(client):
    assert failed_as(client.hello(), InvalidParameter)
    assert isinstance(client.call(api.GetStatus()), api.Status)


def test_calls_may_follow_hello_without_waiting_for_the_welcome(server):
    with RawClient.tcp(server.host, server.port) as client:
        client.socket.sendall(
            encode_frames([api.Call(0, api.Hello()), api.Call(1, api.GetStatus())])
        )
        assert isinstance(client.answer(0), api.Welcome)
        assert isinstance(client.answer(1), api.Status)


def test_who_does_not_say_hello_in_time_is_hung_up_on(tmp_path):
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), hello_timeout_ms=50, api_socket="none"
        ) as server,
        connect(server.host, server.port) as greeted,
        RawClient.tcp(server.host, server.port) as silent,
    ):
        assert failed_as(silent.answer(0), ServiceNotAvailable)
        assert silent.is_hung_up_on()
        assert isinstance(greeted.call(api.GetStatus()), api.Status)


def test_a_long_first_frame_is_refused_before_it_has_come(server):
    with RawClient.tcp(server.host, server.port) as client:
        client.socket.sendall((5000).to_bytes(4, "little"))
        # Well before the time for Hello is over.
        client.socket.settimeout(5)
        assert client.is_hung_up_on()


def test_more_connections_than_allowed_are_refused_until_one_ends(tmp_path):
    with start_server(
        str(tmp_path), store=MemoryStore(), connections_max=2, api_socket="none"
    ) as server:
        first = connect(server.host, server.port)
        with connect(server.host, server.port) as second:
            with RawClient.tcp(server.host, server.port) as third:
                assert failed_as(third.answer(0), InsufficientResources)
                assert third.is_hung_up_on()
            first.socket.close()
            wait_until(lambda: second.call(api.GetStatus()).connection_count == 1)
            connect(server.host, server.port).socket.close()


@pytest.mark.parametrize(("token", "welcome"), [("s3cret-ü", True), ("s3cret", False), ("", False)])
def test_the_right_token_opens_a_connection_and_no_other_does(tmp_path, token, welcome):
    file = tmp_path / "token"
    file.write_text("s3cret-ü\n", encoding="utf-8")
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), token_file=str(file), api_socket="none"
        ) as server,
        RawClient.tcp(server.host, server.port) as client,
    ):
        reply = client.hello(token)
        assert isinstance(reply, api.Welcome) if welcome else failed_as(reply, AccessDenied)


def test_an_address_that_others_reach_is_not_opened_without_a_token(tmp_path):
    refused = start_server(str(tmp_path), store=MemoryStore(), address="0.0.0.0")
    with pytest.raises(ConfigError, match="token"):
        refused.__enter__()
    allowed = start_server(
        str(tmp_path), store=MemoryStore(), address="0.0.0.0", allow_remote_without_token=True
    )
    with allowed as server, connect("127.0.0.1", server.port) as client:
        assert isinstance(client.call(api.GetStatus()), api.Status)


# Calls.


def test_messages_are_sent_and_received(client):
    client.create()
    assert isinstance(client.send(client.open(AccessMode.SEND), b"one", b"two"), api.Sent)
    assert client.receive_bodies(client.open(AccessMode.RECEIVE)) == [b"one", b"two"]


def test_a_thousand_calls_in_one_go_are_all_answered_and_share_commits(client, store):
    client.create()
    opened = client.open(AccessMode.SEND)
    before = len(store.commits)
    sends = [
        api.Send(opened.handle, [packet(opened.direct_name, b"%d" % number)])
        for number in range(1000)
    ]
    numbers = [client.answer(call).numbers for call in client.submit(*sends)]
    assert sorted(numbers) == numbers
    assert len(store.commits) - before < 100
    received = client.receive_bodies(client.open(AccessMode.RECEIVE))
    assert received == [b"%d" % number for number in range(1000)]


def test_calls_of_different_connections_share_a_commit(server, store):
    clients = [connect(server.host, server.port) for _ in range(10)]
    clients[0].create()
    opened = [client.open(AccessMode.SEND) for client in clients]
    sends = [
        encode_frame(api.Call(99, api.Send(each.handle, [packet(each.direct_name, b"x")])))
        for each in opened
    ]
    store.gate = threading.Event()
    before = len(store.commits)
    clients[0].socket.sendall(sends[0])
    for client, send in zip(clients[1:], sends[1:], strict=True):
        client.socket.sendall(send)
    store.gate.set()
    for client in clients:
        assert isinstance(client.answer(99), api.Sent)
        client.socket.close()
    # The first may be alone, because it keeps the server busy while the others arrive.
    assert len(store.commits) - before <= 3


def test_nothing_is_acknowledged_before_it_is_stored(client, store):
    client.create()
    opened = client.open(AccessMode.SEND)
    store.gate = threading.Event()
    (call,) = client.submit(api.Send(opened.handle, [packet(opened.direct_name, b"x")]))
    client.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.answer(call)
    store.gate.set()
    client.socket.settimeout(20)
    assert isinstance(client.answer(call), api.Sent)


def test_frames_may_come_byte_by_byte(client):
    frames = encode_frames(api.Call(number, api.GetStatus()) for number in range(1, 101))
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for value in frames:
        client.socket.send(bytes([value]))
    for number in range(1, 101):
        assert isinstance(client.answer(number), api.Status)


def test_more_calls_than_one_turn_takes_are_answered_all_the_same(client):
    calls = client.submit(*[api.GetStatus()] * 5000)
    assert all(isinstance(client.answer(call), api.Status) for call in calls)


def test_a_read_that_waits_is_answered_when_a_message_comes(server, client):
    client.create()
    (call,) = client.submit(api.Receive(client.open(AccessMode.RECEIVE).handle, timeout_ms=None))
    with connect(server.host, server.port) as sender:
        sender.send(sender.open(AccessMode.SEND), b"at last")
        assert [body(entry.packet) for entry in client.answer(call).entries] == [b"at last"]


def test_a_read_that_waits_ends_after_its_time(client):
    client.create()
    opened = client.open(AccessMode.RECEIVE)
    assert failed_as(client.call(api.Receive(opened.handle, timeout_ms=20)), ReceiveTimeout)


def test_a_short_wait_is_not_kept_waiting_by_a_long_one(client):
    client.create()
    opened = client.open(AccessMode.RECEIVE)
    client.submit(api.Receive(opened.handle, timeout_ms=600_000))
    client.call(api.GetStatus())
    assert failed_as(client.call(api.Receive(opened.handle, timeout_ms=20)), ReceiveTimeout)


def test_calls_that_wait_are_bounded_and_can_still_be_cancelled(tmp_path):
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), calls_waiting_max=3, api_socket="none"
        ) as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        opened = client.open(AccessMode.RECEIVE)
        read = api.Receive(opened.handle, timeout_ms=None)
        calls = [client.submit(read)[0] for _ in range(3)]
        assert failed_as(client.call(read), InsufficientResources)
        assert isinstance(client.call(api.Cancel(calls[0])), api.Done)
        assert failed_as(client.answer(calls[0]), OperationCancelled)
        assert isinstance(client.call(api.GetStatus()), api.Status)


def test_an_answer_larger_than_a_frame_may_be_is_never_tried(client):
    client.create()
    opened = client.open(AccessMode.SEND)
    for _ in range(9):
        client.send(opened, b"x" * 4_000_000)
    reading = client.open(AccessMode.RECEIVE)
    reply = client.call(api.Receive(reading.handle, count=1000, bytes_max=1 << 40))
    first = len(reply.entries)
    assert 4 <= first <= 5
    assert first + len(client.receive_bodies(reading)) > first


# Clients that misbehave.


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param((1 << 31).to_bytes(4, "little"), id="a frame too large"),
        pytest.param(b"\x01\0\0\0\xc1", id="no MessagePack"),
        pytest.param(encode_frame(api.Call(7, api.GetStatus()))[:-5] + b"xxxxx", id="no call"),
    ],
)
def test_garbage_costs_only_the_connection_that_it_came_on(server, client, garbage):
    with connect(server.host, server.port) as broken:
        broken.socket.sendall(garbage)
        assert broken.is_hung_up_on()
    wait_until(lambda: client.call(api.GetStatus()).connection_count == 1)


def test_a_call_number_that_is_still_in_use_ends_the_connection(server, client):
    client.create()
    with connect(server.host, server.port) as broken:
        opened = broken.open(AccessMode.RECEIVE)
        call = api.Call(77, api.Receive(opened.handle, timeout_ms=None))
        broken.socket.sendall(encode_frames([call, call]))
        assert broken.is_hung_up_on()
    assert isinstance(client.call(api.GetStatus()), api.Status)


def test_what_a_lost_connection_had_in_hand_is_given_back(server, client):
    client.call(api.CreateQueue(r"private$\orders", transactional=True))
    sending = client.open(AccessMode.SEND)
    sent = packet(sending.direct_name, b"x", transactional=True)
    assert isinstance(client.call(api.Send(sending.handle, [sent], api.OWN_TRANSACTION)), api.Sent)
    with connect(server.host, server.port) as doomed:
        opened = doomed.open(AccessMode.RECEIVE)
        begun = doomed.call(api.Begin())
        assert doomed.call(api.Receive(opened.handle, transaction=begun.transaction)).entries
    reading = client.open(AccessMode.RECEIVE)
    reply = client.call(api.Receive(reading.handle, timeout_ms=10_000))
    assert [body(entry.packet) for entry in reply.entries] == [b"x"]


def test_a_client_that_does_not_read_makes_the_server_hold_little(tmp_path):
    size = 100_000
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), write_buffer_bytes=200_000, api_socket="none"
        ) as server,
        connect(server.host, server.port) as client,
        connect(server.host, server.port) as slow,
    ):
        client.create()
        opened = client.open(AccessMode.SEND)
        for _ in range(4):
            client.send(opened, *[b"x" * size] * 100)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
        reading = slow.open(AccessMode.RECEIVE)
        calls = slow.submit(*[api.Receive(reading.handle, timeout_ms=None)] * 400)
        left = []

        def has_settled() -> bool:
            left.append(client.call(api.GetQueue(r"private$\orders")).queues[0].message_count)
            return len(left) > 20 and left[-1] == left[-20]

        wait_until(has_settled)
        # Of 40 MB, the server has taken the buffers of both sockets, one turn, and its own limit.
        assert left[-1] * size > 20_000_000
        for call in calls:
            assert len(slow.answer(call).entries) == 1
        assert client.call(api.GetQueue(r"private$\orders")).queues[0].message_count == 0


def test_answers_behind_a_long_one_wait_for_it_and_a_slow_client_gets_all_of_them(tmp_path):
    size, count = 100_000, 40
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), write_buffer_bytes=200_000, api_socket="none"
        ) as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        client.send(client.open(AccessMode.SEND), *[b"x" * size] * count)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        reading = client.open(AccessMode.RECEIVE)
        long = api.FetchPackets(reading.handle, 0, 1 << 40, bytes_max=16 << 20)
        short = api.GetQueue(r"private$\orders")
        calls = client.submit(*[long, short, short] * 4)
        # In the order in which they were asked for, so that one which overtook would be lost.
        for place, call in enumerate(calls):
            reply = client.answer(call)
            if place % 3:
                assert reply.queues[0].message_count == count
            else:
                assert bytes(reply.entries).count(b"x" * size) == count


def test_a_server_that_stops_in_the_middle_of_a_long_answer_sends_the_rest(tmp_path):
    size, count = 100_000, 120
    with (
        start_server(str(tmp_path), store=MemoryStore(), api_socket="none") as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        client.send(client.open(AccessMode.SEND), *[b"x" * size] * count)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        client.create("empty")
        waiting = client.open(AccessMode.RECEIVE, "empty")
        (waits,) = client.submit(api.Receive(waiting.handle, timeout_ms=None))
        reading = client.open(AccessMode.RECEIVE)
        (long,) = client.submit(api.FetchPackets(reading.handle, 0, 1 << 40, bytes_max=16 << 20))
        # It has begun, and the buffers of both sockets have no room for all of it.
        client.socket.recv(1, socket.MSG_PEEK)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert bytes(client.answer(long).entries).count(b"x" * size) == count
        assert "stopping" in client.answer(waits).detail
        assert client.is_hung_up_on()
        client.socket.close()
        stopping.join()


# Trouble with the store.


def test_a_full_store_refuses_what_needs_room_and_goes_on(client, store):
    client.create()
    opened = client.open(AccessMode.SEND)
    store.fail_next(StoreFull)
    assert failed_as(client.send(opened, b"no room"), InsufficientResources)
    assert isinstance(client.send(opened, b"room again"), api.Sent)
    assert client.receive_bodies(client.open(AccessMode.RECEIVE)) == [b"room again"]


def test_after_a_failed_disk_everything_is_refused_and_the_server_ends_with_status_1(tmp_path):
    store = MemoryStore()
    with (
        start_server(
            str(tmp_path), store=store, failure_grace_ms=200, log_level="error", api_socket="none"
        ) as server,
        connect(server.host, server.port) as client,
        connect(server.host, server.port) as other,
    ):
        client.create()
        opened = client.open(AccessMode.SEND)
        waiting = other.submit(api.Receive(other.open(AccessMode.RECEIVE).handle, timeout_ms=None))
        store.fail_next(StoreFailed)
        assert failed_as(client.send(opened, b"lost"), MessageStorageFailed)
        assert failed_as(other.call(api.GetStatus()), MessageStorageFailed)
        assert failed_as(other.answer(waiting[0]), MessageStorageFailed)
        assert client.is_hung_up_on()
        assert server.wait() is ExitCode.STORE_FAILED


def test_after_a_defect_nothing_is_acknowledged_and_the_server_ends_with_status_70(tmp_path):
    store = BrokenStore()
    with (
        start_server(str(tmp_path), store=store, failure_grace_ms=0, api_socket="none") as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        sending, reading = client.open(AccessMode.SEND), client.open(AccessMode.RECEIVE)
        client.send(sending, b"x")
        store.broken = True
        client.submit(api.Receive(reading.handle))
        assert client.is_hung_up_on()
        assert server.wait() is ExitCode.DEFECT


def test_a_state_that_cannot_be_ends_the_server_before_anybody_hears_of_it(tmp_path, capfd):
    store = MemoryStore()
    with (
        start_server(str(tmp_path), store=store, api_socket="none") as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        client.send(client.open(AccessMode.SEND), b"x")
    broken = store.crash()
    # No version has ever written such counts: one message without a byte.
    counts = [key for key, _ in broken.scan(*records.kind_range(b"C"), 100)]
    broken.commit(Batch([(key, records.encode_counts(1, 0)) for key in counts]))
    with (
        start_server(str(tmp_path), store=broken, failure_grace_ms=0, api_socket="none") as server,
        connect(server.host, server.port) as client,
    ):
        client.submit(api.Receive(client.open(AccessMode.RECEIVE).handle))
        assert client.is_hung_up_on()
        assert server.wait() is ExitCode.DEFECT
    assert "is to have 0 messages with -" in capfd.readouterr().err


def test_two_servers_cannot_have_the_same_data(tmp_path):
    with start_server(str(tmp_path)) as server, connect(server.host, server.port) as client:
        with pytest.raises(StoreInUse, match="process"):
            start_server(str(tmp_path)).__enter__()
        assert isinstance(client.call(api.GetStatus()), api.Status)


# Stopping.


def test_a_stop_answers_reads_that_wait(server, client):
    client.create()
    (call,) = client.submit(api.Receive(client.open(AccessMode.RECEIVE).handle, timeout_ms=None))
    client.call(api.GetStatus())
    server.stop()
    reply = client.answer(call)
    assert failed_as(reply, ServiceNotAvailable)
    assert "stopping" in reply.detail
    assert server.exit_code is ExitCode.STOPPED


def test_a_stop_does_not_wait_long_for_a_client_that_does_not_read(tmp_path):
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), stop_timeout_ms=100, api_socket="none"
        ) as server,
        connect(server.host, server.port) as client,
    ):
        client.create()
        client.send(client.open(AccessMode.SEND), *[b"x" * 1_000_000] * 20)
        reading = client.open(AccessMode.RECEIVE)
        client.submit(*[api.Receive(reading.handle)] * 20)
        server.stop()
        assert server.exit_code is ExitCode.STOPPED


def test_a_server_has_no_connection_left_after_its_stop(server):
    client = connect(server.host, server.port)
    server.stop()
    assert client.is_hung_up_on()
    with pytest.raises(ConnectionError):
        RawClient.tcp(server.host, server.port)
    client.socket.close()

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from openmsmq.client.connections.rpc_connection import (
    RpcConnection,
    RpcFailed,
    RpcFault,
    RpcUnreachable,
)
from openmsmq.protocol.rpc.client_states import FailureKind
from openmsmq.protocol.rpc.states import CallArrived, Closed, Written
from openmsmq.wire.rpc.pdus import Status
from tests.unit.protocol.rpc.conversations import OPEN, SAFE, by_spnego, server

Play = Callable[[socket.socket], None]


@contextlib.contextmanager
def played(play: Play) -> Iterator[tuple[str, int]]:
    """A server that does what a test says with its one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            taken, _ = listener.accept()
            with taken, contextlib.suppress(OSError):
                play(taken)

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()
        thread.join()


def ours(answer: Callable[[CallArrived], bytes | int]) -> Play:
    """Our own server; `answer` says what calls return or throw."""

    def play(taken: socket.socket) -> None:
        machine = server()
        while data := taken.recv(1000):
            machine.received(data)
            while outputs := machine.take_outputs():
                for output in outputs:
                    match output:
                        case Written(written):
                            taken.sendall(written)
                        case CallArrived(call):
                            said = answer(output)
                            if isinstance(said, bytes):
                                machine.returned(call, said)
                            else:
                                machine.threw(call, said)
                        case Closed():
                            return
                        case _:
                            pass

    return play


def test_calls_return_or_throw_one_after_another() -> None:
    def answer(call: CallArrived) -> bytes | int:
        return call.stub * 10_000 if call.operation else Status.BAD_STUB

    with (
        played(ours(answer)) as place,
        RpcConnection(place, SAFE, by_spnego(), 10) as connection,
    ):
        assert connection.call(1, b"ab") == b"ab" * 10_000
        with pytest.raises(RpcFault) as fault:
            connection.call(0, b"")
        assert fault.value.status == Status.BAD_STUB
        assert connection.call(1, b"c") == b"c" * 10_000


def test_a_wrong_password_is_no_connection() -> None:
    with (
        played(ours(lambda call: call.stub)) as place,
        pytest.raises(RpcFailed) as failed,
    ):
        RpcConnection(place, SAFE, by_spnego(password="wrong"), 10)
    assert failed.value.kind is FailureKind.NOT_AUTHENTICATED


def test_nobody_there_is_said_with_the_cause() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        place = gone.getsockname()
    with pytest.raises(RpcUnreachable) as failed:
        RpcConnection(place, OPEN, None, 10)
    assert isinstance(failed.value.__cause__, ConnectionRefusedError)


def test_a_server_that_closes_is_lost() -> None:
    with (
        played(lambda taken: taken.close()) as place,
        pytest.raises(RpcFailed) as failed,
    ):
        RpcConnection(place, OPEN, None, 10)
    assert failed.value.kind is FailureKind.LOST


def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for() -> None:
    over = threading.Event()

    def drip(taken: socket.socket) -> None:
        header = b"\x05\x00\x0c\x03\x10\0\0\0\xff\x0f"
        for at in range(len(header)):
            taken.sendall(header[at : at + 1])
            if over.wait(0.05):
                return
        over.wait(10)

    with played(drip) as place:
        with pytest.raises(RpcFailed, match="no answer came within"):
            RpcConnection(place, OPEN, None, 0.3)
        over.set()

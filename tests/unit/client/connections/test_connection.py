"""A connection over a real socket to a scripted queue manager: what clients hardly show."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openmsmq.api.framing import FrameReader, encode_frame, encode_frames
from openmsmq.api.messages import Answer, Call, Done, Failed, GetStatus, Welcome
from openmsmq.client.connections.connection import Connection, open_connection
from openmsmq.client.connections.engine import Keeper
from openmsmq.client.errors import ConnectionLost, NotSent
from openmsmq.client.settings import Settings
from openmsmq.client.steps import Ahead, Collect
from openmsmq.model.errors import ServiceNotAvailable

WELCOME = Welcome(1, "OpenMSMQ", "ALPHA", bytes(16))
Script = Callable[["Scripted"], None]


class Scripted:
    """The queue manager's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader: FrameReader[Call] = FrameReader(Call)

    def calls(self, count: int) -> list[Call]:
        found: list[Call] = []
        while len(found) < count:
            self._reader.feed(self._connection.recv(1 << 16))
            found += self._reader.items()
        return found

    def say(self, *answers: Answer) -> None:
        self._connection.sendall(encode_frames(answers))


@contextmanager
def linked(folder: Path, script: Script) -> Iterator[Connection]:
    """Connection to a queue manager that welcomes, follows its script, and hangs up."""
    path = str(folder / "api.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                peer = Scripted(connection)
                peer.calls(1)
                peer.say(Answer(0, WELCOME))
                script(peer)

        serving = threading.Thread(target=serve)
        serving.start()
        connection = open_connection(Settings(address=path), None)
        try:
            yield connection
        finally:
            connection.close()
            serving.join()


def write_until_refused(connection: Connection) -> None:
    while True:
        connection.perform(Ahead(GetStatus()), Keeper())


def test_a_call_that_cannot_be_written_was_not_sent(tmp_path: Path) -> None:
    hung_up = threading.Event()
    with linked(tmp_path, lambda _: hung_up.set()) as connection:
        hung_up.wait()
        # The socket is closed behind the script; until then a write may still be taken.
        with pytest.raises(NotSent):
            write_until_refused(connection)
        assert connection.is_lost


def test_answers_to_calls_sent_ahead_are_collected_in_any_order(tmp_path: Path) -> None:
    def answer_backwards(peer: Scripted) -> None:
        first, second = peer.calls(2)
        peer.say(Answer(second.id, Failed(2, "")), Answer(first.id, Failed(1, "")))

    with linked(tmp_path, answer_backwards) as connection:
        first = connection.perform(Ahead(GetStatus()), Keeper())
        second = connection.perform(Ahead(GetStatus()), Keeper())
        assert isinstance(first, int)
        assert isinstance(second, int)
        assert connection.perform(Collect(first), Keeper()) == Failed(1, "")
        assert connection.perform(Collect(second), Keeper()) == Failed(2, "")


def test_an_answer_that_nobody_asked_for_ends_the_link(tmp_path: Path) -> None:
    def say_nonsense(peer: Scripted) -> None:
        peer.calls(1)
        peer.say(Answer(99, Done()))

    with linked(tmp_path, say_nonsense) as connection, pytest.raises(ConnectionLost, match="99"):
        connection.perform(GetStatus(), Keeper())


def test_a_retired_link_takes_no_more_calls_and_answers_those_it_has(tmp_path: Path) -> None:
    retired = threading.Event()

    def answer_late(peer: Scripted) -> None:
        (call,) = peer.calls(1)
        retired.wait()
        peer.say(Answer(call.id, Done()))

    with linked(tmp_path, answer_late) as connection:
        call = connection.perform(Ahead(GetStatus()), Keeper())
        assert isinstance(call, int)
        connection.retire()
        assert connection.is_lost
        with pytest.raises(NotSent):
            connection.perform(GetStatus(), Keeper())
        retired.set()
        assert connection.perform(Collect(call), Keeper()) == Done()


def test_a_queue_manager_that_stops_is_no_refusal(tmp_path: Path) -> None:
    path = str(tmp_path / "stopping.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                failed = Failed(ServiceNotAvailable.code, "stopping")
                connection.sendall(encode_frame(Answer(0, failed)))
                connection.recv(1 << 16)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with pytest.raises(ConnectionLost, match="stopping"):
            open_connection(Settings(address=path), None)
        refusing.join()

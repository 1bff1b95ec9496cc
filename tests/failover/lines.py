"""A network between a queue manager and PostgreSQL that can be slow, or cut, and mended."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

from bench.peers.databases import Database, Databases
from bench.peers.process import HOST

_CHUNK_BYTES = 65_536


class Line:
    """What goes between one queue manager and one server; it listens as that server would."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.delay_s = 0.0
        """How long an answer is on its way."""
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._is_closed = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._go(self._listen)

    def cut(self) -> None:
        """Let nothing through; what is under way waits, as packets do that are sent again."""
        self._is_whole.clear()

    def mend(self) -> None:
        """Let everything through, what has waited first."""
        self.delay_s = 0.0
        self._is_whole.set()

    def close(self) -> None:
        """End everything."""
        self._is_closed = True
        self.mend()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            _end(each)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a line hangs"

    def _go(self, work: Callable[..., None], *facts: object) -> None:
        thread = threading.Thread(target=work, args=facts, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closed:
                near, _ = self._listener.accept()
                self._open.append(near)
                self._go(self._connect, near)

    def _connect(self, near: socket.socket) -> None:
        self._is_whole.wait()
        try:
            far = socket.create_connection((self._database.host, self._database.port), 5)
        except OSError:
            _end(near)
            return
        far.settimeout(None)
        self._open.append(far)
        self._go(self._carry, far, near, True)
        self._carry(near, far, False)

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                if is_answer and self.delay_s:
                    time.sleep(self.delay_s)
                self._is_whole.wait()
                target.sendall(data)
        _end(source)
        _end(target)


class Lines:
    """The lines of one queue manager to both servers."""

    def __init__(self, databases: Databases) -> None:
        self.all = [Line(databases.first), Line(databases.second)]

    @property
    def address(self) -> str:
        """How to connect to the server that can be written to."""
        ports = ",".join(str(line.port) for line in self.all)
        return f"host={HOST},{HOST} port={ports} user=tester dbname=postgres"

    def cut(self) -> None:
        """Cut both."""
        for line in self.all:
            line.cut()

    def slow_down(self, delay_s: float) -> None:
        """Delay every answer."""
        for line in self.all:
            line.delay_s = delay_s

    def mend(self) -> None:
        """Have both as they were."""
        for line in self.all:
            line.mend()


@contextlib.contextmanager
def lines_to(databases: Databases) -> Iterator[Lines]:
    """Have lines for the time of a block."""
    lines = Lines(databases)
    try:
        yield lines
    finally:
        for line in lines.all:
            line.close()


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()

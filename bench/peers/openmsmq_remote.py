"""OpenMSMQ, read from another computer: MS-MQRR at packet privacy, proved by NTLM.

The queue manager runs as `openmsmq serve`, with its door of RPC. A reader is our own client of RPC
on a blocking socket. It receives as the protocol wants it: it starts a receive, waits for the
message, says that it has it, and waits until the queue manager has removed it durably.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openmsmq
from bench.peers import openmsmq as single
from bench.peers.pair import BODY, Gate, Job
from bench.peers.process import HOST, free_port
from openmsmq.client.managing.proving import protection
from openmsmq.model.identity import NIL_GUID
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import Bound, ClientOutput, Failed, Returned
from openmsmq.protocol.rpc.states import Written
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from openmsmq.security.authentication.initiators import credentials_of
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.syntaxes import Syntax

NAME: Final = "OpenMSMQ"
MANAGER: Final = "BENCH"
USER: Final = "reader"
PASSWORD: Final = "correct horse battery"
INTERFACE: Final = Syntax(rpc.INTERFACE, *rpc.VERSION)

_PATIENCE: Final = struct.pack("ll", 30, 0)
_READ_BYTES: Final = 1 << 16
_ANY_REQUEST: Final = 1
"""What a receive is called: its number is free again when it has ended."""
_WHOLE: Final = 0xFFFF_FFFF
_SUCCESS: Final = bytes(4)


def missing() -> str | None:
    """It is always there."""
    return None


def rpc_tables(port: int, address: str = HOST) -> str:
    """Return what a configuration file needs for the door of RPC."""
    door = f'enabled = true\naddress = "{address}"\nport = {port}\nendpoint_mapper = "off"'
    return f"[rpc]\n{door}\n"


def add_accounts(home: Path, *names: str) -> None:
    """Add accounts of those who read from afar, where `launch` looks for them."""
    data = home / "data"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        add_account(data / ACCOUNTS_FILE, name, PASSWORD, administrator=True, now_s=0)


@contextlib.contextmanager
def serve(directory: Path, name: str = MANAGER) -> Iterator[tuple[str, int]]:
    """Run a queue manager; gives its addresses (applications, RPC) and its process id."""
    home = directory / "remote"
    add_accounts(home, USER)
    port = free_port()
    config = home / "openmsmq.toml"
    config.write_text(rpc_tables(port))
    options = ["--no-transfer", "--config", str(config)]
    with single.launch(home, name, options) as (address, pid):
        yield f"{address},{HOST}:{port}", pid


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run a queue manager; gives its addresses."""
    with serve(directory) as (addresses, _):
        yield addresses


def prepare(addresses: str, job: Job) -> None:
    """Make the queue of a job, with all its messages."""
    with openmsmq.connect(addresses.split(",")[0]) as manager:
        queue = manager.create_queue(f"private$\\{job.queue}")
        queue.send_many((BODY for _ in range(job.warm_up + job.count)), recoverable=job.durable)


def consume(addresses: str, job: Job, gate: Gate) -> list[float]:
    """Receive the messages of a job, one by one."""
    host, _, port = addresses.split(",")[1].rpartition(":")
    with Reader((host, int(port))) as reader:
        context = reader.open(job.queue)
        for _ in range(job.warm_up):
            reader.receive(context)
        gate.wait()
        for _ in range(job.count):
            reader.receive(context)
    return []


class Reader:
    """One connection of a reader."""

    def __init__(self, place: tuple[str, int], password: str = PASSWORD) -> None:
        proved = protection(credentials_of(USER, password), place[0])
        self._machine = ClientAssociation(INTERFACE, proved)
        self._socket = socket.create_connection(place)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stubs: tuple[bytes, ...] = ()
        """The parameters of a receive and of its end, always the same."""
        self._machine.connected()
        self._next(Bound)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def open(self, queue: str) -> bytes:
        """Open a queue for receiving; gives its handle."""
        name = QueueFormat(3, 0, 0, rf"OS:{MANAGER}\private$\{queue}")
        asked = rpc.OpenQueue(name, 1, 0, NIL_GUID, 1, 6, 1, 7600, 1)
        stub = self._call(rpc.Operation.OPEN_QUEUE, rpc.OPEN_QUEUE.encode(asked))
        return rpc.OPENED.decode(stub).context

    def receive(self, context: bytes) -> None:
        """Receive the next message, and have it removed."""
        if not self._stubs:
            wanted = rpc.StartReceive(context, 0, 0, 0, 0, _ANY_REQUEST, _WHOLE, _WHOLE)
            taken = rpc.EndReceive(context, rpc.Verdict.ACK, _ANY_REQUEST)
            self._stubs = rpc.START_RECEIVE.encode(wanted), rpc.END_RECEIVE.encode(taken)
        start, end = self._stubs
        stub = self._call(rpc.Operation.START_RECEIVE, start)
        if not stub.endswith(_SUCCESS) or BODY not in stub:
            raise ValueError(f"no message came, but {rpc.RECEIVED.decode(stub)}")
        stub = self._call(rpc.Operation.END_RECEIVE, end)
        if stub != _SUCCESS:
            raise ValueError(f"a message was not removed: {stub.hex()}")

    def _call(self, operation: int, stub: bytes) -> bytes:
        self._machine.call(operation, stub)
        found = self._next(Returned)
        assert isinstance(found, Returned)
        return found.stub

    def _next(self, wanted: type[ClientOutput]) -> ClientOutput:
        """Write what there is to write, and read until the machine says what is wanted."""
        while True:
            for output in self._machine.take_outputs():
                if isinstance(output, Written):
                    self._socket.sendall(output.data)
                elif isinstance(output, wanted):
                    return output
                elif isinstance(output, Failed):
                    raise ConnectionError(output.sentence)
            self._machine.received(self._socket.recv(_READ_BYTES))

"""OpenMSMQ, read from another computer: MS-MQRR at packet privacy, proved by NTLM.

The queue manager runs as `openmsmq serve`, with its door of RPC. A reader is what our own queue
manager reads with for its applications (`remote.elsewhere` over `protocol.rpc.client`), on a socket
that blocks. It starts a receive, waits for the message and has it; it says so, and may ask for the
next message before the queue manager has answered that it has removed the one before durably. It
has no message that was not asked for, and one at a time.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openmsmq
from bench.peers import openmsmq as single
from bench.peers.pair import BODY, Gate, Job
from bench.peers.process import HOST, free_port
from openmsmq.api import messages as api
from openmsmq.client.managing.proving import protection
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import DirectFormatName, DirectProtocol, LocalQueueName
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import Bound, ClientOutput, Failed, Returned
from openmsmq.protocol.rpc.states import Written
from openmsmq.remote.elsewhere import QueueElsewhere
from openmsmq.remote.elsewhere_ports import Invoke, Output, Over, Tell
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from openmsmq.security.authentication.initiators import credentials_of
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.remote_read import Operation
from openmsmq.wire.rpc.syntaxes import Syntax

NAME: Final = "OpenMSMQ"
MANAGER: Final = "BENCH"
USER: Final = "reader"
PASSWORD: Final = "correct horse battery"
INTERFACE: Final = Syntax(rpc.INTERFACE, *rpc.VERSION)

_PATIENCE: Final = struct.pack("ll", 30, 0)
_READ_BYTES: Final = 1 << 16
_HANDLE: Final = 1
_CALL: Final = 1
"""What each request is called: none is made before the one before it is answered."""
_RECEIVE: Final = api.Receive(_HANDLE)
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
        reader.open(job.queue)
        for _ in range(job.warm_up):
            reader.receive()
        gate.wait()
        for _ in range(job.count):
            reader.receive()
        # The last one is taken out when the queue has been closed.
        reader.leave()
    return []


class Reader:
    """One open queue, read as `openmsmq serve` reads it for an application of its computer.

    The machines are those of the product; only the socket is one that blocks.
    """

    def __init__(self, place: tuple[str, int], password: str = PASSWORD) -> None:
        proved = protection(credentials_of(USER, password), place[0])
        self._machine = ClientAssociation(INTERFACE, proved)
        self._socket = socket.create_connection(place)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._queue: QueueElsewhere
        self._held: deque[Invoke] = deque()
        self._invoked: dict[int, Invoke] = {}
        self._heard: deque[ClientOutput | Output] = deque()
        """What the machines have said and nobody has waited for yet."""
        self._machine.connected()
        self._next(Bound)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def open(self, queue: str) -> None:
        """Open a queue for receiving."""
        name = DirectFormatName(DirectProtocol.OS, MANAGER, LocalQueueName(queue, private=True))
        asked = api.OpenQueue(str(name), int(AccessMode.RECEIVE))
        self._queue = QueueElsewhere(name, _HANDLE, asked, NIL_GUID)
        self._do(self._queue.open(_CALL))
        self._next(Tell)

    def receive(self) -> None:
        """Receive the next message."""
        self._do(self._queue.asked(_CALL, _RECEIVE, 0))
        told = self._next(Tell)
        assert isinstance(told, Tell)
        if not isinstance(told.reply, api.Entries):
            raise ValueError(f"no message came, but {told.reply}")
        [entry] = told.reply.entries
        if BODY not in entry.packet:
            raise ValueError("another message came")

    def leave(self) -> None:
        """Close the queue, when everything is taken out that was received."""
        self._do(self._queue.leave())
        self._next(Over)

    def _next(self, wanted: type[ClientOutput | Output]) -> ClientOutput | Output:
        """Write what there is to write, and read until the machines say what is wanted."""
        while True:
            while self._heard:
                heard = self._heard.popleft()
                if isinstance(heard, wanted):
                    return heard
                if isinstance(heard, Failed):
                    raise ConnectionError(heard.sentence)
            self._settle()
            if not self._heard:
                self._machine.received(self._socket.recv(_READ_BYTES))

    def _settle(self) -> None:
        for output in self._machine.take_outputs():
            if isinstance(output, Written):
                self._socket.sendall(output.data)
            elif isinstance(output, Returned):
                self._take(self._invoked.pop(output.call), output.stub)
            else:
                self._heard.append(output)

    def _take(self, invoked: Invoke, stub: bytes) -> None:
        if invoked.operation == Operation.END_RECEIVE and stub != _SUCCESS:
            raise ValueError(f"a message was not taken out: {stub.hex()}")
        self._do(self._queue.returned(invoked.number, stub))

    def _do(self, outputs: list[Output]) -> None:
        """Do what the queue wants."""
        for output in outputs:
            if isinstance(output, Invoke):
                self._held.append(output)
            else:
                self._heard.append(output)
        while self._held and self._machine.can_call:
            invoke = self._held.popleft()
            self._invoked[self._machine.call(invoke.operation, invoke.stub)] = invoke
            self._settle()

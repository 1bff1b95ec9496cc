"""A computer with MSMQ, managed from afar. [MQMR 3.2]"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final, Self, TypeVar

from openmsmq.client.connections.rpc_connection import RpcConnection, RpcFailed, find_port
from openmsmq.client.managing.properties import (
    MACHINE_PROPERTIES,
    QUEUE_PROPERTIES,
    MachineProperty,
    RemoteMachine,
    RemoteQueue,
    machine_of,
    queue_of,
    texts_of,
)
from openmsmq.client.managing.proving import protection
from openmsmq.model.errors import MsmqError
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    FormatName,
    PathName,
    QueueOnComputer,
    read_name,
)
from openmsmq.protocol.rpc.client_states import FailureKind
from openmsmq.security.authentication.ntlm.parties import Credentials
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import management as rpc
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.syntaxes import Syntax
from openmsmq.wire.rpc.variants import NULL, Variant

T = TypeVar("T")

INTERFACE: Final = Syntax(rpc.INTERFACE, *rpc.VERSION)
CALL_TIMEOUT_S: Final = 60.0
"""How long one answer may take."""
_MACHINE: Final = rpc.ManagedObject(rpc.ObjectType.MACHINE, 0)


class NotManaged(RpcFailed):
    """The endpoint mapper of a computer does not know the interface."""

    def __init__(self, host: str) -> None:
        sentence = f"{host} has no queue manager that can be managed from afar"
        super().__init__(FailureKind.NO_INTERFACE, sentence)


class RemoteHost:
    """One connection to the queue manager of another computer."""

    def __init__(self, host: str, connection: RpcConnection) -> None:
        self.host: Final = host
        self._connection = connection

    @classmethod
    @contextlib.contextmanager
    def reached(
        cls, host: str, port: int | None, credentials: Credentials | None
    ) -> Iterator[Self]:
        """Connect; without a port the endpoint mapper is asked. Raise `ConnectionLost`."""
        if port is None:
            port = find_port(host, INTERFACE, CALL_TIMEOUT_S)
            if port is None:
                raise NotManaged(host)
        proved = None if credentials is None else protection(credentials, host)
        with RpcConnection((host, port), INTERFACE, proved, CALL_TIMEOUT_S) as connection:
            yield cls(host, connection)

    # Each of these raises `MsmqError`, `RpcFault` or `ConnectionLost`.

    def machine(self) -> RemoteMachine:
        """Ask how the queue manager is."""
        return machine_of(self._ask(_MACHINE, MACHINE_PROPERTIES))

    def private_queues(self) -> list[str]:
        """Ask for the path names of the private queues."""
        return texts_of(*self._ask(_MACHINE, (MachineProperty.PRIVATE_QUEUES,)))

    def active_queues(self) -> list[str]:
        """Ask for the format names of the queues that are in use, those elsewhere included."""
        return texts_of(*self._ask(_MACHINE, (MachineProperty.ACTIVE_QUEUES,)))

    def queue(self, name: FormatName) -> RemoteQueue:
        """Ask for a queue."""
        return queue_of(self._ask(_queue(name), QUEUE_PROPERTIES))

    def act(self, action: str, name: FormatName | None = None) -> None:
        """Do something to a queue, or to the queue manager."""
        target = _MACHINE if name is None else _queue(name)
        asked = rpc.ACTION.encode(rpc.Action(target, action))
        stub = self._connection.call(rpc.Operation.ACTION, asked)
        _check(_decoded(rpc.DONE, stub).result)

    def name_of(self, text: str) -> FormatName:
        """Return the queue that a person means: by format name, or by path name there."""
        name = read_name(text)
        if not isinstance(name, PathName):
            return name
        return direct_name(self.host if name.is_local else name.computer, name.queue)

    def _ask(self, target: rpc.ManagedObject, properties: Sequence[int]) -> tuple[Variant, ...]:
        asked = rpc.GetInfo(target, tuple(properties), (NULL,) * len(properties))
        stub = self._connection.call(rpc.Operation.GET_INFO, rpc.GET_INFO.encode(asked))
        info = _decoded(rpc.INFO, stub)
        # What else is told with an error means nothing. [MQMR 3.2.4]
        _check(info.result)
        if len(info.values) != len(properties):
            sentence = f"{len(info.values)} values came for {len(properties)} properties"
            raise RpcFailed(FailureKind.BROKEN, sentence)
        return info.values


def direct_name(host: str, queue: QueueOnComputer) -> FormatName:
    """Return the direct format name of a queue of a computer."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return DirectFormatName(DirectProtocol.OS, host, queue)
    return DirectFormatName(DirectProtocol.TCP, host, queue)


def _queue(name: FormatName) -> rpc.ManagedObject:
    return rpc.ManagedObject(rpc.ObjectType.QUEUE, QueueFormat.of(name))


def _decoded(table: Call[T], stub: bytes) -> T:
    try:
        return table.decode(stub)
    except DecodeError as error:
        raise RpcFailed(FailureKind.BROKEN, f"the answer cannot be read: {error}") from None


def _check(result: int) -> None:
    if result:
        raise MsmqError.from_code(result)

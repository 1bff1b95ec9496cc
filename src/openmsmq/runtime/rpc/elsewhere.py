"""Queues of other computers that applications read through this queue manager (decision 0048).

Each open queue has a connection of its own, so that the end of the connection gives back there
whatever this queue had locked, and a slow computer holds up nobody else.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from openmsmq.api import messages as api
from openmsmq.client.managing.proving import protection
from openmsmq.manager.outputs import AskElsewhere, LeaveElsewhere, OpenElsewhere
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidHandle,
    MsmqError,
    QueueNotAvailable,
    StaleHandle,
    UnsupportedFormatName,
)
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    IllegalName,
    PathName,
    read_name,
)
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import (
    Bound,
    ClientOutput,
    Failed,
    FailureKind,
    Protection,
    Returned,
    Threw,
)
from openmsmq.protocol.rpc.endpoint_lookup import MAPPER_PORT, OPERATION, port_in, question
from openmsmq.protocol.rpc.states import Written
from openmsmq.remote.elsewhere import QueueElsewhere, failed
from openmsmq.remote.elsewhere_ports import Invoke, Output, Over, Tell
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.limits import (
    ELSEWHERE_ANSWER_S,
    ELSEWHERE_CONNECT_S,
    ELSEWHERE_QUEUES_MAX_COUNT,
    ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT,
    RPC_KEEPALIVE_S,
)
from openmsmq.runtime.rpc.defects import note_defect
from openmsmq.runtime.rpc.host_patterns import is_meant
from openmsmq.runtime.secret_file import read_secret_file
from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.initiators import credentials_of
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import remote_read
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, Syntax

if TYPE_CHECKING:
    from openmsmq.runtime.config.file import ServerConfig
    from openmsmq.runtime.logs import EventLog
    from openmsmq.runtime.server import Pump

DOOR: Final = "elsewhere"
INTERFACE: Final = Syntax(remote_read.INTERFACE, *remote_read.VERSION)
_PASSWORD_MAX_BYTES: Final = 4_096
_PROTOCOLS: Final = (DirectProtocol.OS, DirectProtocol.TCP)
_BINDING: Final = -1
_LEAVING: Final = -2
"""Stand for no call among the timers."""


class RpcWire(asyncio.Protocol):
    """One connection to the RPC server of another computer."""

    def __init__(self, machine: ClientAssociation, heard: Callable[[ClientOutput], None]) -> None:
        self.machine = machine
        self._heard = heard
        self.heard_bytes = 0
        """How much the server has said until now."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to agree."""
        # Another loop than that of asyncio has transports of its own.
        self._transport = cast("asyncio.Transport", transport)
        opened: socket.socket = transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, RPC_KEEPALIVE_S)
        self.machine.connected()
        self.settle()

    def data_received(self, data: bytes) -> None:
        """Take what the server says."""
        self.heard_bytes += len(data)
        self.machine.received(data)
        self.settle()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self.machine.lost("the connection was lost" if error is None else str(error))
        self.settle()

    def settle(self) -> None:
        """Do what there is to do."""
        for output in self.machine.take_outputs():
            if isinstance(output, Written):
                if self._transport is not None:
                    self._transport.write(output.data)
                continue
            if isinstance(output, Failed):
                self.close()
            self._heard(output)

    def close(self) -> None:
        """End it, after all is written."""
        if self._transport is not None:
            self._transport.close()


class _Channel:
    """One open queue: its connection, and the calls that wait for their turn on it."""

    def __init__(self, owner: Elsewhere, asked: OpenElsewhere, name: DirectFormatName) -> None:
        self._owner = owner
        self._asked = asked
        self.connection: Final = asked.connection
        """The application that reads it."""
        self.host: Final = name.host
        self._address = owner.address_of(name.host)
        self.owner_name: Final = asked.caller.owner_name
        self.queue: Final = QueueElsewhere(name, asked.handle, asked.request, owner.identifier)
        self._wire: RpcWire | None = None
        self._held: deque[Invoke] = deque()
        self._numbers: dict[int, int] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._is_begun = False
        self._is_open = False
        self._is_over = False
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        """Find the port, connect, and agree; the rest follows from what is heard."""
        try:
            async with asyncio.timeout(ELSEWHERE_CONNECT_S):
                protected = await asyncio.to_thread(self._owner.protection, self.host)
                port = self._owner.port or await self._find_port()
                machine = ClientAssociation(INTERFACE, protected)
                wire = self._wire = RpcWire(machine, self._hear)
                self._guard(_BINDING, ELSEWHERE_CONNECT_S)
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: wire, self._address, port)
        except (OSError, TimeoutError, UnicodeError) as error:
            # Names that no DNS can have are a `UnicodeError`.
            reason = str(error) or f"no answer came within {ELSEWHERE_CONNECT_S} s"
            self._lose(QueueNotAvailable(f"{self.host}: {reason}"))
        except MsmqError as error:
            self._lose(error)
        except Exception as error:
            self._owner.fell(self, error)

    async def _find_port(self) -> int:
        """Ask the endpoint mapper there."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def hear(output: ClientOutput) -> None:
            if isinstance(output, Bound):
                wire.machine.call(OPERATION, question(INTERFACE))
                wire.settle()
            elif not answer.done():
                if isinstance(output, Returned):
                    answer.set_result(output.stub)
                else:
                    problem = f"the endpoint mapper of {self.host} gives no answer"
                    answer.set_exception(QueueNotAvailable(problem))

        wire = RpcWire(ClientAssociation(ENDPOINT_MAPPER), hear)
        try:
            await loop.create_connection(lambda: wire, self._address, MAPPER_PORT)
            port = port_in(INTERFACE, await answer)
        except DecodeError:
            port = None
        finally:
            wire.close()
        if port is None:
            raise QueueNotAvailable(
                f"the endpoint mapper of {self.host} knows of no queues that are read remotely"
            )
        return port

    def do(self, outputs: list[Output]) -> None:
        """Do what a request asks for."""
        self._carry_out(outputs)
        self._send()

    def leave(self) -> None:
        """Close the queue as its application wants it, and end, at the latest in a while."""
        if self._is_over:
            self._owner.ended(self)
            return
        self._guard(_LEAVING, ELSEWHERE_ANSWER_S)
        self.do(self.queue.leave())

    def end(self) -> None:
        """End the connection."""
        self._is_over = True
        self._owner.ended(self)
        for call in list(self._timers):
            self._unguard(call)
        self._held.clear()
        self._task.cancel()
        if self._wire is not None:
            self._wire.close()

    def _hear(self, output: ClientOutput) -> None:
        self._owner.contained(self, lambda: self._take(output))

    def _take(self, output: ClientOutput) -> None:
        match output:
            case Bound():
                self._unguard(_BINDING)
                self._is_begun = True
                self._carry_out(self.queue.open(self._asked.call))
            case Returned(call, stub):
                self._carry_out(self.queue.returned(self._ended(call), stub))
            case Threw(call, status):
                self._carry_out(self.queue.threw(self._ended(call), status))
            case Failed(kind, sentence):
                self._lose(self._why(kind, sentence))
            case Written():
                pass
        self._send()

    def _why(self, kind: FailureKind, sentence: str) -> MsmqError:
        if kind is FailureKind.NOT_AUTHENTICATED:
            return AccessDenied(f"{self.host} does not accept our account: {sentence}")
        if self._is_open:
            return StaleHandle(f"the connection to {self.host} is gone, {sentence}: open it again")
        return QueueNotAvailable(f"{self.host}: {sentence}")

    def _ended(self, call: int) -> int:
        self._unguard(call)
        return self._numbers.pop(call)

    def _carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Invoke():
                    self._held.append(output)
                case Tell(call, reply):
                    self._tell(call, reply)
                case Over():
                    self.end()

    def _tell(self, call: int, reply: api.AnyReply) -> None:
        if not self._is_open and call == self._asked.call:
            self._is_open = isinstance(reply, api.Opened)
            if not self._is_open:
                self._owner.failed(self._asked.connection, self._asked.handle)
        self._owner.tell(self._asked.connection, call, reply)

    def _send(self) -> None:
        wire = self._wire
        while self._held and wire is not None and wire.machine.can_call:
            invoke = self._held.popleft()
            call = wire.machine.call(invoke.operation, invoke.stub)
            self._numbers[call] = invoke.number
            if invoke.patience_ms is not None:
                self._guard(call, ELSEWHERE_ANSWER_S + invoke.patience_ms / 1000)
            wire.settle()

    def _guard(self, call: int, seconds: float) -> None:
        """End the connection after a while, unless the call has ended before that."""
        heard_bytes = 0 if self._wire is None else self._wire.heard_bytes
        loop = asyncio.get_running_loop()
        self._timers[call] = loop.call_later(seconds, self._too_late, call, heard_bytes)

    def _unguard(self, call: int) -> None:
        timer = self._timers.pop(call, None)
        if timer is not None:
            timer.cancel()

    def _too_late(self, call: int, heard_bytes: int) -> None:
        if call >= 0 and self._wire is not None and self._wire.heard_bytes > heard_bytes:
            # A long message on a slow line.
            self._guard(call, ELSEWHERE_ANSWER_S)
            return
        error = QueueNotAvailable(f"{self.host} did not answer in time")
        self._owner.contained(self, lambda: self._lose(error))
        self.end()

    def _lose(self, error: MsmqError) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._carry_out([failed(self._asked.call, error)])
        self._carry_out(self.queue.lost(error))


class Elsewhere:
    """All queues of other computers that applications have open."""

    def __init__(self, config: ServerConfig, pump: Pump, log: EventLog) -> None:
        table = self._table = config.rpc
        self._log = log
        self._data = Path(config.data)
        self._hosts = config.parameters.hosts
        self._pump = pump
        self.identifier: Final = pump.engine.identifier
        self.port: Final = table.remote_port
        """Where interfaces are, without asking; 0 asks the endpoint mapper."""
        self._channels: dict[tuple[int, int], _Channel] = {}
        self._leaving: set[_Channel] = set()

    def open(self, asked: OpenElsewhere) -> None:
        """Open a queue, and answer."""
        try:
            name = self._name(asked)
            self._check(asked.caller)
            self._channels[asked.connection, asked.handle] = _Channel(self, asked, name)
        except MsmqError as error:
            self._refuse(asked, error)
        except Exception as error:
            note_defect(self._log, asked.request.name, DOOR, error)
            self._refuse(asked, QueueNotAvailable("a mistake of this queue manager: see its log"))

    def _refuse(self, asked: OpenElsewhere, error: MsmqError) -> None:
        self.failed(asked.connection, asked.handle)
        self.tell(asked.connection, asked.call, failed(asked.call, error).reply)

    def ask(self, asked: AskElsewhere) -> None:
        """Do something with an open queue, and answer."""
        if isinstance(asked.request, api.Cancel):
            for (connection, _), channel in list(self._channels.items()):
                if connection == asked.connection:
                    self._cancel(channel, asked.request.call)
            return
        found = self._channels.get((asked.connection, asked.handle))
        if found is None:
            # It could not be opened, and this was asked before its application had heard so.
            error = InvalidHandle(f"no queue is open under handle {asked.handle}")
            self.tell(asked.connection, asked.call, failed(asked.call, error).reply)
            return
        target: _Channel | None = None
        if isinstance(asked.request, api.Move):
            target = self._channels.get((asked.connection, asked.request.target))
            if target is not None and target.host.lower() != found.host.lower():
                target = None
        into = None if target is None else target.queue
        self.contained(
            found,
            lambda: found.do(found.queue.asked(asked.call, asked.request, asked.cursor, into)),
        )

    def _cancel(self, channel: _Channel, call: int) -> None:
        self.contained(channel, lambda: channel.do(channel.queue.cancel(call)))

    def leave(self, asked: LeaveElsewhere) -> None:
        """Close a queue."""
        channel = self._channels.pop((asked.connection, asked.handle), None)
        if channel is not None:
            self._leaving.add(channel)
            self.contained(channel, channel.leave)

    def close(self) -> None:
        """End all connections."""
        for channel in [*self._channels.values(), *self._leaving]:
            channel.end()

    # What channels call.

    def contained(self, channel: _Channel, act: Callable[[], None]) -> None:
        """Do something about a queue: a mistake of ours in it costs the application that reads it.

        The queue manager itself knows nothing of what is done here, and need not end for it.
        """
        try:
            act()
        except Exception as error:
            self.fell(channel, error)

    def fell(self, channel: _Channel, error: Exception) -> None:
        """End what a mistake of ours has spoilt."""
        note_defect(self._log, channel.host, DOOR, error)
        channel.end()
        reason = "a mistake of this queue manager in reading another computer for it"
        self._pump.end_connection(channel.connection, reason)

    def address_of(self, host: str) -> str:
        """Return where a computer is: `[hosts]` says so, or else the system."""
        return self._hosts.get(host.lower(), (host,))[0]

    def protection(self, host: str) -> Protection:
        """Read who we are to other computers; raise `MsmqError`."""
        path = self._data / self._table.remote_password_file
        try:
            secret = read_secret_file(path, "password", _PASSWORD_MAX_BYTES)
        except ConfigError as error:
            raise AccessDenied(str(error)) from None
        if secret is None:
            raise AccessDenied(f"[rpc] remote_password_file: there is no {path}")
        password = secret.decode("utf-8", "replace").rstrip("\r\n")
        return protection(credentials_of(self._table.remote_user, password), host)

    def tell(self, connection: int, call: int, reply: api.AnyReply) -> None:
        """Answer a call of an application, if it is still there."""
        self._pump.answer(connection, call, reply)

    def failed(self, connection: int, handle: int) -> None:
        """Forget a queue that could not be opened."""
        self._channels.pop((connection, handle), None)
        self._pump.engine.elsewhere.failed(connection, handle)

    def ended(self, channel: _Channel) -> None:
        """Forget a queue that was left."""
        self._leaving.discard(channel)

    def _name(self, asked: OpenElsewhere) -> DirectFormatName:
        try:
            name = read_name(asked.request.name)
            if isinstance(name, PathName):
                name = DirectFormatName(DirectProtocol.OS, name.computer, name.queue)
        except IllegalName as error:
            raise UnsupportedFormatName(str(error)) from None
        if not isinstance(name, DirectFormatName) or name.protocol not in _PROTOCOLS:
            raise UnsupportedFormatName(
                f"{name}: a queue of another computer is read by a direct name with OS or TCP"
            )
        if not any(is_meant(name.host, each) for each in self._table.remote_hosts):
            raise AccessDenied(f"[rpc] remote_hosts does not let queues of {name.host} be read")
        return name

    def _check(self, caller: Caller) -> None:
        is_trusted = caller.is_unlimited or caller.is_administrator
        if self._table.remote_callers != "everybody" and not is_trusted:
            raise AccessDenied(
                f"{caller.name} may not use our account at other computers: only administrators "
                'may, unless [rpc] remote_callers is "everybody"'
            )
        channels = [*self._channels.values(), *self._leaving]
        counts = Counter(each.owner_name for each in channels)
        if len(channels) >= ELSEWHERE_QUEUES_MAX_COUNT:
            raise InsufficientResources(
                f"{ELSEWHERE_QUEUES_MAX_COUNT} queues of other computers are open"
            )
        if counts[caller.owner_name] >= ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT:
            raise InsufficientResources(
                f"{caller.name} has {ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT} queues of other "
                "computers open"
            )

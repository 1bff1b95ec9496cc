"""Calls to the RPC server of another computer, one after another, over one blocking connection."""

from __future__ import annotations

import contextlib
import socket
from time import monotonic  # noqa: TID251 -- the client is no part of the deterministic core
from typing import Final, Self

from openmsmq.client.errors import ConnectionLost
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import Failed, FailureKind, Protection, Returned, Threw
from openmsmq.protocol.rpc.endpoint_lookup import MAPPER_PORT, OPERATION, port_in, question
from openmsmq.protocol.rpc.states import Written
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, Syntax

_READ_BYTES: Final = 1 << 16


class RpcFault(Exception):
    """A call has ended without results."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the call ended with the status {status:#010x}")
        self.status = status


class RpcFailed(ConnectionLost):
    """There is no agreement with the server, or the connection to it is gone."""

    def __init__(self, kind: FailureKind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class RpcUnreachable(ConnectionLost):
    """Nobody answers at a port; the cause says why."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"nobody answers at {host}, port {port}")
        self.host = host
        self.port = port


class RpcConnection:
    """One connection, open from its construction until it is closed or lost."""

    def __init__(
        self,
        place: tuple[str, int],
        interface: Syntax,
        protection: Protection | None,
        timeout_s: float,
    ) -> None:
        """`timeout_s` bounds the agreement, and each call; raise `ConnectionLost`."""
        self._timeout_s = timeout_s
        self._machine = ClientAssociation(interface, protection)
        self._answers: dict[int, Returned | Threw] = {}
        try:
            self._socket = socket.create_connection(place, timeout_s)
        except OSError as error:
            raise RpcUnreachable(*place) from error
        try:
            self._machine.connected()
            deadline = monotonic() + timeout_s
            self._settle()
            while not self._machine.can_call:
                self._read(deadline)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, operation: int, stub: bytes) -> bytes:
        """Make a call and wait for its results; raise `RpcFault` or `ConnectionLost`."""
        deadline = monotonic() + self._timeout_s
        call = self._machine.call(operation, stub)
        self._settle()
        while call not in self._answers:
            self._read(deadline)
        answer = self._answers.pop(call)
        if isinstance(answer, Threw):
            raise RpcFault(answer.status)
        return answer.stub

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _read(self, deadline: float) -> None:
        left_s = deadline - monotonic()
        if left_s <= 0:
            raise RpcFailed(FailureKind.LOST, f"no answer came within {self._timeout_s:g} s")
        try:
            self._socket.settimeout(left_s)
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return
        except OSError as error:
            data = b""
            self._machine.lost(f"the connection broke: {error.strerror or error}")
        if data:
            self._machine.received(data)
        else:
            self._machine.lost("the server closed the connection")
        self._settle()

    def _settle(self) -> None:
        for output in self._machine.take_outputs():
            match output:
                case Written(data):
                    self._write(data)
                case Returned() | Threw():
                    self._answers[output.call] = output
                case Failed(kind, sentence):
                    raise RpcFailed(kind, sentence)
                case _:
                    # Whether it is bound is asked of the machine.
                    pass

    def _write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            sentence = f"the connection broke: {error.strerror or error}"
            raise RpcFailed(FailureKind.LOST, sentence) from error


def find_port(host: str, interface: Syntax, timeout_s: float) -> int | None:
    """Ask the endpoint mapper of a computer for the port of an interface; None if it has none."""
    with RpcConnection((host, MAPPER_PORT), ENDPOINT_MAPPER, None, timeout_s) as mapper:
        stub = mapper.call(OPERATION, question(interface))
    try:
        return port_in(interface, stub)
    except DecodeError as error:
        raise RpcFailed(FailureKind.BROKEN, f"the endpoint mapper answers {error}") from None

"""Peers that mean no good: connections from any loopback address, and what they say there."""

from __future__ import annotations

import contextlib
import itertools
import socket
from pathlib import Path

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, encode
from tests.runtime.computers import Computer
from tests.transfer.letters import direct, letter

STRANGER = Guid(b"a stranger here ")
WITHIN_S = 90.0
NUMBERS = itertools.count(1)

ESTABLISH = encode(EstablishConnection(EstablishHeader(STRANGER, NIL_GUID)))
PARAMETERS = encode(ConnectionParameters(ParametersHeader(500, 20_000, 64)))
OPENING_ANSWER_BYTES = len(ESTABLISH) + len(PARAMETERS)


def addresses(count: int, *, network: int = 77) -> list[str]:
    """Return loopback addresses that no queue manager of the tests has."""
    return [f"127.0.{network}.{number}" for number in range(1, count + 1)]


class Stranger:
    """One connection to a computer."""

    def __init__(self, target: Computer, address: str) -> None:
        self.target = target
        self.socket = socket.create_connection(
            (target.address, target.session_port), source_address=(address, 0), timeout=WITHIN_S
        )

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send, if the other end still listens."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def open(self) -> bool:
        """Open a session; say whether it was opened."""
        self.send(ESTABLISH + PARAMETERS)
        heard = 0
        with contextlib.suppress(OSError):
            while heard < OPENING_ANSWER_BYTES:
                data = self.socket.recv(1 << 16)
                if not data:
                    return False
                heard += len(data)
        return heard >= OPENING_ANSWER_BYTES

    def is_cut_off(self) -> bool:
        """Wait for the end of the connection."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def message(self, path: str, body: bytes = b"body") -> bytes:
        return encode(letter(STRANGER, next(NUMBERS), direct(self.target.address, path), body))


def memory_mb(computer: Computer) -> float:
    """How much memory a queue manager has to itself, at its peak."""
    assert computer.process is not None
    for line in Path(f"/proc/{computer.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the system does not say how much memory a process has")

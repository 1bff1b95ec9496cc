"""What must hold for any stub of a remote procedure call: a value or a fault, and nothing lost.

The first byte of an input selects the method.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from openmsmq.remote.ports import Return, Throw
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.message_packets import read
from openmsmq.wire.rpc.ndr import Call
from tests.fuzz.registry import Repair, Target
from tests.unit.remote.doors import Hall

STUBS: Final[tuple[Call[object], ...]] = tuple(
    found
    for module in (remote_read, management)
    for _, found in sorted(vars(module).items())
    if isinstance(found, Call)
)
"""All stubs, of both directions."""


def stubs(data: bytes) -> None:
    """A stub that decodes is a value that is written and read again."""
    if not data:
        return
    call = STUBS[data[0] % len(STUBS)]
    try:
        value = call.decode(data[1:])
    except DecodeError:
        return
    assert call.decode(call.encode(value)) == value


def remote_messages(data: bytes) -> None:
    """What comes as a message for a remote reader is one, or is refused."""
    try:
        packet, _ = read(data)
    except DecodeError:
        return
    assert len(packet) <= len(data)


@cache
def _hall() -> Hall:
    hall = Hall()
    hall.send(b"one", b"two")
    return hall


def remote_calls(data: bytes) -> None:
    """Whatever is called ends once or waits, and its caller's end leaves no message locked."""
    if len(data) < 2:
        return
    hall = _hall()
    door = hall.reader() if data[0] & 1 else hall.manager_program()
    end = door.call(data[1], data[2:])
    assert end is None or isinstance(end, Return | Throw)
    door.die()
    assert hall.bodies() == [b"one", b"two"]


TARGETS: Final[dict[str, Target]] = {
    "stubs": stubs,
    "remote-messages": remote_messages,
    "remote-calls": remote_calls,
}
REPAIRS: Final[dict[str, Repair]] = {}

"""How a client finds the port of an interface: it asks the endpoint mapper. [C706 O]"""

from __future__ import annotations

from typing import Final

from openmsmq.wire.rpc.endpoint_mapper import MAP, MAPPED, NO_HANDLE, OK, Map, Operation
from openmsmq.wire.rpc.syntaxes import Syntax
from openmsmq.wire.rpc.towers import Tower

OPERATION: Final = Operation.MAP
MAPPER_PORT: Final = 135
"""Where every computer has its endpoint mapper. [MS-RPCE 2.1.1.1]"""
_TOWERS_MAX_COUNT: Final = 4


def question(interface: Syntax) -> bytes:
    """Return the stub of the call that asks for an interface."""
    tower = Tower.over_tcp(interface, "0.0.0.0", 0).encode()
    return MAP.encode(Map(None, tower, NO_HANDLE, _TOWERS_MAX_COUNT))


def port_in(interface: Syntax, stub: bytes) -> int | None:
    """Return the port in an answer; None if the interface is not there. Raise `DecodeError`.

    Of an answer only the port counts: addresses in it are those of a computer that may have others.
    """
    mapped = MAPPED.decode(stub)
    if mapped.status != OK:
        return None
    for octets in mapped.towers.items:
        tower = Tower.decode(octets or b"")
        found = tower.interface
        if found is None or (found.uuid, found.major) != (interface.uuid, interface.major):
            continue
        if tower.port:
            return tower.port
    return None

"""What clients of Windows say once more behind the parameters of a call. [MS-RPCE 2.2.2.13]

Below them may stand what was agreed upon in fragments that nobody protected: with the call it is
protected, and a server sees whether somebody has changed it on the way. It stands behind the last
parameter, and belongs to none.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.rpc.syntaxes import Syntax

SIGNATURE: Final = bytes.fromhex("8ae3137102f43671")
LOOKED_THROUGH_BYTES: Final = 1_024
"""How far before the end of the parameters it may begin."""

_COMMAND: Final = struct.Struct("<HH")
_HEADER: Final = struct.Struct("<B3x4sIHH")
_KIND_MASK: Final = 0x3FFF
_LAST: Final = 0x4000
_MUST_PROCESS: Final = 0x8000
_BITMASK, _CONTEXT, _REQUEST = 1, 2, 3
_SIZES: Final = {_BITMASK: 4, _CONTEXT: 2 * Syntax.SIZE, _REQUEST: _HEADER.size}
_SUPPORTS_HEADER_SIGNING: Final = 1


class SaidRequest(msgspec.Struct, frozen=True, gc=False):
    """The header of a call, as its client has sent it. [MS-RPCE 2.2.2.13.3]"""

    kind: int
    representation: bytes
    call: int
    context: int
    operation: int


class Said(msgspec.Struct, frozen=True, gc=False):
    """What a client has said once more; None is what it has not. [MS-RPCE 2.2.2.13]"""

    supports_header_signing: bool = False
    interface: tuple[Guid, int] | None = None
    """Which one is called, and its major version."""
    transfer: Syntax | None = None
    """How its parameters are written."""
    request: SaidRequest | None = None
    is_known: bool = True
    """Whether there is nothing that a server has to understand, and we do not."""


def split(stub: bytes) -> tuple[bytes, Said | None]:
    """Return the parameters, and what is said behind them, if that is anything.

    Bytes that look like it, but do not end where the call does, belong to the parameters.
    """
    start = stub.rfind(SIGNATURE, max(0, len(stub) - LOOKED_THROUGH_BYTES))
    if start < 0:
        return stub, None
    said = _read(stub, start + len(SIGNATURE))
    return (stub, None) if said is None else (stub[:start], said)


def _read(stub: bytes, at: int) -> Said | None:
    """Read commands up to the end of the call; None if they are none."""
    signing = False
    interface: tuple[Guid, int] | None = None
    transfer: Syntax | None = None
    request: SaidRequest | None = None
    is_known = True
    while at + _COMMAND.size <= len(stub):
        command, size = _COMMAND.unpack_from(stub, at)
        at += _COMMAND.size
        kind = command & _KIND_MASK
        if at + size > len(stub) or _SIZES.get(kind, size) != size:
            return None
        if kind == _BITMASK:
            signing = bool(stub[at] & _SUPPORTS_HEADER_SIGNING)
        elif kind == _CONTEXT:
            wanted = Syntax.read(stub, at)
            interface = (wanted.uuid, wanted.major)
            transfer = Syntax.read(stub, at + Syntax.SIZE)
        elif kind == _REQUEST:
            request = SaidRequest(*_HEADER.unpack_from(stub, at))
        elif command & _MUST_PROCESS:
            is_known = False
        at += size
        if command & _LAST:
            found = Said(signing, interface, transfer, request, is_known)
            return found if at == len(stub) else None
    return None

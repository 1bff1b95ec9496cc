"""Where the targets of RPC start, and how the lengths of changed fragments are put right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from openmsmq.security.authentication.ports import Level, ProviderKind
from openmsmq.wire.rpc.endpoint_mapper import (
    FREE_HANDLE,
    LOOKUP,
    MAP,
    NO_HANDLE,
    FreeHandle,
    Lookup,
    Map,
    Operation,
)
from openmsmq.wire.rpc.mgmt import ASK_PRINCIPAL, ASK_STATISTICS, AskPrincipal, AskStatistics
from openmsmq.wire.rpc.pdus import HEADER_BYTES, WHOLE, Flag, PduType, Verifier
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, NDR64
from openmsmq.wire.rpc.towers import Tower
from tests.fuzz.registry import Repair
from tests.unit.protocol.rpc.client import ECHO, VAULT, alter, bind, notice, offer, request
from tests.unit.security.authentication.sides import initiator


def fragments() -> list[bytes]:
    """One of each kind that a client sends."""
    token = Verifier(ProviderKind.NTLM, Level.PRIVACY, 1, initiator().step(b"").token)
    return [
        bind(),
        bind(offer(0, ECHO, NDR64), offer(1, VAULT), flags=WHOLE | Flag.CONCURRENT),
        bind(verifier=token),
        alter(offer(2, VAULT), verifier=token),
        request(b"some parameters"),
        request(b"", flags=Flag.FIRST),
        request(b"", flags=Flag.LAST),
        notice(PduType.CO_CANCEL, 3),
        notice(PduType.ORPHANED, 3),
    ]


def associations() -> list[bytes]:
    """Whole conversations, behind the size of the pieces in which they come."""
    plain, wide, proving, changing, call, first, last, cancel, orphan = fragments()
    return [
        b"\x1f" + plain + call + cancel,
        b"\x03" + plain + first + last + orphan + call,
        b"\xff" + wide + call + request(b"x", call=4) + orphan,
        b"\x10" + proving + changing,
        b"\x40" + plain + alter(offer(5, VAULT)) + request(context=5),
    ]


def mapper() -> list[bytes]:
    """Calls of the endpoint mapper and of management, behind their numbers."""
    tower = Tower.over_tcp(ENDPOINT_MAPPER, "0.0.0.0", 135).encode()
    lookup = Lookup(1, None, ENDPOINT_MAPPER, 1, NO_HANDLE, 10)
    calls = (
        (Operation.MAP, MAP.encode(Map(None, tower, NO_HANDLE, 4))),
        (Operation.LOOKUP, LOOKUP.encode(lookup)),
        (Operation.FREE_HANDLE, FREE_HANDLE.encode(FreeHandle(NO_HANDLE))),
        (1, ASK_STATISTICS.encode(AskStatistics(4))),
        (4, ASK_PRINCIPAL.encode(AskPrincipal(16, 100))),
        (0, tower),
    )
    return [bytes((number,)) + stub for number, stub in calls]


def repair_stream(data: bytes, random: Random) -> bytes:
    """Give most fragments of a stream a length that leads to the next one."""
    head, stream = bytearray(data[:1]), bytearray(data[1:])
    at = 0
    while at + HEADER_BYTES <= len(stream):
        stream[at : at + 2] = b"\x05\x00"
        stream[at + 4] = 0x10
        size = int.from_bytes(stream[at + 8 : at + 10], "little")
        if not HEADER_BYTES <= size <= len(stream) - at and random.random() < 0.9:
            size = min(len(stream) - at, random.randrange(HEADER_BYTES, 200))
            stream[at + 8 : at + 10] = size.to_bytes(2, "little")
        at += max(size, HEADER_BYTES)
    return bytes(head + stream)


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "associations": associations,
    "fragments": fragments,
    "mapper": mapper,
}
REPAIRS: Final[dict[str, Repair]] = {"associations": repair_stream}

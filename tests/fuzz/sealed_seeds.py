"""Where the targets of sealed conversations start: honest ones, of either side."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from openmsmq.protocol.rpc.states import CallArrived, Written
from openmsmq.wire.rpc.pdus import WHOLE, Flag, PduType
from tests.fuzz.registry import Repair
from tests.fuzz.rpc_seeds import repair_stream
from tests.fuzz.sealed_targets import (
    ANSWERED,
    CONVERSATIONS,
    LEVELS,
    RAW,
    SEALED,
    SPOILT,
    STEP_BYTES,
    client,
)
from tests.unit.protocol.rpc.client import VAULT, alter, association, notice, offer, request

_PARAMETERS: Final = b"some parameters of a call"
_LONG: Final = bytes(3_000)


def step(kind: int, said: bytes) -> bytes:
    """Write a step as the target reads it."""
    return bytes((kind,)) + len(said).to_bytes(2, "little") + said


def sealed() -> list[bytes]:
    """Calls whole and in parts, answered and cancelled, spoilt, and beside what anybody writes."""
    whole, vault = bytes((WHOLE, 3, 0, 1)), bytes((WHOLE, 4, 1, 2))
    first, last = bytes((Flag.FIRST, 5, 1, 3)), bytes((Flag.LAST, 5, 1, 3))
    plays = (
        step(SEALED, whole + _PARAMETERS) + step(ANSWERED, b"results"),
        step(SEALED, vault + _PARAMETERS) + step(SEALED, whole) + step(ANSWERED, _LONG),
        step(SEALED, first + _PARAMETERS) + step(SEALED, last) + step(ANSWERED, b""),
        step(SEALED, vault) + step(RAW, notice(PduType.CO_CANCEL, 4)) + step(ANSWERED, b"late"),
        step(SEALED, whole) + step(SPOILT, vault + _PARAMETERS) + step(SEALED, whole),
        step(RAW, request(b"plain", call=9)) + step(SEALED, whole),
        step(RAW, alter(offer(2, VAULT))) + step(SEALED, bytes((WHOLE, 6, 2, 1))),
    )
    return [bytes((level,)) + play for level in range(len(LEVELS)) for play in plays]


def repair_steps(data: bytes, random: Random) -> bytes:
    """Let most steps end within the input, so that others follow."""
    changed = bytearray(data)
    at = 1
    while at + STEP_BYTES <= len(changed):
        left = len(changed) - at - STEP_BYTES
        size = int.from_bytes(changed[at + 1 : at + STEP_BYTES], "little")
        if size > left and random.random() < 0.9:
            size = random.randrange(min(left, 100) + 1)
            changed[at + 1 : at + STEP_BYTES] = size.to_bytes(2, "little")
        at += STEP_BYTES + size
    return bytes(changed)


def of_clients() -> list[bytes]:
    """All that a server says in each conversation, behind its number and how it is cut."""
    return [
        bytes((number, 10 + number)) + _said(number, b"results" if marked else _LONG)
        for number, (_, marked) in enumerate(CONVERSATIONS)
    ]


def _said(conversation: int, results: bytes) -> bytes:
    """Let both sides talk; give what the server has said."""
    ours, machine, said = client(conversation), association(), b""
    ours.connected()
    is_called = False
    for _ in range(6):
        for output in ours.take_outputs():
            if isinstance(output, Written):
                machine.received(output.data)
        if ours.can_call and not is_called:
            ours.call(1, b"parameters")
            is_called = True
        outputs = machine.take_outputs()
        for each in outputs:
            if isinstance(each, CallArrived):
                machine.returned(each.call, results)
        for each in (*outputs, *machine.take_outputs()):
            if isinstance(each, Written):
                ours.received(each.data)
                said += each.data
    assert is_called
    return said


def repair_said(data: bytes, random: Random) -> bytes:
    """Leave the head of an input alone, and put the lengths of fragments right."""
    return data[:1] + repair_stream(data[1:], random)


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "sealed-streams": sealed,
    "client-streams": of_clients,
}
REPAIRS: Final[dict[str, Repair]] = {
    "sealed-streams": repair_steps,
    "client-streams": repair_said,
}

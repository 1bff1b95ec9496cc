"""What must hold for conversations of RPC that are sealed, on the side of either.

Random changes of a sealed fragment end at its signature. So an input of `sealed-streams` is a list
of steps, and the caller, who knows his password, seals what it says; other steps spoil a fragment
behind his back, or write what anybody could.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from openmsmq.model.limits import (
    RPC_BIND_MAX_BYTES,
    RPC_CALLS_MAX_COUNT,
    RPC_FRAGMENT_MAX_BYTES,
    RPC_REQUEST_MAX_BYTES,
    RPC_RESULTS_MAX_BYTES,
)
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import (
    Bound,
    ClientOutput,
    Failed,
    Protection,
    Returned,
    Threw,
)
from openmsmq.protocol.rpc.states import CallArrived, Closed, Output, Written
from openmsmq.security.authentication.ports import Level, ProviderKind
from openmsmq.wire.rpc.pdus import HEADER_BYTES, WHOLE, Flag
from tests.fuzz.registry import Target
from tests.unit.protocol.rpc.client import ECHO, VAULT, Caller, association, offer
from tests.unit.security.authentication.sides import ALICE, initiator

LEVELS: Final = (Level.PRIVACY, Level.INTEGRITY, Level.PACKET, Level.CONNECT)
SEALED, SPOILT, RAW, ANSWERED = range(4)
STEP_BYTES: Final = 3
"""What stands before each step: what it is, and how long the rest of it."""
CALL_BYTES: Final = 4
"""What stands before a stub: flags, the number of the call, its context, its operation."""
CONVERSATIONS: Final = tuple((level, marked) for level in (None, *LEVELS) for marked in (0, 1))
_HELD_MAX_BYTES: Final = RPC_BIND_MAX_BYTES + RPC_REQUEST_MAX_BYTES + RPC_RESULTS_MAX_BYTES
_FLAGS: Final = WHOLE | Flag.PENDING_CANCEL | Flag.MAYBE


def sealed_streams(data: bytes) -> None:
    """Calls are those of the one who sealed them, and nothing follows a fragment that is spoilt."""
    if not data:
        return
    level = LEVELS[data[0] % len(LEVELS)]
    caller = Caller(level)
    machine = association()
    caller.prove(machine, offer(0, ECHO), offer(1, VAULT))
    is_spoilt = False
    under_way: list[int] = []
    for kind, said in steps(data[1:]):
        if kind == ANSWERED:
            if under_way:
                machine.returned(under_way.pop(0), said)
        else:
            fragment = said if kind == RAW else _call(caller, said)
            if kind == SPOILT and level >= Level.PACKET:
                fragment = _spoilt(fragment, said)
                is_spoilt = True
            machine.received(fragment)
        outputs = machine.take_outputs()
        arrived = [each for each in outputs if isinstance(each, CallArrived)]
        assert not (arrived and is_spoilt)
        for each in arrived:
            assert each.caller == ALICE
            assert each.interface == ECHO or level is Level.PRIVACY
        under_way += [each.call for each in arrived]
        assert len(under_way) <= RPC_CALLS_MAX_COUNT
        assert machine.held_bytes <= _HELD_MAX_BYTES
        _check_ends(outputs)


def _check_ends(outputs: list[Output]) -> None:
    closed = [each for each in outputs if isinstance(each, Closed)]
    assert len(closed) <= 1
    assert not closed or closed == outputs[-1:]


def steps(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut an input into what is done, and the bytes for it."""
    at = 0
    while at + STEP_BYTES <= len(data):
        size = int.from_bytes(data[at + 1 : at + STEP_BYTES], "little")
        yield data[at] & 3, data[at + STEP_BYTES : at + STEP_BYTES + size]
        at += STEP_BYTES + size


def _call(caller: Caller, said: bytes) -> bytes:
    flags, call, context, operation = said[:CALL_BYTES].ljust(CALL_BYTES, b"\0")
    stub = said[CALL_BYTES : CALL_BYTES + RPC_FRAGMENT_MAX_BYTES // 2]
    return caller.request(
        stub, call=call, context=context, operation=operation, flags=flags & _FLAGS
    )


def _spoilt(fragment: bytes, said: bytes) -> bytes:
    """Change one bit anywhere."""
    at = sum(said) % len(fragment)
    changed = bytearray(fragment)
    changed[at] ^= 1 << (len(said) & 7)
    return bytes(changed)


def client_streams(data: bytes) -> None:
    """Whatever a server says, and however it is cut, a client has results of its own calls only."""
    if len(data) < 2:
        return
    conversation, size, stream = data[0] % len(CONVERSATIONS), 1 + data[1], data[2:]
    whole = fragments_of(stream)
    pieces = [each[at : at + size] for each in whole for at in range(0, len(each), size)]
    said = heard(conversation, whole)
    assert said == heard(conversation, pieces)
    ended = [each for each in said if isinstance(each, Failed)]
    assert len(ended) <= 1
    assert not ended or ended == said[-1:]
    results = [each.call for each in said if isinstance(each, Returned | Threw)]
    assert len(results) == len(set(results)) <= 1


def fragments_of(stream: bytes) -> list[bytes]:
    """Cut a stream where its fragments say that they end: our call is made between two of them."""
    found = []
    while stream:
        size = max(HEADER_BYTES, int.from_bytes(stream[8:10], "little"))
        found.append(stream[:size])
        stream = stream[size:]
    return found


def client(conversation: int) -> ClientAssociation:
    """Return our side of a conversation, always the same one."""
    level, _ = CONVERSATIONS[conversation]
    protection = None
    if level is not None:
        protection = Protection(ProviderKind.NTLM, level, initiator())
    return ClientAssociation(VAULT if level is Level.PRIVACY else ECHO, protection)


def heard(conversation: int, pieces: list[bytes]) -> list[ClientOutput]:
    """Hand in what a server says; call as soon as that is possible."""
    machine = client(conversation)
    machine.connected()
    found: list[ClientOutput] = []
    for piece in pieces:
        machine.received(piece)
        assert machine.held_bytes <= _HELD_MAX_BYTES + len(piece)
        outputs = machine.take_outputs()
        found += [each for each in outputs if not isinstance(each, Written)]
        if any(isinstance(each, Bound) for each in outputs):
            assert machine.call(1, b"parameters")
            machine.take_outputs()
    return found


TARGETS: Final[dict[str, Target]] = {
    "sealed-streams": sealed_streams,
    "client-streams": client_streams,
}

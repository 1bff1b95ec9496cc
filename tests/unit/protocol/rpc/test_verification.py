"""What a client says once more behind a call, and what became of the call on the way.

[MS-RPCE 2.2.2.13, 3.3.1.5.2]
"""

from __future__ import annotations

import pytest

from openmsmq.protocol.rpc.association import Association
from openmsmq.security.authentication.ports import Level
from openmsmq.wire.rpc.pdus import WHOLE, Fault, Flag, Status
from openmsmq.wire.rpc.syntaxes import NDR, NDR64
from openmsmq.wire.rpc.verification import SIGNATURE
from tests.unit.protocol.rpc.client import (
    ECHO,
    VAULT,
    Caller,
    association,
    bound,
    calls,
    is_closed,
    offer,
    request,
    written,
)
from tests.unit.wire.rpc.test_verification import REQUEST, SIGNING, last, said

AGREED = last(said(2, ECHO.encode() + NDR.encode()))


def ask(machine: Association, behind: bytes, **facts: int) -> bytes | int:
    """Make a call; give its parameters as they arrive, or the status of its fault."""
    machine.received(request(b"text" + SIGNATURE + behind, **facts))
    outputs = machine.take_outputs()
    if found := calls(outputs):
        return found[0].stub
    ((_, fault),) = written(outputs)
    assert isinstance(fault, Fault)
    assert is_closed(outputs)
    return fault.status


def test_what_is_said_behind_a_call_is_no_parameter() -> None:
    assert ask(bound(), AGREED) == b"text"
    assert ask(bound(), last(REQUEST), call=7, context=0) == Status.ACCESS_DENIED
    same = last(said(3, REQUEST[4:12] + bytes([7, 0, 0, 0, 0, 0, 1, 0])))
    assert ask(bound(), same, call=7) == b"text"


@pytest.mark.parametrize(
    "changed",
    [
        last(said(2, VAULT.encode() + NDR.encode())),
        last(said(2, ECHO.encode() + NDR64.encode())),
        last(said(3, REQUEST[4:12] + bytes([8, 0, 0, 0, 0, 0, 1, 0]))),
        last(said(3, REQUEST[4:12] + bytes([7, 0, 0, 0, 1, 0, 1, 0]))),
        last(said(3, REQUEST[4:12] + bytes([7, 0, 0, 0, 0, 0, 2, 0]))),
        last(said(3, bytes([2]) + REQUEST[5:12] + bytes([7, 0, 0, 0, 0, 0, 1, 0]))),
        said(0x8000 | 99, b"") + AGREED,
        last(SIGNING),
    ],
    ids=["interface", "transfer", "call", "context", "operation", "kind", "unknown", "signing"],
)
def test_a_call_that_is_not_what_was_said_is_refused(changed: bytes) -> None:
    assert ask(bound(), changed, call=7) == Status.ACCESS_DENIED


def test_who_agreed_to_sign_headers_may_say_so() -> None:
    assert ask(bound(flags=WHOLE | Flag.HEADER_SIGNING), last(SIGNING)) == b"text"


@pytest.mark.parametrize("stub", [b"", b"text", b"textual and long"])
def test_it_is_found_behind_a_sealed_call_whatever_is_padded(stub: bytes) -> None:
    machine = association()
    caller = Caller(Level.PRIVACY)
    caller.prove(machine, offer(0, VAULT))
    agreed = last(said(2, VAULT.encode() + NDR.encode()))
    machine.received(caller.request(stub + SIGNATURE + agreed))
    (found,) = calls(machine.take_outputs())
    assert found.stub == stub


def test_it_is_found_at_the_end_of_a_call_in_fragments() -> None:
    machine = bound()
    whole = b"text" + SIGNATURE + AGREED
    machine.received(request(whole[:9], flags=int(Flag.FIRST)))
    machine.received(request(whole[9:], flags=int(Flag.LAST)))
    (found,) = calls(machine.take_outputs())
    assert found.stub == b"text"

"""What clients say once more behind the parameters of a call."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.rpc.syntaxes import NDR, Syntax
from openmsmq.wire.rpc.verification import LOOKED_THROUGH_BYTES, SIGNATURE, SaidRequest, split

READING = Syntax.of("1a9134dd-7b39-45ba-ad88-44d01ca47f28", 1)
LAST, MUST = 0x4000, 0x8000


def said(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value


# As Wireshark shows it in captures of Windows, from [MS-RPCE 2.2.2.13] by hand.
SIGNING = said(1, bytes([1, 0, 0, 0]))
AGREED = said(2, READING.encode() + NDR.encode())
REQUEST = said(3, bytes([0, 0, 0, 0, 0x10, 0, 0, 0]) + struct.pack("<IHH", 7, 2, 9))


def last(command: bytes) -> bytes:
    return struct.pack("<H", int.from_bytes(command[:2], "little") | LAST) + command[2:]


@given(st.binary(max_size=80).filter(lambda stub: SIGNATURE not in stub))
def test_all_that_is_said_is_read_and_the_parameters_stay(stub: bytes) -> None:
    parameters, found = split(stub + SIGNATURE + SIGNING + AGREED + last(REQUEST))
    assert parameters == stub
    assert found is not None
    assert found.supports_header_signing
    assert (found.interface, found.transfer) == ((READING.uuid, 1), NDR)
    assert found.request == SaidRequest(0, bytes([0x10, 0, 0, 0]), 7, 2, 9)
    assert found.is_known


@given(st.binary(max_size=200))
def test_any_bytes_are_parameters_or_end_with_what_is_said(stub: bytes) -> None:
    for whole in (stub, SIGNATURE + stub, SIGNATURE + SIGNING + stub):
        parameters, found = split(whole)
        assert whole.startswith(parameters)
        assert (parameters == whole) is (found is None)


@pytest.mark.parametrize(
    "behind",
    [
        b"",
        SIGNING,
        last(SIGNING) + b"\0",
        last(SIGNING)[:-1],
        last(said(1, bytes(3))),
        last(said(2, bytes(39))),
        last(said(3, bytes(17))),
        b"\1\x40",
    ],
)
def test_what_only_looks_like_it_is_a_parameter(behind: bytes) -> None:
    whole = b"text" + SIGNATURE + behind
    assert split(whole) == (whole, None)


def test_a_server_needs_not_understand_all_but_what_is_marked() -> None:
    for mark, is_known in ((0, True), (MUST, False)):
        _, found = split(SIGNATURE + said(99 | mark, b"news") + last(SIGNING))
        assert found is not None
        assert (found.is_known, found.supports_header_signing) == (is_known, True)


def test_it_is_looked_for_near_the_end_only() -> None:
    far = last(said(99, bytes(LOOKED_THROUGH_BYTES)))
    assert split(SIGNATURE + far)[1] is None
    near = last(said(99, bytes(LOOKED_THROUGH_BYTES - len(SIGNATURE) - 4)))
    assert split(b"text" + SIGNATURE + near)[0] == b"text"

"""The calls of managing programs: exact bytes, and the same ones to another's engine of NDR."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import management as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.variants import NULL, Variant
from tests.strategies.rpc_values import TEXT, U32
from tests.unit.wire.rpc import impacket_calls as other

MACHINE = struct.pack("<HHI", 1, 1, 0)
SHOWN = st.one_of(
    st.builds(Variant, st.just(19), U32),
    st.builds(Variant, st.just(20), st.integers(0, 2**63 - 1)),
    st.builds(Variant, st.just(31), st.none() | TEXT),
    st.builds(Variant, st.just(65), st.binary(min_size=1, max_size=20)),
    st.builds(Variant, st.just(0x1013), st.lists(U32, min_size=1, max_size=3).map(tuple)),
    st.builds(Variant, st.just(0x101F), st.lists(TEXT, min_size=1, max_size=3).map(tuple)),
)


@given(st.lists(SHOWN, max_size=6).map(tuple), U32)
def test_another_reads_properties_as_we_write_them(
    values: tuple[Variant, ...], result: int
) -> None:
    stub = rpc.INFO.encode(rpc.Info(values, result))
    found = other.read(other.R_QMMgmtGetInfoResponse, stub)
    assert found["ErrorCode"] == result
    assert [(one["vt"], _shown(one)) for one in found["apVar"]] == [
        (one.tag, one.value) for one in values
    ]


def _shown(found: object) -> object:
    union = found["_varUnion"]
    match found["vt"]:
        case 19:
            return union["ulVal"]
        case 20:
            return union["hVal"]
        case 31:
            text = union["pwszVal"]
            return None if text == other.NULL or text == b"" else text[:-1]
        case 65:
            return b"".join(union["blob"]["pBlobData"])
        case 0x1013:
            return tuple(union["caul"]["pElems"])
    return tuple(one["Data"][:-1] for one in union["calpwstr"]["pElems"])


@given(TEXT)
def test_another_acts_as_we_do(action: str) -> None:
    call = other.R_QMMgmtAction()
    call["pObjectFormat"]["type"] = 2
    call["pObjectFormat"]["object"]["tag"] = 2
    name = call["pObjectFormat"]["object"]["pQueueFormat"]
    name["m_qft"] = 3
    name["m_SuffixAndFlags"] = 0
    name["m_reserved"] = 0
    name["name"]["tag"] = 3
    name["name"]["m_pDirectID"] = "OS:beta\\q\0"
    call["lpwszAction"] = action + "\0"
    target = rpc.ManagedObject(2, QueueFormat(3, 0, 0, r"OS:beta\q"))
    assert rpc.ACTION.decode(call.getData()) == rpc.Action(target, action)


def test_two_bytes_instead_of_a_text_are_an_action_that_nobody_knows() -> None:
    target = rpc.ManagedObject(1, 0)
    for tail in (b"T\0", b"T\0\0"):
        assert rpc.ACTION.decode(MACHINE + tail) == rpc.Action(target, None)
    assert rpc.ACTION.encode(rpc.Action(target, None)) == MACHINE + bytes(2)
    for tail in (b"", b"T", b"T\0\0\0", b"T\0\0\0" * 2):
        with pytest.raises(DecodeError):
            rpc.ACTION.decode(MACHINE + tail)


@pytest.mark.spec("MQMR-3.1.4.1-01", "MQMR-3.1.4.1-02", "MQMR-3.1.4.1-06")
@pytest.mark.parametrize(
    ("stub", "problem"),
    [
        (struct.pack("<II", 0, 0), "0 is not from 1 to 128"),
        (struct.pack("<II", 129, 129) + bytes(600), "129 is not from 1 to 128"),
        (struct.pack("<III", 2, 1, 4) + bytes(60), "an array of 1 where 2"),
        (struct.pack("<III", 1, 2, 4) + bytes(60), "an array of 2 where 1"),
    ],
)
def test_a_count_of_properties_that_lies_is_refused(stub: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        rpc.GET_INFO.decode(MACHINE + stub)


@pytest.mark.spec("MQMR-3.1.4.1-05", "MQMR-3.1.4.1-08")
def test_there_are_as_many_values_as_properties() -> None:
    request = rpc.GetInfo(rpc.ManagedObject(1, 0), (1,), (NULL, NULL))
    with pytest.raises(DecodeError, match="2 values for 1 properties"):
        rpc.GET_INFO.decode(rpc.GET_INFO.encode(request))


@pytest.mark.spec("MQMR-2.2.1.2-01")
def test_an_object_of_another_kind_is_refused() -> None:
    for kind in (0, 4, 0xFFFF):
        with pytest.raises(DecodeError, match="without an arm"):
            rpc.ACTION.decode(struct.pack("<HHI", kind, kind, 0) + bytes(20))

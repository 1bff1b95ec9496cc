"""The calls of remote readers: exact bytes, and the same ones to another's engine of NDR."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import remote_read as rpc
from tests.strategies.rpc_values import CALLS, CONTEXT, SECTIONS, U32, U64
from tests.unit.wire.rpc import impacket_calls as other


@pytest.mark.spec("MQRR-2.2.6-05", "MQRR-2.2.6-06")
def test_the_results_of_a_read_have_the_layout_of_a_pointer_to_structures() -> None:
    received = rpc.Received(
        5, 6, (rpc.Section(1, 20, b"abcde"), rpc.Section(2, 3, b"xyz")), 0xC00E001B
    )
    assert rpc.RECEIVED.encode(received) == b"".join(
        (
            struct.pack("<I4xQII", 5, 6, 2, 0x20000),
            struct.pack("<I", 2),
            struct.pack("<HxxIII", 1, 20, 5, 0x20004),
            struct.pack("<HxxIII", 2, 3, 3, 0x20008),
            struct.pack("<I5s3x", 5, b"abcde"),
            struct.pack("<I3sx", 3, b"xyz"),
            struct.pack("<I", 0xC00E001B),
        )
    )


def test_no_message_is_no_pointer() -> None:
    stub = rpc.RECEIVED.encode(rpc.Received(0, 0, (), 0xC00E001B))
    assert stub == struct.pack("<I4xQIII", 0, 0, 0, 0, 0xC00E001B)


@pytest.mark.parametrize(
    ("stub", "problem"),
    [
        (struct.pack("<I4xQIII", 0, 0, 1, 0, 0), "behind a NULL pointer"),
        (struct.pack("<I4xQIIII", 0, 0, 3, 1, 3, 0), "3 elements; at most 2"),
        (struct.pack("<I4xQIIII", 0, 0, 1, 1, 2, 0) + bytes(60), "an array of 2 where 1"),
        (
            struct.pack("<I4xQIIIHxxIII", 0, 0, 1, 1, 1, 0, 9, 9, 1) + struct.pack("<I", 1 << 30),
            "bytes; at most",
        ),
    ],
)
def test_results_that_lie_are_refused(stub: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        rpc.RECEIVED.decode(stub)


@given(U32, U64, SECTIONS, U32)
def test_another_reads_the_results_of_a_read(
    arrived: int, sequence: int, sections: tuple[rpc.Section, ...], result: int
) -> None:
    stub = rpc.RECEIVED.encode(rpc.Received(arrived, sequence, sections, result))
    found = other.read(other.R_StartReceiveResponse, stub)
    assert found["pdwArriveTime"] == arrived
    assert found["pSequenceId"] == sequence
    assert found["pdwNumberOfSections"] == len(sections)
    assert found["ErrorCode"] == result
    shown = [] if not sections else found["ppPacketSections"]
    assert [
        (one["SectionBufferType"], one["SectionSizeAlloc"], _bytes(one["pSectionBuffer"]))
        for one in shown
    ] == [(one.kind, one.size_alloc, one.data) for one in sections]


def _bytes(found: object) -> bytes:
    return b"".join(found) if isinstance(found, list) else b""


@given(CALLS["OPEN_QUEUE"][1].filter(lambda value: value.name.kind in (1, 2, 3, 4, 8)))
def test_another_opens_a_queue_as_we_do(value: rpc.OpenQueue) -> None:
    call = other.R_OpenQueue()
    name = call["pQueueFormat"]
    name["m_qft"] = value.name.kind
    name["m_SuffixAndFlags"] = value.name.suffix_and_flags
    name["m_reserved"] = value.name.reserved
    union, identifier = name["name"], value.name.identifier
    union["tag"] = value.name.kind
    field = other.QUEUE_UNION.union[value.name.kind][0]
    if value.name.kind == 2:
        union[field]["Lineage"] = bytes(identifier.lineage)
        union[field]["Uniquifier"] = identifier.uniquifier
    elif value.name.kind in (3, 8):
        union[field] = other.NULL if identifier is None else identifier + "\0"
    else:
        union[field] = bytes(identifier)
    call["dwAccess"] = value.access
    call["dwShareMode"] = value.share_mode
    call["pClientId"] = bytes(value.client)
    call["fNonRoutingServer"] = value.is_non_routing_server
    call["Major"] = value.major
    call["Minor"] = value.minor
    call["BuildNumber"] = value.build
    call["fWorkgroup"] = value.is_workgroup
    stub = call.getData()
    assert rpc.OPEN_QUEUE.decode(stub) == value
    assert len(rpc.OPEN_QUEUE.encode(value)) == len(stub)


@given(CALLS["START_RECEIVE"][1])
def test_another_reads_a_message_as_we_do(value: rpc.StartReceive) -> None:
    call = other.R_StartReceive()
    call["phContext"]["attributes"] = struct.unpack("<I", value.context[:4])[0]
    call["phContext"]["uuid"] = value.context[4:]
    call["LookupId"] = value.lookup_id
    call["hCursor"] = value.cursor
    call["ulAction"] = value.action
    call["ulTimeout"] = value.timeout_ms
    call["dwRequestId"] = value.request
    call["dwMaxBodySize"] = value.max_body_bytes
    call["dwMaxCompoundMessageSize"] = value.max_compound_bytes
    stub = call.getData()
    assert rpc.START_RECEIVE.decode(stub) == value
    assert len(rpc.START_RECEIVE.encode(value)) == len(stub)


@given(CONTEXT, U64, U64, st.binary(min_size=16, max_size=16))
def test_another_moves_a_message_as_we_do(
    context: bytes, target: int, lookup_id: int, unit: bytes
) -> None:
    call = other.R_MoveMessage()
    call["phContextFrom"]["attributes"] = struct.unpack("<I", context[:4])[0]
    call["phContextFrom"]["uuid"] = context[4:]
    call["ullContextTo"] = target
    call["LookupId"] = lookup_id
    call["pTransactionId"]["rgb"] = unit
    value = rpc.MoveMessage(context, target, lookup_id, unit)
    assert rpc.MOVE_MESSAGE.decode(call.getData()) == value


@pytest.mark.spec("MQRR-3.1.4.12-06", "MQRR-3.1.4.12-08")
@given(st.binary(min_size=16, max_size=16), st.binary(max_size=9))
def test_a_token_is_as_long_as_it_says(unit: bytes, token: bytes) -> None:
    stub = bytearray(unit + struct.pack("<II", len(token), len(token) + 1) + token + bytes(40))
    with pytest.raises(DecodeError, match="where"):
        rpc.ENLIST_REMOTE_TRANSACTION.decode(bytes(stub))


def test_a_token_has_a_longest_length() -> None:
    stub = bytes(16) + struct.pack("<II", 131_073, 131_073) + bytes(131_073)
    with pytest.raises(DecodeError, match="131073 is not from 0 to 131072"):
        rpc.ENLIST_REMOTE_TRANSACTION.decode(stub)

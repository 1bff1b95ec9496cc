"""Values of remote procedure calls, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.queue_format import (
    DistributionListId,
    MulticastId,
    ObjectId,
    QueueFormat,
)
from openmsmq.wire.rpc.variants import VARIANT_DEPTH, Variant, VariantTag

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFF_FFFF)
I32 = st.integers(-(2**31), 2**31 - 1)
U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
GUID = st.binary(min_size=16, max_size=16).map(Guid)
CONTEXT = st.binary(min_size=20, max_size=20)
UNIT = st.binary(min_size=16, max_size=16)

_IDENTIFIERS = {
    0: st.none(),
    1: GUID,
    2: st.builds(ObjectId, GUID, U32),
    3: st.none() | TEXT,
    4: GUID,
    5: GUID,
    6: st.builds(DistributionListId, GUID, st.none() | TEXT),
    7: st.builds(MulticastId, U32, U32),
    8: st.none() | TEXT,
}
QUEUE_FORMAT = st.sampled_from(sorted(_IDENTIFIERS)).flatmap(
    lambda kind: st.builds(QueueFormat, st.just(kind), st.integers(0, 255), U16, _IDENTIFIERS[kind])
)


def _tuples(of: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(of, max_size=4).map(tuple)


_PLAIN: dict[int, st.SearchStrategy[object]] = {
    VariantTag.EMPTY: st.none(),
    VariantTag.NULL: st.none(),
    VariantTag.I1: st.integers(-128, 127),
    VariantTag.UI1: st.integers(0, 255),
    VariantTag.I2: st.integers(-(2**15), 2**15 - 1),
    VariantTag.UI2: U16,
    VariantTag.I4: I32,
    VariantTag.UI4: U32,
    VariantTag.I8: st.integers(-(2**63), 2**63 - 1),
    VariantTag.UI8: U64,
    VariantTag.BOOL: st.sampled_from([0, -1]),
    VariantTag.CLSID: st.none() | GUID,
    VariantTag.BLOB: st.binary(max_size=20),
    VariantTag.LPWSTR: st.none() | TEXT,
    VariantTag.UI1_VECTOR: st.binary(max_size=20),
    VariantTag.UI2_VECTOR: _tuples(U16),
    VariantTag.I4_VECTOR: _tuples(I32),
    VariantTag.UI4_VECTOR: _tuples(U32),
    VariantTag.UI8_VECTOR: _tuples(U64),
    VariantTag.CLSID_VECTOR: _tuples(GUID),
    VariantTag.LPWSTR_VECTOR: _tuples(st.none() | TEXT),
}


def _variant(depth: int) -> st.SearchStrategy[Variant]:
    kinds = dict(_PLAIN)
    if depth:
        kinds[VariantTag.VARIANT_VECTOR] = _tuples(_variant(depth - 1))
    return st.sampled_from(sorted(kinds)).flatmap(
        lambda tag: st.builds(Variant, st.just(int(tag)), kinds[tag])
    )


VARIANT = _variant(VARIANT_DEPTH)
MANAGED_OBJECT = st.builds(management.ManagedObject, st.sampled_from([1, 3]), U32) | st.builds(
    management.ManagedObject, st.just(2), st.none() | QUEUE_FORMAT
)
SECTIONS = st.lists(
    st.builds(remote_read.Section, st.integers(0, 4), U32, st.binary(max_size=50)), max_size=2
).map(tuple)
_RECEIVE = (CONTEXT, U64, U32, U32, U32, U32, U32, U32)
_OPEN = (QUEUE_FORMAT, U32, U32, GUID, I32, st.integers(0, 255), st.integers(0, 255), U16, I32)


@st.composite
def get_infos(draw: st.DrawFn) -> management.GetInfo:
    count = draw(st.integers(1, 5))
    return management.GetInfo(
        draw(MANAGED_OBJECT),
        tuple(draw(st.lists(U32, min_size=count, max_size=count))),
        tuple(draw(st.lists(VARIANT, min_size=count, max_size=count))),
    )


CALLS = {
    "NOTHING": (remote_read.NOTHING, st.builds(remote_read.Nothing)),
    "RESULT": (remote_read.RESULT, st.builds(remote_read.Result, U32)),
    "PORT": (remote_read.PORT, st.builds(remote_read.Port, U32)),
    "OPEN_QUEUE": (remote_read.OPEN_QUEUE, st.builds(remote_read.OpenQueue, *_OPEN)),
    "OPENED": (remote_read.OPENED, st.builds(remote_read.Opened, CONTEXT)),
    "OPENED_FOR_MOVE": (
        remote_read.OPENED_FOR_MOVE,
        st.builds(remote_read.OpenedForMove, U64, CONTEXT),
    ),
    "OF_QUEUE": (remote_read.OF_QUEUE, st.builds(remote_read.OfQueue, CONTEXT)),
    "CLOSED": (remote_read.CLOSED, st.builds(remote_read.Closed, CONTEXT, U32)),
    "CURSOR_MADE": (remote_read.CURSOR_MADE, st.builds(remote_read.CursorMade, U32, U32)),
    "CLOSE_CURSOR": (
        remote_read.CLOSE_CURSOR,
        st.builds(remote_read.CloseCursor, CONTEXT, U32),
    ),
    "START_RECEIVE": (
        remote_read.START_RECEIVE,
        st.builds(remote_read.StartReceive, *_RECEIVE),
    ),
    "START_TRANSACTIONAL_RECEIVE": (
        remote_read.START_TRANSACTIONAL_RECEIVE,
        st.builds(remote_read.StartTransactionalReceive, *_RECEIVE, UNIT),
    ),
    "RECEIVED": (
        remote_read.RECEIVED,
        st.builds(remote_read.Received, U32, U64, SECTIONS, U32),
    ),
    "CANCEL_RECEIVE": (
        remote_read.CANCEL_RECEIVE,
        st.builds(remote_read.CancelReceive, CONTEXT, U32),
    ),
    "END_RECEIVE": (
        remote_read.END_RECEIVE,
        st.builds(remote_read.EndReceive, CONTEXT, st.integers(1, 2), U32),
    ),
    "MOVE_MESSAGE": (
        remote_read.MOVE_MESSAGE,
        st.builds(remote_read.MoveMessage, CONTEXT, U64, U64, UNIT),
    ),
    "ENLIST_REMOTE_TRANSACTION": (
        remote_read.ENLIST_REMOTE_TRANSACTION,
        st.builds(remote_read.EnlistRemoteTransaction, UNIT, st.binary(max_size=40), QUEUE_FORMAT),
    ),
    "SET_ACKNOWLEDGEMENT_CLASS": (
        remote_read.SET_ACKNOWLEDGEMENT_CLASS,
        st.builds(remote_read.SetAcknowledgementClass, CONTEXT, U64, U16),
    ),
    "GET_INFO": (management.GET_INFO, get_infos()),
    "INFO": (
        management.INFO,
        st.builds(management.Info, st.lists(VARIANT, max_size=4).map(tuple), U32),
    ),
    "ACTION": (management.ACTION, st.builds(management.Action, MANAGED_OBJECT, TEXT)),
    "DONE": (management.DONE, st.builds(management.Done, U32)),
}
"""All stubs, and values for each."""

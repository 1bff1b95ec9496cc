"""Values of PGM for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from openmsmq.wire.pgm.options import NO_OPTIONS, Fragment, Options
from openmsmq.wire.pgm.packets import Body, Data, Nak, Packet, PacketType, SourceId, Spm

U16, U32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
ADDRESSES = st.binary(min_size=4, max_size=4)
SOURCES = st.builds(SourceId, st.binary(min_size=6, max_size=6), U16)
FLAGS = st.booleans()
OPTIONS = st.just(NO_OPTIONS) | st.builds(
    Options,
    st.none() | st.builds(Fragment, U32, U32, U32),
    st.lists(U32, max_size=62).map(tuple),
    st.none() | U32,
    FLAGS,
    FLAGS,
    FLAGS,
)


@st.composite
def data_packets(draw: st.DrawFn) -> Data:
    data = draw(st.binary(max_size=100))
    options = draw(OPTIONS)
    if options.fragment is not None:
        offset = draw(st.integers(0, 1_000))
        length = offset + len(data) + draw(st.integers(0, 1_000))
        part = Fragment(options.fragment.first, offset, length)
        options = Options(part, options.further, options.joinable, options.syn, options.fin)
    return Data(draw(U32), draw(U32), data, draw(FLAGS), options)


BODIES: st.SearchStrategy[Body] = st.one_of(
    data_packets(),
    st.builds(Spm, U32, U32, U32, ADDRESSES, OPTIONS),
    st.builds(
        Nak,
        st.sampled_from([PacketType.NAK, PacketType.NNAK, PacketType.NCF]),
        U32,
        ADDRESSES,
        ADDRESSES,
        OPTIONS,
    ),
)
PACKETS = st.builds(Packet, SOURCES, U16, BODIES)

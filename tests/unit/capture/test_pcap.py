"""Classic pcap files are read in both byte orders and both resolutions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.capture.link_layers import LinkType
from openmsmq.capture.source import CaptureError
from tests.strategies.captures import TimedFrame, frames_of, pcap_file

FILE = pcap_file("<", [TimedFrame(LinkType.RAW, 0, b"abcd")])


@given(st.sampled_from("<>"), st.booleans(), st.lists(st.binary(max_size=30), max_size=5))
def test_every_variant_is_read(order, nanoseconds, data):
    frames = [
        TimedFrame(LinkType.ETHERNET, 1_500_000_000_000_001_000 * (n > 0) + 1_000 * n, one)
        for n, one in enumerate(data)
    ]
    found = list(frames_of(pcap_file(order, frames, nanoseconds)))
    assert [TimedFrame(one.link_type, one.time_ns, one.data) for one in found] == frames


@pytest.mark.parametrize(
    ("file", "offset", "problem"),
    [
        (FILE[:10], 0, "the pcap header ends 14 bytes early"),
        (FILE[:4] + b"\3" + FILE[5:], 4, "pcap version 3.4, not 2.4"),
        (FILE[:-1], 40, "a record of 4 bytes ends 1 bytes early"),
        (FILE[:30], 24, "a record ends 10 bytes early"),
        (FILE[:32] + b"\xff" * 4 + FILE[36:], 32, "a record of 4294967295 bytes"),
    ],
)
def test_a_damaged_file_says_where_and_what(file, offset, problem):
    with pytest.raises(CaptureError) as caught:
        list(frames_of(file))
    assert caught.value.offset == offset
    assert problem in caught.value.problem

"""IP packets in parts become whole again, in any order, within limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.capture.fragments import FragmentTable
from openmsmq.capture.link_layers import UdpDatagram, read_ip, read_transport
from openmsmq.capture.recorder import udp_packet
from tests.strategies.captures import endpoint, fragments

FOUR = (endpoint("10.0.0.1", 7), endpoint("10.0.0.2", 1801))
SIX = (endpoint("fd00::1", 7), endpoint("fd00::2", 1801))


@given(st.sampled_from([FOUR, SIX]), st.binary(max_size=100), st.data())
def test_fragments_in_any_order_become_the_packet(ends, payload, data):
    size = 8 * data.draw(st.integers(1, 6))
    parts = data.draw(st.permutations(fragments(udp_packet(*ends, payload), 9, size)))
    table = FragmentTable()
    given_back = [table.add(read_ip(part)) for part in parts]
    assert given_back[:-1] == [None] * (len(parts) - 1)
    assert given_back[-1] is not None
    assert read_transport(given_back[-1]) == UdpDatagram(*ends, payload)
    table.finish()
    assert table.lost == 0


def test_the_oldest_packet_is_given_up_when_too_much_is_held():
    table = FragmentTable(held_bytes_max=600)
    parts = [fragments(udp_packet(*FOUR, bytes(40)), identity, 16) for identity in range(4)]
    for one in parts:
        assert table.add(read_ip(one[0])) is None
    assert table.lost == 2
    assert table.add(read_ip(parts[3][1])) is None
    assert table.add(read_ip(parts[3][2])) is not None
    table.finish()
    assert table.lost == 3


def test_a_last_fragment_that_the_capture_cut_completes_nothing():
    first, last = fragments(udp_packet(*FOUR, bytes(20)), 1, 16)
    table = FragmentTable()
    assert table.add(read_ip(first)) is None
    assert table.add(read_ip(last[:-1])) is None
    table.finish()
    assert table.lost == 1


def test_fragments_that_say_nothing_or_leave_a_hole_complete_nothing():
    parts = fragments(udp_packet(*FOUR, bytes(40)), 1, 16)
    table = FragmentTable()
    assert table.add(read_ip(parts[0][:20])) is None
    assert table.add(read_ip(parts[0])) is None
    assert table.add(read_ip(parts[2])) is None
    assert table.add(read_ip(parts[1])) is not None


def test_fragments_that_disagree_about_the_size_complete_nothing():
    first, middle, last = fragments(udp_packet(*FOUR, bytes(40)), 1, 16)
    table = FragmentTable()
    for part in (last, first, first[:6] + b"\x20\x06" + first[8:]):
        assert table.add(read_ip(part)) is None
    assert table.add(read_ip(middle)) is None


def test_packets_of_which_nothing_came_count_against_the_limit_too():
    table = FragmentTable(held_bytes_max=1_000)
    for identity in range(100):
        first = fragments(udp_packet(*FOUR, bytes(40)), identity, 16)[0]
        assert table.add(read_ip(first[:20])) is None
    assert table.lost > 90

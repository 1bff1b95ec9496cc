"""The source: its rate, its words about where it stands, its window, and repairs."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Address
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.outputs import Profile
from openmsmq.protocol.pgm.serial import after
from openmsmq.protocol.pgm.source import Source
from openmsmq.wire.pgm.options import Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, Spm
from tests.unit.protocol.pgm.network import GROUP, SENDER, Network

HERE: Final = IPv4Address(SENDER).packed
THERE: Final = IPv4Address(GROUP.address).packed


def nak(*numbers: int) -> Nak:
    return Nak(PacketType.NAK, numbers[0], HERE, THERE, Options(further=numbers[1:]))


def data(network: Network, *, repairs: bool = False) -> list[tuple[int, Data]]:
    found = []
    for at_ms, packet in network.sent:
        if isinstance(packet.body, Data) and packet.body.is_repair == repairs:
            found.append((at_ms, packet.body))
    return found


def spms(network: Network) -> list[tuple[int, Spm]]:
    return [(at, packet.body) for at, packet in network.sent if isinstance(packet.body, Spm)]


def test_it_keeps_to_the_rate_of_the_profile() -> None:
    network = Network()
    network.send([bytes(10_000)] * 100)
    network.run(10)
    # In ten seconds the rate, and one burst more.
    burst = limits.PGM_RATE_BYTES_PER_S * limits.PGM_BURST_MS // 1_000
    assert network.sent_bytes <= 10 * limits.PGM_RATE_BYTES_PER_S + burst
    assert network.sent_bytes >= 9.8 * limits.PGM_RATE_BYTES_PER_S
    for start in range(0, 10_000, 500):
        within = [
            len(packet.encode()) + 20
            for at_ms, packet in network.sent
            if start <= at_ms < start + 500
        ]
        assert sum(within) <= limits.PGM_RATE_BYTES_PER_S // 2 + burst + 1_500


def test_it_says_where_it_begins_before_it_sends_anything() -> None:
    network = Network(first=77)
    network.send([b"first"])
    network.run(1)
    kinds = [type(packet.body) for _, packet in network.sent[:4]]
    assert kinds == [Spm, Spm, Spm, Data]
    assert {(spm.trail, spm.lead) for _, spm in spms(network)[:3]} == {(77, 76)}


def test_who_is_silent_says_so_less_and_less_often() -> None:
    network = Network()
    network.send([b"only"])
    network.run(80)
    times = [at_ms for at_ms, _ in spms(network)][3:]
    gaps = [second - first for first, second in itertools.pairwise(times)]
    assert gaps[:6] == [500, 1_000, 2_000, 4_000, 8_000, 15_000]
    assert set(gaps[6:]) == {15_000}
    assert [spm.number for _, spm in spms(network)] == list(range(len(spms(network))))


def test_who_sends_says_where_it_stands_each_half_second_and_each_fifty_packets() -> None:
    slow = Network()
    slow.send([bytes(100_000 // 70)] * 100)
    slow.run(2)
    times = [at_ms for at_ms, _ in spms(slow)][3:]
    assert all(second - first <= 501 for first, second in itertools.pairwise(times))
    fast = Network(profile=Profile(rate_bytes_per_s=0))
    fast.send([b"x"] * 500)
    fast.run(0.2)
    assert len(spms(fast)) == 3 + 10


def test_a_payload_is_cut_so_that_no_packet_is_too_long() -> None:
    network = Network(profile=Profile(rate_bytes_per_s=0))
    for size in (1, 1_452, 1_453, limits.PGM_PAYLOAD_MAX_BYTES):
        network.send([bytes(size)])
    network.run(1)
    lengths = [len(packet.encode()) for _, packet in network.sent]
    assert max(lengths) == limits.PGM_PACKET_MAX_BYTES
    parts = [each.options.fragment for _, each in data(network)]
    assert parts[:2] == [None, None]
    assert parts[2] is not None
    assert (parts[2].offset, parts[2].length) == (0, 1_453)
    assert sum(len(each.data) for _, each in data(network)) == 2_906 + limits.PGM_PAYLOAD_MAX_BYTES


@given(st.integers(0, 0xFFFFFFFF))
def test_a_request_is_confirmed_at_once_and_served_by_the_formula(first: int) -> None:
    network = Network(hosts=0, first=first, profile=Profile(rate_bytes_per_s=0))
    network.send([bytes([number]) for number in range(10)])
    network.run(1)
    now_ms, old, new = network.now_ms, after(first, 1), after(first, 9)
    network.source.received(nak(new, old), now_ms)
    network.run(1)
    confirmed = [
        (at_ms, packet.body.numbers)
        for at_ms, packet in network.sent
        if isinstance(packet.body, Nak)
    ]
    assert confirmed == [(now_ms, (new, old))]
    served = {
        each.number: (at_ms - now_ms, each.data) for at_ms, each in data(network, repairs=True)
    }
    # A tenth and nine tenths of 60 ms, for places 1 and 9 of 10.
    assert served == {old: (6, b"\x01"), new: (54, b"\x09")}


def test_a_second_request_within_a_moment_is_the_copy_for_everybody() -> None:
    network = Network(hosts=0)
    network.send([b"a"])
    network.run(1)
    for _ in range(3):
        network.source.received(nak(1), network.now_ms)
    network.run(0.05)
    network.source.received(nak(1), network.now_ms)
    network.run(1)
    assert network.kinds(network.sent)["NCF"] == 1
    assert network.kinds(network.sent)["RDATA"] == 1
    network.source.received(nak(1), network.now_ms)
    network.run(1)
    assert network.kinds(network.sent)["RDATA"] == 2


@pytest.mark.parametrize(
    "asked",
    [
        nak(0),
        nak(9),
        Nak(PacketType.NNAK, 1, HERE, THERE),
        Nak(PacketType.NCF, 1, HERE, THERE),
        Nak(PacketType.NAK, 1, THERE, THERE),
        Nak(PacketType.NAK, 1, HERE, HERE),
    ],
    ids=["before", "behind", "nnak", "ncf", "other source", "other group"],
)
def test_what_is_not_for_it_is_ignored(asked: Nak) -> None:
    network = Network(hosts=0)
    network.send([b"a", b"b"])
    network.run(1)
    before = len(network.sent)
    network.source.received(asked, network.now_ms)
    network.run(0.3)
    assert not {"NCF", "RDATA"} & set(network.kinds(network.sent[before:]))


def test_a_flood_of_requests_takes_no_more_than_half_of_the_rate() -> None:
    network = Network(hosts=0)
    network.send([bytes(1_000)] * 60)
    network.run(1.5)
    sent = network.source.sent_count
    network.send([bytes(1_000)] * 500)
    for _ in range(1_000):
        for first in range(1, sent, 63):
            network.source.received(nak(*range(first, min(first + 63, sent))), network.now_ms)
        network.run(0.004)
    # Four seconds: half of the rate for data, a quarter beside it for confirmations.
    new = (network.source.sent_count - sent) * 1_044
    assert new >= 0.45 * 4 * limits.PGM_RATE_BYTES_PER_S
    confirmations = sum(
        len(packet.encode()) for _, packet in network.sent if isinstance(packet.body, Nak)
    )
    assert confirmations <= 0.3 * 5.5 * limits.PGM_RATE_BYTES_PER_S


def test_the_window_keeps_what_is_young_enough_and_what_was_promised() -> None:
    network = Network(hosts=0)
    network.send([b"old"])
    network.run(200)
    network.send([b"new"])
    network.run(30)
    network.source.received(nak(1), network.now_ms)
    network.run(1)
    assert network.kinds(network.sent)["RDATA"] == 1
    network.run(75)
    # The first one is older than five minutes, the second is not.
    assert spms(network)[-1][1].trail == 2
    network.source.received(nak(1, 2), network.now_ms)
    network.run(1)
    assert [each.data for _, each in data(network, repairs=True)] == [b"old", b"new"]


def test_a_full_window_forgets_the_oldest() -> None:
    network = Network(hosts=0, profile=Profile(rate_bytes_per_s=0, window_bytes=5_000))
    network.send([bytes(1_000)] * 20)
    network.run(1)
    assert network.source.window_bytes <= 5_000
    assert spms(network)[-1][1].trail == 17


def test_who_was_not_used_for_long_ends() -> None:
    network = Network(hosts=0)
    network.send([b"last"])
    network.run(700)
    assert network.source.is_over
    assert not network.source.has_room
    assert network.source.next_wake_ms is None
    assert spms(network)[-1][1].options.fin
    assert network.source.window_bytes == 0


def test_there_is_room_for_so_much_and_no_more() -> None:
    network = Network(hosts=0)
    count = 0
    while network.source.has_room:
        network.source.send(bytes(50_000), 0)
        count += 1
    assert count == -(-limits.PGM_BACKLOG_MAX_BYTES // 50_000)
    assert network.source.backlog_bytes == count * 50_000


def test_a_packet_is_for_the_group_and_its_port() -> None:
    source: Source = Network().source
    source.wake(0)
    (sent,) = source.take_outputs()
    assert (sent.address, sent.for_routers) == (GROUP.address, True)
    packet: Packet = Packet(source.identifier, GROUP.port, Spm(0, 1, 0, HERE))
    assert sent.data == packet.encode()

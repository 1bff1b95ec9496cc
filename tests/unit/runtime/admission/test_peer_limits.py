"""What one address may take of a door, and how strangers are kept from taking all of it."""

from __future__ import annotations

import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openmsmq.model.clock import Instant
from openmsmq.runtime import limits
from openmsmq.runtime.admission.peer_limits import (
    PeerBounds,
    PeerLimits,
    Refusal,
    Verdict,
    peer_key,
)
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.sessions.network import known_addresses, transfer_bounds

GENEROUS = 1_000_000


def at(ms: int) -> Instant:
    return Instant(1_000_000 + ms, 1_700_000_000 + ms // 1_000)


def bounds(**changed: int) -> PeerBounds:
    """Bounds that are never reached, but for those that a test is about."""
    wide = dict.fromkeys(PeerBounds.__struct_fields__, GENEROUS)
    return PeerBounds(**{**wide, "connections_reserved": 0, "half_open_grace_ms": 2_000, **changed})


class Door:
    """A door, and a number for each connection."""

    def __init__(self, *known: str, **changed: int) -> None:
        self.limits = PeerLimits(bounds(**changed), known, at(0))
        self.last = 0

    def knock(self, address: str, ms: int = 0) -> Verdict:
        self.last += 1
        return self.limits.arrived(self.last, address, at(ms))

    def enter(self, address: str, ms: int = 0, *, greeted: bool = True) -> int:
        verdict = self.knock(address, ms)
        assert verdict == Verdict()
        if greeted:
            self.limits.established(self.last)
        return self.last


def test_every_bound_of_the_transfer_is_a_named_limit():
    found = transfer_bounds(ServerConfig(data="none"))
    assert found.connections_max == 1000
    assert found.connections_reserved == found.connections_max // limits.CONNECTIONS_RESERVED_SHARE
    assert found.connections_per_peer_max == 100
    for field in PeerBounds.__struct_fields__:
        assert getattr(found, field) > 0, field


def test_places_are_kept_for_addresses_that_an_operator_has_named():
    config = ServerConfig(data="none", address="192.0.2.1", directory=("192.0.2.9:1802", "host"))
    assert known_addresses(config) == ["127.0.0.1", "::1", "192.0.2.9"]


# One address.


def test_an_address_has_no_more_connections_than_its_share():
    door = Door(connections_per_peer_max=2)
    first = door.enter("a")
    door.enter("a")
    assert door.knock("a").refusal is Refusal.PER_PEER
    assert door.knock("b").refusal is None
    door.limits.left(first, at(0))
    assert door.knock("a").refusal is None


def test_an_address_has_few_handshakes_under_way():
    door = Door(half_open_per_peer_max=2)
    first = door.enter("a", greeted=False)
    door.enter("a", greeted=False)
    assert door.knock("a").refusal is Refusal.HALF_OPEN_PER_PEER
    door.limits.established(first)
    assert door.knock("a").refusal is None
    assert door.limits.half_open_count == 2


def test_an_address_that_connects_too_often_has_to_wait():
    door = Door(connects_per_s=10, connects_burst=3)
    for _ in range(3):
        door.limits.left(door.enter("a"), at(0))
    assert door.knock("a").refusal is Refusal.RATE
    assert door.knock("b").refusal is None
    assert door.knock("a", 99).refusal is Refusal.RATE
    assert door.knock("a", 100).refusal is None
    assert door.knock("a", 100).refusal is Refusal.RATE


def test_a_connection_that_ends_before_its_handshake_counts_for_several():
    door = Door(connects_per_s=1, connects_burst=10, unfinished_cost=4)
    for _ in range(2):
        door.limits.left(door.enter("a", greeted=False), at(0))
    assert door.knock("a").refusal is Refusal.RATE
    assert door.knock("a", 1_000).refusal is None


def test_what_an_address_owes_is_bounded_so_that_it_is_not_kept_out_for_ever():
    door = Door(connects_per_s=1, connects_burst=10, unfinished_cost=1_000)
    for number in [door.enter("a", greeted=False) for _ in range(10)]:
        door.limits.left(number, at(0))
    assert door.knock("a", 10_999).refusal is Refusal.RATE
    assert door.knock("a", 11_000).refusal is None


@given(st.integers(1, 50), st.integers(1, 20), st.lists(st.integers(0, 3_000), max_size=200))
def test_no_address_connects_more_often_than_its_rate_allows(per_s, burst, pauses_ms):
    door = Door(connects_per_s=per_s, connects_burst=burst)
    ms = taken = 0
    for pause_ms in pauses_ms:
        ms += pause_ms
        taken += door.knock("a", ms).refusal is None
        assert taken <= burst + per_s * ms / 1_000


def test_a_clock_that_goes_back_gives_nothing():
    door = Door(connects_per_s=1, connects_burst=1)
    door.enter("a", 5_000)
    assert door.knock("a", 0).refusal is Refusal.RATE
    assert door.knock("a", 5_999).refusal is Refusal.RATE
    assert door.knock("a", 6_000).refusal is None


# All together.


def test_when_all_together_connect_too_often_the_quiet_ones_are_let_in():
    door = Door(connects_all_per_s=1, connects_all_burst=10, connects_quiet=3)
    for _ in range(10):
        door.enter("flood")
    assert door.knock("flood").refusal is Refusal.RATE_OF_ALL
    for _ in range(3):
        assert door.knock("quiet").refusal is None
    assert door.knock("quiet").refusal is Refusal.RATE_OF_ALL


def test_a_flood_from_fifty_addresses_does_not_keep_a_newcomer_out():
    door = Door(connections_max=1_000, connections_per_peer_max=100)
    strangers = [f"198.51.100.{number}" for number in range(50)]
    for _ in range(20):
        for stranger in strangers:
            door.enter(stranger)
    assert door.limits.count == 1_000
    verdict = door.knock("192.0.2.1")
    assert verdict.refusal is None
    assert len(verdict.giving_way) == 1
    assert door.limits.count == 1_000
    # A further one of those who have most does not get in by that.
    assert door.knock(strangers[0]).refusal is Refusal.TOTAL


def test_of_those_that_have_most_a_silent_one_gives_way_first_and_then_the_newest():
    door = Door(connections_max=4)
    for _ in range(2):
        door.enter("a")
    silent = door.enter("a", greeted=False)
    last = door.enter("a")
    assert door.knock("b").giving_way == (silent,)
    assert door.knock("b").giving_way == (last,)
    assert door.knock("b").refusal is Refusal.TOTAL


def test_strangers_never_have_the_places_of_those_who_are_known():
    door = Door("192.0.2.1", connections_max=8, connections_reserved=2)
    for number in range(6):
        door.enter(f"198.51.100.{number}")
    assert door.knock("198.51.100.99").refusal is Refusal.TOTAL
    for _ in range(2):
        assert door.knock("192.0.2.1") == Verdict()
    # Beyond that a stranger gives way to them, one at a time.
    gone: set[int] = set()
    for _ in range(6):
        verdict = door.knock("192.0.2.1")
        assert verdict.refusal is None
        gone |= set(verdict.giving_way)
        assert door.limits.count == 8
    assert gone == {1, 2, 3, 4, 5, 6}
    assert door.knock("192.0.2.1").refusal is Refusal.TOTAL


def test_whom_this_computer_has_reached_itself_is_known_but_only_so_many_are():
    door = Door(connections_max=4, connections_reserved=2, known_max=2)
    for _ in range(2):
        door.enter("198.51.100.1")
    assert door.knock("192.0.2.1").giving_way == (2,)
    for number in range(1, 4):
        door.limits.met(f"192.0.2.{number}")
    assert door.knock("192.0.2.2") == Verdict()
    assert door.knock("192.0.2.3") == Verdict()
    assert door.knock("192.0.2.1").refusal is Refusal.TOTAL


def test_the_oldest_handshake_gives_way_and_the_newest_is_let_in():
    door = Door(half_open_max=3)
    first = door.enter("a", 0, greeted=False)
    door.enter("b", 1, greeted=False)
    door.enter("c", 2, greeted=False)
    assert door.knock("d", 1_999).refusal is Refusal.HALF_OPEN
    assert door.knock("d", 2_000) == Verdict(None, (first,))


def test_who_has_most_handshakes_under_way_gives_way_at_once():
    door = Door(half_open_max=3)
    door.enter("b", greeted=False)
    mine = door.enter("a", greeted=False)
    door.enter("a", greeted=False)
    assert door.knock("d") == Verdict(None, (mine,))
    assert door.knock("d").refusal is Refusal.HALF_OPEN


def test_a_handshake_of_a_stranger_gives_way_to_one_who_is_known():
    door = Door("k", half_open_max=2)
    first = door.enter("a", greeted=False)
    door.enter("b", greeted=False)
    assert door.knock("k") == Verdict(None, (first,))


# Memory.


def test_for_one_address_only_so_much_is_held():
    door = Door(buffered_per_peer_max_bytes=100)
    one, other = door.enter("a"), door.enter("a")
    assert door.limits.buffered(one, 60, at(0)) is None
    assert door.limits.buffered(other, 40, at(0)) is None
    assert door.limits.buffered(other, 41, at(0)) == one
    assert door.limits.buffered_bytes == 41
    assert door.limits.buffered(one, 60, at(0)) is None
    assert door.limits.count == 1


def test_for_all_together_only_so_much_is_held_and_a_stranger_loses_his_first():
    door = Door("k", buffered_max_bytes=100)
    known, small, large = door.enter("k"), door.enter("a"), door.enter("b")
    assert door.limits.buffered(small, 10, at(0)) is None
    assert door.limits.buffered(large, 20, at(0)) is None
    assert door.limits.buffered(known, 71, at(0)) == large
    assert door.limits.buffered(known, 91, at(0)) == small
    assert door.limits.buffered(known, 101, at(0)) == known
    assert door.limits.buffered_bytes == 0


def test_what_is_taken_is_no_longer_held():
    door = Door(buffered_max_bytes=100)
    one = door.enter("a")
    door.limits.buffered(one, 100, at(0))
    door.limits.buffered(one, 10, at(0))
    assert door.limits.buffered_bytes == 10
    door.limits.left(one, at(0))
    assert door.limits.buffered_bytes == 0


# Datagrams.


def test_datagrams_of_one_address_and_of_all_are_limited():
    door = Door(datagrams_per_s=2, datagrams_all_per_s=5)
    assert [door.limits.takes_datagram("a", at(0)) for _ in range(3)] == [True, True, False]
    taken = [door.limits.takes_datagram(f"{number}", at(0)) for number in range(5)]
    assert taken == [True, True, True, False, False]
    assert door.limits.takes_datagram("a", at(500))


# Addresses.


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("?", "?"),
        ("x" * 1_000, "x" * 64),
    ],
)
def test_a_peer_is_an_address_or_the_network_that_ipv6_gives_a_site(address, key):
    assert peer_key(address) == key


def test_addresses_without_number_take_bounded_memory_and_share_one_place():
    door = Door("k", addresses_max=50, connects_per_s=1, connects_burst=2, datagrams_per_s=1)
    for number in range(1_000):
        door.knock(f"198.51.{number // 250}.{number % 250}")
        assert len(door.limits.peers) <= 50
    assert door.knock("203.0.113.1").refusal is Refusal.RATE
    assert door.knock("k").refusal is None


def test_an_address_that_has_been_quiet_is_forgotten_and_another_has_its_place():
    door = Door(addresses_max=2, connects_per_s=1, connects_burst=1)
    door.limits.left(door.enter("a"), at(0))
    door.enter("b")
    # Who comes now is one of a crowd, and shares its rate.
    assert door.knock("c", 999).refusal is None
    assert door.knock("d", 999).refusal is Refusal.RATE
    # By then nothing is lost by forgetting the first one.
    assert door.knock("e", 1_000).refusal is None
    assert door.knock("f", 1_000).refusal is Refusal.RATE
    assert len(door.limits.peers) == 2


@given(st.text(string.printable, max_size=80))
def test_any_text_can_be_an_address(text):
    door = Door()
    door.enter(text)
    assert len(peer_key(text)) <= 64


# Whatever happens.


ADDRESSES = [f"192.0.2.{number}" for number in range(12)]


class DoorMachine(RuleBasedStateMachine):
    """All bounds hold, whatever peers do; what the counts say is what is there."""

    bounds = bounds(
        connections_max=12,
        connections_reserved=3,
        connections_per_peer_max=5,
        half_open_max=6,
        half_open_per_peer_max=3,
        connects_per_s=5,
        connects_burst=30,
        buffered_max_bytes=200,
        buffered_per_peer_max_bytes=100,
        addresses_max=8,
        known_max=2,
    )

    def __init__(self) -> None:
        super().__init__()
        self.limits = PeerLimits(self.bounds, ["192.0.2.0"], at(0))
        self.ms = 0
        self.last = 0
        self.there: dict[int, dict[str, Any]] = {}

    @rule(address=st.sampled_from(ADDRESSES))
    def knock(self, address: str) -> None:
        self.last += 1
        verdict = self.limits.arrived(self.last, address, at(self.ms))
        for gone in verdict.giving_way:
            assert gone != self.last
            del self.there[gone]
        if verdict.refusal is None:
            self.there[self.last] = {"address": address, "greeted": False, "bytes": 0}

    @rule(ms=st.integers(0, 3_000))
    def pass_time(self, ms: int) -> None:
        self.ms += ms

    @rule(data=st.data())
    def greet(self, data: st.DataObject) -> None:
        if self.there:
            number = data.draw(st.sampled_from(sorted(self.there)))
            self.limits.established(number)
            self.there[number]["greeted"] = True

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([0, *sorted(self.there)]))
        self.limits.left(number, at(self.ms))
        self.there.pop(number, None)

    @rule(data=st.data(), size=st.integers(0, 120))
    def hold(self, data: st.DataObject, size: int) -> None:
        if self.there:
            number = data.draw(st.sampled_from(sorted(self.there)))
            self.there[number]["bytes"] = size
            heavy = self.limits.buffered(number, size, at(self.ms))
            if heavy is not None:
                del self.there[heavy]

    @rule(address=st.sampled_from(ADDRESSES))
    def meet(self, address: str) -> None:
        self.limits.met(address)

    @invariant()
    def counts_are_right_and_bounded(self) -> None:
        half_open = [one for one in self.there.values() if not one["greeted"]]
        assert self.limits.count == len(self.there) <= self.bounds.connections_max
        assert self.limits.half_open_count == len(half_open) <= self.bounds.half_open_max
        held = sum(one["bytes"] for one in self.there.values())
        assert self.limits.buffered_bytes == held <= self.bounds.buffered_max_bytes
        # Those who are known have places beside the others.
        assert len(self.limits.peers) <= self.bounds.addresses_max + 3
        counts = Counter(one["address"] for one in self.there.values())
        assert all(count <= self.bounds.connections_per_peer_max for count in counts.values())


TestDoorMachine = DoorMachine.TestCase

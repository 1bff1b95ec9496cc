"""How many sequences of senders are remembered, and who gives way."""

from __future__ import annotations

import pytest

from openmsmq.manager.incoming.sequence_records import SequenceRecords
from openmsmq.manager.queues.totals import Totals
from openmsmq.model.clock import Instant
from openmsmq.model.limits import (
    INCOMING_SEQUENCE_BYTES,
    INCOMING_SEQUENCE_KEPT_S,
    INCOMING_SEQUENCE_UNUSED_S,
    INCOMING_SEQUENCES_MAX_COUNT,
    INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT,
    UNLIMITED_KB,
)

START_S = 1_700_000_000


def at(seconds: int = 0) -> Instant:
    return Instant(seconds * 1000, START_S + seconds)


class Memory:
    """The records, and which were forgotten."""

    def __init__(self) -> None:
        self.gone: list[bytes] = []
        self.totals = Totals()
        self.records = SequenceRecords(self.totals, self._forget)

    def _forget(self, key: bytes) -> None:
        self.gone.append(key)
        self.records.drop(key)

    def fill(self, place: str, count: int, seconds: int = 0) -> None:
        for number in range(count):
            self.records.used(f"{place} {number}".encode(), place, START_S + seconds)


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_an_address_has_only_so_many_until_some_are_not_used_for_long(memory: Memory) -> None:
    memory.fill("10.0.0.1", INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT - 1)
    assert memory.records.has_room("10.0.0.1", at())
    memory.records.used(b"last", "10.0.0.1", START_S)
    assert not memory.records.has_room("10.0.0.1", at(INCOMING_SEQUENCE_UNUSED_S - 1))
    assert memory.gone == []
    assert memory.records.has_room("10.0.0.2", at())
    memory.records.used(b"10.0.0.1 0", "10.0.0.1", START_S + 100)
    assert memory.records.has_room("10.0.0.1", at(INCOMING_SEQUENCE_UNUSED_S))
    assert memory.gone == [b"10.0.0.1 1"]


def test_those_for_whom_others_vouch_share_no_address(memory: Memory) -> None:
    memory.fill("", INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT + 1)
    assert memory.records.has_room("", at())


def test_a_site_of_ipv6_counts_as_one_address(memory: Memory) -> None:
    for number in range(INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT):
        memory.records.used(b"%d" % number, f"2001:db8::{number:x}", START_S)
    assert not memory.records.has_room("2001:db8::ffff", at())
    assert memory.records.has_room("2001:db8:0:1::1", at())


def test_where_there_is_no_room_in_all_the_address_with_most_gives_way(memory: Memory) -> None:
    memory.totals.quota_kb = 64
    limit = memory.records.max_count
    assert limit == 64 * 1024 // 8 // INCOMING_SEQUENCE_BYTES
    memory.fill("10.0.0.1", limit - 2)
    memory.fill("10.0.0.2", 1)
    memory.fill("", 1)
    assert len(memory.records) == limit
    assert not memory.records.has_room("10.0.0.1", at())
    assert memory.records.has_room("10.0.0.3", at())
    assert memory.records.has_room("", at())
    assert memory.gone == [b"10.0.0.1 0"]


def test_nobody_gives_way_for_one_who_has_as_many(memory: Memory) -> None:
    memory.totals.quota_kb = 16
    for number in range(memory.records.max_count):
        memory.fill(f"10.0.0.{number}", 1)
    assert not memory.records.has_room("10.9.9.9", at())
    assert memory.records.has_room("", at())


@pytest.mark.parametrize(
    ("quota_kb", "limit"),
    [(UNLIMITED_KB, INCOMING_SEQUENCES_MAX_COUNT), (8 * 1024 * 1024, INCOMING_SEQUENCES_MAX_COUNT)],
)
def test_there_is_a_limit_whatever_the_quota(memory: Memory, quota_kb: int, limit: int) -> None:
    memory.totals.quota_kb = quota_kb
    assert memory.records.max_count == limit


def test_what_nobody_uses_is_forgotten_in_the_end(memory: Memory) -> None:
    memory.records.used(b"old", "10.0.0.1", START_S)
    memory.records.used(b"vouched for", "", START_S)
    memory.records.used(b"young", "10.0.0.1", START_S + 1)
    memory.records.expire(at(INCOMING_SEQUENCE_KEPT_S - 1))
    assert memory.gone == []
    memory.records.expire(at(INCOMING_SEQUENCE_KEPT_S))
    assert sorted(memory.gone) == [b"old", b"vouched for"]
    assert len(memory.records) == 1

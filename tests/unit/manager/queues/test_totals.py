"""How many bytes a queue manager may hold, and who may use the last of them."""

from __future__ import annotations

from openmsmq.manager.queues.totals import Share, Totals
from openmsmq.model.limits import EXPRESS_OVERHEAD_BYTES

KILOBYTE = 1024


def test_strangers_leave_a_quarter_of_the_quota() -> None:
    totals = Totals()
    totals.quota_kb = 64
    totals.add(40 * KILOBYTE)
    assert totals.room_for_strangers(8 * KILOBYTE)
    assert not totals.room_for_strangers(8 * KILOBYTE + 1)
    assert totals.room_for(24 * KILOBYTE)
    assert not totals.room_for(24 * KILOBYTE + 1)


def test_express_messages_count_with_what_they_take_in_memory() -> None:
    totals = Totals()
    totals.express_memory_kb = 64
    totals.add_express(10, 1_000)
    assert totals.express_bytes == 1_000 + 10 * EXPRESS_OVERHEAD_BYTES
    left = 64 * KILOBYTE - totals.express_bytes
    assert totals.memory_for(1, left - EXPRESS_OVERHEAD_BYTES)
    assert not totals.memory_for(1, left - EXPRESS_OVERHEAD_BYTES + 1)
    assert not totals.memory_for(2, left - EXPRESS_OVERHEAD_BYTES)


def test_memory_is_within_the_quota() -> None:
    totals = Totals()
    totals.express_memory_kb = 64
    totals.quota_kb = 8
    assert totals.memory_for(1, 8 * KILOBYTE - EXPRESS_OVERHEAD_BYTES)
    assert not totals.memory_for(1, 8 * KILOBYTE)
    assert not totals.memory_for(1, 6 * KILOBYTE, strangers=True)


def test_without_a_quota_there_is_always_room() -> None:
    totals = Totals()
    totals.add(1 << 50)
    assert totals.room_for(1 << 50)
    assert totals.room_for_strangers(1 << 50)
    assert totals.memory_for(1 << 20, 1 << 50)


def test_a_share_counts_in_the_whole() -> None:
    whole = Totals()
    share = Share(whole)
    share.add(100)
    share.add_express(1, 100)
    assert (share.bytes, whole.bytes) == (100, 100)
    assert (share.express_bytes, whole.express_bytes) == (0, 100 + EXPRESS_OVERHEAD_BYTES)

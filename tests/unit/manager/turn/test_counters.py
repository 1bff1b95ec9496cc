"""No number is given twice, whatever the disk does."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.manager.turn.counters import BLOCK_COUNT, Counters
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.storage import records
from openmsmq.storage.records import MachineRecord

NEW = MachineRecord(Guid(bytes(16)), "ALPHA")


class Disk:
    """What of the machine record is durable, and the counters that go on from it."""

    def __init__(self) -> None:
        self.machine = NEW
        self.start()

    def start(self) -> None:
        """Begin anew, as after a crash."""
        self.ledger = Ledger()
        self.counters = Counters(self.machine, self.ledger, random.Random(1))
        self.counters.open()

    def end_turn(self, *, fails: bool = False) -> None:
        """Let the turn reach the disk, or not."""
        persist = self.ledger.seal()
        if persist is None:
            return
        if fails:
            self.ledger.revoke(persist.ticket, InsufficientResources("full"))
            return
        for key, value in persist.batch.changes:
            if key == records.MACHINE_KEY and value is not None:
                self.machine = records.decode_record(value, records.MachineRecord)
        self.ledger.settle(persist.ticket)


@given(
    st.lists(
        st.one_of(
            st.integers(1, BLOCK_COUNT // 3),
            st.sampled_from(["turn", "failed turn", "crash"]),
        ),
        max_size=30,
    )
)
def test_a_message_number_is_given_once_though_turns_fail_and_power_is_lost(
    events: list[int | str],
) -> None:
    disk = Disk()
    given_before = 0
    for event in events:
        if event == "turn":
            disk.end_turn()
        elif event == "failed turn":
            disk.end_turn(fails=True)
        elif event == "crash":
            disk.start()
        elif isinstance(event, int):
            try:
                numbers = disk.counters.take_messages(event)
            except InsufficientResources:
                continue
            assert numbers[0] > given_before
            assert numbers == list(range(numbers[0], numbers[0] + event))
            given_before = numbers[-1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, BLOCK_COUNT]), st.sampled_from(["done", "failed", "power lost"])
        ),
        max_size=30,
    )
)
def test_no_arrival_number_is_given_below_one_that_was_told(turns: list[tuple[int, str]]) -> None:
    """Readers go on behind what a turn says of the last one, which they hear when it is durable."""
    disk = Disk()
    told = 0
    for count, end in turns:
        assert count == 0 or disk.counters.take_arrivals(count) > told
        last = disk.counters.last_arrival
        assert last >= told
        if end == "power lost":
            disk.start()
            continue
        disk.end_turn(fails=end == "failed")
        if end == "done":
            told = last


def test_no_number_is_given_before_its_limit_is_durable() -> None:
    disk = Disk()
    with pytest.raises(InsufficientResources, match="reserved on the disk"):
        disk.counters.take_messages(1)
    disk.end_turn()
    assert disk.counters.take_messages(3) == [1, 2, 3]


def test_a_working_disk_never_runs_short_of_numbers() -> None:
    disk = Disk()
    disk.end_turn()
    for _ in range(30):
        disk.counters.take_messages(BLOCK_COUNT // 4)
        disk.end_turn()


def test_a_turn_that_commits_covers_the_transaction_numbers_given_out() -> None:
    disk = Disk()
    disk.end_turn()
    number = disk.counters.take_transaction()
    disk.end_turn(fails=True)
    disk.counters.cover_transactions()
    disk.end_turn()
    disk.start()
    assert disk.counters.take_transaction() > number


def test_sequences_of_a_queue_go_on_by_one_and_begin_where_nobody_guesses() -> None:
    disk = Disk()
    now = Instant(0, 1_700_000_000)
    first = disk.counters.take_sequence(None, now)
    second = disk.counters.take_sequence(first, now)
    assert (second.ordinal, second > first) == (first.ordinal + 1, True)
    begun = [disk.counters.take_sequence(None, now) for _ in range(50)]
    assert begun == sorted(begun, key=int)
    assert begun[0] > second
    steps = {two.ordinal - one.ordinal for one, two in itertools.pairwise(begun)}
    assert len(steps) > 40
    assert max(each.ordinal for each in begun) > 1 << 24


def test_a_sequence_is_greater_than_all_before_though_the_clock_goes_back() -> None:
    disk = Disk()
    late = disk.counters.take_sequence(None, Instant(0, 1_700_000_000))
    disk.end_turn()
    disk.start()
    assert disk.counters.take_sequence(None, Instant(0, 1_600_000_000)) > late
    last = SequenceId(0xFFFF_FFFF, late.timestamp)
    assert disk.counters.take_sequence(last, Instant(0, 1_600_000_000)) > last

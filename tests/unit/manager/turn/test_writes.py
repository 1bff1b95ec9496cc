"""What a turn writes: in order, and the counts of queues as they are at its end."""

from __future__ import annotations

from openmsmq.manager.turn.writes import Writes
from openmsmq.storage import records


class Queue:
    """What has counts."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.stored_count = 0
        self.stored_bytes = 0


def test_records_stay_in_the_order_in_which_they_were_written() -> None:
    writes = Writes()
    writes.put(b"a", b"1")
    writes.delete(b"a")
    writes.put_many([(b"b", b"2"), (b"c", b"3")], volatile=False)
    writes.take_out([b"d"], volatile=False)
    writes.put_many([(b"e", b"4")], volatile=True)
    writes.put_many([(b"f", b"5")], volatile=True)
    writes.take_out([b"g"], volatile=True)
    writes.delete_range(b"h", b"i")
    batch = writes.close()
    assert batch.changes == [(b"a", b"1"), (b"a", None), (b"b", b"2"), (b"c", b"3"), (b"d", None)]
    assert batch.volatile == [(b"e", b"4"), (b"f", b"5")]
    assert batch.forgotten == [b"g"]
    assert batch.ranges == [(b"h", b"i")]


def test_the_counts_of_a_queue_are_written_once_as_they_are_at_the_end() -> None:
    writes, nine, two = Writes(), Queue(9), Queue(2)
    writes.touch(nine)
    writes.touch(two)
    writes.touch(nine)
    nine.stored_count, nine.stored_bytes = 3, 300
    assert writes.close().changes == [
        (records.counts_key(2), records.encode_counts(0, 0)),
        (records.counts_key(9), records.encode_counts(3, 300)),
    ]

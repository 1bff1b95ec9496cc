"""What a batch says to other stores is the batch, and no file of this store."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, Taken
from openmsmq.storage.replication.prepared import decode_batch, seal, unseal

BATCHES = [
    Batch([(b"a", b"1"), (b"b", b"2")]),
    Batch([(b"a", None)], ranges=[(b"b", b"c")]),
    Batch([(b"n", b"1")], aside=[(b"part", [b"x", b"y", b"z"])]),
    Batch(taken=[Taken(b"part", 1, 2, b"E" + bytes(8), b"!")], dropped=[b"part"]),
]


def test_a_store_that_gets_the_records_becomes_the_same(tmp_path: Path) -> None:
    first, second = open_store(tmp_path / "first"), open_store(tmp_path / "second")
    for batch in BATCHES:
        prepared = first.prepare(batch)
        record = prepared.record()
        first.finish(prepared)
        second.commit(decode_batch(record))
        assert first.sequence == second.sequence
    assert first.scan(b"\0", b"\xff", 100) == second.scan(b"\0", b"\xff", 100)
    assert len(first.scan(b"\0", b"\xff", 100)) == 3
    first.close()
    second.close()


def test_what_was_prepared_and_not_finished_is_not_there(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.prepare(BATCHES[0])
    assert store.get(b"a") is None
    store.abandon()
    again = open_store(tmp_path / "store")
    assert again.get(b"a") is None
    assert again.sequence == 0
    again.close()


def test_a_record_is_known_by_its_content_its_number_and_its_log() -> None:
    sealed = seal(b"crecord", "log", 7)
    assert unseal(sealed, "log", 7) == b"crecord"
    changed = bytes([sealed[0] ^ 1]) + sealed[1:]
    for found, log, number in (
        (sealed, "log", 8),
        (sealed, "another", 7),
        (changed, "log", 7),
        (sealed[:-1], "log", 7),
        (b"", "log", 7),
    ):
        with pytest.raises(StoreDamaged, match=f"record {number} of the log in the database"):
            unseal(found, log, number)


@pytest.mark.parametrize("record", [b"", b"c\xff", b"w\x01", b"?later"])
def test_what_is_no_record_is_damage(record: bytes) -> None:
    with pytest.raises(StoreDamaged):
        decode_batch(record)

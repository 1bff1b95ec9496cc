"""A process that commits numbered batches and prints each number when its commit has returned.

    python store_writer.py DIRECTORY [CHECKPOINT_BYTES]

The content of the store after any number of batches can be computed (`state_after`), so whoever
ends this process in whatever way can tell exactly what must be there.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch

KEPT_BATCHES = 120
CHECKPOINT_BYTES = 64 << 10


def messages(number: int) -> list[tuple[bytes, bytes]]:
    draw = random.Random(number)
    return [
        (b"E" + number.to_bytes(8, "big") + bytes([place]), draw.randbytes(draw.randrange(900)))
        for place in range(draw.randrange(1, 6))
    ]


def batch(number: int) -> Batch:
    """Send messages, receive those of an earlier batch, singly or as a range, and count."""
    earlier = number - KEPT_BATCHES
    received = messages(earlier) if earlier > 0 and earlier % 2 else []
    ranges = []
    if earlier > 0 and not earlier % 2:
        ranges = [(b"E" + earlier.to_bytes(8, "big"), b"E" + (earlier + 1).to_bytes(8, "big"))]
    return Batch(
        [
            *messages(number),
            *((key, None) for key, _ in received),
            (b"count", number.to_bytes(8, "big")),
        ],
        [(b"V" + number.to_bytes(8, "big"), b"volatile")],
        ranges=ranges,
    )


def state_after(number: int) -> list[tuple[bytes, bytes]]:
    if not number:
        return []
    first = max(number - KEPT_BATCHES + 1, 1)
    kept = [message for n in range(first, number + 1) for message in messages(n)]
    return sorted([*kept, (b"count", number.to_bytes(8, "big"))])


def committed(store: JournaledStore) -> int:
    return int.from_bytes(store.get(b"count") or b"", "big")


def main(directory: str, checkpoint_bytes: str = str(CHECKPOINT_BYTES)) -> None:
    store = open_store(Path(directory), checkpoint_bytes=int(checkpoint_bytes))
    number = committed(store)
    while True:
        number += 1
        store.commit(batch(number))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Damages copies of an LMDB file and uses each that passes for whole, as a queue manager would.

    python damaged_pages.py FILE COPY FIRST LAST

Says for each seed how it ended. This runs in a process of its own, because what is looked for is
the end of the process.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from openmsmq.storage.base import Base
from openmsmq.storage.files import FileOps
from openmsmq.storage.port import StoreDamaged

PAGE_BYTES = 4096


def make(path: Path) -> None:
    """Write a file with records of all sizes, and with free pages."""
    draw = random.Random(3)
    base = Base(FileOps(), path, create=True)
    for first in range(0, 1500, 300):
        numbers = range(first, first + 300)
        sizes = [3, 20, 60, 200, 3000]
        base.write([(b"E%06d" % n, draw.randbytes(draw.choice(sizes))) for n in numbers])
        base.write([(b"E%06d" % n, None) for n in range(first, first + 300, 3)])
    base.trim()
    base.close()


def damage(data: bytes, draw: random.Random) -> bytes:
    """Change what bad disks, bad memory and bad hands change: bits, numbers, pages."""
    broken = bytearray(data)
    page = draw.randrange(len(data) // PAGE_BYTES) * PAGE_BYTES
    kind = draw.randrange(6)
    if kind == 0:
        broken[page + draw.randrange(PAGE_BYTES)] ^= 1 << draw.randrange(8)
    elif kind == 1:
        broken[page + draw.randrange(16)] = draw.randrange(256)
    elif kind == 2:
        broken[page + draw.randrange(16, 200)] = draw.randrange(256)
    elif kind == 3:
        other = draw.randrange(len(data) // PAGE_BYTES) * PAGE_BYTES
        broken[page : page + PAGE_BYTES] = data[other : other + PAGE_BYTES]
    elif kind == 4:
        broken[page : page + PAGE_BYTES] = bytes(PAGE_BYTES)
    else:
        broken[draw.randrange(2) * PAGE_BYTES + draw.randrange(170)] = draw.randrange(256)
    return bytes(broken)


def use(path: Path, draw: random.Random) -> list[tuple[bytes, bytes | None]]:
    """Read everything, then change much; give what was read."""
    base = Base(FileOps(), path, thorough=True)
    try:
        found = list(base.every_record())
        for _ in range(3):
            numbers = sorted({draw.randrange(3000) for _ in range(200)})
            base.write([(b"E%06d" % n, draw.randbytes(draw.choice([3, 5000]))) for n in numbers])
            base.clear(b"E%06d" % draw.randrange(1500), b"E%06d" % draw.randrange(1500, 3000), 300)
            base.records(b"", b"\xff", 100, [], reverse=True)
        return found
    finally:
        base.close()


def main(file: str, copy: str, first: str, last: str) -> None:
    """Try the seeds."""
    data = Path(file).read_bytes()
    Path(copy).write_bytes(data)
    whole = use(Path(copy), random.Random(0))
    for seed in range(int(first), int(last)):
        sys.stdout.write(f"{seed} ")
        sys.stdout.flush()
        draw = random.Random(seed)
        Path(copy).write_bytes(damage(data, draw))
        try:
            found = use(Path(copy), draw)
        except StoreDamaged:
            outcome = "noticed"
        else:
            seen = [record for record in found if record[1] is not None]
            outcome = "whole" if found == whole else "noticed"
            if outcome == "noticed" and (len(seen) == len(found) or not set(seen) <= set(whole)):
                outcome = "wrong"
        sys.stdout.write(f"{outcome}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One target with changed inputs, without a fuzzer: ten times as many in the same time.

    python -m tests.fuzz.plain TARGET EXECUTIONS SEED FINDINGS FOLDER...

The inputs are those in the folders, changed at random; the same seed gives the same ones. What the
fuzzer finds by looking where the code goes is among them, when its corpus is.
"""

from __future__ import annotations

import hashlib
import resource
import signal
import sys
import traceback
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

from tests.fuzz.mutation import mutate
from tests.fuzz.registry import Loaded, load

INPUT_BYTES_MAX: Final = 4096
INPUT_TIMEOUT_S: Final = 10
MEMORY_MAX_MB: Final = 1024
_LOOK_EVERY: Final = 1_000
_FINDINGS_MAX_COUNT: Final = 10


class TooSlow(BaseException):
    """An input took too long; nothing that a target catches."""


def main() -> int:
    name, executions, seed, findings, *folders = sys.argv[1:]
    loaded = load(name)
    corpus = sorted({path.read_bytes() for folder in folders for path in Path(folder).iterdir()})
    found = run(loaded, corpus, int(executions), Random(seed), Path(findings))
    print(f"stat::peak_rss_mb: {_memory_mb()}")
    return 1 if found else 0


def run(
    loaded: Loaded, corpus: list[bytes], executions: int, random: Random, findings: Path
) -> int:
    """Run a target so often; give how many inputs broke something, and keep those."""
    before = signal.signal(signal.SIGALRM, _too_slow)
    try:
        return _run(loaded, corpus, executions, random, findings)
    finally:
        signal.signal(signal.SIGALRM, before)


def _run(
    loaded: Loaded, corpus: list[bytes], executions: int, random: Random, findings: Path
) -> int:
    found = 0
    for number in range(executions):
        data = mutate(random.choice(corpus), random.choice(corpus), random)
        if loaded.repair is not None:
            data = loaded.repair(data, random)
        data = data[:INPUT_BYTES_MAX]
        if not _holds(loaded, data):
            found += 1
            digest = hashlib.sha256(data).hexdigest()[:16]
            (findings / f"plain-{digest}").write_bytes(data)
        if number % _LOOK_EVERY == 0 and _memory_mb() > MEMORY_MAX_MB:
            print(f"MemoryError: {_memory_mb()} MB after {number} inputs")
            found += 1
        if found >= _FINDINGS_MAX_COUNT:
            print(f"stat::number_of_executed_units: {number + 1}")
            return found
    print(f"stat::number_of_executed_units: {executions}")
    return found


def _holds(loaded: Loaded, data: bytes) -> bool:
    signal.setitimer(signal.ITIMER_REAL, INPUT_TIMEOUT_S)
    try:
        loaded.target(data)
    except (Exception, TooSlow):
        traceback.print_exc()
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return True


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"an input took longer than {INPUT_TIMEOUT_S} s")


def _memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    sys.exit(main())

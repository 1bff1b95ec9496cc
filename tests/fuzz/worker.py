"""One target under the coverage-guided fuzzer, in a process of its own.

    python -m tests.fuzz.worker TARGET [libFuzzer options] CORPUS...

`tests/fuzz/run.py` starts it; by hand it is useful with libFuzzer's own options.
"""

from __future__ import annotations

import random
import sys

import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

from tests.fuzz.registry import load


def main() -> None:
    name = sys.argv.pop(1)
    # Only what is imported inside is instrumented; the standard library would drown its coverage.
    with atheris.instrument_imports(include=["openmsmq"], enable_loader_override=False):
        target, _, repair = load(name)
    if repair is None:
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
        return

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        mutated = atheris.Mutate(data, max_size)
        return repair(mutated, random.Random(seed))[:max_size]

    atheris.Setup(sys.argv, target, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

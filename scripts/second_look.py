"""Look once more, alone, at tests of real processes that have failed beside others.

Two workers that start servers, browsers and Spark on two cores are a busier machine than a test can
plan for. What such a test shows must hold on an idle one, so CI lets it run again by itself, and
says so. What needs no process is deterministic and gets no second look, and neither do many
failures at once: those are a defect.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PLACES: Final = ("cli", "console", "crash", "directory", "docs", "runtime", "spark")
"""The folders of tests that start processes."""

FAILURES_MAX_COUNT: Final = 4
"""So many tests may be looked at again."""

CACHE: Final = Path(".pytest_cache/v/cache/lastfailed")


def refusal(failed: Iterable[str]) -> str:
    """Say why failures stand as they are; nothing if they may be looked at again."""
    names = list(failed)
    if not names:
        return "the tests ended without naming one that failed"
    if len(names) > FAILURES_MAX_COUNT:
        return f"{len(names)} tests failed, more than {FAILURES_MAX_COUNT}"
    places = tuple(f"tests/{place}/" for place in PLACES)
    others = [name for name in names if not name.startswith(places)]
    return f"{others[0]} starts no process, so nothing disturbs it" if others else ""


def main() -> int:
    """Run what has failed again, with these options; the exit code is that of pytest."""
    failed = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    why_not = refusal(failed)
    if why_not:
        print(f"second look: no: {why_not}")
        return 1
    print("second look: these failed beside others, and run again alone:")
    print(*(f"  {name}" for name in failed), sep="\n", flush=True)
    return subprocess.call([sys.executable, "-m", "pytest", "-n", "0", *sys.argv[1:], *failed])


if __name__ == "__main__":
    raise SystemExit(main())

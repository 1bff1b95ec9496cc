"""Run a target on inputs that were found before: python -m tests.fuzz.replay TARGET FILE...

A file is taken as it is, or, when its name ends in .hex, as hexadecimal text.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzz.registry import NAMES, load


def read_input(path: Path) -> bytes:
    return bytes.fromhex(path.read_text()) if path.suffix == ".hex" else path.read_bytes()


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in NAMES:
        sys.exit(f"{__doc__}\nTargets: {', '.join(NAMES)}")
    target = load(sys.argv[1]).target
    for path in map(Path, sys.argv[2:]):
        target(read_input(path))
        print(f"{path}: nothing found")


if __name__ == "__main__":
    main()

"""Two trees of sources in turn: this one, and another one to compare it with."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

BEFORE: Final = "OPENMSMQ_BENCH_BEFORE"
"""Names the directory `src` of another tree, with which this one is compared."""

Asked: TypeAlias = Callable[[str], str]
"""Has a tree do what a line says; returns the line with which it answers."""


@contextlib.contextmanager
def trees(
    module: str, directory: Path, arguments: Callable[[Path], list[str]]
) -> Iterator[list[tuple[Asked, int]]]:
    """Start a module with the sources of each tree, and a directory for it.

    Gives for each how to ask it, and the number of its process; this tree comes first.
    """
    with contextlib.ExitStack() as parts:
        made = [("now", ""), ("before", os.environ.get(BEFORE, ""))]
        yield [
            parts.enter_context(_tree([module, *arguments(_made(directory / name))], sources))
            for name, sources in made
            if name == "now" or sources
        ]


def _made(own: Path) -> Path:
    own.mkdir()
    return own


@contextlib.contextmanager
def _tree(arguments: list[str], sources: str) -> Iterator[tuple[Asked, int]]:
    environment = dict(os.environ)
    if sources:
        environment["PYTHONPATH"] = os.pathsep.join((sources, os.getcwd()))
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None
        assert answered is not None

        def ask(line: str) -> str:
            print(line, file=asked, flush=True)
            return answered.readline()

        try:
            yield ask, process.pid
        finally:
            asked.close()

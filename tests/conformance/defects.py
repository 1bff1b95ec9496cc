"""One-line defects that the test of a statement must notice, and what applies them.

`make conformance ARGS="--break MQQB-2.2.4-03"` copies the project, changes one line of the copy's
source and runs the tests that carry the id: they must fail, in the test itself and not because the
code no longer works. `--break MQQB-2.2` does so for a section, `--break all` for every defect that
is recorded, in `defects/`, one file for each specification:

    ["MQQB-2.2.4-03"]
    file = "wire/headers/session.py"        below src/openmsmq
    old = "size > LIMIT"                    a piece of one line
    new = "size >= LIMIT"
    test = "tests/unit/wire/headers/test_session.py"

If `old` stands there more than once, the first one behind the text `after` is meant. Which
statements get one is drawn from the whole catalogue by a fixed seed, so that nobody picks those
that are easy.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import msgspec

from tests.conformance.catalogue import CatalogueError
from tests.conformance.forks import ENDLESS, Order, Outcome

DEFECTS: Final = Path(__file__).parent / "defects"
SOURCE: Final = Path("src/openmsmq")
COPIED: Final = ("src", "tests", "docs", "examples", "scripts", "bench")
"""What tests read of the project; the files beside these folders are copied, too."""

SEED: Final = 20
DRAWN_COUNT: Final = 1_100
TIMEOUT_S: Final = 120.0
ALL_TIMEOUT_S: Final = 600.0
TESTS_FAILED: Final = 1
MISTAKES: Final = {"AttributeError", "ImportError", "NameError", "SyntaxError", "TypeError"}
"""What Python says of code that cannot work: it violates nothing, it is no longer a program."""


class Defect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A changed line that violates a statement, and the file whose tests must notice."""

    file: str
    old: str
    new: str
    test: str
    after: str = ""

    def applied_to(self, text: str) -> str:
        """Return the source with the defect; raise ValueError if its place is not clear."""
        begin = 0
        if self.after:
            if text.count(self.after) != 1:
                raise ValueError(f"{self.after!r} is not once in {self.file}")
            begin = text.index(self.after) + len(self.after)
        elif text.count(self.old) != 1:
            raise ValueError(f"{self.old!r} is not once in {self.file}")
        place = text.find(self.old, begin)
        if place < 0:
            raise ValueError(f"{self.old!r} is not behind {self.after!r} in {self.file}")
        return text[:place] + self.new + text[place + len(self.old) :]


class Verdict(msgspec.Struct, frozen=True):
    """What became of one defect; without a reason its tests noticed it, by what they saw."""

    id: str
    reason: str = ""
    seen: str = ""


def drawn(statements: Iterable[str]) -> list[str]:
    """Return the statements that get a defect as soon as a test shows them."""
    names = sorted(statements)
    return random.Random(SEED).sample(names, min(DRAWN_COUNT, len(names)))


def load_defects(known: Iterable[str], folder: Path = DEFECTS) -> dict[str, Defect]:
    """Read what is recorded. Refuse what was not drawn, and what is more than a line."""
    wanted = set(drawn(known))
    defects: dict[str, Defect] = {}
    for path in sorted(folder.glob("*.toml")):
        for id_, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            where = f"{path.name}: {id_}"
            if not id_.startswith(f"{path.stem}-"):
                raise CatalogueError(f"{where} belongs into another file")
            if id_ not in wanted:
                raise CatalogueError(
                    f"{where} was not drawn; make conformance ARGS=--drawn lists what was"
                )
            try:
                defect = msgspec.convert(entry, Defect)
            except msgspec.ValidationError as error:
                raise CatalogueError(f"{where}: {error}") from None
            if "\n" in defect.old + defect.new or not defect.old or defect.old == defect.new:
                raise CatalogueError(f"{where} must change a piece of one line")
            defects[id_] = defect
    return defects


class Workshop:
    """A copy of the project in which one defect at a time is put in place."""

    def __init__(self, root: Path, copy: Path) -> None:
        self._copy = copy
        self._ticks = 0
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name)
        for path in root.iterdir():
            if path.is_file():
                shutil.copy2(path, copy)
        others = os.environ.get("PYTHONPATH")
        places = [str(copy / "src"), *([others] if others else [])]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.forks"],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(
        self, ids: Iterable[str], test: str, *options: str, timeout_s: float = TIMEOUT_S
    ) -> Outcome:
        """Run the tests of a file that carry one of the ids."""
        arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
        # Hypothesis is shared by all runs, and has no assertions that a test would want rewritten.
        arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        arguments += [f"--conformance-only={','.join(ids)}", test]
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(msgspec.json.encode(Order(arguments, timeout_s)) + b"\n")
        self._server.stdin.flush()
        return msgspec.json.decode(self._server.stdout.readline(), type=Outcome)

    def judge(self, id_: str, defect: Defect) -> Verdict:
        """Put a defect in place, run the tests of its id, and take it out again."""
        path = self._copy / SOURCE / defect.file
        if not path.is_file():
            return Verdict(id_, f"there is no file {SOURCE / defect.file}")
        right = path.read_text(encoding="utf-8")
        try:
            wrong = defect.applied_to(right)
        except ValueError as error:
            return Verdict(id_, f"{error}: look where the defect would be now")
        try:
            compile(wrong, defect.file, "exec")
        except SyntaxError as error:
            return Verdict(id_, f"the defect is no Python: {error}")
        self._write(path, wrong)
        try:
            outcome = self.run([id_], defect.test, "-x")
        finally:
            self._write(path, right)
        return Verdict(id_, _why_not_noticed(outcome), outcome.seen)

    def close(self) -> None:
        """End the process that runs the tests."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _write(self, path: Path, text: str) -> None:
        # Python takes compiled code for current by time in seconds and size: each text has its own.
        self._ticks += 10
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self._ticks, self._ticks))


def _why_not_noticed(outcome: Outcome) -> str:
    if outcome.code == 0:
        return "not noticed: its tests pass with the defect"
    if outcome.code == ENDLESS:
        return "not noticed: its tests do not end with the defect"
    if outcome.code != TESTS_FAILED:
        return f"the tests could not run with the defect:\n{outcome.said}"
    if outcome.when != "call":
        return f"not noticed: what failed was the set-up of a test ({outcome.seen})"
    if outcome.kind in MISTAKES:
        return f"not noticed: the defect is a mistake in the code, not against it ({outcome.seen})"
    return ""


def judge_all(
    defects: Mapping[str, Defect], root: Path, workers: int = os.cpu_count() or 1
) -> Iterator[Verdict]:
    """Judge each defect, several side by side, each in a copy that nobody else changes.

    Raise `CatalogueError` if the tests do not pass without any: then they would notice everything.
    """
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as open_:
        free: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        for number in range(min(workers, len(defects))):
            copy = Path(scratch) / str(number)
            copy.mkdir()
            workshop = Workshop(root, copy)
            open_.callback(workshop.close)
            free.put(workshop)
        pool = open_.enter_context(ThreadPoolExecutor(workers))

        def try_without(test: str, ids: list[str]) -> Outcome:
            workshop = free.get()
            try:
                return workshop.run(ids, test, timeout_s=ALL_TIMEOUT_S)
            finally:
                free.put(workshop)

        def judge(id_: str, defect: Defect) -> Verdict:
            workshop = free.get()
            try:
                return workshop.judge(id_, defect)
            finally:
                free.put(workshop)

        by_test: dict[str, list[str]] = {}
        for id_, defect in defects.items():
            by_test.setdefault(defect.test, []).append(id_)
        for outcome in pool.map(try_without, by_test.keys(), by_test.values()):
            if outcome.code != 0:
                raise CatalogueError(f"the tests do not pass without a defect:\n{outcome.said}")
        for future in as_completed([pool.submit(judge, *each) for each in defects.items()]):
            yield future.result()

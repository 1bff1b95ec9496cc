"""One-line defects that the test of a statement must notice, and what applies them.

`make conformance ARGS="--break MQQB-2.2.4-03"` copies the project, changes one line of the copy's
source and runs the tests that carry the id: they must fail. `--break all` does so for every defect
that is recorded, in `defects/`, one file for each specification:

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

import os
import queue
import random
import shutil
import signal
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

DEFECTS: Final = Path(__file__).parent / "defects"
SOURCE: Final = Path("src/openmsmq")
COPIED: Final = ("src", "tests", "docs", "examples", "scripts", "bench")
"""What tests read of the project; the files beside these folders are copied, too."""

SEED: Final = 20
DRAWN_COUNT: Final = 1_100
TIMEOUT_S: Final = 120.0
ALL_TIMEOUT_S: Final = 600.0
SAID_MAX_LENGTH: Final = 4_000
TESTS_FAILED: Final = 1


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
            begin = text.index(self.after)
        elif text.count(self.old) != 1:
            raise ValueError(f"{self.old!r} is not once in {self.file}")
        place = text.find(self.old, begin)
        if place < 0:
            raise ValueError(f"{self.old!r} is not behind {self.after!r} in {self.file}")
        return text[:place] + self.new + text[place + len(self.old) :]


class Verdict(msgspec.Struct, frozen=True):
    """What became of one defect; without a reason its tests noticed it."""

    id: str
    reason: str = ""


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
                shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("*.pyc"))
        for path in root.iterdir():
            if path.is_file():
                shutil.copy2(path, copy)

    def run(
        self, ids: Iterable[str], files: Iterable[str], *options: str, timeout_s: float = TIMEOUT_S
    ) -> tuple[int, str]:
        """Run the tests of these files that carry one of the ids: exit code and what was said."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        command += [f"--conformance-only={','.join(ids)}", *files]
        others = os.environ.get("PYTHONPATH")
        places = [str(self._copy / "src"), *([others] if others else [])]
        running = subprocess.Popen(
            command,
            cwd=self._copy,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = running.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            # What the tests have started goes with them.
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            return TESTS_FAILED, "the tests did not end"
        return running.returncode, said[-SAID_MAX_LENGTH:]

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
            code, said = self.run([id_], [defect.test], "-x")
        finally:
            self._write(path, right)
        if code == TESTS_FAILED:
            return Verdict(id_)
        if code == 0:
            return Verdict(id_, "not noticed: its tests pass with the defect")
        return Verdict(id_, f"the tests could not run with the defect:\n{said}")

    def _write(self, path: Path, text: str) -> None:
        # Python takes compiled code for current by time in seconds and size: each text has its own.
        self._ticks += 10
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self._ticks, self._ticks))


def judge_all(
    defects: Mapping[str, Defect], root: Path, workers: int = os.cpu_count() or 1
) -> Iterator[Verdict]:
    """Judge each defect, several side by side, each in a copy that nobody else changes.

    Raise `CatalogueError` if the tests do not pass without any: then they would notice everything.
    """
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        free: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        for number in range(min(workers, len(defects))):
            copy = Path(scratch) / str(number)
            copy.mkdir()
            free.put(Workshop(root, copy))

        first = free.get()
        files = sorted({defect.test for defect in defects.values()})
        side_by_side = ["-n", str(workers)] if len(files) > workers else []
        code, said = first.run(defects, files, *side_by_side, timeout_s=ALL_TIMEOUT_S)
        if code != 0:
            raise CatalogueError(f"the tests do not pass without a defect:\n{said}")
        free.put(first)

        def judge(id_: str, defect: Defect) -> Verdict:
            workshop = free.get()
            try:
                return workshop.judge(id_, defect)
            finally:
                free.put(workshop)

        for future in as_completed([pool.submit(judge, *each) for each in defects.items()]):
            yield future.result()

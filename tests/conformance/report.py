"""Run the tests that show statements of the specifications, and count what they show.

    python -m tests.conformance.report [--sections] [--require MQQB-3.1] [--no-write]
    python -m tests.conformance.report --break MQQB-2.2.4-03     or --break all, or --drawn

The exit code is 1 when a test failed, a required statement is open, or a defect was not noticed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.conformance import catalogue, defects
from tests.conformance.catalogue import Exemption, Statement
from tests.conformance.defects import Defect

SUMMARY: Final = "Count the normative statements that passing tests show."
ROOT: Final = Path(__file__).parents[2]
PAGE: Final = Path("docs/reference/conformance.md")
COLUMNS: Final = ("statements", "shown", "excepted", "open")
NO_TESTS_COLLECTED: Final = 5

PAGE_HEAD: Final = """\
# Conformance

One row for each specification: how many normative statements it has, how many are shown by a
passing test that carries their id, how many are excepted with a reason
(`tests/conformance/exceptions.toml`), and how many are open. `make conformance` writes this page.
"""


class Outcome(msgspec.Struct, frozen=True):
    """The tests of one id that passed, and those that did not."""

    passed: list[str]
    failed: list[str]


class Counts(msgspec.Struct, frozen=True):
    """One row of the report."""

    name: str
    statements: int
    shown: int
    excepted: int
    open: int


def count(
    statements: Iterable[Statement],
    shown: set[str],
    excepted: Mapping[str, Exemption],
    name_of: Callable[[Statement], str],
) -> list[Counts]:
    """Count by the name each statement is given; the order is that of the catalogue."""
    groups: dict[str, list[str]] = {}
    for statement in statements:
        groups.setdefault(name_of(statement), []).append(statement.id)
    rows = []
    for name, ids in groups.items():
        shown_here = sum(id_ in shown for id_ in ids)
        excepted_here = sum(id_ in excepted for id_ in ids)
        open_here = len(ids) - shown_here - excepted_here
        rows.append(Counts(name, len(ids), shown_here, excepted_here, open_here))
    return rows


def total(rows: Sequence[Counts]) -> Counts:
    """Add up the rows."""
    return Counts("all", *(sum(getattr(row, column) for row in rows) for column in COLUMNS))


def as_text(rows: Sequence[Counts]) -> str:
    """Draw the rows for a terminal."""
    width = max(len(row.name) for row in rows)
    lines = [" " * width + "".join(f"{column:>12}" for column in COLUMNS)]
    for row in rows:
        numbers = "".join(f"{getattr(row, column):>12}" for column in COLUMNS)
        lines.append(f"{row.name:<{width}}{numbers}")
    return "\n".join(lines)


def as_markdown(rows: Sequence[Counts]) -> str:
    """Draw the rows as a table of a page."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for row in rows:
        numbers = " | ".join(str(getattr(row, column)) for column in COLUMNS)
        lines.append(f"| {row.name} | {numbers} |")
    return "\n".join(lines)


def open_ids(
    statements: Iterable[Statement],
    prefixes: Iterable[str],
    shown: set[str],
    excepted: Mapping[str, Exemption],
) -> list[str]:
    """Name the statements under the prefixes that are neither shown nor excepted."""
    wanted = tuple(prefixes)
    return [
        statement.id
        for statement in statements
        if any(statement.is_under(prefix) for prefix in wanted)
        and statement.id not in shown
        and statement.id not in excepted
    ]


def shown_ids(outcomes: Mapping[str, Outcome]) -> set[str]:
    """An id is shown when a test of it passed and none failed."""
    return {id_ for id_, outcome in outcomes.items() if outcome.passed and not outcome.failed}


def run_tests(
    root: Path, folder: Path, pytest_arguments: Sequence[str]
) -> tuple[int, dict[str, Outcome]]:
    """Run the marked tests in a process of their own and read what they recorded."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.json"
        command = [sys.executable, "-m", "pytest", "-m", "spec", "-q"]
        command += [f"--conformance-folder={folder}", f"--conformance-results={results}"]
        code = subprocess.run([*command, *pytest_arguments], cwd=root, check=False).returncode
        if not results.exists():
            return code, {}
        return code, msgspec.json.decode(results.read_bytes(), type=dict[str, Outcome])


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="make conformance", description=SUMMARY)
    parser.add_argument("--sections", action="store_true", help="also count by section")
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="PREFIX",
        help="section in which nothing may be open, beside those of required.toml",
    )
    parser.add_argument(
        "--break",
        dest="broken",
        metavar="ID",
        help="put the recorded defect of a statement into a copy of the source, and see its test "
        "fail; 'all' for every one, 'MQQB-2.2' for those of a section, several with commas",
    )
    parser.add_argument(
        "--drawn",
        action="store_true",
        help="list the statements that were drawn to have a defect, and which have one",
    )
    parser.add_argument("--no-write", action="store_true", help=f"leave {PAGE} as it is")
    parser.add_argument("pytest", nargs="*", default=[], help="arguments for pytest, after --")
    return parser.parse_args(arguments)


def list_drawn(known: Mapping[str, Statement], recorded: Mapping[str, Defect]) -> None:
    """Print what was drawn, in the order of the draw."""
    for id_ in defects.drawn(known):
        print(id_, recorded[id_].test if id_ in recorded else "-")


def choose(recorded: Mapping[str, Defect], wanted: str) -> Mapping[str, Defect]:
    """Return the defects of the statements or sections that are named, or all of them."""
    if wanted == "all":
        return recorded
    chosen: dict[str, Defect] = {}
    for name in wanted.split(","):
        named = {
            id_: d for id_, d in recorded.items() if f"{id_}.".startswith((f"{name}-", f"{name}."))
        }
        if not named:
            raise catalogue.CatalogueError(
                f"no defect is recorded for {name}; --drawn lists those that have one"
            )
        chosen |= named
    return chosen


def break_all(chosen: Mapping[str, Defect], root: Path) -> int:
    """Put one defect after the other in place; the exit code says whether all were noticed."""
    missed = 0
    for done, verdict in enumerate(defects.judge_all(chosen, root), 1):
        missed += bool(verdict.reason)
        said = verdict.reason or f"noticed ({verdict.seen})"
        print(f"[{done}/{len(chosen)}] {verdict.id}: {said}", flush=True)
    print(
        f"{len(chosen) - missed} of {len(chosen)} defects were noticed by the tests of their ids."
    )
    return 1 if missed else 0


def main(
    arguments: Sequence[str] | None = None, root: Path = ROOT, folder: Path = catalogue.HERE
) -> int:
    """Run, count, print, write."""
    options = parse(arguments)
    try:
        known = catalogue.load_catalogue(folder / catalogue.CATALOGUE.name)
        excepted = catalogue.load_exceptions(known, folder / catalogue.EXCEPTIONS.name)
        required = catalogue.load_required(known, folder / catalogue.REQUIRED.name)
        catalogue.check_prefixes(options.require, known)
        recorded = defects.load_defects(known, folder / defects.DEFECTS.name)
        if options.drawn:
            list_drawn(known, recorded)
            return 0
        if options.broken:
            return break_all(choose(recorded, options.broken), root)
    except catalogue.CatalogueError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2

    code, outcomes = run_tests(root, folder, options.pytest or ["-n", "auto"])
    failed = code not in (0, NO_TESTS_COLLECTED)
    shown = shown_ids(outcomes)
    statements = known.values()
    if options.sections:
        sections = count(statements, shown, excepted, lambda s: f"{s.specification} {s.section}")
        print(f"\n{as_text(sections)}")
    rows = count(statements, shown, excepted, lambda s: s.specification)
    rows.append(total(rows))
    print(f"\n{as_text(rows)}\n")

    required += options.require
    missing = open_ids(statements, required, shown, excepted)
    for id_ in missing:
        print(f"open, but required: {id_}")
    print(f"{len(missing)} required statements are open ({', '.join(required)}).")
    # Counts of a failing run would say less than is true, so they do not go into the page.
    if failed:
        print(f"conformance: tests failed; {PAGE} is left as it was.", file=sys.stderr)
    elif not options.no_write:
        page = root / PAGE
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"{PAGE_HEAD}\n{as_markdown(rows)}\n", encoding="utf-8")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())

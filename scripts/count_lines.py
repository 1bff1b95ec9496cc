"""Compare the lines of Python of two commits, package by package, and name the modules between.

    python -m scripts.count_lines 62abd81

A module is the same one however often it was renamed: each commit in between is looked at for that.
So what a package has more is told apart: modules that were there already have grown, and modules
came that were not there. Each of these is printed with the commit that brought it, by whose words
one judges whether it is a new feature or a part of an old module.

With `--commits` the commits are printed instead, each with the lines that it brought or took. What
is left of their sum without those that brought features, named by `--features`, is the change for
the same features.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "src/openmsmq"


class Change(NamedTuple):
    """What a commit did with a file: `A` added it, `D` deleted it, `R` gave it another name."""

    commit: str
    kind: str
    path: str
    new_path: str = ""


class Comparison(NamedTuple):
    """The lines of two trees, by package."""

    before: Counter[str]
    kept: Counter[str]
    """What modules have now that were there before."""
    new: dict[str, tuple[int, str]]
    """The modules that were not: their lines, and the commit that brought each."""


def package_of(path: str) -> str:
    """Return the first folder below the source; of a module beside the packages, its name."""
    return path.removeprefix(f"{SOURCE}/").split("/")[0]


def newcomers(changes: Iterable[Change]) -> dict[str, str]:
    """Return the files that came, under their last names, with the commits that brought them."""
    found: dict[str, str] = {}
    for commit, kind, path, new_path in changes:
        if kind == "A":
            found[path] = commit
        elif kind == "D":
            found.pop(path, None)
        elif path in found:
            found[new_path] = found.pop(path)
    return found


def compared(
    before: Mapping[str, int], after: Mapping[str, int], changes: Iterable[Change]
) -> Comparison:
    """Compare two trees, given as lines by path."""
    brought = newcomers(changes)
    result = Comparison(Counter(), Counter(), {})
    for path, lines in before.items():
        result.before[package_of(path)] += lines
    for path, lines in after.items():
        if path in brought:
            result.new[path] = lines, brought[path]
        else:
            result.kept[package_of(path)] += lines
    return result


def report(found: Comparison) -> list[str]:
    """Return the lines to print."""
    new: Counter[str] = Counter()
    for path, (lines, _) in found.new.items():
        new[package_of(path)] += lines
    rows = [f"{'package':<14}{'before':>9}{'now':>9}{'kept':>9}{'new':>9}"]
    rows += [
        f"{name:<14}{found.before[name]:>9,}{found.kept[name] + new[name]:>9,}"
        f"{found.kept[name]:>9,}{new[name]:>9,}"
        for name in sorted({*found.before, *found.kept, *new})
    ]
    before, kept, came = found.before.total(), found.kept.total(), new.total()
    rows.append(f"{'together':<14}{before:>9,}{kept + came:>9,}{kept:>9,}{came:>9,}")
    last = ""
    for path, (lines, commit) in sorted(found.new.items(), key=lambda each: (each[1][1], each[0])):
        if commit != last:
            rows += ["", commit]
            last = commit
        rows.append(f"  {lines:>5,}  {path.removeprefix(f'{SOURCE}/')}")
    return rows


def report_commits(brought: Mapping[str, int], features: Iterable[str]) -> list[str]:
    """Return the lines to print: what each commit brought, features marked, and their sums."""
    known = tuple(features)
    marked = {commit for commit in brought if known and commit.startswith(known)}
    rows = [
        f"{lines:>+8,} {'*' if commit in marked else ' '} {commit}"
        for commit, lines in brought.items()
        if lines
    ]
    together = sum(brought.values())
    with_features = sum(brought[commit] for commit in marked)
    rows.append(f"{with_features:>+8,} * features")
    rows.append(f"{together - with_features:>+8,}   for the same features")
    return rows


def git(*command: str) -> str:
    """Run git here, and return what it prints."""
    return subprocess.run(
        ["git", "-C", str(ROOT), *command], check=True, capture_output=True, text=True
    ).stdout


def lines_at(commit: str) -> dict[str, int]:
    """Return how many lines each module has in a commit."""
    found: dict[str, int] = {}
    for row in git("grep", "-c", "", commit, "--", f"{SOURCE}/*.py").splitlines():
        _, path, count = row.split(":")
        found[path] = int(count)
    return found


def lines_here() -> dict[str, int]:
    """Return how many lines each module has in this tree."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n")
        for path in (ROOT / SOURCE).rglob("*.py")
    }


def lines_by_commit(commit: str) -> dict[str, int]:
    """Return how many lines each commit since then brought, or took with less than 0."""
    shown = git(
        *("log", "--reverse", "--topo-order", "--no-merges", "--numstat"),
        *("--format=> %h %s", f"{commit}..HEAD", "--", f"{SOURCE}/*.py"),
    )
    found: dict[str, int] = {}
    subject = ""
    for row in shown.splitlines():
        if row.startswith("> "):
            subject = row[2:]
            found[subject] = 0
        elif row:
            added, deleted, _ = row.split("\t")
            found[subject] += int(added) - int(deleted)
    return found


def changes_since(commit: str) -> list[Change]:
    """Return which modules came, went and were renamed since a commit, the oldest first."""
    shown = git(
        *("log", "--reverse", "--topo-order", "--name-status", "-M40", "--diff-filter=ADR"),
        *("--format=> %h %s", f"{commit}..HEAD", "--", SOURCE),
    )
    found: list[Change] = []
    subject = ""
    for row in shown.splitlines():
        if row.startswith("> "):
            subject = row[2:]
        elif row:
            kind, *paths = row.split("\t")
            found.append(Change(subject, kind[0], *paths))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="the commit to compare this tree with")
    parser.add_argument("--commits", action="store_true", help="print commits, not packages")
    parser.add_argument("--features", nargs="*", default=[], metavar="COMMIT")
    given = parser.parse_args(arguments)
    if given.commits:
        print("\n".join(report_commits(lines_by_commit(given.before), given.features)))
        return
    found = compared(lines_at(given.before), lines_here(), changes_since(given.before))
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()

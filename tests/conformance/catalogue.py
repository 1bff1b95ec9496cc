"""The catalogue of normative statements, the exceptions from it, and what is required.

A statement has an id such as `MQMQ-2.2.19.1-03`: specification, section, number within it.
The catalogue keeps ids, levels and sections; the sentences stand in the specifications.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

HERE: Final = Path(__file__).parent
CATALOGUE: Final = HERE / "catalogue"
EXCEPTIONS: Final = HERE / "exceptions.toml"
REQUIRED: Final = HERE / "required.toml"
RECORDS: Final = HERE.parents[1] / "docs" / "internals" / "decisions"

# The keys each kind of exception needs, and nothing else.
KINDS: Final = {
    "not-applicable": {"kind", "reason"},
    "decided": {"kind", "reason", "decision"},
    "by-design": {"kind", "reason", "record"},
}
RANGE: Final = re.compile(r"(?P<section>[A-Z]+-[0-9.]+)-(?P<first>\d+)(\.\.(?P<last>\d+))?")
DECISION: Final = re.compile(r"[CMRS]-\d+[a-z]?")
RECORD: Final = re.compile(r"\d{4}")


class CatalogueError(ValueError):
    """The catalogue, the exceptions or the requirements contradict each other."""


class Statement(msgspec.Struct, frozen=True):
    """One normative statement of a specification."""

    id: str
    level: str
    section: str

    @property
    def specification(self) -> str:
        """The short name of the specification, such as MQMQ."""
        return self.id.partition("-")[0]

    @property
    def number(self) -> int:
        """The position of the statement within its section."""
        return int(self.id.rpartition("-")[2])

    def is_under(self, prefix: str) -> bool:
        """Whether the statement stands in the section `MQMQ-2.2`, or in one below it."""
        place = f"{self.specification}-{self.section}"
        return place == prefix or place.startswith(f"{prefix}.")


class Exemption(msgspec.Struct, frozen=True):
    """Why a statement is not shown by a test."""

    pattern: str
    kind: str
    reason: str
    decision: str = ""
    record: str = ""


def load_catalogue(folder: Path = CATALOGUE) -> dict[str, Statement]:
    """Read every specification of the catalogue, in order."""
    statements: dict[str, Statement] = {}
    for path in sorted(folder.glob("*.tsv")):
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        if header != "id\tlevel\tsection":
            raise CatalogueError(f"{path.name}: the first line must name id, level and section")
        for line in lines:
            statement = Statement(*line.split("\t"))
            if statement.id in statements:
                raise CatalogueError(f"{path.name}: {statement.id} is there twice")
            statements[statement.id] = statement
    return statements


def load_exceptions(
    catalogue: Mapping[str, Statement], path: Path = EXCEPTIONS
) -> dict[str, Exemption]:
    """Read the exceptions: for each excepted id, why. Refuse what is stale or unclear."""
    excepted: dict[str, Exemption] = {}
    for specification, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for pattern, entry in entries.items():
            where = f"{path.name}: {pattern}"
            if not pattern.startswith(f"{specification}-"):
                raise CatalogueError(f"{where} stands in the table of {specification}")
            exemption = _exemption(where, pattern, entry)
            for statement in _covered(where, pattern, catalogue):
                if statement.id in excepted:
                    other = excepted[statement.id].pattern
                    raise CatalogueError(f"{where} covers {statement.id}, as {other} does")
                excepted[statement.id] = exemption
    return excepted


def load_required(catalogue: Mapping[str, Statement], path: Path = REQUIRED) -> list[str]:
    """Read the section prefixes, such as MQMQ-2.1, in which nothing may be open."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    prefixes = [f"{name}-{section}" for name, sections in table.items() for section in sections]
    check_prefixes(prefixes, catalogue)
    return prefixes


def check_prefixes(prefixes: Iterable[str], catalogue: Mapping[str, Statement]) -> None:
    """Refuse a section prefix under which the catalogue has nothing."""
    for prefix in prefixes:
        if not any(statement.is_under(prefix) for statement in catalogue.values()):
            raise CatalogueError(f"no statement of the catalogue stands under {prefix}")


def _exemption(where: str, pattern: str, entry: Any) -> Exemption:
    if not isinstance(entry, dict) or not all(isinstance(text, str) for text in entry.values()):
        raise CatalogueError(f"{where} needs a table of texts")
    kind = entry.get("kind", "")
    if kind not in KINDS:
        raise CatalogueError(f"{where} has the kind {kind!r}; use one of {', '.join(KINDS)}")
    if entry.keys() != KINDS[kind]:
        raise CatalogueError(f"{where} needs exactly {', '.join(sorted(KINDS[kind]))}")
    for key, text in entry.items():
        if not text.strip():
            raise CatalogueError(f"{where} has an empty {key}")
    if kind == "decided" and not DECISION.fullmatch(entry["decision"]):
        raise CatalogueError(f"{where} needs a decision such as C-12")
    if kind == "by-design" and not _is_record(entry["record"]):
        raise CatalogueError(f"{where} needs the number of a record in {RECORDS.name}, as 0021")
    return Exemption(pattern, **entry)


def _is_record(number: str) -> bool:
    return RECORD.fullmatch(number) is not None and any(RECORDS.glob(f"{number}-*.md"))


def _covered(where: str, pattern: str, catalogue: Mapping[str, Statement]) -> list[Statement]:
    match = RANGE.fullmatch(pattern)
    if match is None:
        covered = [s for s in catalogue.values() if s.is_under(pattern)]
    else:
        first = int(match["first"])
        numbers = range(first, int(match["last"] or first) + 1)
        prefix = f"{match['section']}-"
        covered = [s for s in catalogue.values() if s.id.startswith(prefix) and s.number in numbers]
        if len(covered) != len(numbers):
            covered = []
    if not covered:
        raise CatalogueError(f"{where} is not in the catalogue, or not all of it")
    return covered

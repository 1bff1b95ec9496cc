"""Every decision about the specifications that is cited has its text in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs/internals/spec-decisions.md"
CITING: Final = ("src", "tests", "docs", "bench", "scripts", "examples")
KINDS: Final = {".py", ".md", ".toml", ".sh"}

# S-1-5-18 is the name of a user, and no decision.
CITED: Final = re.compile(r"(?<![\w-])([CRM]-\d+[a-z]?|S-(?!1\b)\d+[a-z]?)(?![\w-])")
RANGE: Final = re.compile(r"(?<![\w-])C-(\d+) to C-(\d+)(?![\w-])")
ROW: Final = re.compile(r"^\| ([CRSM]-\d+[a-z]?) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)

ROWS: Final = ROW.findall(PAGE.read_text(encoding="utf-8"))
IDS: Final = [row[0] for row in ROWS]


def cited_in(text: str) -> set[str]:
    """Return the decisions that a text names, also those between two of which it says "to"."""
    between = {
        f"C-{number}"
        for first, last in RANGE.findall(text)
        for number in range(int(first), int(last) + 1)
    }
    return {*CITED.findall(text), *between}


def citing_files() -> Iterator[Path]:
    """Yield all files that may cite a decision, the page and this test apart."""
    yield from (path for path in ROOT.glob("*.md") if path.is_file())
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in KINDS and path not in (PAGE, Path(__file__)):
                yield path


def order(decision: str) -> tuple[str, int, str]:
    """Return what decisions are sorted by."""
    return decision[0], int(decision[2:].rstrip("abcdefgh")), decision[-1]


def test_every_decision_that_is_cited_has_a_row() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {decision}"
        for path in citing_files()
        for decision in cited_in(path.read_text(encoding="utf-8")) - set(IDS)
    }
    assert missing == set()


def test_the_page_cites_only_rows_of_its_own() -> None:
    assert cited_in(PAGE.read_text(encoding="utf-8")) <= set(IDS)


def test_decisions_stand_once_and_in_order() -> None:
    assert sorted(set(IDS), key=order) == IDS


def test_every_row_of_the_page_is_a_decision() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and not line.startswith("|---")]
    headings = [line for line in rows if line.startswith("| | Where")]
    assert len(rows) - len(headings) == len(ROWS) > 100


def test_the_page_is_linked_from_where_people_look() -> None:
    for page in ("docs/internals/hacking.md", "docs/internals/ARCHITECTURE.md", "README.md"):
        assert "spec-decisions.md" in (ROOT / page).read_text(encoding="utf-8")


def test_links_of_the_page_lead_to_pages() -> None:
    links = re.findall(r"\]\(([\w./-]+)\)", PAGE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        ("counted (C-40 to C-42)", {"C-40", "C-41", "C-42"}),
        ("as C-77g has it", {"C-77g"}),
        ('decision = "R-3"', {"R-3"}),
        ("S-2, M-12", {"S-2", "M-12"}),
        ("S-1-5-7, ABC-12, UTC-5, C-x", set()),
    ],
)
def test_a_citation_is_recognised(text: str, decisions: set[str]) -> None:
    assert cited_in(text) == decisions

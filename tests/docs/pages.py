"""What a page asks its reader to do, in order: commands, code, and files to write.

A comment before a block says what is special about it:

- `<!-- file: NAME -->`: the block is the content of this file, which the reader has to write;
- `<!-- prints -->`: the block before prints this, but for numbers, times and identifiers;
- `<!-- not run: REASON -->`: the commands or code cannot run in a test.

A comment on its own, `<!-- in the console: PATH: TEXT -->`, says what readers see in their browser
when they look where the sentence before has sent them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {
    path.relative_to(ROOT).as_posix(): path
    for path in (
        ROOT / "README.md",
        ROOT / "docs/start.md",
        ROOT / "docs/concepts/the-system.md",
        *sorted((ROOT / "docs/guides").glob("*.md")),
    )
}
SHELLS: Final = ("sh", "bash", "console", "shell")
_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<note>[^>]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LOOK: Final = re.compile(r"^<!-- in the console: (?P<path>/\S*): (?P<text>.+) -->$", re.MULTILINE)

Kind = Literal["shell", "python", "file", "prints", "console"]


class Step(NamedTuple):
    """One thing to do, or to see."""

    kind: Kind
    text: str
    name: str
    """Of a file, its name; of a look at the console, the path there; otherwise where it stands."""


class Left(NamedTuple):
    """A block that no test runs."""

    page: str
    reason: str
    text: str


def steps(page: str) -> list[Step]:
    """Return what a page asks for."""
    found: list[Step] = []
    for where, note, language, text in sorted(_blocks(page) + _looks(page), key=_line):
        if note.startswith("console: "):
            found.append(Step("console", text, note.removeprefix("console: ")))
        elif note.startswith("file: "):
            found.append(Step("file", text, note.removeprefix("file: ")))
        elif note == "prints":
            found.append(Step("prints", text, where))
        elif note.startswith("not run: "):
            continue
        elif language in SHELLS:
            found.append(Step("shell", text, where))
        elif language == "python":
            found.append(Step("python", text, where))
    return found


def left_out(page: str) -> list[Left]:
    """Return the blocks of a page that say that they are not run."""
    return [
        Left(page, note.removeprefix("not run: "), text)
        for _, note, _, text in _blocks(page)
        if note.startswith("not run: ")
    ]


def notes(page: str) -> list[str]:
    """Return all comments that stand before blocks."""
    return [note for _, note, _, _ in _blocks(page) if note]


def _looks(page: str) -> list[tuple[str, str, str, str]]:
    content = PAGES[page].read_text(encoding="utf-8")
    return [
        (_where(page, content, found), f"console: {found['path']}", "", found["text"])
        for found in _LOOK.finditer(content)
    ]


def _where(page: str, content: str, found: re.Match[str]) -> str:
    return f"{page}:{content.count(chr(10), 0, found.start('text')) + 1}"


def _line(block: tuple[str, str, str, str]) -> int:
    return int(block[0].rpartition(":")[2])


def _blocks(page: str) -> list[tuple[str, str, str, str]]:
    content = PAGES[page].read_text(encoding="utf-8")
    return [
        (
            _where(page, content, found),
            (found["note"] or "").strip(),
            found["language"].strip(),
            found["text"],
        )
        for found in _BLOCK.finditer(content)
    ]


_CHANGING: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"0x[0-9a-f]+"), "NUMBER"),
    (re.compile(r"\d[\dT:.Z-]*(?:-[0-9a-f]{4}\b)?"), "NUMBER"),
    (re.compile(r"\b(?:[KMG]i)?B\b"), "BYTES"),
    (re.compile(r"\s+"), " "),
)


def lasting(line: str) -> str:
    """Return what of a line is the same every time."""
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line.strip()


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the lines that a page shows and that were not printed; `...` stands for anything."""
    there = {lasting(line) for line in printed.splitlines()}
    return [
        line
        for line in shown.splitlines()
        if line.strip() not in ("", "...") and lasting(line) not in there
    ]

"""Hexadecimal text as people paste it: bare digits, or a dump with offsets and letters."""

from __future__ import annotations

import re
from typing import Final

import msgspec

_OFFSET: Final = re.compile(r"\s*(?:0x)?([0-9A-Fa-f]{4,16})(:|\s+|$)")
_FILLING: Final = re.compile(r"0[xX]|\\x|[\s,;:\"'-]")
_DIGITS: Final = re.compile(r"[0-9A-Fa-f]*")
_ROW_BYTES: Final = 16
_REPEAT_BYTES_MAX: Final = 8 * 1024 * 1024


class HexTextError(ValueError):
    """Text that is not hexadecimal, and the line where it stops being so."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class _Row(msgspec.Struct):
    line: int
    offset: int
    text: str
    repeated: bool = False
    """Whether a `*` follows: rows like this one were left out."""


def parse_hex(text: str) -> list[bytes]:
    """Read the runs of bytes in the text; a dump that starts over at offset 0 starts a new one."""
    lines = [
        (number, line.rstrip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise HexTextError(1, "there is nothing to read")
    rows = _rows(lines)
    return [_plain(lines)] if rows is None else _dumps(rows)


def _plain(lines: list[tuple[int, str]]) -> bytes:
    digits = []
    for number, line in lines:
        run = _FILLING.sub("", line)
        wrong = _DIGITS.match(run)
        if wrong is None or wrong.end() != len(run):
            shown = line.strip()
            shown = shown if len(shown) <= 40 else shown[:40] + "…"
            raise HexTextError(number, f"{shown!r} is not hexadecimal")
        digits.append(run)
    joined = "".join(digits)
    if len(joined) % 2:
        raise HexTextError(lines[-1][0], f"{len(joined)} digits, an odd number; one is missing")
    return bytes.fromhex(joined)


def _rows(lines: list[tuple[int, str]]) -> list[_Row] | None:
    """Split the lines of a dump; None when they do not look like one."""
    first = _OFFSET.match(lines[0][1])
    if first is None or int(first[1], 16) != 0 or not _is_offset(first, lines):
        return None
    rows: list[_Row] = []
    for number, line in lines:
        match = _OFFSET.match(line)
        if line.strip() == "*" and rows:
            rows[-1].repeated = True
        elif match is not None:
            rows.append(_Row(number, int(match[1], 16), _without_letters(line, match)))
        else:
            return None
    return rows


def _is_offset(first: re.Match[str], lines: list[tuple[int, str]]) -> bool:
    """Whether the zeros at the start are an offset and not the first bytes."""
    if first[2] == ":" or len(first[2]) > 1:
        return True
    words = lines[0][1].split()
    return len(words) > 1 and len(words[1]) == 2


def _without_letters(line: str, match: re.Match[str]) -> str:
    """Return the digits of a row: what is behind them is shown as letters."""
    rest = line[match.end() :].strip().split("|")[0]
    # xxd puts two spaces in front of the letters, others three, and two in the middle of the row.
    spaces = r" {2,}" if match[2] == ":" else r" {3,}"
    return re.split(spaces, rest)[0]


def _dumps(rows: list[_Row]) -> list[bytes]:
    runs: list[bytearray] = []
    for index, row in enumerate(rows):
        if row.offset == 0:
            runs.append(bytearray())
        if row.offset != len(runs[-1]):
            raise HexTextError(
                row.line, f"offset {row.offset:#x}, but {len(runs[-1]):#x} bytes come before it"
            )
        following = rows[index + 1].offset if index + 1 < len(rows) else 0
        expected = following - row.offset if following else 0
        found = _row_bytes(row, _ROW_BYTES if row.repeated else expected)
        if row.repeated:
            if not found or not len(found) <= expected <= _REPEAT_BYTES_MAX:
                raise HexTextError(row.line, "'*' without an offset behind it that can be reached")
            found = (found * (expected // len(found) + 1))[:expected]
        runs[-1] += found
    return [bytes(run) for run in runs if run]


def _row_bytes(row: _Row, limit: int) -> bytes:
    found = bytearray()
    for word in row.text.split():
        if limit and len(found) >= limit:
            break
        if len(word) % 2 or not _DIGITS.fullmatch(word):
            raise HexTextError(row.line, f"{word!r} is not hexadecimal")
        found += bytes.fromhex(word)
    return bytes(found)

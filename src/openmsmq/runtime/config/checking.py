"""Looking a configuration file through without starting: all that is wrong with it, and where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.loading import layers, put_together, read_file
from openmsmq.runtime.config.tables import read_table

PROBLEMS_MAX_COUNT: Final = 50
"""So many are told of one file."""

_HEADER: Final = re.compile(r"\s*\[\[?\s*(?P<keys>[^\]]+?)\s*\]\]?\s*(#.*)?")
_PAIR: Final = re.compile(r"\s*(?P<keys>(?:[A-Za-z0-9_.\s-]|\"[^\"]*\"|'[^']*')+?)\s*=")
_TOML_LINE: Final = re.compile(r"at line (\d+)")


class Problem(msgspec.Struct, frozen=True):
    """Something that keeps a server from starting with a file."""

    sentence: str
    key: str = ""
    """The key, with its tables before it; empty if it is not about one."""
    line: int = 0
    """The line of the file; 0 if it is not about one."""


def check(file: str, environment: Mapping[str, str], *, data: str) -> list[Problem]:
    """Return what is wrong with a file, with these variables; `data` is for one without."""
    try:
        table = read_file(file)
    except ConfigError as error:
        found = _TOML_LINE.search(str(error))
        return [Problem(str(error), line=int(found[1]) if found else 0)]
    lines = _lines(file)
    problems: list[Problem] = []
    seen: list[tuple[str, ...]] = []
    while len(problems) < PROBLEMS_MAX_COUNT:
        try:
            _check(table, environment, file, data)
        except ConfigError as error:
            # What a table lacks because of a mistake that was told is none of its own.
            if not any(each[: len(error.at)] == error.at for each in seen if error.at):
                line = _line_of(error.at, lines)
                problems.append(Problem(str(error), ".".join(error.at), line))
            seen.append(error.at)
            # What is wrong is taken out, so that the next mistake is found.
            if not error.at or not _take_out(table, error.at):
                break
        else:
            break
    return problems


def _check(table: dict[str, Any], environment: Mapping[str, str], file: str, data: str) -> None:
    found = layers({}, environment, table, file)
    given = {key for options in found.values() for key in options}
    for options in found.values():
        if "data" not in given:
            options["data"] = data
    put_together(found)
    if table.get("active_directory"):
        read_table(table["active_directory"], ActiveDirectoryConfig, file, "active_directory")


def _take_out(table: dict[str, Any], keys: tuple[str, ...]) -> bool:
    """Remove a value, or the table that it is missing in."""
    *path, last = keys
    inside: Any = table
    for key in path:
        inside = inside.get(key) if isinstance(inside, dict) else None
    if isinstance(inside, dict) and last in inside:
        del inside[last]
        return True
    return bool(path) and _take_out(table, tuple(path))


def _lines(file: str) -> dict[tuple[str, ...], int]:
    """Return the lines of keys and tables, as far as they stand on lines of their own."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    with open(file, encoding="utf-8") as opened:
        for number, line in enumerate(opened, 1):
            if header := _HEADER.fullmatch(line.rstrip("\n")):
                table = _keys(header["keys"])
                found.setdefault(table, number)
            elif pair := _PAIR.match(line):
                found.setdefault((*table, *_keys(pair["keys"])), number)
    return found


def _keys(written: str) -> tuple[str, ...]:
    """Return the keys that a dotted key has, as TOML reads it."""
    try:
        inside: Any = tomllib.loads(f"{written} = 0")
    except tomllib.TOMLDecodeError:
        return (written,)
    keys: list[str] = []
    while isinstance(inside, dict):
        ((key, inside),) = inside.items()
        keys.append(key)
    return tuple(keys)


def _line_of(keys: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int:
    """Return the line of a key, or of the table that it belongs to."""
    while keys:
        if keys in lines:
            return lines[keys]
        keys = keys[:-1]
    return 0

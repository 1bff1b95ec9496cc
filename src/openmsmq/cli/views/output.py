"""Results: one JSON object a line for programs; tables, facts and progress for people."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final, TypeAlias

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from openmsmq.cli.views.console import Printer, safe
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import UNLIMITED_KB

JsonObject: TypeAlias = dict[str, object]
Columns: TypeAlias = Mapping[str, str | Callable[[Mapping[str, object]], object]]
"""For each heading, a key of the objects in a table, or what makes a cell of an object."""

ROWS_MAX_COUNT: Final = 1000
"""Rows in one table: a longer list is several tables, so that its start is not waited for."""

_POLL_S: Final = 0.2


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on one line, in ASCII: every program and terminal can read that."""
    # The one control character that JSON writers leave alone.
    typer.echo(json.dumps(value).replace("\x7f", "\\u007f"))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Print rows below their headings; gives how many. Without rows nothing is printed.

    A heading that begins with `>` has its column aligned to the right.
    """
    remaining = iter(rows)
    count = 0
    while part := [[safe(cell) for cell in row] for row in islice(remaining, ROWS_MAX_COUNT)]:
        count += len(part)
        console = Console(highlight=False)
        if console.is_terminal:
            console.print(_rich_table(columns, part))
        else:
            _print_plain(columns, part)
    return count


def print_list(
    found: Iterable[Mapping[str, object]],
    columns: Columns,
    nothing: str,
    *,
    json: bool,
) -> None:
    """Print objects: one a line for programs; for people a table, or that there is `nothing`."""
    if json:
        for each in found:
            print_json(each)
        return
    if not print_table(tuple(columns), _rows(columns, found)):
        typer.echo(nothing)


def _rows(columns: Columns, found: Iterable[Mapping[str, object]]) -> Iterator[list[str]]:
    for each in found:
        yield [
            _cell(key, each[key]) if isinstance(key, str) else str(key(each))
            for key in columns.values()
        ]


def _cell(key: str, value: object) -> str:
    match value:
        case None:
            return ""
        case int() if key.endswith("_bytes"):
            return size_text(value)
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def print_result(found: Mapping[str, object], sentence: str, *, json: bool) -> None:
    """Print what a command did: an object for programs, a sentence for people."""
    if json:
        print_json(found)
    else:
        typer.echo(sentence)


def _rich_table(columns: Sequence[str], rows: list[list[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        table.add_column(column.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print_plain(columns: Sequence[str], rows: list[list[str]]) -> None:
    heads = [column.removeprefix(">") for column in columns]
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [
            cell.rjust(width) if column.startswith(">") else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        typer.echo("  ".join(cells).rstrip())


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print what is known of one thing, a line for each fact."""
    printer = Printer()
    pairs = list(facts)
    width = max(len(name) for name, _ in pairs)
    printer.line((safe(title), "bold"))
    for name, value in pairs:
        first, *rest = value.splitlines() or [""]
        printer.line((f"  {name:<{width}}  ", "dim"), (safe(first), ""))
        for line in rest:
            printer.line((" " * (width + 4), ""), (safe(line), ""))


class Screen:
    """A table that is shown again and again: in its place at a terminal, else one below another."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._is_first = True

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, columns: Columns, found: Iterable[Mapping[str, object]], words: str) -> None:
        """Show objects as a table, and words below it."""
        heads = tuple(columns)
        rows = [[safe(cell) for cell in row] for row in _rows(columns, found)]
        if self._console.is_terminal:
            shown = Group(_rich_table(heads, rows), Text(words, style="dim"))
            self._live.update(shown, refresh=True)
            return
        if not self._is_first:
            typer.echo()
        self._is_first = False
        _print_plain(heads, rows)
        typer.echo(words)


def age_text(age_s: int) -> str:
    """Say for how long something has been so, in the two largest units."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    for at, (seconds, unit) in enumerate(units):
        if age_s >= seconds:
            smaller = units[at + 1] if at + 1 < len(units) else None
            rest = 0 if smaller is None else age_s % seconds // smaller[0]
            more = f" {rest} {smaller[1]}" if smaller is not None and rest else ""
            return f"{age_s // seconds} {unit}{more}"
    return "0 s"


def time_text(time_s: int) -> str:
    """Say a time as programs read it: ISO 8601, in UTC."""
    return f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def size_text(size_bytes: int) -> str:
    """Say a size as people read it."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def quota_value(quota_kb: int) -> int | None:
    """Return a quota as programs read it: none if there is no limit."""
    return None if quota_kb == UNLIMITED_KB else quota_kb


def count_text(count: int, what: str = "message") -> str:
    """Return how many of something there are."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class Bar:
    """How far long work has come."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def advance(self, count: int) -> None:
        """Say that so many more are done."""
        self._bar.advance(self._task, count)

    def show(self, done: int, total: int) -> None:
        """Say how many are done, and of how many."""
        self._bar.update(self._task, completed=done, total=total)


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Bar]:
    """Show how far long work has come, to a person at a terminal, beside the results."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield Bar(bar, bar.add_task(escape(what), total=total))


@contextlib.contextmanager
def progress_by_asking(what: str, total: int, remaining: Callable[[], int]) -> Iterator[None]:
    """Show the progress of one long call: a thread asks how much is left, while the call runs."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()

    def watch(bar: Bar) -> None:
        while not over.wait(_POLL_S):
            try:
                bar.show(max(0, total - remaining()), total)
            except (ConnectionError, MsmqError):
                # The call that is watched meets the same trouble and says so.
                return

    with progress(what, total) as bar:
        watcher = threading.Thread(target=watch, args=(bar,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

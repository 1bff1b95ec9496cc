"""Packets as people read them: a tree with offsets, one line each, or one JSON object each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from openmsmq.cli.tools.packet_input import Record
from openmsmq.cli.views.console import Printer, Span, safe
from openmsmq.wire.text.tree import Node

VALUE_CHARACTERS_MAX: Final = 72
HEX_BYTES_MAX: Final = 256
_ROW_BYTES: Final = 16

_OFFSET: Final = "dim"
_NAME: Final = "cyan"
_MEANING: Final = "green"
_TITLE: Final = "bold"
_PROBLEM: Final = "bold red"

_UNSHOWN: Final = re.compile(r"[^ -~]")
_GUIDES: Final = {True: ("├─ ", "└─ ", "│  ", "   "), False: ("|- ", "`- ", "|  ", "   ")}


def print_tree(printer: Printer, record: Record, *, full: bool) -> None:
    """Print a packet with all its fields, or a problem with the bytes concerned."""
    where = _where(record)
    if where:
        printer.line((where, _OFFSET))
    shown = record.view
    if record.problem:
        printer.line((f"! {safe(record.told)}", _PROBLEM))
    if shown is None:
        _print_hex(printer, record.data, full=full)
    else:
        title = f"{shown.name}, {len(record.data)} bytes"
        summary = f": {safe(shown.summary)}" if shown.summary else ""
        printer.line((title, _TITLE), (summary, ""))
        if shown.problem:
            printer.line((f"! {safe(shown.problem)}", _PROBLEM))
        for spans in _tree_lines(shown.nodes, "", printer.unicode, full):
            printer.line(*spans)
        _print_rest(printer, record.data, shown.nodes, full=full)
    printer.line(("", ""))


def print_summary(printer: Printer, record: Record) -> None:
    """Print a packet in one line, as capture tools do."""
    columns = []
    if record.frame is not None and record.time_ns is not None:
        ends = f"{record.source} -> {record.destination}" if record.source else "-"
        columns += [f"{record.frame:>5}", _time(record.time_ns), f"{ends:<45}"]
    elif record.offset is not None:
        columns.append(f"{record.offset:>6}")
    shown = record.view
    if record.problem or shown is None:
        printer.line(("  ".join(columns), _OFFSET), (f"  ! {safe(record.told)}", _PROBLEM))
    elif shown.problem:
        text = f"  {shown.name} {len(record.data):>6}  {safe(shown.problem)}"
        printer.line(("  ".join(columns), _OFFSET), (text, _PROBLEM))
    else:
        printer.line(
            ("  ".join(columns), _OFFSET),
            (f"  {shown.name:<20} {len(record.data):>6}", _NAME),
            (f"  {safe(shown.summary)}", ""),
        )


def as_json(record: Record) -> str:
    """Return a record as one JSON object; what does not apply is left out.

    Letters that would do something to a terminal are escaped: JSON need not escape all of them.
    """
    shown = record.view
    found: dict[str, Any] = {
        "frame": record.frame,
        "time": None if record.time_ns is None else _time(record.time_ns),
        "source": record.source or None,
        "destination": record.destination or None,
        "connection": record.connection,
        "stream_offset": record.offset,
        "size": len(record.data),
        "packet": None if shown is None else shown.name,
        "summary": None if shown is None else shown.summary or None,
        "anomaly": record.anomaly,
        "problem": record.problem or (shown.problem if shown else "") or None,
        "data": record.data.hex() if shown is None else None,
        "tree": None if shown is None else shown.nodes,
    }
    present = {key: value for key, value in found.items() if value is not None}
    return _UNSHOWN.sub(_escaped, msgspec.json.encode(present).decode())


def _escaped(match: re.Match[str]) -> str:
    letter = match[0]
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def _where(record: Record) -> str:
    parts = []
    if record.frame is not None and record.time_ns is not None:
        parts.append(f"frame {record.frame}  {_time(record.time_ns)}")
    if record.source:
        parts.append(f"{record.source} -> {record.destination}")
    if record.connection is not None:
        parts.append(f"connection {record.connection}")
    if record.offset is not None:
        parts.append(f"byte {record.offset} of the stream")
    return "  ".join(parts)


def _time(time_ns: int) -> str:
    """Say a time to the microsecond; as plain seconds when no calendar has it."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    try:
        day = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds}.{rest_ns // 1000:06}"
    return f"{day:%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06}Z"


def _tree_lines(
    nodes: tuple[Node, ...], indent: str, unicode: bool, full: bool
) -> Iterator[list[Span]]:
    branch, last_branch, line, nothing = _GUIDES[unicode]
    if not full:
        # Bits that are not set say little and would fill the screen.
        nodes = tuple(node for node in nodes if node.size or node.value)
    for index, node in enumerate(nodes):
        last = index == len(nodes) - 1
        offset = f"{node.offset:04x}  " if node.size else "      "
        head = [(offset, _OFFSET), (indent + (last_branch if last else branch), _OFFSET)]
        yield [*head, *_node_spans(node, unicode, full)]
        yield from _tree_lines(node.children, indent + (nothing if last else line), unicode, full)


def _node_spans(node: Node, unicode: bool, full: bool) -> Iterator[Span]:
    yield (node.name, _NAME)
    if node.value is None:
        yield (f"  ({node.size} bytes)", _OFFSET)
    else:
        yield (f"  {_value(node, unicode, full)}", "")
    if node.meaning:
        yield (f"  {_shortened(safe(node.meaning), unicode, full)}", _MEANING)


def _value(node: Node, unicode: bool, full: bool) -> str:
    if isinstance(node.value, int):
        return (
            f"{node.value} ({node.value:#0{2 + 2 * node.size}x})" if node.size else str(node.value)
        )
    return _shortened(safe(str(node.value)), unicode, full)


def _shortened(text: str, unicode: bool, full: bool) -> str:
    if full or len(text) <= VALUE_CHARACTERS_MAX:
        return text
    return text[:VALUE_CHARACTERS_MAX] + ("…" if unicode else "...")


def _print_rest(printer: Printer, data: bytes, nodes: tuple[Node, ...], *, full: bool) -> None:
    """Print the bytes that no header could be read from."""
    if nodes and nodes[-1].name == "not decoded":
        _print_hex(printer, data, nodes[-1].offset, full=full)


def _print_hex(printer: Printer, data: bytes, start: int = 0, *, full: bool) -> None:
    end = len(data) if full else min(len(data), start + HEX_BYTES_MAX)
    for offset in range(start, end, _ROW_BYTES):
        row = data[offset : min(offset + _ROW_BYTES, end)]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        printer.line((f"{offset:04x}  ", _OFFSET), (f"{row.hex(' '):<48} {letters}", ""))
    if end < len(data):
        printer.line((f"      {len(data) - end} bytes more; --full shows them", _OFFSET))

"""Numbers, times and names as the report says them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_STEP_NAMES: Final = {1: "second", 60: "minute", 3600: "hour", 86_400: "day", 7 * 86_400: "week"}
_ELLIPSIS: Final = "…"
_TO: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"


def plain(text: str, characters_max: int = 60) -> str:
    """Make a text from a message safe to show: nothing invisible, and not too long."""
    cut = text if len(text) <= characters_max else text[: characters_max - 1] + _ELLIPSIS
    if cut.isprintable():
        return cut
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in cut
    )


def count_text(count: int) -> str:
    """Say a count: 12,345."""
    return f"{count:,}"


def share_text(part: int, whole: int) -> str:
    """Say a share as a percentage, which is 0 or 100 only if it is just that."""
    if not whole or not part:
        return "0 %"
    if part == whole:
        return "100 %"
    text = f"{100 * part / whole:.1f}"
    return {"0.0": "< 0.1 %", "100.0": "> 99.9 %"}.get(text, f"{text} %")


def duration_text(seconds: float) -> str:
    """Say a duration by its two largest units: 3 min 20 s."""
    if seconds < 0:
        return f"{_MINUS}{duration_text(-seconds)}"
    if 0 < seconds < 10 and seconds != round(seconds):
        return f"{seconds:.1f} s"
    left = round(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def range_text(low_s: int, high_s: int | None) -> str:
    """Say a range of whole seconds, in the largest unit of its lower end."""
    if high_s is None:
        return f"≥ {duration_text(low_s)}"
    if high_s - low_s == 1:
        return f"{low_s} s"
    if high_s <= 60:
        return f"{low_s}{_TO}{high_s - 1} s"
    size, unit = next((size, unit) for size, unit in _UNITS if low_s >= size)
    return f"{low_s // size}{_TO}{high_s // size} {unit}"


def step_text(step_s: int) -> str:
    """Say the width of a bar: minute, 10 min."""
    return _STEP_NAMES.get(step_s) or duration_text(step_s)


def size_text(size_bytes: int) -> str:
    """Say a size as people read it."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def time_text(time: datetime | None) -> str:
    """Say a time, in UTC."""
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def change_text(now: int, before: int) -> str:
    """Return how a count differs from another one: +12 %, or by how many if it was small."""
    difference = now - before
    if not difference:
        return "as before"
    sign = "+" if difference > 0 else _MINUS
    if before < 20:
        return f"{sign}{count_text(abs(difference))}"
    share = 100 * abs(difference) / before
    return f"{sign}{share:.0f} %" if share >= 1 else f"{sign}{count_text(abs(difference))}"

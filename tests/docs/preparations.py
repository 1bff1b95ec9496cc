"""What some pages take for granted: what their reader has before they begin."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def captures(work: Path) -> str:
    """Captures of some traffic."""
    return ""


def one_capture(work: Path) -> str:
    return ""


def what_windows_sent(work: Path) -> str:
    return ""

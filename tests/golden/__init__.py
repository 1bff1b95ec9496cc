"""Packets printed in the specifications, and vectors built by hand, as hexadecimal text."""

from __future__ import annotations

from pathlib import Path


def golden(name: str) -> bytes:
    """Read one of the files beside this one."""
    return bytes.fromhex(Path(__file__).with_name(f"{name}.hex").read_text())

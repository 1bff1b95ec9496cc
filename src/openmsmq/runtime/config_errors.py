"""What is wrong with a configuration, in sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec


class ConfigError(Exception):
    """An option is wrong; the sentence says which, where, and what it could be."""


def reason(error: msgspec.ValidationError) -> str:
    """Give the words of an error as the end of a sentence."""
    text = str(error)
    return text[:1].lower() + text[1:]


def nearest(key: str, known: Iterable[str]) -> str:
    """Ask whether the most similar of the known names was meant."""
    meant = difflib.get_close_matches(key, list(known), 1, 0)
    return f"; did you mean {meant[0]!r}?" if meant else ""

"""What is wrong with a configuration, in sentences."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

_ALIKE: Final = 0.6
"""From here on, a name is similar enough to another to ask whether it was meant."""


class ConfigError(Exception):
    """An option is wrong; the sentence says which, where, and what it could be.

    `at` are the keys that lead to it in the configuration file, if it stands there.
    """

    def __init__(self, sentence: str, *at: str) -> None:
        super().__init__(sentence)
        self.at = at


def key_of(error: msgspec.ValidationError) -> tuple[str, ...]:
    """Return the key of a table that an error is about; nothing if it says none."""
    words, _, path = str(error).partition(" - at `$")
    found = re.fullmatch(r"Object contains unknown field `(.*)`", words)
    found = found or re.match(r"\.(\w+)", path)
    return () if found is None else (found[1],)


def reason(error: msgspec.ValidationError, table: type[Any] | None = None) -> str:
    """Return the words of an error as the end of a sentence, with the key of the table it is in."""
    words, _, path = str(error).partition(" - at `$")
    words = words[:1].lower() + words[1:]
    unknown = re.fullmatch(r"object contains unknown field `(.*)`", words)
    if table is not None and unknown is not None:
        return f"it has no {unknown[1]!r}{nearest(unknown[1], table.__struct_fields__)}"
    key = re.match(r"\.(\w+)", path)
    if key is None:
        return words
    if table is not None and (choices := _choices(get_type_hints(table).get(key[1]))):
        words = f"{words}; it can be {', '.join(map(repr, choices))}"
    return f"{key[1]}: {words}"


def _choices(hint: object) -> tuple[object, ...]:
    """Return the values that a type lists, also if it is a list of them."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next(filter(None, map(_choices, get_args(hint))), ())


def nearest(key: str, known: Iterable[str]) -> str:
    """Ask whether the most similar of the known names was meant, if one is similar at all."""
    meant = difflib.get_close_matches(key, list(known), 1, _ALIKE)
    return f"; did you mean {meant[0]!r}?" if meant else ""

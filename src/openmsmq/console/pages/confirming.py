"""The question before something is done."""

from __future__ import annotations

import msgspec


class Confirmation(msgspec.Struct, frozen=True):
    """What a page asks before something is done."""

    title: str
    sentence: str
    button: str
    back: str
    """Where to go if it is not to be done."""
    facts: tuple[tuple[str, str], ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    """What the form says beside that, for the person not to see."""
    typed: str = ""
    """What the person has to type before; empty for nothing."""
    is_harmless: bool = False
    """Whether it can be undone."""

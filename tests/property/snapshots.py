"""Everything that an object has in memory, as facts by their path, to be compared."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import msgspec

from openmsmq.manager.turn.effects import attributes
from openmsmq.storage.memory import MemoryStore

_VALUES = (str, bytes, int, float, bool, type(None), Enum, type, msgspec.Struct)
_LEFT_OUT = (FunctionType, MethodType, BuiltinFunctionType, random.Random, MemoryStore)
"""What has no state of its own, or one that is not the queue manager's."""


def snapshot(thing: Any) -> dict[str, str]:
    """Return all facts in a thing and in what it leads to."""
    facts: dict[str, str] = {}
    _walk(thing, "", facts, {})
    return facts


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return what is not the same: what it was, and what it is."""
    return {
        path: (before.get(path, "nothing"), after.get(path, "nothing"))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


def _walk(thing: Any, path: str, facts: dict[str, str], seen: dict[int, Any]) -> None:
    if isinstance(thing, _LEFT_OUT):
        return
    if isinstance(thing, _VALUES):
        facts[path] = repr(thing)
        return
    if isinstance(thing, frozenset | set):
        facts[path] = repr(sorted(map(_name, thing)))
        return
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    for name, value in _parts(thing, path, facts).items():
        _walk(value, path + name, facts, seen)


def _parts(thing: Any, path: str, facts: dict[str, str]) -> dict[str, Any]:
    """Return what a thing consists of; note how much that is."""
    if isinstance(thing, dict | OrderedDict):
        facts[path] = repr(sorted(map(_name, thing)))
        return {f"[{_name(key)}]": value for key, value in thing.items()}
    if isinstance(thing, list | tuple | deque):
        facts[path] = f"{len(thing)} of them"
        return {f"[{number}]": value for number, value in enumerate(thing)}
    return {f".{name}": value for name, value in sorted(_attributes(thing).items())}


def _attributes(thing: Any) -> dict[str, Any]:
    found = dict(getattr(thing, "__dict__", {}))
    for name in attributes(type(thing)):
        if hasattr(thing, name):
            found[name] = getattr(thing, name)
    return found


def _name(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_name, key))
    if isinstance(key, _VALUES):
        return repr(key)
    return str(getattr(key, "name", None) or type(key).__name__)

"""Options of verbs: which there are, and what somebody hears who has misspelt one.

No verb takes an option that it does not know: `authentication_required=True` that nobody reads
would make an open queue.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

from openmsmq.model.errors import IllegalPropertyValue

Value = TypeVar("Value", bound=Enum)


def options_of(verb: Callable[..., Any]) -> frozenset[str]:
    """Return the names a verb takes beside what it is a verb of, with its bundle of options."""
    names: set[str] = set()
    for parameter in list(inspect.signature(verb).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (bundle,) = typing.get_args(typing.get_type_hints(verb)[parameter.name])
            names.update(bundle.__annotations__)
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            names.add(parameter.name)
    return frozenset(names)


def unknown_option(verb: str, given: Iterable[str], known: Iterable[str]) -> TypeError:
    """Make the error for options of which a verb does not know at least one."""
    known = sorted(known)
    wrong = next(name for name in given if name not in known)
    near = difflib.get_close_matches(wrong, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
    return TypeError(f"{verb}() has no option {wrong!r}: {hint}")


def one_of(kind: type[Value], value: object, where: str) -> Value:
    """Return the value of an enumeration that is meant, or raise an error that lists them all."""
    try:
        return kind(value)
    except ValueError:
        raise IllegalPropertyValue(f"{where} {value!r}: give {values_of(kind)}") from None


def values_of(kind: type[Enum]) -> str:
    """List the values of an enumeration as a program writes them."""
    if all(isinstance(each.value, str) for each in kind):
        return ", ".join(repr(each.value) for each in kind)
    return ", ".join(f"{kind.__name__}.{name}" for name in kind.__members__)

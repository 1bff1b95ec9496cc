"""Questions to a directory: objects that meet conditions. [MQDMPR 3.1.7.1.20-3.1.7.1.23]

A condition names a property, and what it is compared with. Who asks for some properties only gets
nothing but those, so nobody can use what was not asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from enum import Enum, IntEnum
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, get_args, get_origin

import msgspec

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.directory import TYPES, DirectoryObject, ObjectKind
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold

CONDITIONS_MAX_COUNT: Final = 16
"""Conditions of one question. [ours]"""

_CONDITION: Final = re.compile(r"([A-Za-z_]\w*)\s*([!<>]=|[=<>])\s*(.*)", re.DOTALL)
_YES_OR_NO: Final = {"yes": True, "no": False}
_ORDERED: Final = (int, str, bytes)
"""Values of these types come before or behind each other; nothing else does."""


class Comparison(Enum):
    """How a property is compared with a value."""

    EQUALS = "="
    NOT_EQUALS = "!="
    LESS = "<"
    GREATER = ">"
    AT_MOST = "<="
    AT_LEAST = ">="


_COMPARE: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    Comparison.EQUALS: eq,
    Comparison.NOT_EQUALS: ne,
    Comparison.LESS: lt,
    Comparison.GREATER: gt,
    Comparison.AT_MOST: le,
    Comparison.AT_LEAST: ge,
}


class Condition(msgspec.Struct, frozen=True):
    """A property, and what it is compared with."""

    attribute: str
    comparison: Comparison
    value: object

    def holds(self, found: DirectoryObject) -> bool:
        """Whether an object meets it; case makes no difference to texts, as to all names."""
        left, right = _folded(getattr(found, self.attribute)), _folded(self.value)
        alike = any(isinstance(left, each) and isinstance(right, each) for each in _ORDERED)
        if self.comparison not in (Comparison.EQUALS, Comparison.NOT_EQUALS) and not alike:
            # What has no value is neither more nor less than anything.
            return False
        return _COMPARE[self.comparison](left, right)


class SortKey(msgspec.Struct, frozen=True):
    """A property by which answers are sorted; the first key counts more than the others."""

    attribute: str
    descending: bool = False


def read_each(
    image: DirectoryImage,
    kind: ObjectKind,
    conditions: Sequence[Condition] = (),
    order: Sequence[SortKey] = (),
) -> Generator[DirectoryObject]:
    """Return the objects of a kind that meet all conditions, one after the other.

    They come in the given order, and where that leaves it open in that of their identifiers. The
    answer is that of the directory at the moment of the question, whatever changes meanwhile.
    """
    if len(conditions) > CONDITIONS_MAX_COUNT:
        raise InvalidParameter(
            f"{len(conditions)} conditions; at most {CONDITIONS_MAX_COUNT} in one question"
        )
    for condition in conditions:
        _type_of(kind, condition.attribute)
    for key in order:
        if _type_of(kind, key.attribute) is tuple:
            raise InvalidParameter(f"{key.attribute} is a list, and nothing is sorted by lists")
    found = [
        value
        for value in image.of_kind(kind).values()
        if all(condition.holds(value) for condition in conditions)
    ]
    found.sort(key=lambda value: value.identifier)
    for key in reversed(order):
        found.sort(key=lambda value: _place(value, key.attribute), reverse=key.descending)
    return (value for value in found)


def read_first(
    image: DirectoryImage, kind: ObjectKind, conditions: Sequence[Condition] = ()
) -> DirectoryObject | None:
    """Return the first object of a kind that meets all conditions; None if there is none."""
    return next(read_each(image, kind, conditions), None)


def only(found: DirectoryObject, attributes: Sequence[str]) -> dict[str, object]:
    """Return these properties of an object, and no others."""
    return {name: getattr(found, name) for name in attributes}


def attributes_of(kind: ObjectKind) -> tuple[str, ...]:
    """Return the properties that objects of a kind have."""
    return TYPES[kind].__struct_fields__


def read_condition(kind: ObjectKind, text: str) -> Condition:
    """Read a condition such as `quota_kb >= 100`, or raise `InvalidParameter`."""
    found = _CONDITION.fullmatch(text.strip())
    if found is not None:
        name, sign, value = found.groups()
        return Condition(name, Comparison(sign), _value(kind, name, value))
    signs = " ".join(each.value for each in Comparison)
    raise InvalidParameter(f"{text!r} is no condition: write a property, one of {signs}, a value")


def _value(kind: ObjectKind, name: str, text: str) -> object:
    wanted = _type_of(kind, name)
    try:
        if wanted is bool:
            return _YES_OR_NO[text.lower()]
        if issubclass(wanted, Enum):
            is_number = issubclass(wanted, IntEnum) and text.isdecimal()
            return wanted(int(text)) if is_number else wanted[text.upper()]
        if issubclass(wanted, Guid):
            return Guid.parse(text)
        if wanted is int:
            return int(text)
    except (KeyError, ValueError):
        what = {bool: "yes or no", int: "a number"}.get(wanted, f"a {wanted.__name__}")
        raise InvalidParameter(f"{name} is {what}, not {text!r}") from None
    if wanted is str:
        return text
    raise InvalidParameter(f"{name} is not a single value: it cannot be compared with {text!r}")


def _type_of(kind: ObjectKind, name: str) -> type[Any]:
    """Return what a property is, leaving aside that it may be missing."""
    for field in msgspec.structs.fields(TYPES[kind]):
        if field.name == name:
            if get_origin(field.type) is tuple:
                return tuple
            return field.type if isinstance(field.type, type) else get_args(field.type)[0]
    raise InvalidParameter(
        f"a {kind.value} has no property {name!r}: it has {', '.join(attributes_of(kind))}"
    )


def _place(value: DirectoryObject, attribute: str) -> tuple[bool, Any]:
    """Return where an object stands among others; what has no value stands first."""
    found = _folded(getattr(value, attribute))
    return found is not None, found.value if isinstance(found, Enum) else found


def _folded(value: object) -> Any:
    return fold(value) if isinstance(value, str) else value

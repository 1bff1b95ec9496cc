"""Changes of a directory as people read them: what comes, what goes, and what becomes different."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

import msgspec

from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.naming import REFERENCES, WORDS, name_of, reference_name
from openmsmq.directory.plans.fields import DEFAULTS, FIELDS, UNLIMITED
from openmsmq.directory.plans.names import PlanNames
from openmsmq.model.directory import Change, DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import QUOTAS

# A new object is introduced by its name, so these would only repeat it.
_IN_THE_NAME: Final = {
    "identifier",
    "name",
    "computer_name",
    "path_name",
    "qualified_path_name",
    "kind",
    "manager",
    "site1",
    "site2",
    "security_identifier",
}


class Sign(Enum):
    """What happens to an object."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"


class FieldDifference(msgspec.Struct, frozen=True):
    """A property that becomes different; what it is not before or after is empty."""

    key: str
    old: str
    new: str

    def __str__(self) -> str:
        if not self.old:
            return f"{self.key}: {self.new}"
        return f"{self.key}: {self.old} -> {self.new or 'nothing'}"


class DiffLine(msgspec.Struct, frozen=True):
    """What happens to one object."""

    sign: Sign
    kind: ObjectKind
    name: str
    fields: tuple[FieldDifference, ...] = ()

    def __str__(self) -> str:
        head = f"{self.sign.value} {WORDS[self.kind]} {self.name}"
        return "\n".join([head, *(f"    {field}" for field in self.fields)])


def describe(changes: Iterable[Change], image: DirectoryImage) -> list[DiffLine]:
    """Return what changes do to a directory, in their order; what changes nothing is left out."""
    changes = tuple(changes)
    after = image.changed(changes)
    values = _Values(image, after)
    lines = (_line(change, image, after, values) for change in changes)
    return [line for line in lines if line is not None]


def _line(
    change: Change, image: DirectoryImage, after: DirectoryImage, values: _Values
) -> DiffLine | None:
    if isinstance(change, Removal):
        gone = image.get(change.kind, change.identifier)
        if gone is None:
            return None
        return DiffLine(Sign.REMOVED, change.kind, name_of(gone, image))
    kind = kind_of(change)
    old = image.get(kind, change.identifier)
    if old == change:
        return None
    sign = Sign.ADDED if old is None else Sign.CHANGED
    return DiffLine(sign, kind, name_of(change, after), tuple(values.differences(old, change)))


class _Values:
    """Values as people read them: names in the place of identifiers."""

    def __init__(self, before: DirectoryImage, after: DirectoryImage) -> None:
        self._before = before
        self._after = after
        self._members = PlanNames(after)

    def differences(
        self, old: DirectoryObject | None, new: DirectoryObject
    ) -> list[FieldDifference]:
        kind = kind_of(new)
        keys = {field.attribute: field.key for field in FIELDS.get(kind, ())} | {"sites": "sites"}
        found = []
        for attribute in new.__struct_fields__:
            value = getattr(new, attribute)
            if old is None:
                is_usual = value == DEFAULTS.get(kind, {}).get(attribute, msgspec.NODEFAULT)
                if is_usual or attribute in _IN_THE_NAME:
                    continue
                was = ""
            else:
                if value == getattr(old, attribute):
                    continue
                was = self._text(attribute, getattr(old, attribute)) or "nothing"
            key = keys.get(attribute, attribute)
            found.append(FieldDifference(key, was, self._text(attribute, value)))
        return found

    def _text(self, attribute: str, value: Any) -> str:
        match value:
            case int() if attribute in QUOTAS and value == UNLIMITED_KB:
                return UNLIMITED
            case bool():
                return "yes" if value else "no"
            case None:
                return "none"
            case Enum():
                return value.name.lower()
            case Guid():
                return self._reference(attribute, value)
            case bytes():
                return f"{len(value)} bytes" if value else ""
            case tuple():
                return ", ".join(self._element(attribute, element) for element in value)
            case _:
                return str(value)

    def _element(self, attribute: str, value: Any) -> str:
        if attribute == "members":
            return self._members.member_name(value)
        if isinstance(value, msgspec.Struct):
            return type(value).__name__
        return self._text(attribute, value)

    def _reference(self, attribute: str, value: Guid) -> str:
        kind = REFERENCES.get(attribute)
        if kind is None:
            return "" if value == NIL_GUID else str(value)
        image = self._before if self._after.get(kind, value) is None else self._after
        return reference_name(image, kind, value)

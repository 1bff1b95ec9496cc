"""LDAP entries and their values: distinguished names, references, and the syntaxes of attributes.

Active Directory writes booleans as TRUE and FALSE, where MQDSSM shows 1 and 0, and integers with
a sign, so that a quota without limit, 0xFFFFFFFF, is -1 there. Attributes with several values are
sets: their order means nothing and may change. A reference to another entry is read as its GUID,
which the extended form of names carries (`<GUID=...>;CN=...`), and may be written that way.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid

Values: TypeAlias = tuple[bytes, ...]
Attributes: TypeAlias = Mapping[str, Values]
"""Values by attribute name; no values mean that the attribute is not there."""

_SIGN: Final = 1 << 31
_WRAP: Final = 1 << 32
_REFERENCE: Final = re.compile(rb"<GUID=([0-9a-fA-F-]{32,36})>")
_DELETED: Final = b"\\0ADEL:"
"""What the name of an entry gets when it is deleted. [MS-ADTS 3.1.1.5.5.1.1]"""
_SPECIAL: Final = re.compile(r'[,+"\\<>;=#\x00-\x1f]|^ | $')
_NAME_PART: Final = re.compile(r"(?:\\.|[^,\\])*", re.DOTALL)
_TIME_FORMAT: Final = "%Y%m%d%H%M%S"


class Malformed(Exception):
    """An entry lacks what its object cannot be without, or has a value that cannot be."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a directory."""

    name: str
    """The distinguished name."""
    identifier: Guid
    classes: frozenset[str]
    """The names of its classes, in lower case."""
    attributes: Attributes
    """By name in lower case."""

    def is_a(self, class_name: str) -> bool:
        """Return whether the entry is of a class."""
        return class_name.lower() in self.classes

    def values(self, attribute: str) -> Values:
        """Return all values of an attribute."""
        return self.attributes.get(attribute.lower(), ())

    def value(self, attribute: str) -> bytes | None:
        """Return the value of an attribute that has at most one."""
        found = self.values(attribute)
        return found[0] if found else None

    def text(self, attribute: str, default: str = "") -> str:
        """Read a text."""
        value = self.value(attribute)
        return default if value is None else _decoded(value, attribute, self)

    def needed(self, attribute: str) -> bytes:
        """Return the value of an attribute without which the object cannot be."""
        value = self.value(attribute)
        if value is None:
            raise Malformed(f"{self.name} has no {attribute} that this user may read")
        return value

    def flag(self, attribute: str, default: bool = False) -> bool:
        """Read a boolean."""
        value = self.value(attribute)
        return default if value is None else value.upper() == b"TRUE"

    def number(self, attribute: str, default: int = 0) -> int:
        """Read an integer with its sign."""
        value = self.value(attribute)
        if value is None:
            return default
        try:
            return int(value)
        except ValueError:
            raise Malformed(f"{attribute} of {self.name} is no number: {value!r}") from None

    def unsigned(self, attribute: str, default: int) -> int:
        """Read an integer of 32 bits that has no sign in MSMQ."""
        return self.number(attribute, default) % _WRAP

    def guids(self, attribute: str) -> tuple[Guid, ...]:
        """Read identifiers that are kept as bytes."""
        return tuple(_guid(value, attribute, self) for value in self.values(attribute))

    def guid(self, attribute: str) -> Guid:
        """Read one identifier, that of nothing when there is none."""
        return next(iter(self.guids(attribute)), NIL_GUID)

    def references(self, attribute: str) -> tuple[Guid, ...]:
        """Read which other entries are meant; names without a GUID are of no use and left out."""
        found = (referenced(value) for value in self.values(attribute))
        return tuple(identifier for identifier in found if identifier is not None)

    def time_s(self, attribute: str) -> int:
        """Read a moment, in seconds since 1970."""
        text = self.needed(attribute).decode("ascii", "replace").partition(".")[0]
        try:
            return calendar.timegm(time.strptime(text, _TIME_FORMAT))
        except ValueError:
            raise Malformed(f"{attribute} of {self.name} is no time: {text!r}") from None


def referenced(value: bytes) -> Guid | None:
    """Return the identifier in an extended distinguished name, unless it is of a deleted entry.

    The attributes of MSMQ are not among those from which a server takes deleted entries away.
    """
    match = _REFERENCE.match(value)
    if match is None or _DELETED in value:
        return None
    text = match[1].decode("ascii")
    return Guid.parse(text) if "-" in text else Guid(bytes.fromhex(text))


def _decoded(value: bytes, attribute: str, entry: Entry) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(f"{attribute} of {entry.name} is no text") from None


def _guid(value: bytes, attribute: str, entry: Entry) -> Guid:
    if len(value) != GUID_BYTES:
        raise Malformed(f"{attribute} of {entry.name} has {len(value)} bytes, not {GUID_BYTES}")
    return Guid(value)


# Values as they are written.


def flag_value(value: bool) -> Values:
    """Write a boolean."""
    return (b"TRUE" if value else b"FALSE",)


def number_value(value: int) -> Values:
    """Write an integer of 32 bits, with the sign that the directory wants."""
    signed = (value + _SIGN) % _WRAP - _SIGN
    return (str(signed).encode("ascii"),)


def text_value(text: str | None) -> Values:
    """Write a text; an empty one is an attribute that is not there."""
    return (text.encode("utf-8"),) if text else ()


def guid_values(identifiers: Iterable[Guid]) -> Values:
    """Write identifiers as bytes, each once."""
    return tuple(dict.fromkeys(bytes(identifier) for identifier in identifiers))


def reference(identifier: Guid) -> bytes:
    """Write a reference to an entry by its identifier; servers take it in place of a name."""
    return f"<GUID={identifier}>".encode("ascii")


def reference_values(identifiers: Iterable[Guid]) -> Values:
    """Write references to other entries, each once."""
    return tuple(dict.fromkeys(map(reference, identifiers)))


def differences(old: Attributes, new: Attributes) -> dict[str, Values]:
    """Return those attributes of `new` that have other values in `old`, in whatever order."""
    return {name: values for name, values in new.items() if set(values) != set(old.get(name, ()))}


# Distinguished names.


def escape(value: str) -> str:
    """Make a value safe as part of a distinguished name. [RFC 4514 2.4]"""
    return _SPECIAL.sub(lambda match: "".join(f"\\{b:02X}" for b in match[0].encode()), value)


def child_name(value: str, parent: str) -> str:
    """Return the distinguished name of the entry `value` below another."""
    return f"CN={escape(value)},{parent}"


def parent_name(name: str) -> str:
    """Return the distinguished name of what an entry stands below."""
    match = _NAME_PART.match(name)
    return name[match.end() + 1 :] if match else ""


def filter_bytes(value: bytes) -> str:
    r"""Write bytes for a search filter: each as `\xx`, the only form that all servers take."""
    return "".join(f"\\{byte:02x}" for byte in value)


def filter_text(text: str) -> str:
    """Write a text for a search filter."""
    return re.sub(
        r"[\x00*()\\]|[^\x00-\x7f]", lambda match: filter_bytes(match[0].encode("utf-8")), text
    )

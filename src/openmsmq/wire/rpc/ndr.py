"""Structures, unions and calls of NDR 2.0, by tables of types. [C706 chapter 14]

A type is a value that is made once, such as `Struct(Section, ("kind", U16), ("bytes", ...))`, and
both reads and writes; a `Call` is all parameters of one direction of a method. Reading is total:
`DecodeError` or a value. Neighbouring fields of fixed size are read and written at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.ndr_types import WHERE, Number, Reader, Type, Writer, packed

T = TypeVar("T")

TRAILING_MAX_BYTES: Final = 15
"""So much may follow the last parameter: what a caller pads its stub to is not ours to judge."""

Field: TypeAlias = tuple[str, Type]


class Union:
    """The last field of a structure: which type it has, another field of the structure says."""

    def __init__(self, switch: str, tag: Number, arms: Mapping[int, Type]) -> None:
        self.switch = switch
        self.align = max(tag.align, *(arm.align for arm in arms.values()))
        self.size = tag.size
        self._tag = tag
        self._arms = dict(arms)

    def read(self, reader: Reader, tag: int) -> tuple[Type, Any]:
        """Read the arm's part in place; it is aligned by itself."""
        found = self._tag.read(reader)
        if found != tag:
            raise reader.wrong(f"the arm {found} of a union where {tag} was said")
        arm = self._arms.get(tag)
        if arm is None:
            raise reader.wrong(f"a union without an arm {tag}")
        return arm, arm.read(reader)

    def write(self, writer: Writer, tag: int, value: Any) -> None:
        """Write the tag and what the arm has in place."""
        arm = self._arms.get(tag)
        if arm is None:
            raise EncodeError(WHERE, f"a union without an arm {tag}")
        self._tag.write(writer, tag)
        arm.write(writer, value)

    def follow(self, writer: Writer, tag: int, value: Any) -> None:
        """Write what pointers in the arm lead to."""
        self._arms[tag].follow(writer, value)


class _Run:
    """Neighbouring fields of fixed size: one layout for all of them."""

    __slots__ = ("align", "fields", "is_plain", "layout", "parts", "width")

    def __init__(self, align: int, fields: Sequence[Type]) -> None:
        self.align = align
        self.fields = tuple(fields)
        self.is_plain = all(one.plain for one in fields)
        code, at, place = "<", 0, 0
        parts: list[tuple[Type, int | slice]] = []
        for one in fields:
            pad = -at & (one.align - 1)
            code += "x" * pad + (one.code or "")
            at += pad + one.size
            parts.append((one, place if one.width == 1 else slice(place, place + one.width)))
            place += one.width
        self.parts = tuple(parts)
        self.layout = struct.Struct(code)

    def read(self, reader: Reader) -> tuple[Any, ...]:
        """Read what stands in place."""
        at = reader.at + (-reader.at & (self.align - 1))
        behind = at + self.layout.size
        if behind > reader.end:
            raise reader.wrong(f"{behind - reader.end} bytes are missing")
        reader.at = behind
        return self.layout.unpack_from(reader.data, at)

    def resolve(self, reader: Reader, raws: tuple[Any, ...]) -> Sequence[Any]:
        """Make the values of the fields."""
        if self.is_plain:
            return raws
        return [
            raws[place] if one.plain else one.resolve(reader, raws[place])
            for one, place in self.parts
        ]

    def write(self, writer: Writer, values: Sequence[Any]) -> None:
        """Write what stands in place."""
        writer.align(self.align)
        if self.is_plain:
            writer.out += packed(self.layout, values)
            return
        items: list[Any] = []
        for one, value in zip(self.fields, values, strict=True):
            if one.plain:
                items.append(value)
            else:
                items += one.items(writer, value)
        writer.out += packed(self.layout, items)

    def follow(self, writer: Writer, values: Sequence[Any]) -> None:
        """Write what pointers lead to."""
        for one, value in zip(self.fields, values, strict=True):
            if one.leads:
                one.follow(writer, value)


class _Single:
    """A field of variable size, as a run of one."""

    __slots__ = ("_type", "fields")

    def __init__(self, one: Type) -> None:
        self.fields = (one,)
        self._type = one

    def read(self, reader: Reader) -> Any:
        """Read what stands in place."""
        return self._type.read(reader)

    def resolve(self, reader: Reader, raws: Any) -> Sequence[Any]:
        """Make the value."""
        return (self._type.resolve(reader, raws),)

    def write(self, writer: Writer, values: Sequence[Any]) -> None:
        """Write what stands in place."""
        self._type.write(writer, values[0])

    def follow(self, writer: Writer, values: Sequence[Any]) -> None:
        """Write what pointers lead to."""
        self._type.follow(writer, values[0])


_Steps: TypeAlias = tuple[tuple[_Run | _Single, slice], ...]
"""Fields that are read at once, and which they are."""


def _cut(types: Sequence[Type], align: int, *, is_call: bool) -> _Steps:
    """Cut fields into steps.

    Where a run begins is known but for multiples of an alignment: that of the structure for the
    first, that of its first field for any other. In a call, what a pointer leads to stands behind
    its own parameter, so that a run ends there.
    """
    steps: list[_Run | _Single] = []
    pending: list[Type] = []
    known = align

    def flush() -> None:
        if pending:
            steps.append(_Run(known, tuple(pending)))
            pending.clear()

    for one in types:
        if one.code is None:
            flush()
            steps.append(_Single(one))
            continue
        if pending and one.align > known:
            flush()
        if not pending:
            known = one.align if steps else align
        pending.append(one)
        if is_call and one.leads:
            flush()
    flush()
    result, at = [], 0
    for step in steps:
        result.append((step, slice(at, at + len(step.fields))))
        at += len(step.fields)
    return tuple(result)


class _Fields:
    """Fields one after another, and the class that they become."""

    __slots__ = ("_count", "_get", "make", "steps")

    def __init__(self, make: Callable[..., Any], names: Sequence[str], steps: _Steps) -> None:
        self.make = make
        self.steps = steps
        self._get = attrgetter(*names) if names else None
        self._count = len(names)

    def values(self, value: Any) -> Sequence[Any]:
        """Return the values of all fields."""
        if self._get is None:
            return ()
        found = self._get(value)
        return found if self._count > 1 else (found,)


class Struct(Type):
    """A structure; a union, if it has one, is its last field."""

    def __init__(
        self, make: Callable[..., Any], *fields: Field, union: tuple[str, Union] | None = None
    ) -> None:
        names = [name for name, _ in fields]
        types = [one for _, one in fields]
        self.align = max(one.align for one in types)
        self.size = sum(one.size for one in types)
        self._union: Union | None = None
        self._switch = -1
        if union is not None:
            names.append(union[0])
            self._union = union[1]
            self._switch = names.index(union[1].switch)
            self.align = max(self.align, union[1].align)
            self.size += union[1].size
        self._fields = _Fields(make, names, _cut(types, self.align, is_call=False))
        if self._union is not None and any(one.width > 1 for one in types):
            raise TypeError("the place of a tag is not known behind counted arrays")

    def read(self, reader: Reader) -> Any:
        """Read what stands in place."""
        reader.at += -reader.at & (self.align - 1)
        raws: list[Any] = [step.read(reader) for step, _ in self._fields.steps]
        if self._union is not None:
            raws.append(self._union.read(reader, raws[0][self._switch]))
        return raws

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the fields, then the structure."""
        values: list[Any] = []
        for (step, _), one in zip(self._fields.steps, raw, strict=False):
            values += step.resolve(reader, one)
        if self._union is not None:
            arm, read = raw[-1]
            values.append(arm.resolve(reader, read))
        return self._fields.make(*values)

    def write(self, writer: Writer, value: Any) -> None:
        """Write what stands in place."""
        writer.align(self.align)
        values = self._fields.values(value)
        for step, which in self._fields.steps:
            step.write(writer, values[which])
        if self._union is not None:
            self._union.write(writer, values[self._switch], values[-1])

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what pointers lead to."""
        values = self._fields.values(value)
        for step, which in self._fields.steps:
            step.follow(writer, values[which])
        if self._union is not None:
            self._union.follow(writer, values[self._switch], values[-1])


class Call(Generic[T]):
    """All parameters of one direction of a method."""

    def __init__(self, make: Callable[..., T], *fields: Field) -> None:
        names = [name for name, _ in fields]
        types = [one for _, one in fields]
        self._fields = _Fields(make, names, _cut(types, 8, is_call=True))
        self._whole: _Run | None = None
        """All of it, if it is of fixed size and leads nowhere: most calls are one layout."""
        if len(self._fields.steps) == 1 and not any(one.leads for one in types):
            [(step, _)] = self._fields.steps
            self._whole = step if isinstance(step, _Run) else None

    def decode(self, stub: bytes) -> T:
        """Read the parameters; refuse what does not belong to them."""
        reader = Reader(stub)
        whole = self._whole
        if whole is not None:
            found: T = self._fields.make(*whole.resolve(reader, whole.read(reader)))
            if reader.end - reader.at > TRAILING_MAX_BYTES:
                raise self._too_much(reader)
            return found
        values: list[Any] = []
        for step, _ in self._fields.steps:
            values += step.resolve(reader, step.read(reader))
        if reader.end - reader.at > TRAILING_MAX_BYTES:
            raise self._too_much(reader)
        result: T = self._fields.make(*values)
        return result

    def _too_much(self, reader: Reader) -> DecodeError:
        return reader.wrong(f"{reader.end - reader.at} bytes behind the last parameter")

    def encode(self, value: T) -> bytes:
        """Return the bytes of the parameters."""
        values = self._fields.values(value)
        if self._whole is not None and self._whole.is_plain:
            return packed(self._whole.layout, values)
        writer = Writer()
        for step, which in self._fields.steps:
            step.write(writer, values[which])
            step.follow(writer, values[which])
        return bytes(writer.out)

"""YAML for files that people write: a tree that knows its lines, and text for a tree.

Values are texts until somebody who knows the key reads them as something else, so a site may be
called `No` and a computer `007`. Aliases are refused, and nesting is bounded: a small file cannot
become a large tree.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import yaml

PLAN_MAX_BYTES: Final = 16 * 1024 * 1024
"""Size of a file."""

PLAN_MAX_LEVELS: Final = 16
"""Mappings and lists inside each other."""

NAMED_MAX_COUNT: Final = 20
"""Names that are listed when none is similar to a wrong one."""

# The compiled parser, where PyYAML has it, reads large files in a fraction of the time.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlanError(ValueError):
    """Something in a file is wrong; the sentence says what, in which line, and what would do."""


class Node(msgspec.Struct):
    """A place in a file: a text, a list, or a mapping."""

    file: str
    line: int
    path: str
    """The keys that lead to it."""
    text: str | None = None
    items: list[Node] | None = None
    pairs: dict[str, Node] | None = None

    def error(self, problem: str) -> PlanError:
        """Say that something is wrong here."""
        where = f"{self.file}, line {self.line}"
        return PlanError(f"{where}: {self.path}: {problem}" if self.path else f"{where}: {problem}")

    def mapping(self) -> dict[str, Node]:
        """Return the values by their keys; nothing at all is a mapping without keys."""
        if self.text == "":
            return {}
        if self.pairs is None:
            raise self.error(f"keys with values are needed here, not {self._what()}")
        return self.pairs

    def sequence(self) -> list[Node]:
        """Return the elements of a list; nothing at all is an empty list."""
        if self.text == "":
            return []
        if self.items is None:
            raise self.error(f"a list is needed here, not {self._what()}")
        return self.items

    def scalar(self) -> str:
        """Return the text."""
        if self.text is None:
            raise self.error(f"a text is needed here, not {self._what()}")
        return self.text

    def known(self, keys: Iterable[str]) -> dict[str, Node]:
        """Return the values by their keys, of which there are no others than these."""
        keys = list(keys)
        found = self.mapping()
        for key, value in found.items():
            if key not in keys:
                raise PlanError(
                    f"{self.file}, line {value.line}: {self.path or 'the file'} has no key "
                    f"{key!r}{nearest(key, keys)}"
                )
        return found

    def _what(self) -> str:
        if self.pairs is not None:
            return "keys with values"
        return "a list" if self.items is not None else f"the text {self.text!r}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the most similar of the known names, or the few there are."""
    names = sorted(known)
    meant = difflib.get_close_matches(name, names, 1)
    if meant:
        return f" (did you mean {meant[0]!r}?)"
    return f" (there are {', '.join(names)})" if 0 < len(names) <= NAMED_MAX_COUNT else ""


def read_tree(text: str, file: str) -> Node:
    """Read a file as a tree; raises `PlanError`."""
    if len(text.encode("utf-8", "replace")) > PLAN_MAX_BYTES:
        raise PlanError(f"{file} is larger than {PLAN_MAX_BYTES} bytes")
    try:
        return _Builder(file).build(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise PlanError(f"{file}, line {line}: this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        problem = " ".join(str(error).split())
        raise PlanError(f"{file}: this is no YAML: {problem}") from None


class _Builder:
    """Makes a tree of the events of a parser."""

    def __init__(self, file: str) -> None:
        self._file = file

    def build(self, events: Iterator[yaml.Event]) -> Node:
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self._error(event, "a second document begins here; put it into a file")
                root = self._node(next(events), events, "", 0)
        return root or Node(self._file, 1, "", text="")

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], path: str, depth: int) -> Node:
        node = Node(self._file, _line(event), path)
        if depth > PLAN_MAX_LEVELS:
            raise node.error("this is nested too deeply")
        match event:
            case yaml.ScalarEvent():
                is_nothing = event.value in ("~", "null") and not event.style
                node.text = "" if is_nothing else event.value
            case yaml.SequenceStartEvent():
                node.items = []
                for inner in events:
                    if isinstance(inner, yaml.SequenceEndEvent):
                        break
                    node.items.append(self._node(inner, events, path, depth + 1))
            case yaml.MappingStartEvent():
                node.pairs = self._pairs(events, path, depth)
            case _:
                raise node.error("aliases (*name) are not used in these files")
        return node

    def _pairs(self, events: Iterator[yaml.Event], path: str, depth: int) -> dict[str, Node]:
        pairs: dict[str, Node] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(event, "a key is a text")
            key = event.value
            value = self._node(next(events), events, f"{path}.{key}" if path else key, depth + 1)
            if key in pairs:
                raise self._error(event, f"the key {key!r} is there twice")
            # A value that begins on the next line belongs to the line of its key, for people.
            value.line = _line(event)
            pairs[key] = value
        return pairs

    def _error(self, event: yaml.Event, problem: str) -> PlanError:
        return Node(self._file, _line(event), "").error(problem)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return 1 if mark is None else mark.line + 1


# Writing.

Tree: TypeAlias = "str | int | bool | Sequence[Tree] | Mapping[str, Tree]"

_PLAIN: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9_.$/\\-]*(?: [A-Za-z0-9_.$/\\-]+)*"
    r"|\d+(\.\d+){3}"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_NOT_PLAIN: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def write_tree(tree: Mapping[str, Tree]) -> str:
    """Write a tree as YAML that `read_tree` reads as the same."""
    return "".join(f"{line}\n" for line in _lines(tree))


def _lines(tree: Mapping[str, Tree]) -> Iterator[str]:
    for key, value in tree.items():
        name = _scalar(key)
        if isinstance(value, Mapping):
            yield f"{name}:"
            yield from (f"  {line}" for line in _lines(value))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from _sequence(name, value)
        else:
            yield f"{name}: {_scalar(value)}"


def _sequence(name: str, values: Sequence[Tree]) -> Iterator[str]:
    if not any(isinstance(value, Mapping) for value in values):
        yield f"{name}: [{', '.join(_scalar(value) for value in values)}]"
        return
    yield f"{name}:"
    for value in values:
        assert isinstance(value, Mapping), "a list has either texts or mappings"
        first, *rest = _lines(value)
        yield f"  - {first}"
        yield from (f"    {line}" for line in rest)


def _scalar(value: Tree) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    assert isinstance(value, str), "mappings and lists are written elsewhere"
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN:
        return value
    if value.isprintable():
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"

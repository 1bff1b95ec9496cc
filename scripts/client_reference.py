"""Writes the reference of the Python client: what its classes and verbs say of themselves.

Verbs are rows of steps that become methods of two kinds, so the pages show what a caller sees: the
steps' parameters without the handle they work on, and their result without the steps.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

import openmsmq
from openmsmq import aio
from openmsmq.api import messages as api
from openmsmq.client import blocking
from openmsmq.client.messages.outgoing import SendOptions
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.client.verbs.manager import QueueOptions

BLOCKING_PAGE: Final = "python.md"

INTRODUCTION: Final = r"""
Everything that `import openmsmq` gives a program. [Send and receive](../guides/send-and-receive.md)
and [transactions](../guides/transactions.md) show it in use; `openmsmq.aio` has the same verbs
[for asyncio](python-asyncio.md). A time to wait is in seconds, and None is for ever. What a queue
manager refuses is an [error](#errors). What verbs give beside messages and plain values has
[a page of its own](python-answers.md).

```python
import openmsmq as mq

with mq.connect("127.0.0.2") as manager:
    manager.queue(r"private$\orders").send("order 1")
```
"""

ASYNCIO_INTRODUCTION: Final = r"""
`from openmsmq import aio` has the verbs of [the client that waits](python.md), with the same
parameters and results, to be awaited. What is the same is explained there; settings, messages,
answers and errors are the same classes. Tasks share a connection: calls of several tasks are under
way at the same time. A read that is cancelled loses nothing.

```python
from openmsmq import aio


async def main() -> None:
    async with aio.connect("127.0.0.2") as manager:
        await manager.queue(r"private$\orders").send("order 1")
```
"""

OPTIONS_TEXT: Final = """\
What `send` and `send_many` take beside the body, by name, and an `OutgoingMessage` has as fields.
"""
QUEUE_OPTIONS_TEXT: Final = """\
What `create_queue` takes beside the path, by name; `openmsmq queue create` has
[the same](cli.md) as options.
"""
PROPERTIES_TEXT: Final = "Its properties are those of [the message](message.md):"
ANSWERS_TEXT: Final = """\
What verbs of the [Python client](python.md) give beside messages and plain values: frozen values of
`openmsmq.api.messages`. The same classes answer [requests](requests.md).
"""
SINGLE_MESSAGE_TEXT: Final = """\
In place of a transaction: the send is a transaction of its own (`MQ_SINGLE_MESSAGE`), as
`orders.send("order 1", transaction=mq.SINGLE_MESSAGE)`.
"""

CLASSES: Final = ("QueueManager", "Queue", "Transaction", "Cursor")
MESSAGES: Final = ("OutgoingMessage", "ReceivedMessage", "MessageId", "Certificate")
ENUMERATIONS: Final = ("AccessMode", "ShareMode", "SeekAction", "AckRequest", "MessageClass")
FORMATTERS: Final = ("Formatter", "register_formatter")
ERRORS: Final = (
    "MsmqError", "QueueNotFound", "ReceiveTimeout", "FormatterError", "ConnectionLost",
    "OutcomeUnknown",
)  # fmt: skip

ATTRIBUTES: Final = {
    "QueueManager": ("name", "identifier", "settings"),
    "Queue": ("name", "format_name", "formatter", "journal"),
    "Transaction": ("state", "unit_of_work"),
    "Cursor": ("queue", "started"),
}
"""What is for callers; the handles below the classes have more, for the verbs."""

ROOMS: Final = {
    "blocking": "Everyday verbs",
    "aio": "Everyday verbs",
    "shells": "Everyday verbs",
    "queue": "Sending, and the queue as a whole",
    "read": "Reading",
    "transactions": "Everyday verbs",
    "manager": "Queues, transactions in doubt, batches of streams",
    "watching": "Watching",
    "outgoing": "What is on its way to other computers",
    "directory": "The directory",
    "backups": "Back-ups",
    "program": "The server as a program",
    "access": "Who may do what",
    "security": "Keys and certificates",
}
"""A heading for the verbs of each module."""

_SOURCE: Final = re.compile(r"\s*\[(?:MQ|MS-)[^\]]*\]")
_STEPS: Final = re.compile(r"Steps\[(.*)\]", re.DOTALL)
_ANSWER: Final = re.compile(r"\bapi\.(\w+)")
_LINE_MAX_CHARACTERS: Final = 88


def blocking_page() -> str:
    """Write `docs/reference/python.md`, below its title."""
    parts = [INTRODUCTION.strip("\n"), *_function("connect", openmsmq.connect, 2)]
    parts += ["## Settings", _text(openmsmq.Settings), _fields(openmsmq.Settings)]
    for name in CLASSES:
        parts += _class(name, getattr(blocking, name))
    parts += ["## SINGLE_MESSAGE", SINGLE_MESSAGE_TEXT.strip()]
    parts += _messages()
    parts.append("## Formatters")
    parts.append(_module_text("openmsmq.client.formatters"))
    for name in FORMATTERS:
        parts += _plain(name, 3)
    parts.append("## Enumerations")
    for name in ENUMERATIONS:
        parts += _enumeration(name)
    parts.append("## Errors")
    parts.append("Each `MsmqError` has a [result code](errors.md), and advice in its text.")
    for name in ERRORS:
        parts += _plain(name, 3)
    return "\n\n".join(parts) + "\n"


def asyncio_page() -> str:
    """Write `docs/reference/python-asyncio.md`, below its title."""
    parts = [ASYNCIO_INTRODUCTION.strip("\n"), *_function("connect", aio.connect, 2)]
    for name in CLASSES:
        kind, twin = getattr(aio, name), getattr(blocking, name)
        parts += [f"## {name}", _text(kind)]
        lines = ["| Verb | What it does |", "|---|---|"]
        for verb, function in _verbs(kind):
            text = _text(function)
            call = f"`{_call(kind, verb)}`"
            if inspect.getdoc(inspect.unwrap(getattr(twin, verb))) == inspect.getdoc(function):
                call = f"[{call}]({BLOCKING_PAGE}#{_anchor(name, verb)})"
                text = _first_paragraph(function)
            lines.append(f"| {call} | {_one_line(text)} |")
        parts.append("\n".join(lines))
    same = [name for name in aio.__all__ if name not in (*CLASSES, "connect")]
    anchors = (f"[`{name}`]({BLOCKING_PAGE}#{name.lower()})" for name in sorted(same))
    parts += ["## The same as in the other client", ", ".join(anchors) + "."]
    return "\n\n".join(parts) + "\n"


def _call(kind: type, verb: str) -> str:
    """Say how a verb of the client for asyncio is used."""
    found = inspect.getattr_static(kind, verb)
    shown = inspect.signature(found)
    returns = str(shown.return_annotation)
    if inspect.iscoroutinefunction(found):
        return f"await {verb}(…)"
    if "AsyncIterator[Transaction" in returns:
        return f"async with {verb}()"
    return f"async for … in {verb}(…)" if "AsyncIterator" in returns else f"{verb}(…)"


def _messages() -> list[str]:
    parts = ["## Messages"]
    for name in MESSAGES:
        if name == "OutgoingMessage":
            sent = {row.name: row.sent for row in PROPERTIES.values() if row.sent}
            parts += [f"### {name}", OPTIONS_TEXT.strip()]
            parts.append(_fields(openmsmq.OutgoingMessage, sent))
            unknown = set(SendOptions.__annotations__) - set(
                openmsmq.OutgoingMessage.__struct_fields__
            )
            assert not unknown, f"options of send that no message has: {unknown}"
        elif name == "ReceivedMessage":
            parts += [f"### {name}", _text(openmsmq.ReceivedMessage), PROPERTIES_TEXT]
            rows = {row.name: row.meaning for row in PROPERTIES.values()}
            own = vars(openmsmq.ReceivedMessage)
            rows |= {key: _text(value) for key, value in own.items() if isinstance(value, property)}
            parts.append(_table(("Property", "Meaning"), rows.items()))
        else:
            parts += _plain(name, 3)
    return parts


def answers_page() -> str:
    """Write `docs/reference/python-answers.md`, below its title."""
    parts = [ANSWERS_TEXT.strip()]
    wanted: dict[str, None] = {}
    for name in CLASSES:
        for _, function in _verbs(getattr(blocking, name)):
            returned = str(inspect.signature(function).return_annotation)
            wanted.update(dict.fromkeys(_ANSWER.findall(returned)))
    shown: set[str] = set()
    while wanted:
        name = min(wanted)
        del wanted[name]
        shown.add(name)
        kind = getattr(api, name)
        parts += [f"## {name}", _text(kind)]
        if kind.__struct_fields__:
            parts.append(_fields(kind))
        inside = re.findall(r"\w+", " ".join(map(str, _annotations(kind).values())))
        for other in inside:
            found = getattr(api, other, None)
            if inspect.isclass(found) and issubclass(found, msgspec.Struct) and other not in shown:
                wanted[other] = None
    return "\n\n".join(parts) + "\n"


def _class(name: str, kind: type) -> list[str]:
    parts = [f"## {name}", _text(kind)]
    texts = {attribute: _attribute_text(kind, attribute) for attribute in ATTRIBUTES[name]}
    parts.append(_table(("Attribute", "Meaning"), texts.items()))
    rooms: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
    for verb, function in _verbs(kind):
        module = function.__module__.rpartition(".")[2]
        rooms.setdefault(ROOMS[module], []).append((verb, function))
    for heading in dict.fromkeys(ROOMS.values()):
        if heading not in rooms:
            continue
        parts.append(f"### {name}: {heading[0].lower()}{heading[1:]}")
        for verb, function in rooms[heading]:
            parts += _function(f"{name}.{verb}", function, 4, is_method=True)
            if verb == "create_queue":
                parts += [QUEUE_OPTIONS_TEXT.strip(), _keywords(QueueOptions)]
    return parts


def _plain(name: str, level: int) -> list[str]:
    """Explain a function, or a class that has but a few things to know."""
    found = getattr(openmsmq, name)
    if not inspect.isclass(found):
        return _function(name, found, level)
    parts = [f"{'#' * level} {name}", _text(found)]
    if issubclass(found, BaseException):
        bases = [base.__name__ for base in found.__bases__]
        parts[1] += f" Is a {' and a '.join(f'`{base}`' for base in bases)}."
    if issubclass(found, msgspec.Struct):
        parts.append(_fields(found))
    members = {
        key: _text(getattr(found, key))
        for key, value in vars(found).items()
        if not key.startswith("_")
        and isinstance(value, property | classmethod | types.FunctionType)
    }
    if members:
        rows = (
            (key if isinstance(vars(found)[key], property) else f"{key}()", text)
            for key, text in members.items()
        )
        parts.append(_table(("Member", "Meaning"), rows))
    return parts


def _function(
    name: str, function: Callable[..., Any], level: int, *, is_method: bool = False
) -> list[str]:
    shown = _signature(name.rpartition(".")[2], function, is_method=is_method)
    text = textwrap.dedent(_text(function, keep_paragraphs=True))
    return [f"{'#' * level} {name}", f"```python\n{shown}\n```", text]


def _enumeration(name: str) -> list[str]:
    kind = getattr(openmsmq, name)
    texts = _texts_below(kind)
    rows = [
        (member, f"`{_value(value.value)}`", texts.get(member, ""))
        for member, value in kind.__members__.items()
    ]
    lines = ["| Member | Value | Meaning |", "|---|---|---|"]
    if not texts:
        lines = ["| Member | Value |", "|---|---|"]
    for member, value, text in rows:
        meaning = f" {_one_line(text)} |" if texts else ""
        lines.append(f"| `{member}` | {value} |{meaning}")
    return [f"### {name}", _text(kind), "\n".join(lines)]


def _verbs(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the verbs of a class in the order of the code, and what explains each of them."""
    # The class was given its verbs in no order; those that it comes from have them in one.
    own = kind.__module__
    written = [name for name, value in vars(kind).items() if _home(value) == own]
    inherited = [name for base in kind.__mro__[1:] for name in vars(base)]
    for name in dict.fromkeys([*written, *inherited]):
        value = inspect.getattr_static(kind, name)
        if name.startswith("_") or not inspect.isfunction(value):
            continue
        steps = inspect.unwrap(value)
        home = steps.__module__.rpartition(".")[2]
        if steps is not value or home in ("blocking", "aio", "shells"):
            yield name, steps


def _home(value: object) -> str | None:
    """Return the module where a function was written, whatever has been put around it."""
    return inspect.unwrap(value).__module__ if inspect.isfunction(value) else None


def _signature(name: str, function: Callable[..., Any], *, is_method: bool) -> str:
    """Write a signature as a caller sees it."""
    found = inspect.signature(function)
    given = list(found.parameters.values())[is_method:]
    words: list[str] = []
    for parameter in given:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        word = f"{star}{parameter.name}: {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            word += f" = {_value(parameter.default)}"
        words.append(word)
    returned = _type(found.return_annotation)
    line = f"{name}({', '.join(words)}) -> {returned}"
    if len(line) <= _LINE_MAX_CHARACTERS:
        return line
    inside = "".join(f"    {word},\n" for word in words)
    return f"{name}(\n{inside}) -> {returned}"


def _type(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    steps = _STEPS.fullmatch(text)
    text = steps[1] if steps else text
    text = re.sub(r"Unpack\[(\w+)\]", r"\1", text).replace("api.", "")
    text = text.replace("_Connecting", "Awaitable[QueueManager]")
    # Verbs know handles, and callers the classes that are made from them.
    return re.sub(r"\b(Queue|Transaction|Cursor)Handle\b", r"\1", text)


def _value(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, bytes) and not any(value) and value:
        return f"bytes({len(value)})"
    return repr(value)


def _fields(kind: type, more: dict[str, str] | None = None) -> str:
    """Write the fields of a struct with their types, defaults and texts."""
    texts = {**(more or {}), **_texts_below(kind)}
    names = kind.__struct_fields__  # type: ignore[attr-defined]
    defaults = kind.__struct_defaults__  # type: ignore[attr-defined]
    # Defaults belong to the last fields.
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    types_of = _annotations(kind)
    lines = ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    for name in names:
        default = given.get(name, msgspec.NODEFAULT)
        shown = "" if default is msgspec.NODEFAULT else f"`{_default(default)}`"
        text = _one_line(_SOURCE.sub("", texts.get(name, "")))
        lines.append(f"| `{name}` | `{_type_words(types_of[name])}` | {shown} | {text} |")
    return "\n".join(lines)


def _default(default: object) -> str:
    if hasattr(default, "factory"):
        return f"{default.factory.__name__}()"
    return _value(default)


def _keywords(kind: type) -> str:
    """Write the options of a dictionary of keywords."""
    texts = _texts_below(kind)
    lines = ["| Option | Type | Meaning |", "|---|---|---|"]
    for name, annotation in kind.__annotations__.items():
        shown = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        text = _one_line(texts.get(name, ""))
        lines.append(f"| `{name}` | `{_type_words(shown)}` | {text} |")
    return "\n".join(lines)


def _type_words(annotation: object) -> str:
    """Write a type for a cell of a table, where a bar would end it."""
    return _type(annotation).replace(" | ", " or ")


def _annotations(kind: type) -> dict[str, object]:
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("__annotations__", {})
    return found


def _attribute_text(kind: type, name: str) -> str:
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property):
        return _text(found)
    return _texts_below(kind)[name]


@functools.cache
def _texts_below(kind: type) -> dict[str, str]:
    """Return the texts that stand below the attributes of a class, and of those it comes from."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("openmsmq"):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            for statement, below in pairwise(node.body):
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    texts |= dict.fromkeys(_assigned(statement), str(below.value.value))
    return texts


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.AnnAssign(target=target):
            targets = [target]
        case ast.Assign(targets=found):
            targets = [*found]
        case _:
            return []
    return [
        each.id if isinstance(each, ast.Name) else each.attr
        for each in targets
        if isinstance(each, ast.Name | ast.Attribute)
    ]


def _module_text(name: str) -> str:
    import importlib

    return (inspect.getdoc(importlib.import_module(name)) or "").partition("\n\n")[2]


def _text(found: object, *, keep_paragraphs: bool = False) -> str:
    """Return what something says of itself, without the section of a specification."""
    text = _SOURCE.sub("", inspect.getdoc(found) or "").strip()
    assert text, f"{found} has no docstring"
    return text if keep_paragraphs else text.replace("\n\n", "\n")


def _table(head: tuple[str, str], rows: Any) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [f"| `{name}` | {_one_line(text)} |" for name, text in rows]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    assert "|" not in text, f"a bar would end the cell of a table: {text}"
    return text if not text or text.endswith((".", ")")) else f"{text}."


def _first_paragraph(found: object) -> str:
    return _text(found, keep_paragraphs=True).partition("\n\n")[0]


def _anchor(name: str, verb: str) -> str:
    """Return where the other page explains a verb, as GitHub and the site name headings."""
    return f"{name}{verb}".lower()

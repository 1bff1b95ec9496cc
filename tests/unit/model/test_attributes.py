"""The pages that map the specification's attributes to ours are complete and true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from openmsmq.api.messages import Entry
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import MultiQueueFormatHeader
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs/reference/message.md", ROOT / "docs/reference/objects.md"]
NAMED = (Path(__file__).parent / "data/attributes.txt").read_text().split()
ELEMENTS = sorted({name.partition(".")[0] for name in NAMED})
PARTS = {
    "base": BaseHeader,
    "user": UserHeader,
    "transaction": TransactionHeader,
    "security": SecurityHeader,
    "properties": MessageProperties,
    "debug": DebugHeader,
    "soap": SoapHeader,
    "multi_queue": MultiQueueFormatHeader,
    "entry": Entry,
}
# What has no meaning of its own: how a header is written, and bits that properties name.
LAYOUT = re.compile(r"\w+\.(flags|\w*padding|padded|\w*reserved|packet)")


def section(element: str) -> str:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    match = re.search(rf"^## {element}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"no section for {element}"
    return match[1]


def rows(element: str) -> list[tuple[str, str, str]]:
    cells = re.findall(r"^\| (\w+) \| (.*?) \|(.*)\|$", section(element), re.MULTILINE)
    return [(name, ours, note.strip()) for name, ours, note in cells if name != "Specification"]


def class_of(element: str) -> type:
    if element == "Message":
        return UserMessage
    match = re.search(r"`(openmsmq\.[\w.]+)\.(\w+)`", section(element))
    assert match
    return getattr(importlib.import_module(match[1]), match[2])


@pytest.mark.parametrize("element", ELEMENTS)
def test_each_attribute_of_the_specification_has_one_row(element):
    expected = [name.partition(".")[2] for name in NAMED if name.startswith(f"{element}.")]
    assert [name for name, _, _ in rows(element)] == expected


@pytest.mark.parametrize("element", ELEMENTS)
def test_each_row_names_a_field_that_exists_or_says_why_there_is_none(element):
    for name, ours, note in rows(element):
        fields = re.findall(r"`([\w.]+)`", ours)
        assert fields or (ours == "-" and note), name
        for field in fields:
            part, dot, inner = field.partition(".")
            assert part == "entry" or hasattr(class_of(element), part), f"{name}: {field}"
            assert not dot or hasattr(PARTS[part], inner), f"{name}: {field}"


@pytest.mark.parametrize("element", sorted(set(ELEMENTS) - {"TransactionalOperation"}))
def test_each_field_of_ours_stands_in_the_page(element):
    shown = set(re.findall(r"`([\w.]+)`", section(element)))
    fields = set(class_of(element).__struct_fields__)
    if element == "Message":
        assert fields - PARTS.keys() == {"session", "session_counted", "tail"}
        fields = {f"{part}.{name}" for part in PARTS for name in PARTS[part].__struct_fields__}
        fields = {field for field in fields if not LAYOUT.fullmatch(field)}
    assert fields - shown <= {"identifier"}

"""The pages that map the specification's attributes to ours are complete and true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from openmsmq.storage.records import EntryFacts
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
    "debug": DebugHeader,
    "facts": EntryFacts,
    "multi_queue": MultiQueueFormatHeader,
    "properties": MessageProperties,
    "security": SecurityHeader,
    "soap": SoapHeader,
    "transaction": TransactionHeader,
    "user": UserHeader,
}
# What stays as it came and means nothing here, and what follows from the rest.
LAYOUT = {"flags", "padding", "padded", "session", "session_counted", "body_size", "allocated_size"}
RUNNING = {"IncomingTransactionalTransferInfo", "OutgoingQueue", "TransactionalOperation"}
"""What no value of the model stands for: the running queue manager has it."""


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
        assert not (fields and element in RUNNING), name
        for field in fields:
            part, _, inner = field.rpartition(".")
            kind = PARTS[part] if part else class_of(element)
            assert hasattr(kind, inner), f"{name}: {field}"


@pytest.mark.parametrize("element", sorted(set(ELEMENTS) - RUNNING - {"Message"}))
def test_each_field_of_ours_stands_in_the_page(element):
    shown = set(re.findall(r"`([\w.]+)`", section(element)))
    assert set(class_of(element).__struct_fields__) - shown <= {"identifier"}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_a_message_stands_in_the_page(part):
    shown = set(re.findall(rf"`{part}\.(\w+)`", section("Message")))
    fields = {name for name in PARTS[part].__struct_fields__ if not name.endswith("reserved")}
    assert fields - LAYOUT - shown == set()
    assert part == "facts" or hasattr(UserMessage, part)

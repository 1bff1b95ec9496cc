"""The pages that map the specification's attributes to ours are complete and true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from openmsmq.model.message import Message, SoapParts, TransactionFacts

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs/reference/message.md", ROOT / "docs/reference/objects.md"]
NAMED = (Path(__file__).parent / "data/attributes.txt").read_text().split()
ELEMENTS = sorted({name.partition(".")[0] for name in NAMED})
PARTS = {"transaction": TransactionFacts, "soap": SoapParts}


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
        return Message
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
            assert hasattr(class_of(element), part), f"{name}: {field}"
            assert not dot or hasattr(PARTS[part], inner), f"{name}: {field}"


@pytest.mark.parametrize("element", sorted(set(ELEMENTS) - {"TransactionalOperation"}))
def test_each_field_of_ours_stands_in_the_page(element):
    shown = set(re.findall(r"`([\w.]+)`", section(element)))
    fields = set(class_of(element).__struct_fields__)
    if element == "Message":
        fields -= PARTS.keys()
        for part, kind in PARTS.items():
            fields |= {f"{part}.{name}" for name in kind.__struct_fields__}
    assert fields - shown <= {"identifier"}

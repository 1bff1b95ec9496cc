"""Each name with a module path in the glossary exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parents[1] / "docs/reference/glossary.md"
NAMES = re.findall(r"`(openmsmq(?:\.\w+)+)`", GLOSSARY.read_text(encoding="utf-8"))


def test_the_glossary_names_classes():
    assert any(name.endswith(".UserMessage") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_glossary_exists(name):
    module, _, attribute = name.rpartition(".")
    if attribute[0].isupper():
        assert hasattr(importlib.import_module(module), attribute)
    else:
        assert importlib.import_module(name)


def test_a_name_stands_in_the_glossary_once():
    assert len(NAMES) == len(set(NAMES))


def test_links_of_the_glossary_lead_to_pages():
    links = re.findall(r"\]\(([\w./-]+)\)", GLOSSARY.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (GLOSSARY.parent / link).is_file()] == []

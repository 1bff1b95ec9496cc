"""The page of operations names tests that exist, and errors that they are about."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from openmsmq.model.error_catalogue import CATALOGUE
from openmsmq.model.errors import error_for

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reference/operations.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if "`tests/" in line]
CODES = {entry.name: code for code, entry in CATALOGUE.items()}


@functools.cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def functions(path: str) -> frozenset[str]:
    return frozenset(
        node.name for node in ast.walk(ast.parse(source(path))) if isinstance(node, ast.FunctionDef)
    )


def test_the_page_names_tests() -> None:
    assert len(ROWS) > 30
    assert len(TESTS) > 50


@pytest.mark.parametrize(("path", "name"), TESTS, ids=[name for _, name in TESTS])
def test_a_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert name in functions(path)


def test_errors_that_the_page_names_are_in_the_catalogue() -> None:
    named = set(re.findall(r"`(MQ_(?:ERROR|INFORMATION)_\w+)`", PAGE))
    assert named - CODES.keys() == set()


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip() for row in ROWS])
def test_the_errors_of_a_row_stand_in_the_files_of_its_tests(row: str) -> None:
    texts = "".join(source(path) for path in set(re.findall(r"`(tests/[\w/]+\.py)::", row)))
    missing = [
        name
        for name in re.findall(r"`(MQ_ERROR_\w+)`", row)
        if name not in texts and error_for(CODES[name]).__name__ not in texts
    ]
    assert missing == []

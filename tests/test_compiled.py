"""The modules that are compiled keep to what mypyc compiles as Python means it (decision 0018)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
sys.path.insert(0, str(HOME / "scripts"))

import compile_core  # noqa: E402

MODULES = compile_core.modules()


def test_the_core_is_compiled() -> None:
    assert "openmsmq/manager/manager.py" in MODULES
    assert "openmsmq/protocol/session.py" in MODULES
    assert "openmsmq/manager/outputs.py" not in MODULES


def _problems(source: str) -> list[str]:
    """Name what mypyc would compile to something else, or not at all."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.cause is not None:
            if not (isinstance(node.cause, ast.Constant) and node.cause.value is None):
                found.append(f"line {node.lineno}: the cause of an error is lost")
        elif isinstance(node, ast.FunctionDef):
            names = [
                handler.name
                for handler in ast.walk(node)
                if isinstance(handler, ast.ExceptHandler) and handler.name is not None
            ]
            if len(names) > len(set(names)):
                found.append(f"line {node.lineno}: two handlers with one name share its type")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "slice":
            found.append(f"line {node.lineno}: a slice object is taken for a number")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_a_compiled_module_means_the_same_as_its_source(module: str) -> None:
    assert _problems((HOME / "src" / module).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError from error",
        """
def f():
    try:
        g()
    except ValueError as error:
        h(error)
    except OSError as error:
        h(error)
""",
        "PART = slice(1, 2)",
    ],
)
def test_what_would_be_compiled_wrongly_is_noticed(source: str) -> None:
    assert _problems(source)


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_tests_of_the_core_that_import_a_compiled_module_run_with_the_compiled_one() -> None:
    makefile = (HOME / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^test-compiled:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    run = [HOME / word for word in recipe.split() if word.startswith("tests/")]
    assert all(path.exists() for path in run)
    compiled = {module.removesuffix(".py").replace("/", ".") for module in MODULES}
    wanted = {
        path
        for package in ("api", "manager", "protocol", "runtime", "storage")
        for path in (HOME / "tests/unit" / package).rglob("test_*.py")
        if compiled.intersection(_imported(path.read_text(encoding="utf-8")))
    }
    assert len(wanted) > 20
    assert {path for path in wanted if not {path, *path.parents}.intersection(run)} == set()

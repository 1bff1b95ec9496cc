"""The modules that are compiled keep to what mypyc compiles as Python means it (decision 0018)."""

from __future__ import annotations

import ast
import sys
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

"""Importing a part of the package brings no more than that part."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import openmsmq
from openmsmq.client import blocking


def modules_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_the_wire_brings_no_sockets() -> None:
    loaded = modules_after("import openmsmq.wire.packets")
    assert "openmsmq.wire.packets" in loaded
    assert loaded.isdisjoint({"socket", "ssl", "asyncio", "openmsmq.client"})


def test_the_blocking_client_brings_no_event_loop() -> None:
    loaded = modules_after("import openmsmq; openmsmq.connect")
    assert "openmsmq.client.blocking" in loaded
    assert "asyncio" not in loaded


def test_the_names_of_the_client_are_names_of_the_package() -> None:
    assert openmsmq.connect is blocking.connect
    assert "connect" in dir(openmsmq)


def test_every_public_name_is_there_for_those_who_import_all() -> None:
    names: dict[str, object] = {}
    exec("from openmsmq import *", names)
    assert names.keys() >= set(openmsmq.__all__)
    assert {name for name in openmsmq.__all__ if name.startswith("_")} == set()
    # What type checkers are told, what is loaded on demand, and what is promised are the same.
    source = Path(openmsmq.__file__).read_text(encoding="utf-8")
    told = re.findall(r"^    from \S+ import (\w+) as \1$", source, re.MULTILINE)
    assert set(told) == set(openmsmq.__all__) == set(dir(openmsmq)) & set(told)

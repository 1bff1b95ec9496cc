"""The import contracts of pyproject.toml hold, and each of them notices when it is broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "pyproject.toml"
CONTRACTS: Final = {
    contract["id"]: contract
    for contract in tomllib.loads(CONFIG.read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}

# Packages of the deterministic core, those that are still to come included.
CORE: Final = (
    "model", "wire", "capture", "analysis", "api", "directory", "protocol", "routing", "security",
    "manager", "remote",
)  # fmt: skip

# For each contract, files whose presence breaks it: path in the package, text. An import upwards
# may close a cycle too, so other contracts may be broken beside it.
VIOLATIONS: Final = {
    "layers": [
        ("model/planted.py", "import openmsmq.wire.errors"),
        ("wire/planted.py", "import openmsmq.cli"),
        ("analysis/planted.py", "import openmsmq.protocol.session"),
        ("remote/planted.py", "import openmsmq.manager.manager"),
        ("protocol/planted.py", "import openmsmq.manager.manager"),
        ("unlisted/__init__.py", ""),
    ],
    "analysis": [("analysis/planted.py", "import openmsmq.storage.records")],
    "manager": [
        ("manager/turn/planted.py", "import openmsmq.manager.queues.queue"),
        ("manager/messages/planted.py", "import openmsmq.manager.requests.sends"),
        ("manager/unlisted/__init__.py", ""),
    ],
    "core": [
        (f"{package}/planted.py", f"import {module}")
        for package in ("model", "wire")
        for module in ("asyncio", "os", "time", "random", "logging")
    ]
    + [
        ("wire/headers/planted.py", "from socket import socket"),
        ("remote/planted.py", "import secrets"),
    ],
    "typer": [("wire/planted.py", "import typer"), ("model/planted.py", "from typer import echo")],
    "rich": [("wire/planted.py", "from rich.table import Table")],
    "pyspark": [("client/planted.py", "import pyspark"), ("cli/planted.py", "import pyarrow")],
    "tables": [("spark/planted.py", "import deltalake"), ("cli/planted.py", "import pyiceberg")],
    "jinja2": [("cli/planted.py", "import jinja2")],
    "starlette": [("cli/planted.py", "import starlette"), ("client/planted.py", "import uvicorn")],
    "mkdocs": [("cli/planted.py", "import mkdocs"), ("client/planted.py", "import markdown")],
    "impacket": [("wire/rpc/planted.py", "import impacket")],
    "pygraphviz": [("cli/planted.py", "import pygraphviz")],
    "scipy": [("model/planted.py", "import scipy")],
    "yaml": [("model/planted.py", "import yaml")],
    "psycopg": [("spark/planted.py", "import psycopg")],
    "bonsai": [("runtime/planted.py", "import bonsai")],
    "gssapi": [("runtime/rpc/planted.py", "import gssapi")],
    "h11": [("runtime/rpc/planted.py", "import h11")],
    "opentelemetry": [
        ("runtime/telemetry/planted.py", "import opentelemetry"),
        ("client/planted.py", "from opentelemetry import trace"),
    ],
    "cryptography": [("manager/planted.py", "import cryptography")],
    "pycryptodome": [("security/planted.py", "from Crypto.Cipher import ARC2")],
    "lmdb": [("storage/planted.py", "import lmdb")],
    "zlib-ng": [("wire/planted.py", "from zlib_ng import zlib_ng")],
    "records": [("storage/memory.py", "import os"), ("storage/records.py", "import pathlib")],
    "applications": [("client/planted.py", "import openmsmq.storage.records")],
    "cycles": [
        ("wire/planted/one.py", "import openmsmq.wire.planted.two"),
    ],
}
# Violations that would break a rule of a specification.
SHOWN: Final = {
    (f"{package}/planted.py", "import openmsmq.manager.manager"): pytest.mark.spec(
        "MQDMPR-3.1.7.3-01"
    )
    for package in ("protocol", "remote")
}
# What a violation needs beside it.
SUPPORT: Final = {
    "wire/planted/one.py": [
        ("wire/planted/__init__.py", ""),
        ("wire/planted/two.py", "import openmsmq.wire.planted.one"),
    ],
}


def broken_contracts(source: Path) -> set[str]:
    """Run import-linter on the package below `source` and name the contracts that it reports."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    run = subprocess.run(
        [*command, "--config", str(CONFIG), "--no-cache", "--no-logo"],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = {
        id_: [line for line in run.stdout.splitlines() if line.startswith(contract["name"])]
        for id_, contract in CONTRACTS.items()
    }
    assert all(verdicts.values()), run.stdout + run.stderr
    broken = {id_ for id_, lines in verdicts.items() if any("BROKEN" in line for line in lines)}
    assert (run.returncode != 0) == bool(broken), run.stdout + run.stderr
    return broken


def test_the_contracts_hold() -> None:
    assert broken_contracts(ROOT / "src") == set()


def test_every_contract_has_a_violation_to_notice() -> None:
    assert VIOLATIONS.keys() == CONTRACTS.keys()


@pytest.mark.parametrize(
    ("contract", "path", "text"),
    [
        pytest.param(
            contract, path, text, id=f"{contract}-{path}-{text}", marks=SHOWN.get((path, text), ())
        )
        for contract, violations in VIOLATIONS.items()
        for path, text in violations
    ],
)
def test_a_violation_is_reported(tmp_path: Path, contract: str, path: str, text: str) -> None:
    package = tmp_path / "openmsmq"
    shutil.copytree(ROOT / "src/openmsmq", package, ignore=shutil.ignore_patterns("__pycache__"))
    for planted, content in [(path, text), *SUPPORT.get(path, [])]:
        (package / planted).parent.mkdir(exist_ok=True)
        (package / planted).write_text(f"{content}\n", encoding="utf-8")
    assert contract in broken_contracts(tmp_path)


def test_every_core_package_that_exists_is_under_the_core_contract() -> None:
    existing = {f"openmsmq.{name}" for name in CORE if (ROOT / "src/openmsmq" / name).exists()}
    assert set(CONTRACTS["core"]["source_modules"]) == existing

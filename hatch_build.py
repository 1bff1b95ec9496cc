"""Build hook: with OPENMSMQ_COMPILE=1 a wheel carries the compiled core (decision 0018)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
import compile_core as core


class CompiledCore(BuildHookInterface[Any]):
    """Adds extension modules to a wheel, and the platform to its name."""

    def dependencies(self) -> list[str]:
        """Name what compiling needs; without it a wheel needs nothing but its builder."""
        return ["msgspec", "mypy", "setuptools"] if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, before files are collected; an editable install stays as it is."""
        if version == "editable" or not _is_wanted():
            return
        if core.main() != 0:
            raise RuntimeError("the core was not compiled; what went wrong is said above")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update(core.extensions())


def _is_wanted() -> bool:
    return os.environ.get("OPENMSMQ_COMPILE", "") not in ("", "0")

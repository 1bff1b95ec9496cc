"""The tables of `docs/reference/configuration.md`, made from the options; a test compares them."""

from __future__ import annotations

import json
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec

from openmsmq.runtime.config.file import DEFAULTS, description, flag, plain_type, variable
from openmsmq.runtime.config.tables import meaning_of


def configuration_table() -> str:
    """Write the options as a Markdown table, for `docs/reference/configuration.md`."""
    lines = ["| Key | Flag | Variable | Value | Default | Meaning |", "|---|---|---|---|---|---|"]
    for key, default in DEFAULTS.items():
        shown = "" if default in ("", ()) else f"`{msgspec.json.encode(default).decode()}`"
        flags = f"`{flag(key)}`"
        if plain_type(key) is bool:
            flags += f", `--no-{flag(key)[2:]}`"
        lines.append(
            f"| `{key}` | {flags} | `{variable(key)}` | {_type_text(key)} | {shown} "
            f"| {description(key)} |"
        )
    return "\n".join(lines) + "\n"


def _type_text(key: str) -> str:
    kind = plain_type(key)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if kind == tuple[str, ...]:
        return "list of texts (in a variable: separated by commas)"
    return {bool: "true or false", int: "whole number", str: "text"}[kind]


def reference_rows(kind: type[msgspec.Struct]) -> str:
    """Return the options of a table for the reference page, in Markdown."""
    hints = get_type_hints(kind, include_extras=True)
    lines = ["| Key | Default | Meaning |", "|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        default = {} if field.default is msgspec.NODEFAULT else field.default
        meaning = meaning_of(hints[field.name])
        lines.append(f"| `{field.name}` | `{json.dumps(default)}` | {meaning} |")
    return "\n".join(lines)

"""Tables of a configuration file as classes: reading one, and its page of the reference.

msgspec converts and checks; what is here makes sentences of what it says (decision 0037).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from openmsmq.runtime.config.errors import ConfigError, key_of, reason

Table = TypeVar("Table", bound=msgspec.Struct)


def says(meaning: str, **bounds: Any) -> msgspec.Meta:
    """Describe an option: what it means, and which values it can have."""
    return msgspec.Meta(description=meaning, **bounds)


def meaning_of(hint: Any) -> str:
    """Return what an option means, from its type."""
    return str(next(meta.description for meta in get_args(hint)[1:] if meta.description))


def check_table(value: object, name: str, file: str) -> None:
    """Raise `ConfigError` if a key that stands for a table is something else."""
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: {name} is a table; begin it with a line [{name}]", name)


def read_table(values: Mapping[str, Any], kind: type[Table], file: str, *at: str) -> Table:
    """Read the table that some keys lead to; raise `ConfigError` with what is wrong in it."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        where = f"{file}: [{'.'.join(at)}]"
        raise ConfigError(f"{where} is wrong: {reason(error, kind)}", *at, *key_of(error)) from None

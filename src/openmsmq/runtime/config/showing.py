"""A configuration as people read it: every key with its value, and where that comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from openmsmq.api.program import Setting
from openmsmq.runtime.config.alarm_table import without_secrets
from openmsmq.runtime.config.file import CLASSES, DEFAULTS, HINTS, PARAMETERS, PORTS
from openmsmq.runtime.config.loading import Loaded, Source

HIDDEN: Final = "(hidden)"
"""Stands for a value that is nobody's business."""

RELOADED: Final = ("log_level",)
"""Options that a reload changes."""
RELOADED_TABLES: Final = ("alarms",)
"""Tables that it changes."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SECRET: Final = re.compile(r"(^|_)(password|secret|token)$")
"""Keys whose values would be secrets; those of files that hold some are not."""
_AS_WRITTEN: Final = ("hosts", "next_hops", "connectors", "peers", "active_directory", "alarms")
"""Tables of which is shown what stands in them."""


def settings(loaded: Loaded, *, with_secrets: bool = False) -> list[Setting]:
    """Return all values; with secrets only to compare them."""
    return [
        Setting(
            key=".".join(map(_written, keys)),
            value=msgspec.json.encode(value if with_secrets else shown(keys[-1], value)).decode(),
            source=source.value,
            needs_restart=keys[0] not in (*RELOADED, *RELOADED_TABLES),
        )
        for keys, value, source in _values(loaded)
    ]


def shown(key: str, value: Any) -> Any:
    """Return what may be shown of a value."""
    if not isinstance(value, str) or not value:
        return value
    if key in ("webhook", "endpoint"):
        return without_secrets(value)
    return HIDDEN if _SECRET.search(key) else value


def _values(loaded: Loaded) -> Iterator[tuple[tuple[str, ...], Any, Source]]:
    config, table = loaded.config, loaded.table
    for key in DEFAULTS:
        yield (key,), getattr(config, key), loaded.sources.get(key, Source.DEFAULT)
    for name, parameter in PARAMETERS.items():
        owner = config if parameter.field in PORTS else config.parameters
        given = name in table.get("parameters", {})
        yield ("parameters", name), getattr(owner, parameter.field), _source(given)
    for name in CLASSES:
        for field in () if name in _AS_WRITTEN else HINTS[name].__struct_fields__:
            given = field in table.get(name, {})
            yield (name, field), getattr(getattr(config, name), field), _source(given)
    for name in _AS_WRITTEN:
        for keys, value in _leaves(table.get(name, {})):
            yield (name, *keys), value, Source.FILE


def _source(is_given: bool) -> Source:
    return Source.FILE if is_given else Source.DEFAULT


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            for keys, leaf in _leaves(value):
                yield (key, *keys), leaf
        else:
            yield (key,), value


def _written(key: str) -> str:
    """Return a key as TOML has it."""
    return key if _BARE.fullmatch(key) else msgspec.json.encode(key).decode()

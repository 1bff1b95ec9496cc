"""Putting a configuration together: defaults, then a TOML file, then variables, then flags."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.alarm_table import read_alarms
from openmsmq.runtime.config.errors import ConfigError, nearest, reason
from openmsmq.runtime.config.file import (
    CLASSES,
    DEFAULTS,
    HINTS,
    PARAMETERS,
    PORTS,
    VARIABLE_PREFIX,
    ServerConfig,
    flag,
    plain_type,
    variable,
)
from openmsmq.runtime.config.services.replication_table import read_replication
from openmsmq.runtime.config.session_tls_table import read_session_tls
from openmsmq.runtime.config.tables import check_table, read_table
from openmsmq.runtime.config.telemetry_table import read_telemetry
from openmsmq.runtime.config.transfer_tables import TABLES, read_tables

_ALIKE: Final = 0.75
"""How similar a misspelt variable is to the one that was meant; others may use the prefix too."""


class Source(Enum):
    """Where a value comes from; a later one wins over an earlier one."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"
    PROGRAM = "program"
    """Whoever runs the queue manager as a part of its own program."""


def layers(
    flags: Mapping[str, object], environment: Mapping[str, str], table: dict[str, Any], file: str
) -> dict[Source, dict[str, Any]]:
    """Read what each source says; a flag that is None was not given."""
    return {
        Source.FILE: from_table(table, file),
        Source.ENVIRONMENT: _from_environment(environment),
        Source.FLAG: {
            key: _checked(key, value, flag(key))
            for key, value in flags.items()
            if value is not None
        },
    }


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and where it comes from."""

    config: ServerConfig
    file: str = ""
    """The file; empty without one."""
    table: dict[str, Any] = {}
    """What stands in it."""
    sources: dict[str, Source] = {}
    """Of each option that does not have its default, where that comes from."""
    flags: dict[str, Any] = {}
    environment: dict[str, str] = {}

    def again(self) -> Loaded:
        """Read the file again; variables and flags are those of the start."""
        if not self.file:
            return self
        return load(self.flags, self.environment, self.file)


def load(
    flags: Mapping[str, object], environment: Mapping[str, str], file: str | None = None
) -> Loaded:
    """Put the sources together, and remember them."""
    table = read_file(file) if file else {}
    found = layers(flags, environment, table, file or "")
    return Loaded(
        config=put_together(found),
        file=file or "",
        table=table,
        sources={key: source for source, given in found.items() for key in given},
        flags=dict(flags),
        environment={
            name: text for name, text in environment.items() if name.startswith(VARIABLE_PREFIX)
        },
    )


def loaded_by_program(config: ServerConfig) -> Loaded:
    """Take a configuration that a program has made without a file."""
    changed = {key for key, default in DEFAULTS.items() if getattr(config, key) != default}
    return Loaded(config=config, sources=dict.fromkeys(changed, Source.PROGRAM))


def put_together(found: Mapping[Source, dict[str, Any]]) -> ServerConfig:
    """Let later sources win over earlier ones."""
    options: dict[str, Any] = {}
    for given in found.values():
        options |= given
    return ServerConfig(**options)


def read_file(file: str) -> dict[str, Any]:
    """Return what a file has, whether it means something or not."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None


def from_table(found: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the options of a file that was read."""
    table = dict(found)
    tables: dict[str, Any] = {key: table.pop(key) for key in (*TABLES, *CLASSES) if key in table}
    for key, value in tables.items():
        check_table(value, key, file)
    own = {key: tables.pop(key, {}) for key in CLASSES}
    for key in table:
        if key in PARAMETERS:
            raise ConfigError(f"{file}: {key} belongs below a line [parameters]", key)
        if key not in DEFAULTS:
            known = [*DEFAULTS, *TABLES, *CLASSES]
            raise ConfigError(f"{file}: there is no option {key!r}{nearest(key, known)}", key)
    options: dict[str, Any] = {}
    for key, value in table.items():
        try:
            options[key] = _checked(key, value, f"{file}: {key}", strict=True)
        except ConfigError as error:
            raise ConfigError(str(error), key) from None
    changed = read_tables(tables, PARAMETERS, file)
    return {
        **options,
        **{key: value for key, value in changed.items() if key in PORTS},
        "parameters": TransferConfig(
            **{key: value for key, value in changed.items() if key not in PORTS}
        ),
        **{key: _read_own(key, own[key], file) for key in CLASSES},
    }


def _read_own(key: str, table: dict[str, Any], file: str) -> Any:
    """Read a table that is a field of its own; most need nothing but their class."""
    read = _READERS.get(key)
    return read_table(table, HINTS[key], file, key) if read is None else read(table, file)


_READERS: Final[dict[str, Callable[[dict[str, Any], str], Any]]] = {
    "session_tls": read_session_tls,
    "alarms": read_alarms,
    "telemetry": read_telemetry,
    "replication": read_replication,
}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, text in environment.items():
        if not name.startswith(VARIABLE_PREFIX):
            continue
        key = name.removeprefix(VARIABLE_PREFIX).lower()
        if key in DEFAULTS:
            value = text.split(",") if plain_type(key) == tuple[str, ...] else text
            options[key] = _checked(key, value, name)
        elif meant := difflib.get_close_matches(key, DEFAULTS, 1, _ALIKE):
            raise ConfigError(f"there is no variable {name}; did you mean {variable(meant[0])}?")
    return options


def _checked(key: str, value: object, where: str, *, strict: bool = False) -> Any:
    try:
        return msgspec.convert(value, HINTS[key], strict=strict)
    except msgspec.ValidationError as error:
        kind = plain_type(key)
        if get_origin(kind) is Literal:
            problem = f"it is one of {', '.join(map(str, get_args(kind)))}"
        else:
            problem = reason(error)
        raise ConfigError(f"{where} = {value!r} is wrong: {problem}") from None

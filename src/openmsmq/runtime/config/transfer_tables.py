"""The tables of a configuration file that say how queue managers talk to each other.

`[parameters]` has the registry values of the product notes, under their names there, `[hosts]`
gives names addresses, `[next_hops]` says where the messages for a queue manager go first,
`[connectors]` names foreign computers whose messages wait here for a program that knows them, and
`[peers]` says who other queue managers are (`peer_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_args, get_type_hints

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.peers import address_of
from openmsmq.runtime.config.errors import ConfigError, nearest, reason
from openmsmq.runtime.config.peer_table import read_peers

VALUE_MAX_NUMBER: Final = 0xFFFF_FFFF
"""The largest number in a registry value."""


class Parameter(msgspec.Struct, frozen=True):
    """A field of a configuration that has a registry name."""

    field: str
    hint: Any
    default: int | bool


def parameters_of(config: type[msgspec.Struct]) -> dict[str, Parameter]:
    """Find the fields with a registry name in their metadata, by that name."""
    hints = get_type_hints(config, include_extras=True)
    found: dict[str, Parameter] = {}
    for field in msgspec.structs.fields(config):
        hint = hints[field.name]
        name = _registry_name(hint)
        if name is not None:
            found[name] = Parameter(field.name, _bounded(hint, field.default), field.default)
    return found


def read_tables(
    tables: Mapping[str, object], parameters: Mapping[str, Parameter], file: str
) -> dict[str, Any]:
    """Read the tables of a file; gives the values by the names of their fields."""
    values = _parameters(tables.get("parameters", {}), parameters, file)
    found = {key: read(tables[key], file) for key, read in _READERS.items() if key in tables}
    return values | found


def _registry_name(hint: object) -> str | None:
    for meta in get_args(hint)[1:]:
        if isinstance(meta, msgspec.Meta) and meta.extra is not None:
            return str(meta.extra["registry"])
    return None


def _bounded(hint: Any, default: object) -> Any:
    """Keep numbers within a registry value, and away from a zero that would mean no pause."""
    kind, *metas = get_args(hint)
    if kind is not int or any(meta.le is not None for meta in metas):
        return hint
    may_be_zero = default == 0 or any(meta.ge == 0 for meta in metas)
    return Annotated[int, msgspec.Meta(ge=0 if may_be_zero else 1, le=VALUE_MAX_NUMBER)]


def _parameters(table: Any, parameters: Mapping[str, Parameter], file: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in table.items():
        parameter = parameters.get(name)
        if parameter is None:
            raise ConfigError(
                f"{file}: [parameters] has no {name!r}{nearest(name, parameters)}",
                "parameters",
                name,
            )
        try:
            values[parameter.field] = msgspec.convert(value, parameter.hint)
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"{file}: [parameters] {name} = {value!r} is wrong: {reason(error)}",
                "parameters",
                name,
            ) from None
    return values


def _hosts(table: Any, file: str) -> dict[str, tuple[str, ...]]:
    hosts: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        where, at = f"{file}: [hosts] {name}", ("hosts", name)
        if name.lower() in hosts:
            raise ConfigError(f"{where} is there twice: capitals make no difference", *at)
        addresses = _texts(value, where, "an IP address or a list of them", at)
        for address in addresses:
            if address_of(address) is None:
                raise ConfigError(
                    f"{where} = {value!r} is wrong: {address!r} is not an IP address", *at
                )
        hosts[name.lower()] = addresses
    return hosts


def _next_hops(table: Any, file: str) -> dict[str, tuple[str, ...]]:
    hops: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        where, at = f"{file}: [next_hops] {name}", ("next_hops", name)
        try:
            manager = str(Guid.parse(name))
        except ValueError as error:
            raise ConfigError(
                f"{where} is wrong: the identifier of a queue manager is wanted, and {error}",
                *at,
            ) from None
        if manager in hops:
            raise ConfigError(f"{where} is there twice", *at)
        hops[manager] = _texts(value, where, "a host name or IP address, or a list of them", at)
    return hops


def _connectors(table: Any, file: str) -> dict[str, str]:
    connectors: dict[str, str] = {}
    for name, value in table.items():
        where, at = f"{file}: [connectors] {name}", ("connectors", name)
        if name.lower() in connectors:
            raise ConfigError(f"{where} is there twice: capitals make no difference", *at)
        try:
            connectors[name.lower()] = str(Guid.parse(value))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{where} = {value!r} is wrong: the identifier of a connector is wanted, a GUID "
                f"that you choose; {error}",
                *at,
            ) from None
    return connectors


def _texts(value: object, where: str, wanted: str, at: tuple[str, ...]) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"{where} = {value!r} is wrong: give {wanted}", *at)
    return tuple(texts)


_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "hosts": _hosts,
    "next_hops": _next_hops,
    "connectors": _connectors,
    "peers": read_peers,
}
TABLES: Final = ("parameters", *_READERS)

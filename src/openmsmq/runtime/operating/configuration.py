"""The configuration of a running server: what is in force, and what a reload makes of it."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import Loaded
from openmsmq.runtime.config.showing import RELOADED, RELOADED_TABLES, settings

NOTHING: Final = "null"
"""The value of a key that is not there, in JSON."""


class RunningConfiguration:
    """Knows the values that count, those that wait for a restart, and where they come from."""

    def __init__(self, loaded: Loaded) -> None:
        self._start = loaded
        self._in_force = loaded
        self._latest = loaded

    @property
    def config(self) -> ServerConfig:
        """What is in force."""
        return self._in_force.config

    def read_again(self) -> tuple[list[str], list[str]]:
        """Read the file again, or raise `ConfigError`, and then all is as before.

        Gives the keys that count from now on, and those that need a restart.
        """
        latest = self._start.again()
        before = _values(self._in_force)
        after = _values(latest)
        differing = _differing(before, after)
        self._latest = latest
        self._in_force = _with_reloaded(self._in_force, latest)
        changed = [key for key in differing if _is_reloaded(key)]
        return changed, [key for key in differing if not _is_reloaded(key)]

    def show(self, log_level: str) -> api.Configuration:
        """Return all values; `log_level` is the one that counts, whoever wanted it."""
        found = {each.key: each for each in settings(self._in_force)}
        after = {each.key: each for each in settings(self._latest)}
        for key in _differing(_values(self._in_force), _values(self._latest)):
            new = after.get(key)
            there = found.get(key) or api.Setting(key, NOTHING, after[key].source, True)
            waiting = NOTHING if new is None else new.value
            found[key] = msgspec.structs.replace(there, waiting=waiting)
        if log_level != self.config.log_level:
            value = msgspec.json.encode(log_level).decode()
            found["log_level"] = msgspec.structs.replace(
                found["log_level"], value=value, source="request"
            )
        return api.Configuration(self._start.file, list(found.values()))


def _values(loaded: Loaded) -> dict[str, str]:
    return {each.key: each.value for each in settings(loaded, with_secrets=True)}


def _differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    keys = {**before, **after}
    return [key for key in keys if before.get(key, NOTHING) != after.get(key, NOTHING)]


def _is_reloaded(key: str) -> bool:
    return key in RELOADED or key.partition(".")[0] in RELOADED_TABLES


def _with_reloaded(before: Loaded, latest: Loaded) -> Loaded:
    """Return what is in force after a reload."""
    options = {key: getattr(latest.config, key) for key in (*RELOADED, *RELOADED_TABLES)}
    tables = {key: latest.table[key] for key in RELOADED_TABLES if key in latest.table}
    kept = {key: value for key, value in before.table.items() if key not in RELOADED_TABLES}
    sources = {key: each for key, each in before.sources.items() if key not in RELOADED}
    sources |= {key: latest.sources[key] for key in RELOADED if key in latest.sources}
    return msgspec.structs.replace(
        before,
        config=msgspec.structs.replace(before.config, **options),
        table=kept | tables,
        sources=sources,
    )

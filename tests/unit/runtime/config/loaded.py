"""Configurations as the server takes them, for tests that do not ask where values come from."""

from __future__ import annotations

from collections.abc import Mapping

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import load


def load_config(
    flags: Mapping[str, object], environment: Mapping[str, str], file: str | None = None
) -> ServerConfig:
    """Put the sources together."""
    return load(flags, environment, file).config

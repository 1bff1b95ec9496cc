"""Which interfaces a queue manager offers: one line for each."""

from __future__ import annotations

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.rpc.services import Service


def offered(config: ServerConfig) -> list[Service]:
    """Return the interfaces that are offered beside what every server tells of itself."""
    del config
    return []

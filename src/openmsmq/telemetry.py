"""For spans about what is done with a message: `from openmsmq.telemetry import context_of`."""

from __future__ import annotations

from openmsmq.client.telemetry import context_of

__all__ = ["context_of"]

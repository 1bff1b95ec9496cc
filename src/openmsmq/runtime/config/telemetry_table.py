"""The table `[telemetry]` of a configuration file: where spans go (decision 0044)."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from openmsmq.runtime.config.alarm_table import webhook_problem
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table, says

TRACES_PATH: Final = "/v1/traces"
"""Where a collector takes spans, if its address has no path."""


class TelemetryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about traces."""

    endpoint: Annotated[
        str,
        says(
            "Address of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`; "
            f"without a path, `{TRACES_PATH}` is asked for. Empty: no spans are made."
        ),
    ] = ""
    service_name: Annotated[
        str,
        says("What this queue manager is called in traces.", min_length=1, max_length=256),
    ] = "openmsmq"
    sample_ratio: Annotated[
        float,
        says(
            "Of the traces that a sender records, the part for which spans are made here: 0 to 1. "
            "All queue managers with the same ratio choose the same traces.",
            ge=0,
            le=1,
        ),
    ] = 1.0

    @property
    def traces_url(self) -> str:
        """Where spans go."""
        parts = urlsplit(self.endpoint)
        return urlunsplit(parts if parts.path.strip("/") else parts._replace(path=TRACES_PATH))


def read_telemetry(table: dict[str, Any], file: str) -> TelemetryTable:
    """Read the table of a file."""
    read = read_table(table, TelemetryTable, file, "telemetry")
    if table and not read.endpoint:
        raise ConfigError(
            f"{file}: [telemetry] has no endpoint: give the address of a collector, such as "
            "http://127.0.0.1:4318",
            "telemetry",
        )
    problem = webhook_problem(read.endpoint) if read.endpoint else ""
    if problem:
        # The address itself is left out: its path may be a secret.
        raise ConfigError(
            f"{file}: [telemetry] endpoint is wrong: {problem}", "telemetry", "endpoint"
        )
    return read

"""The table `[session_tls]` of a configuration file: sessions over TLS with other queue managers.

Whose certificate is good for whom stands in `[peers]`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Meta

from openmsmq.model.limits import PORT_MAX_NUMBER
from openmsmq.runtime.config.errors import ConfigError, reason
from openmsmq.runtime.limits import SESSION_TLS_PORT

_Port = Annotated[int, Meta(ge=1, le=PORT_MAX_NUMBER)]


class SessionTlsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about TLS between queue managers."""

    certificate: Annotated[
        str,
        Meta(
            description="Certificate of this queue manager in PEM, with those of the authorities "
            "between, if it has any. Files and directories are relative to the data directory. "
            "Empty: no TLS between queue managers."
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(
            description="Its private key in PEM, which only its owner may read. Empty: it is in "
            "the certificate's file."
        ),
    ] = ""
    peer_certificates: Annotated[
        str,
        Meta(
            description="Directory of certificates of others: `NAME.pem` has those of "
            "`[peers.NAME]`, one or more, in PEM. Others need an authority."
        ),
    ] = ""
    authorities: Annotated[
        str,
        Meta(description="Authorities in PEM that vouch for the `certificate_names` in `[peers]`."),
    ] = ""
    port: Annotated[
        int, Meta(ge=1, le=PORT_MAX_NUMBER, description="TCP port for sessions over TLS.")
    ] = SESSION_TLS_PORT
    ports: Annotated[
        dict[str, _Port],
        Meta(
            description="Ports of others that have another one, as a tunnel may have, by their "
            "names in `[peers]`."
        ),
    ] = {}
    required: Annotated[
        bool,
        Meta(
            description="Whether there are no sessions without TLS: the port of MSMQ stays closed, "
            "and nobody is connected to there."
        ),
    ] = False

    def path(self, data: str, file: str) -> Path | None:
        """Find a file; None for one that was not given."""
        return Path(data) / file if file else None


def read_session_tls(table: Any, file: str) -> SessionTlsTable:
    """Read the table of a file."""
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: session_tls is a table; begin it with a line [session_tls]")
    try:
        read = msgspec.convert(table, SessionTlsTable)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{file}: [session_tls] is wrong: {reason(error, SessionTlsTable)}"
        ) from None
    if table and not read.certificate:
        raise ConfigError(
            f"{file}: [session_tls] has no certificate: make one with openmsmq peer certificate"
        )
    return read


def session_tls_options() -> str:
    """Return the rows of the table for the reference page."""
    hints = get_type_hints(SessionTlsTable, include_extras=True)
    lines = ["| Key | Default | Meaning |", "|---|---|---|"]
    for field in msgspec.structs.fields(SessionTlsTable):
        meaning = next(
            meta.description for meta in get_args(hints[field.name])[1:] if meta.description
        )
        default = {} if field.default is msgspec.NODEFAULT else field.default
        lines.append(f"| `{field.name}` | `{json.dumps(default)}` | {meaning} |")
    return "\n".join(lines)

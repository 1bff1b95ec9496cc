"""The table `[session_tls]` of a configuration file: sessions over TLS with other queue managers.

Whose certificate is good for whom stands in `[peers]`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from openmsmq.model.limits import PORT_MAX_NUMBER
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table, says

_Port = Annotated[int, Meta(ge=1, le=PORT_MAX_NUMBER)]


class SessionTlsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about TLS between queue managers."""

    certificate: Annotated[
        str,
        says(
            "Certificate of this queue manager in PEM, with those of the authorities "
            "between, if it has any. Files and directories are relative to the data directory. "
            "Empty: no TLS between queue managers."
        ),
    ] = ""
    key: Annotated[
        str,
        says(
            "Its private key in PEM, which only its owner may read. Empty: it is in "
            "the certificate's file."
        ),
    ] = ""
    peer_certificates: Annotated[
        str,
        says(
            "Directory of certificates of others: `NAME.pem` has those of "
            "`[peers.NAME]`, one or more, in PEM. Others need an authority."
        ),
    ] = ""
    authorities: Annotated[
        str, says("Authorities in PEM that vouch for the `certificate_names` in `[peers]`.")
    ] = ""
    port: Annotated[int, says("TCP port for sessions over TLS.", ge=1, le=PORT_MAX_NUMBER)] = 1803
    ports: Annotated[
        dict[str, _Port],
        says(
            "Ports of others that have another one, as a tunnel may have, by their "
            "names in `[peers]`."
        ),
    ] = {}
    required: Annotated[
        bool,
        says(
            "Whether there are no sessions without TLS: the port of MSMQ stays closed, "
            "and nobody is connected to there."
        ),
    ] = False


def read_session_tls(table: dict[str, Any], file: str) -> SessionTlsTable:
    """Read the table of a file."""
    read = read_table(table, SessionTlsTable, file, "session_tls")
    if table and not read.certificate:
        raise ConfigError(
            f"{file}: [session_tls] has no certificate: make one with openmsmq peer certificate",
            "session_tls",
        )
    return read

"""`openmsmq peer`: the certificates by which queue managers know each other over TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import JsonObject, print_facts, print_json, time_text

PEER_CERTIFICATE_DAYS: Final = 825
CERTIFICATE_FILE: Final = "session.pem"
KEY_FILE: Final = "session.key"

app: Final = typer.Typer(
    help="Certificates for sessions over TLS between queue managers: make one, show its "
    "fingerprint.",
    no_args_is_help=True,
)


@app.command()
def certificate(
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the queue manager, or its host.")
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="DIRECTORY",
            help=f"Where {CERTIFICATE_FILE} and {KEY_FILE} are put; the data directory is a good "
            "place.",
        ),
    ],
    days: Annotated[
        int, typer.Option(min=1, max=36_500, help="How long it is valid.")
    ] = PEER_CERTIFICATE_DAYS,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the files that are there.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a key and a certificate for sessions over TLS.

    Give the certificate to the other queue managers, never the key. A queue manager that runs
    takes up new files by itself.
    """
    from openmsmq.runtime.clocks import read_clocks
    from openmsmq.runtime.operating_system.key_files import make_session_files
    from openmsmq.runtime.start_errors import StartError

    folder = Path(out)
    made, key = folder / CERTIFICATE_FILE, folder / KEY_FILE
    for path in () if replace else (made, key):
        if path.exists():
            fail(f"{path} is there already, and others may know it; --replace replaces it.")
    try:
        make_session_files(made, key, name, read_clocks().unix_s, days)
    except (StartError, ValueError) as error:
        fail(f"{error}.")
    _show(made, json=json)


@app.command()
def fingerprint(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Certificate in PEM.")],
    json: JsonOption = False,
) -> None:
    """Show what a certificate says, and the fingerprint by which `[peers]` can name it."""
    _show(Path(file), json=json)


def _show(path: Path, *, json: bool) -> None:
    from openmsmq.runtime.config.errors import ConfigError
    from openmsmq.runtime.sessions.trust import read_certificates
    from openmsmq.security.peer_certificates import read_peer_certificate
    from openmsmq.security.signatures.certificates import BadCertificate

    try:
        found = read_peer_certificate(read_certificates(path)[0])
    except (ConfigError, BadCertificate) as error:
        fail(f"{error}.")
    facts: JsonObject = {
        "file": str(path),
        "fingerprint": found.fingerprint,
        "names": sorted(found.names),
        "valid_from": time_text(found.not_before_s),
        "valid_until": time_text(found.not_after_s),
    }
    if json:
        print_json(facts)
        return
    shown = [
        ("fingerprint", found.fingerprint),
        ("names", ", ".join(sorted(found.names))),
        ("valid", f"{facts['valid_from']} to {facts['valid_until']}"),
    ]
    print_facts(str(path), shown)

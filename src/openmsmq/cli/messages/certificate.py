"""`openmsmq certificate`: what a user signs messages with, and who knows it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import JsonObject, print_facts, print_json, print_table

if TYPE_CHECKING:
    from openmsmq.api.messages import Certificates

CERTIFICATE_VARIABLE: Final = "OPENMSMQ_CERTIFICATE"
CERTIFICATE_DAYS: Final = 3650
CERTIFICATE_BITS: Final = 3072
_SERIAL_BITS: Final = 128
_DAY_S: Final = 24 * 3600

app: Final = typer.Typer(
    help="Certificates with which users sign messages: make, register, list, remove.",
    no_args_is_help=True,
)


def default_file() -> str:
    """Return the place of a user's certificate."""
    try:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    except RuntimeError:
        fail("this user has no home directory: say with --certificate where the certificate is.")
    return str(Path(base) / "openmsmq" / "certificate.pem")


def existing_file(given: str) -> str:
    """Return the file with the certificate to use; stop with a sentence if the user has none."""
    file = given or default_file()
    if not given and not Path(file).exists():
        fail(
            f"there is no certificate at {file}: `openmsmq certificate create` makes one, or say "
            "with --certificate where yours is."
        )
    return file


FileOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--certificate",
        metavar="FILE",
        envvar=CERTIFICATE_VARIABLE,
        help="File with the certificate and its private key, in PEM. Without it, the user's own: "
        "openmsmq/certificate.pem below the configuration directory.",
    ),
]


@app.command()
def create(
    certificate: FileOption = "",
    name: Annotated[
        str, typer.Option(metavar="TEXT", help="Whose it says it is; else the login.")
    ] = "",
    days: Annotated[
        int, typer.Option(min=1, max=36_500, help="How long it says it is valid.")
    ] = CERTIFICATE_DAYS,
    bits: Annotated[
        int, typer.Option(min=2048, max=8192, help="Length of the key.")
    ] = CERTIFICATE_BITS,
) -> None:
    """Make a key and a certificate for it, signed by itself; `register` tells others of it."""
    from openmsmq.client.messages.certificates import Certificate
    from openmsmq.runtime.clocks import read_clocks
    from openmsmq.runtime.operating_system.key_files import new_key
    from openmsmq.security.signatures.certificates import (
        COMMON_NAME_MAX_CHARACTERS,
        make_certificate,
    )

    owner = (name or _login())[:COMMON_NAME_MAX_CHARACTERS]
    path = Path(certificate or default_file())
    try:
        if path.exists():
            fail(f"{path} is there already: what was signed with it needs it; give another name.")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot create {path.parent}: {error.strerror}.")
    now_s = read_clocks().unix_s
    key = new_key(bits)
    try:
        owner.encode()
    except UnicodeEncodeError:
        fail("--name is no text.")
    serial = secrets.randbits(_SERIAL_BITS) | 1
    made = Certificate(key, make_certificate(key, owner, now_s, now_s + days * _DAY_S, serial))
    made.save(path)
    typer.echo(f"made {path}; others know its signatures after `openmsmq certificate register`")


@app.command()
def register(
    context: typer.Context, certificate: FileOption = "", json: JsonOption = False
) -> None:
    """Register the certificate in the directory, for the user as whom the queue manager sees us."""
    from openmsmq.client.messages.certificates import Certificate

    with connected(context) as manager:
        loaded = Certificate.load(existing_file(certificate))
        _show(manager.register_certificate(loaded.der), json=json)


@app.command("list")
def list_(context: typer.Context, json: JsonOption = False) -> None:
    """List the certificates that the directory has of us."""
    with connected(context) as manager:
        _show(manager.certificates(), json=json)


@app.command()
def remove(
    context: typer.Context,
    digest: Annotated[
        str, typer.Argument(metavar="DIGEST", help="As `certificate list` shows it.")
    ],
    json: JsonOption = False,
) -> None:
    """Take a certificate out of the directory: what it signs proves nothing from then on."""
    try:
        wanted = bytes.fromhex(digest)
    except ValueError:
        fail(f"{digest} is no digest: give the 32 digits that `certificate list` shows.")
    with connected(context) as manager:
        _show(manager.remove_certificate(wanted), json=json)


def _show(found: Certificates, *, json: bool) -> None:
    from openmsmq.security.access.sids import Sid
    from openmsmq.security.certificate_facts import described
    from openmsmq.security.signatures.certificates import digest

    user = str(Sid(found.user))
    rows: list[JsonObject] = []
    for der in found.certificates:
        facts = described(der)
        rows.append(
            {
                "digest": digest(der).hex(),
                "subject": facts.subject,
                "valid_until": facts.valid_until,
                "key_bits": facts.key_bits,
            }
        )
    if json:
        print_json({"user": user, "certificates": rows})
        return
    print_facts(user, [("certificates", str(len(rows)))])
    if rows:
        cells = [[str(value) for value in row.values()] for row in rows]
        print_table(("Digest", "Subject", "Valid until", ">Key bits"), cells)


def _login() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"user {os.getuid()}"

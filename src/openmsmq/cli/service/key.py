"""`openmsmq key`: the keys with which others encrypt for a queue manager."""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.output import Columns, JsonObject, print_list
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid

app: Final = typer.Typer(
    help="Keys with which bodies are encrypted for a queue manager: show, renew.",
    no_args_is_help=True,
)


@app.command()
def show(
    context: typer.Context,
    manager_id: Annotated[
        str,
        typer.Argument(
            metavar="[QM]", help="Identifier of a queue manager; without it, this one's own."
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show the published keys of a queue manager."""
    from openmsmq.wire.errors import DecodeError
    from openmsmq.wire.keys import RsaPublicKey

    with connected(context) as manager:
        try:
            identifier = Guid.parse(manager_id) if manager_id else manager.context.manager
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        keys = manager.encryption_keys(identifier)
    objects: list[JsonObject] = []
    for key in keys:
        try:
            bits = RsaPublicKey.decode(key.blob).bit_length
        except DecodeError:
            bits = 0
        fingerprint = hashlib.sha256(key.blob).hexdigest()
        objects.append({"provider": key.provider_name, "key_bits": bits, "sha256": fingerprint})
    columns: Columns = {
        "Provider": "provider",
        ">Bits": "key_bits",
        "SHA-256": lambda found: str(found["sha256"])[:32],
    }
    print_list(objects, columns, "it has published no keys: nobody can encrypt for it", json=json)


@app.command()
def renew(context: typer.Context) -> None:
    """Have the queue manager make new keys and publish them; it keeps the old ones for a while."""
    with connected(context) as manager:
        manager.renew_keys()
    typer.echo("new keys are published")

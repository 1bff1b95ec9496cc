"""`openmsmq directory discover`: which directory server answers on the networks around here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from openmsmq.cli.options.connecting import EXIT_NO_CONNECTION
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail, say_error
from openmsmq.cli.views.output import JsonObject, print_facts, print_json
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import DISCOVERY_ANSWER_S, MSMQ_PORT, PORT_MAX_NUMBER

if TYPE_CHECKING:
    from openmsmq.protocol.discovery.client import DirectoryFound, Network

TIMEOUT_DEFAULT_S: Final = 3.0
"""A person waits less than a queue manager does."""

TIMEOUT_MIN_S: Final = 0.001
TIMEOUT_MAX_S: Final = 3600.0

DISCOVER_KEYS: Final = {
    "address": "The address of the directory server that gave the best answer.",
    "same_site": "Whether it is of the site that was asked for.",
    "site": "Its site, when that is another one.",
    "servers": "The directory servers of that site, by computer name; none for the own site.",
    "connected_networks": "The connected networks of the server, by identifier.",
    "own_address": "The address of this computer on the network where it answered.",
    "broadcast": "The address of everybody there, to which the question went.",
}
"""The keys of `found_object`, for `docs/reference/cli.md`."""


def discover(
    site: Annotated[
        str,
        typer.Option(
            metavar="GUID",
            help="Ask as a computer of this site; a server of it is the best answer.",
        ),
    ] = "",
    enterprise: Annotated[
        str,
        typer.Option(
            metavar="GUID",
            help="Ask as a computer of this enterprise; servers may ignore those of others.",
        ),
    ] = "",
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS/BITS",
            help="Ask on this network, from this address of ours; may be repeated. "
            "Without it, on all networks of this computer.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=PORT_MAX_NUMBER, help="UDP port of directory servers.")
    ] = MSMQ_PORT,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=TIMEOUT_MIN_S,
            max=TIMEOUT_MAX_S,
            help="How long to wait for answers on each network; "
            f"a queue manager waits {DISCOVERY_ANSWER_S}.",
        ),
    ] = TIMEOUT_DEFAULT_S,
    json: JsonOption = False,
) -> None:
    """Ask everybody on the networks around which computers are directory servers.

    No queue manager is needed for it. Exit code 4 says that nobody answered.
    """
    # Other commands do not pay for loading it.
    from openmsmq.protocol.discovery.client import DiscoveryClient
    from openmsmq.runtime.directory.discovery import discover as search

    client = DiscoveryClient(
        _guid("--enterprise", enterprise), _guid("--site", site), wait_ms=round(timeout * 1_000)
    )
    networks = _networks(network or [])
    found = asyncio.run(search(client, networks, port=port))
    if found is None:
        _nobody(networks, port)
    elif json:
        print_json(found_object(found))
    else:
        _print_found(found)


def _guid(option: str, text: str) -> Guid:
    try:
        return Guid.parse(text) if text else NIL_GUID
    except ValueError as error:
        fail(f"{option}: {error}.")


def _networks(texts: list[str]) -> tuple[Network, ...]:
    from openmsmq.runtime.operating_system.interfaces import local_networks, network_of

    try:
        networks = tuple(map(network_of, texts)) or local_networks()
    except ValueError as error:
        fail(f"--network: {error}.")
    if not networks:
        fail("this computer's networks are not known: name one with --network ADDRESS/BITS.")
    return networks


def _nobody(networks: tuple[Network, ...], port: int) -> NoReturn:
    where = ", ".join(f"{one.broadcast} (from {one.address})" for one in networks)
    say_error(
        f"no directory server answered at {where}, port {port}: see that one is running there and "
        "that no firewall keeps UDP away; a longer --timeout waits for slow ones "
        f"({NoDirectory().name})."
    )
    raise typer.Exit(EXIT_NO_CONNECTION)


def found_object(found: DirectoryFound) -> JsonObject:
    """Return what was found under the names that programs rely on."""
    return {
        "address": found.address,
        "same_site": found.same_site,
        "site": None if found.site is None else str(found.site),
        "servers": list(found.servers),
        "connected_networks": [str(one) for one in found.networks],
        "own_address": found.network.address,
        "broadcast": found.network.broadcast,
    }


def _print_found(found: DirectoryFound) -> None:
    if found.site is None:
        facts = [("site", "the one that was asked for")]
    else:
        facts = [("site", str(found.site)), ("servers", ", ".join(found.servers))]
    facts.append(("connected networks", ", ".join(map(str, found.networks))))
    facts.append(("asked", f"{found.network.broadcast} from {found.network.address}"))
    print_facts(f"directory server at {found.address}", facts)

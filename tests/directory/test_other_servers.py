"""A server that is no domain controller is no directory, whatever is asked of it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from openmsmq.model.access import SiteAccess
from openmsmq.model.directory import NOWHERE, Change, ObjectKind, Removal
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.topology import Site
from openmsmq.runtime.active_directory.client import ActiveDirectory
from openmsmq.runtime.active_directory.mapping.descriptors import (
    EVERYBODY,
    AccessEntry,
    Descriptor,
    encode,
)
from tests.directory.domain import Domain
from tests.directory.other_server import SUCCESS
from tests.directory.samba import ROOT

pytestmark = [
    pytest.mark.directory,
    pytest.mark.xdist_group("samba"),
    # bonsai leaves it to the garbage collector to close what a failed attempt has opened.
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]

OPERATIONS_ERROR = 1
NAMES = {
    "defaultNamingContext": ROOT,
    "rootDomainNamingContext": ROOT,
    "configurationNamingContext": f"CN=Configuration,{ROOT}",
    "highestCommittedUSN": "1",
}


@contextlib.contextmanager
def other_server(domain: Domain, root: dict[str, str] | None, code: int) -> Iterator[str]:
    """Run one with the certificate of the domain controller."""
    controller = domain.controller
    command = [sys.executable, "-m", "tests.directory.other_server", controller.address]
    command += [str(controller.folder), json.dumps([root, code])]
    folder = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{controller.address}:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def without(name: str) -> dict[str, str]:
    return {known: value for known, value in NAMES.items() if known != name}


says_too_little = pytest.mark.parametrize(
    ("root", "code", "reason"),
    [
        (None, SUCCESS, "does not say what directory it has"),
        (None, OPERATIONS_ERROR, "search the server itself"),
        (without("defaultNamingContext"), SUCCESS, "no domain controller"),
        (without("rootDomainNamingContext"), SUCCESS, "no domain controller"),
        (without("configurationNamingContext"), SUCCESS, "no domain controller"),
    ],
)


@pytest.mark.spec(
    "MQDSSM-3.1.3-01",
    "MQDSSM-3.1.3-03",
    "MQDSSM-3.1.3-04",
    "MQDSSM-3.1.6.11.3.1-02",
    "MQDSSM-3.1.6.14-04",
    "MQDSSM-3.1.6.15-05",
)
@says_too_little
def test_a_server_that_does_not_say_where_everything_is_is_no_directory(
    domain: Domain, root: dict[str, str] | None, code: int, reason: str
) -> None:
    async def ask(directory: ActiveDirectory) -> None:
        with pytest.raises(NoDirectory, match=reason):
            await directory.changes(NOWHERE)

    with other_server(domain, root, code) as server:
        domain.ask(ask, servers=(server,), timeout_s=5)


@pytest.mark.spec(
    "MQDSSM-3.1.6.12-04",
    "MQDSSM-3.1.6.13-03",
    "MQDSSM-3.1.6.16-03",
    "MQDSSM-3.1.6.17-03",
)
@says_too_little
def test_nothing_is_written_where_nobody_says_where_everything_is(
    domain: Domain, root: dict[str, str] | None, code: int, reason: str
) -> None:
    known = domain.site_a
    rights = encode(Descriptor(entries=(AccessEntry(EVERYBODY, SiteAccess.GENERIC_READ),)))
    writes: tuple[Change, ...] = (
        Site(identifier=NIL_GUID, name="Nowhere"),
        msgspec.structs.replace(known, foreign=True),
        msgspec.structs.replace(known, security_descriptor=rights),
        Removal(ObjectKind.SITE, known.identifier),
    )

    async def ask(directory: ActiveDirectory) -> None:
        for write in writes:
            with pytest.raises(NoDirectory, match=reason):
                await directory.write([write])

    with other_server(domain, root, code) as server:
        domain.ask(ask, servers=(server,), timeout_s=5)


def test_the_next_server_is_asked_instead(domain: Domain) -> None:
    with other_server(domain, None, OPERATIONS_ERROR) as server:
        servers = (server, domain.controller.address)
        assert domain.read(servers=servers).changes == domain.read().changes

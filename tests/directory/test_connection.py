"""How Active Directory is reached: protected, by whom, and what happens when it is not there."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from openmsmq.model.directory import NOWHERE, ObjectKind, Removal
from openmsmq.model.errors import AccessDenied, NoDirectory
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.topology import Site
from openmsmq.runtime.active_directory.client import ActiveDirectory
from openmsmq.runtime.active_directory.config import Bind, Protection
from tests.directory.domain import ORDINARY, Domain, queue_of
from tests.directory.samba import ADMINISTRATOR, PASSWORD, REALM, DomainController

pytestmark = [
    pytest.mark.directory,
    pytest.mark.xdist_group("samba"),
    # bonsai leaves it to the garbage collector to close what a failed attempt has opened.
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]


@pytest.mark.spec("MQDSSM-3.1.3-05", "MQDSSM-3.1.6.18-05")
@pytest.mark.parametrize("protection", [Protection.LDAPS, Protection.START_TLS])
def test_both_ways_of_protection_work(domain: Domain, protection: Protection) -> None:
    assert domain.read(protection=protection).changes == domain.read().changes


@pytest.mark.parametrize("protection", [Protection.LDAPS, Protection.START_TLS])
def test_a_server_with_a_certificate_of_somebody_else_is_refused(
    domain: Domain, protection: Protection
) -> None:
    stranger = str(domain.controller.folder / "stranger.pem")
    with pytest.raises(NoDirectory, match=r"not to be trusted.*ca_file"):
        domain.read(protection=protection, ca_file=stranger)


@pytest.mark.parametrize("protection", [Protection.LDAPS, Protection.START_TLS])
def test_libldap_checks_certificates_too(
    domain: Domain, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tried(*_: object) -> None:
        """Somebody else may answer when the second connection is made."""

    monkeypatch.setattr("openmsmq.runtime.active_directory.connection._try", tried)
    assert domain.read(protection=protection).changes
    stranger = str(domain.controller.folder / "stranger.pem")
    with pytest.raises(NoDirectory, match="bind to"):
        domain.read(protection=protection, ca_file=stranger)


def test_a_server_under_another_name_is_refused(domain: Domain) -> None:
    # The same server at an address that its certificate does not name.
    with socket.create_server(("127.78.0.1", 0)) as other:
        server = f"127.78.0.1:{other.getsockname()[1]}"
        with pytest.raises(NoDirectory, match="not to be trusted"):
            asyncio.run(_through(domain, other, server))


async def _through(domain: Domain, listener: socket.socket, server: str) -> None:
    """Ask the server through a listener that passes everything on."""

    open_count = 0
    quiet = asyncio.Event()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_count
        open_count += 1
        quiet.clear()
        answers, onward = await asyncio.open_connection(domain.controller.address, 636)
        await asyncio.gather(_copy(reader, onward), _copy(answers, writer))
        open_count -= 1
        if not open_count:
            quiet.set()

    directory = ActiveDirectory(msgspec.structs.replace(domain.config, servers=(server,)))
    async with await asyncio.start_server(pass_on, sock=listener):
        try:
            await directory.changes(NOWHERE)
        finally:
            # Both directions see that the client is gone.
            await directory.close()
            await asyncio.wait_for(quiet.wait(), 10)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(4096):
            writer.write(data)
    except OSError:
        pass
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("name", "text"), [("missing.pem", None), ("rubbish.pem", "no certificate")]
)
def test_a_file_of_authorities_that_is_none_is_named(
    domain: Domain, tmp_path: Path, name: str, text: str | None
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(NoDirectory, match=name):
        domain.read(ca_file=str(tmp_path / name))


def test_a_wrong_password_is_access_denied(domain: Domain) -> None:
    with pytest.raises(AccessDenied, match="password_file"):
        domain.read(**domain.as_user(ADMINISTRATOR, "wrong"))


@pytest.mark.parametrize("text", ["", "\nsecond line"])
def test_an_empty_password_is_never_tried(domain: Domain, text: str) -> None:
    with pytest.raises(NoDirectory, match="is empty"):
        domain.read(**domain.as_user(ADMINISTRATOR, text))


def test_a_password_file_that_is_not_there_is_named(domain: Domain) -> None:
    with pytest.raises(NoDirectory, match="no-such-file"):
        domain.read(password_file="no-such-file")


def test_an_ordinary_user_reads_but_does_not_write(domain: Domain) -> None:
    clerk = domain.as_user(ORDINARY)
    everything, seen = domain.read(), domain.read(**clerk)
    assert {found.identifier for found in seen.changes} == {
        found.identifier for found in everything.changes
    }
    with pytest.raises(AccessDenied, match="no right"):
        domain.write(Site(identifier=NIL_GUID, name="Clerk's"), **clerk)
    with pytest.raises(AccessDenied, match="no right"):
        domain.write(queue_of(domain.new_manager("GUARDED"), "q"), **clerk)


@pytest.fixture
def away(domain: Domain) -> Iterator[DomainController]:
    """A controller that a test may stop; it runs again afterwards."""
    yield domain.controller
    domain.close()
    domain.controller.stop()
    domain.controller.start()


@pytest.mark.spec(
    "MQDSSM-3.1.3-02",
    "MQDSSM-3.1.6.12-05",
    "MQDSSM-3.1.6.13-04",
    "MQDSSM-3.1.6.14-05",
    "MQDSSM-3.1.6.15-06",
    "MQDSSM-3.1.6.16-04",
    "MQDSSM-3.1.6.17-04",
    "MQDSSM-3.1.6.18-03",
)
def test_a_server_that_is_gone_is_no_directory_until_it_is_back(
    domain: Domain, away: DomainController
) -> None:
    async def asked(directory: ActiveDirectory) -> None:
        before = await directory.changes(NOWHERE)
        assert directory.server
        await asyncio.to_thread(away.stop)
        with pytest.raises(NoDirectory, match="refused"):
            await directory.changes(before.position)
        with pytest.raises(NoDirectory, match="refused"):
            await directory.write([Site(identifier=NIL_GUID, name="Too late")])
        for change in (
            msgspec.structs.replace(domain.site_a, foreign=True),
            msgspec.structs.replace(domain.site_a, security_descriptor=b""),
            Removal(ObjectKind.SITE, domain.site_a.identifier),
        ):
            with pytest.raises(NoDirectory, match="refused"):
                await directory.write([change])
        assert directory.server == ""
        await asyncio.to_thread(away.start)
        after = await directory.changes(before.position)
        assert not after.is_complete
        assert after.position.incarnation == before.position.incarnation

    domain.ask(asked)


def test_the_next_server_is_asked_when_the_first_does_not_answer(domain: Domain) -> None:
    address = domain.controller.address

    async def asked(directory: ActiveDirectory) -> str:
        await directory.changes(NOWHERE)
        return directory.server

    assert domain.ask(asked, servers=("127.78.0.9", address)) == f"{address}:636"


def test_all_servers_that_failed_are_named(domain: Domain) -> None:
    with pytest.raises(NoDirectory, match=r"127\.78\.0\.8:636.*refused.*127\.78\.0\.9:99"):
        domain.read(servers=("127.78.0.8", "127.78.0.9:99"))


def test_a_name_that_nobody_knows_is_said(domain: Domain) -> None:
    with pytest.raises(NoDirectory, match="name is not known"):
        domain.read(servers=("no-such-host.invalid",))


def test_without_a_ticket_that_is_said(
    domain: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'nothing'}")
    with pytest.raises(AccessDenied, match="no Kerberos ticket"):
        domain.read(protection=Protection.SASL, bind=Bind.GSSAPI)


@pytest.mark.parametrize("protection", [Protection.LDAPS, Protection.START_TLS])
def test_a_server_that_says_nothing_holds_up_nobody(domain: Domain, protection: Protection) -> None:
    with socket.create_server(("127.78.0.2", 0)) as silent:
        server = f"127.78.0.2:{silent.getsockname()[1]}"

        async def asked(directory: ActiveDirectory) -> int:
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            beside = asyncio.create_task(count())
            with pytest.raises(NoDirectory, match="no answer within"):
                await directory.changes(NOWHERE)
            beside.cancel()
            return turns

        turns = domain.ask(asked, servers=(server,), timeout_s=0.5, protection=protection)
    assert turns > 10


def test_a_server_that_does_not_speak_tls_is_refused(domain: Domain) -> None:
    with pytest.raises(NoDirectory, match=r"TLS|closed|reset"):
        domain.read(servers=(f"{domain.controller.address}:389",))


@pytest.fixture
def ticket(domain: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Get a Kerberos ticket of the administrator, and tell the server's name to the client."""
    if shutil.which("kinit") is None or not list(Path("/usr/lib").glob("*/sasl2/libgssapi*")):
        pytest.skip("Kerberos is not installed: run scripts/ensure-samba")
    address = domain.controller.address
    (tmp_path / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
        f" dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = {address}\n }}\n"
        f"[domain_realm]\n {address} = {REALM}\n"
    )
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    name = "CN=DC1,OU=Domain Controllers,DC=mq,DC=test"
    services = (domain.look(name, "servicePrincipalName") or {})["servicePrincipalName"]
    wanted = f"ldap/{address}".encode()
    if wanted not in services:
        domain.replace(name, servicePrincipalName=[*services, wanted])
    subprocess.run(
        ["kinit", f"Administrator@{REALM}"],
        input=f"{PASSWORD}\n".encode(),
        env=os.environ,
        check=True,
        capture_output=True,
    )


@pytest.mark.usefixtures("ticket")
def test_a_ticket_is_as_good_as_a_password(domain: Domain) -> None:
    kerberos = {"protection": Protection.SASL, "bind": Bind.GSSAPI, "ca_file": ""}
    assert domain.read(**kerberos, user="", password_file="").changes == domain.read().changes

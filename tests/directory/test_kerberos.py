"""Kerberos and NTLM with a real domain controller, and with Samba's own client."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import gssapi
import pytest

from openmsmq.runtime.rpc.authentication import kerberos_by
from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.runtime.rpc.kerberos import (
    TICKET_MAX_BYTES,
    KerberosAcceptor,
    KerberosInitiator,
    open_keytab,
)
from openmsmq.security.access.sids import Sid
from openmsmq.security.authentication.ports import (
    AuthenticationFailed,
    Fragment,
    Level,
    SecurityContext,
)
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.initiator import SpnegoInitiator
from openmsmq.security.authentication.spnego.offer import Mechanism
from openmsmq.security.authentication.spnego.tokens import KERBEROS, KERBEROS_OF_WINDOWS, NTLM
from tests.directory.samba import PASSWORD, REALM, UNSAFE_BUT_FAST, DomainController
from tests.unit.security.authentication.sides import ALICE as ACCOUNT
from tests.unit.security.authentication.sides import FRAGMENT, Book, acceptor

pytestmark = pytest.mark.directory

HOST: Final = "doorkeeper.mq.test"
"""No other test of the domain has a computer of this name."""
NAMES: Final = (KERBEROS_OF_WINDOWS, KERBEROS)


class Realm:
    """A user and a service of the domain, with the files that Kerberos wants."""

    def __init__(
        self,
        controller: DomainController,
        folder: Path,
        user: str = "alice",
        service: str = "queue-manager",
        host: str = HOST,
    ) -> None:
        self.configuration = controller.folder / "etc/smb.conf"
        self.keytab = folder / "alpha.keytab"
        self.user, self.host = user, host
        self.tool("user", "create", user, PASSWORD)
        self.tool("user", "create", service, PASSWORD)
        self.tool("spn", "add", f"host/{host}", service)
        self.tool("domain", "exportkeytab", str(self.keytab), f"--principal=host/{host}")
        shown = self.tool("user", "show", user, "--attributes=objectSid")
        self.alice = Sid.parse(shown.partition("objectSid: ")[2].split()[0])
        self.file = folder / "krb5.conf"
        self.file.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {controller.address}\n }}\n",
            encoding="utf-8",
        )

    def tool(self, *words: str) -> str:
        done = subprocess.run(
            ["samba-tool", *words, "-s", str(self.configuration)],
            capture_output=True,
            text=True,
            check=False,
            env=UNSAFE_BUT_FAST,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def realm(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Realm:
    return Realm(controller, tmp_path_factory.mktemp("realm"))


@pytest.fixture(autouse=True)
def ticket(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Get a ticket of the user."""
    monkeypatch.setenv("KRB5_CONFIG", str(realm.file))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    subprocess.run(
        ["kinit", f"alice@{REALM}"],
        input=f"{PASSWORD}\n".encode(),
        env=os.environ,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def server(realm: Realm) -> KerberosAcceptor:
    return KerberosAcceptor(open_keytab(realm.keytab), DomainUsers())


def spnego_server(realm: Realm) -> SpnegoAcceptor:
    return SpnegoAcceptor(
        (
            Mechanism(NAMES, kerberos_by(realm.keytab, DomainUsers())),
            Mechanism((NTLM,), lambda: acceptor(Book(password=PASSWORD))),
        )
    )


def enter(client: Callable[[bytes], bytes], server: SecurityContext) -> list[bytes]:
    """Let a client talk to a server to the end; give what the client said."""
    said = [client(b"")]
    while True:
        step = server.step(said[-1])
        answer = client(step.token) if step.token else b""
        if step.is_complete:
            assert not answer
            return said
        said.append(answer)


def pass_on(
    sender: SecurityContext, receiver: SecurityContext, level: Level, *, whole: bool
) -> None:
    stub, signature = sender.protect(level, FRAGMENT, signs_header=whole)
    assert len(signature) == sender.signature_size(level)
    assert (stub != FRAGMENT.stub) == (level is Level.PRIVACY)
    sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
    assert receiver.unprotect(level, sent, signature, signs_header=whole) == FRAGMENT.stub


def test_a_user_of_the_domain_comes_in_with_sid_and_groups(
    realm: Realm, server: KerberosAcceptor
) -> None:
    client = KerberosInitiator(HOST)
    said = enter(lambda token: client.step(token).token, server)
    assert len(said) == 2
    caller = server.caller
    assert (caller.name, caller.user) == (f"user alice@{REALM}", realm.alice)
    domain_users = Sid.parse(f"{str(realm.alice).rpartition('-')[0]}-513")
    assert domain_users in caller.sids
    assert not caller.is_administrator


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("negotiated", [False, True])
def test_both_sides_protect_as_far_as_the_level_says(
    realm: Realm, server: KerberosAcceptor, level: Level, whole: bool, negotiated: bool
) -> None:
    client: KerberosInitiator | SpnegoInitiator = KerberosInitiator(HOST)
    other: KerberosAcceptor | SpnegoAcceptor = server
    if negotiated:
        mechanism = Mechanism(NAMES, lambda: KerberosInitiator(HOST))
        client, other = SpnegoInitiator((mechanism,)), spnego_server(realm)
    enter(lambda token: client.step(token).token, other)
    assert other.caller.user == realm.alice
    for _ in range(2):
        pass_on(client, other, level, whole=whole)
        pass_on(other, client, level, whole=whole)


def entered(server: KerberosAcceptor) -> KerberosInitiator:
    client = KerberosInitiator(HOST)
    enter(lambda token: client.step(token).token, server)
    return client


@pytest.mark.parametrize("level", [Level.INTEGRITY, Level.PRIVACY])
@pytest.mark.parametrize("part", range(4))
def test_what_was_changed_on_the_way_is_noticed(
    server: KerberosAcceptor, level: Level, part: int
) -> None:
    stub, signature = entered(server).protect(level, FRAGMENT, signs_header=True)
    parts = [FRAGMENT.header, stub, FRAGMENT.trailer, signature]
    parts[part] = parts[part][:-1] + bytes((parts[part][-1] ^ 1,))
    with pytest.raises(AuthenticationFailed, match="Kerberos refuses"):
        server.unprotect(level, Fragment(*parts[:3]), parts[3], signs_header=True)
    # Behind that nothing is right any more.
    with pytest.raises(AuthenticationFailed, match="is over"):
        server.protect(level, FRAGMENT, signs_header=True)


@pytest.mark.parametrize("level", [Level.INTEGRITY, Level.PRIVACY])
def test_what_comes_twice_or_too_late_is_noticed(server: KerberosAcceptor, level: Level) -> None:
    client = entered(server)
    stub, signature = client.protect(level, FRAGMENT, signs_header=True)
    sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
    server.unprotect(level, sent, signature, signs_header=True)
    with pytest.raises(AuthenticationFailed, match="Kerberos refuses"):
        server.unprotect(level, sent, signature, signs_header=True)


@pytest.mark.parametrize("level", [Level.INTEGRITY, Level.PRIVACY])
def test_what_was_left_out_is_noticed(server: KerberosAcceptor, level: Level) -> None:
    client = entered(server)
    client.protect(level, FRAGMENT, signs_header=True)
    stub, signature = client.protect(level, FRAGMENT, signs_header=True)
    sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
    with pytest.raises(AuthenticationFailed, match="Kerberos refuses"):
        server.unprotect(level, sent, signature, signs_header=True)


def test_a_ticket_that_was_overheard_is_worth_nothing(
    realm: Realm, server: KerberosAcceptor
) -> None:
    client = KerberosInitiator(HOST)
    overheard = enter(lambda token: client.step(token).token, server)
    again = KerberosAcceptor(open_keytab(realm.keytab), DomainUsers())
    assert not again.step(overheard[0]).is_complete
    with pytest.raises(AuthenticationFailed, match="Kerberos refuses"):
        again.step(overheard[1])
    with pytest.raises(AuthenticationFailed, match="yet"):
        _ = again.caller


def test_a_client_that_does_without_the_third_token_is_refused(server: KerberosAcceptor) -> None:
    name = gssapi.Name(f"host@{HOST}", gssapi.NameType.hostbased_service)
    flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
    client = gssapi.SecurityContext(name=name, usage="initiate", flags=flags)
    with pytest.raises(AuthenticationFailed, match="DCE style"):
        server.step(client.step(None) or b"")
    with pytest.raises(AuthenticationFailed, match="yet"):
        _ = server.caller
    with pytest.raises(AuthenticationFailed, match="is over"):
        server.protect(Level.INTEGRITY, FRAGMENT, signs_header=True)


@pytest.mark.parametrize("token", [b"", b"nonsense", b"\x60\x84\xff\xff\xff\xff", bytes(70_000)])
def test_bytes_that_are_no_ticket_are_refused(server: KerberosAcceptor, token: bytes) -> None:
    assert len(bytes(70_000)) > TICKET_MAX_BYTES
    with pytest.raises(AuthenticationFailed):
        server.step(token)
    with pytest.raises(AuthenticationFailed, match="is over"):
        server.step(token)


def test_nothing_is_protected_before_anything_is_proved(server: KerberosAcceptor) -> None:
    with pytest.raises(AuthenticationFailed, match="yet"):
        server.protect(Level.PRIVACY, FRAGMENT, signs_header=True)


class SambaClient:
    """Samba's client, as another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def ask(self, verb: str, *parts: bytes) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join((verb, *(part.hex() for part in parts))) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def update(self, token: bytes) -> bytes:
        return bytes.fromhex(self.ask("update", token).partition(" ")[2])


@contextmanager
def samba_client(realm: Realm, mechanism: str, *more: str) -> Iterator[SambaClient]:
    program = Path(__file__).with_name("samba_client.py")
    words = (mechanism, "alice", PASSWORD, "MQTEST", REALM, HOST, str(realm.configuration), *more)
    with subprocess.Popen(
        ["/usr/bin/python3", "-I", str(program), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield SambaClient(process)
        assert process.stdin is not None
        process.stdin.close()


def signed_both_ways(
    client: SambaClient, server: SecurityContext, *, signs_header: bool = True
) -> None:
    whole = FRAGMENT.header + FRAGMENT.stub + FRAGMENT.trailer
    for _ in range(2):
        signature = bytes.fromhex(client.ask("sign", FRAGMENT.stub, whole))
        stub = server.unprotect(Level.INTEGRITY, FRAGMENT, signature, signs_header=signs_header)
        assert stub == FRAGMENT.stub
        _, answer = server.protect(Level.INTEGRITY, FRAGMENT, signs_header=signs_header)
        assert client.ask("check", FRAGMENT.stub, whole, answer) == "right"


@pytest.mark.parametrize("mechanism", ["ntlmssp", "spnego"])
def test_sambas_client_comes_in_by_ntlm(
    realm: Realm, mechanism: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Without a configuration there is no ticket, so SPNEGO takes NTLM.
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "none"))
    book = Book(password=PASSWORD)
    server: SecurityContext = acceptor(book)
    if mechanism == "spnego":
        server = SpnegoAcceptor((Mechanism((NTLM,), lambda: acceptor(book)),))
    with samba_client(realm, mechanism) as client:
        enter(client.update, server)
        assert server.caller is ACCOUNT
        assert book.attempts == [("alice", True)]
        signed_both_ways(client, server)
        sealed = bytes.fromhex(client.ask("seal", FRAGMENT.stub))
        sent = Fragment(b"", sealed[16:], b"")
        assert server.unprotect(Level.PRIVACY, sent, sealed[:16], signs_header=True) == (
            FRAGMENT.stub
        )
        stub, signature = server.protect(
            Level.PRIVACY, Fragment(b"", FRAGMENT.stub, b""), signs_header=True
        )
        assert client.ask("unseal", signature + stub) == FRAGMENT.stub.hex()


@pytest.mark.parametrize("more", [(), ("header",)])
@pytest.mark.parametrize("mechanism", ["gssapi_krb5", "spnego"])
def test_sambas_client_comes_in_by_kerberos(
    realm: Realm, server: KerberosAcceptor, mechanism: str, more: tuple[str, ...]
) -> None:
    ours: SecurityContext = spnego_server(realm) if mechanism == "spnego" else server
    with samba_client(realm, mechanism, *more) as client:
        enter(client.update, ours)
        assert ours.caller.user == realm.alice
        # Other than NTLM, Kerberos covers the header only if both sides have said so.
        signed_both_ways(client, ours, signs_header=bool(more))

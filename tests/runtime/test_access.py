"""Who comes in, as whom, and what each may do: over real sockets, as real users."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

import openmsmq
import openmsmq.aio
from openmsmq import Settings
from openmsmq.api import messages as api
from openmsmq.api.framing import encode_frame
from openmsmq.directory.rows import row_of
from openmsmq.model.errors import AccessDenied
from openmsmq.model.identity import Guid
from openmsmq.model.limits import TRANSACTIONS_MAX_COUNT
from openmsmq.model.queue import AccessMode
from openmsmq.model.topology import UserInfo
from openmsmq.runtime import service
from openmsmq.runtime.api import server as api_server
from openmsmq.runtime.api.tokens import create_token, revoke_token
from openmsmq.runtime.clocks import read_clocks
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, unix_user
from openmsmq.storage.memory import MemoryStore
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.runtime.computers import PROGRAM, environment
from tests.runtime.namespaces import required_laboratory
from tests.runtime.other_users import User
from tests.runtime.raw_client import TIMEOUT_S, RawClient, connect, packet
from tests.server_thread import ServerThread, start_server
from tests.unit.manager.access_cases import (
    ALICE,
    BOB,
    CASES,
    COVERED,
    KINDS,
    TABLE,
    Place,
    Stage,
)

ORDERS = r"private$\orders"


def start(folder: Path, **options: object) -> ServerThread:
    return start_server(str(folder), store=MemoryStore(), api_socket="none", **options)


def token(
    folder: Path, *scopes: Scope, name: str = "web", user: Sid = ADMINISTRATORS, **options: Any
) -> str:
    now_s = options.pop("now_s", read_clocks().unix_s)
    return create_token(
        folder / "tokens.json", name, scopes or (Scope.ADMIN,), now_s=now_s, user=user, **options
    )[0]


def denied(reply: api.AnyReply) -> bool:
    return isinstance(reply, api.Failed) and reply.code == AccessDenied.code


def audited(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "audit.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


# Every right on every request.


def test_every_right_decides_about_its_requests_over_the_interface(tmp_path: Path) -> None:
    shown = token(tmp_path, user=ALICE)
    with (
        start(tmp_path, directory_server=True) as server,
        connect(server.host, server.port) as root,
        connect(server.host, server.port, shown) as alice,
    ):
        place = Place(root.call, alice.call)
        for case in CASES:
            place.show(case)


def rows_fail(stage: Stage, kind: str, client: RawClient) -> list[str]:
    """Try the whole table as one kind of caller; gives the rows that end otherwise."""
    column = KINDS.index(kind)
    return [
        f"{row}: {found}"
        for row in TABLE
        if (found := stage.outcome(row, client.call)) != row.outcomes[column]
    ]


def as_user(number: int, host: str, port: int, context: ssl.SSLContext) -> RawClient:
    """Connect as another user of this computer: a socket belongs to who makes it."""
    os.seteuid(number)
    try:
        plain = socket.socket()
    finally:
        os.seteuid(0)
    plain.settimeout(TIMEOUT_S)
    plain.connect((host, port))
    return RawClient(context.wrap_socket(plain, server_hostname="localhost"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be other users")
def test_every_kind_of_caller_can_do_what_the_table_says_over_the_interface(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Authority(tmp_path, "ours")
    own, _ = ours.certificate("localhost")
    bob, der = ours.certificate("bob")
    scoped = {
        "token to send": token(tmp_path, Scope.SEND, name="s"),
        "token to receive": token(tmp_path, Scope.RECEIVE, name="r"),
        "token for some queues": token(tmp_path, name="q", queues=(COVERED,)),
        "token of an administrator": token(tmp_path, name="a"),
    }
    victims = token(tmp_path, Scope.SEND, Scope.RECEIVE, name="victim")
    context = ssl.create_default_context(cafile=str(ours.file))
    with_certificate = ssl.create_default_context(cafile=str(ours.file))
    with_certificate.load_cert_chain(bob)
    with (
        start(
            tmp_path, directory_server=True, tls_cert=str(own), tls_client_ca=str(ours.file)
        ) as server,
        contextlib.ExitStack() as stack,
    ):

        def let_in(client: RawClient, shown: str = "") -> RawClient:
            stack.enter_context(client)
            reply = client.hello(shown)
            assert isinstance(reply, api.Welcome), reply
            return client

        def tcp(with_: ssl.SSLContext = context) -> RawClient:
            return RawClient.tcp(server.host, server.port, with_)

        root = let_in(tcp())
        registered = root.call(api.ChangeDirectory([row_of(user_with(BOB, der))]))
        assert isinstance(registered, api.DirectoryChanged), registered
        stage = Stage(root.call, let_in(tcp(), victims).call)
        callers = {kind: let_in(tcp(), shown) for kind, shown in scoped.items()}
        callers["another user"] = let_in(as_user(70_001, server.host, server.port, context))
        callers["the server's own user"] = let_in(tcp())
        callers["certificate of a user"] = let_in(tcp(with_certificate))
        assert {"nobody from elsewhere", *callers} == set(KINDS)
        wrong = {kind: rows_fail(stage, kind, client) for kind, client in callers.items()}
    assert not any(wrong.values()), wrong
    # What the handshake of TLS has left to send makes the loop tell a new connection to wait.
    assert not [each for each in caplog.records if each.name == "asyncio"]


def test_a_weak_token_gets_into_no_closed_queue_by_a_dead_letter(tmp_path: Path) -> None:
    closed = r"private$\closed"
    shown = token(tmp_path, Scope.SEND, queues=(ORDERS,))
    with start(tmp_path) as server:
        address = f"{server.host}:{server.port}"
        with openmsmq.connect(address) as root, openmsmq.connect(address, token=shown) as web:
            root.create_queue(ORDERS)
            root.create_queue(closed)
            with pytest.raises(AccessDenied, match="lacks the right send on"):
                web.queue(closed).send("direct")
            with pytest.raises(AccessDenied, match="lacks the right send on"):
                web.queue(ORDERS).send(
                    "dead at once", time_to_be_received_s=0, dead_letter_queue=closed
                )
            assert root.queue(closed).count() == 0


def test_a_weak_token_leaves_transactions_for_others(tmp_path: Path) -> None:
    greedy, other = token(tmp_path, Scope.SEND, name="g"), token(tmp_path, Scope.SEND, name="o")
    half = TRANSACTIONS_MAX_COUNT // 2
    with (
        start(tmp_path) as server,
        connect(server.host, server.port, greedy) as flood,
        connect(server.host, server.port, greedy) as again,
        connect(server.host, server.port, other) as victim,
    ):
        replies = []
        while len(replies) < half + 500:
            replies += [flood.answer(call) for call in flood.submit(*[api.Begin()] * 500)]
        begun = [reply for reply in replies if isinstance(reply, api.Begun)]
        assert len(begun) == half
        refused = again.call(api.Begin())
        assert isinstance(refused, api.Failed)
        assert "token g has 5000 transactions open or prepared, and may have 5000" in refused.detail
        mine = victim.call(api.Begin())
        assert isinstance(mine, api.Begun)
        assert victim.call(api.Prepare(mine.transaction)) == api.Done()


LONG = "A" * (8 << 20)


def test_a_weak_token_keeps_nobody_waiting_by_what_is_long(tmp_path: Path) -> None:
    """Names and lists of any length are refused before anything is done with their parts."""
    shown = token(tmp_path, Scope.SEND, queues=(ORDERS,))
    with start(tmp_path) as server, connect(server.host, server.port) as root:
        root.create()
        for request in (
            api.GetNames(LONG),
            api.GetQueue(LONG),
            api.OpenQueue(rf"private$\{LONG}", AccessMode.SEND),
            api.Send(1, [b""] * 1_000_000),
            api.CommitBatch("query", 0, [b""] * 1_000_000),
        ):
            with connect(server.host, server.port, shown) as weak:
                weak.socket.sendall(encode_frame(api.Call(1, request)))
                assert weak.is_hung_up_on()
        with connect(server.host, server.port, shown) as weak:
            opened = weak.open(AccessMode.SEND)
            lists = MultiQueueFormatHeader(AddressList((DirectName(r"OS:a\q"),) * 1024))
            for count in (33, 32):
                packets = [
                    listing(packet(opened.direct_name, b"%d" % number), lists)
                    for number in range(count)
                ]
                reply = weak.call(api.Send(opened.handle, packets))
                assert isinstance(reply, api.Failed if count == 33 else api.Sent)
        assert root.call(api.GetQueue(ORDERS)).queues[0].message_count == 32


@pytest.mark.parametrize("prepared", [False, True], ids=["open", "prepared"])
def test_a_weak_token_passes_no_quota_by_transactions(tmp_path: Path, prepared: bool) -> None:
    shown = token(tmp_path, Scope.SEND, queues=(ORDERS,))
    with start(tmp_path) as server, connect(server.host, server.port) as root:
        root.call(api.CreateQueue(ORDERS, transactional=True, quota_kb=1024))
        with connect(server.host, server.port, shown) as weak:
            opened = weak.open(AccessMode.SEND)
            sent = [packet(opened.direct_name, bytes(300_000), transactional=True)]
            replies = []
            for _ in range(4):
                work = weak.call(api.Begin())
                replies.append(weak.call(api.Send(opened.handle, sent, work.transaction)))
                if prepared:
                    assert isinstance(weak.call(api.Prepare(work.transaction)), api.Done)
            assert [type(reply) for reply in replies] == [api.Sent] * 3 + [api.Failed]
            assert root.call(api.GetStatus()).staged_bytes > 900_000


def listing(plain: bytes, lists: MultiQueueFormatHeader) -> bytes:
    message = decode(plain)
    assert isinstance(message, UserMessage)
    return encode(msgspec.structs.replace(message, multi_queue=lists))


def test_names_of_transactions_come_from_the_randomness_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[bytes] = []

    class Watched(random.SystemRandom):
        def randbytes(self, count: int) -> bytes:
            drawn.append(super().randbytes(count))
            return drawn[-1]

    monkeypatch.setattr(service.random, "SystemRandom", Watched)
    with start(tmp_path) as server, connect(server.host, server.port) as client:
        begun = client.call(api.Begin())
    assert isinstance(begun, api.Begun)
    assert begun.unit_of_work in drawn


# Users of this computer.


def test_the_servers_own_user_is_an_administrator(tmp_path: Path) -> None:
    with start(tmp_path) as server, connect(server.host, server.port) as client:
        found = client.call(api.GetCaller())
        assert isinstance(found, api.CallerStatus)
        assert bytes(ADMINISTRATORS) in found.sids


def test_another_user_on_loopback_is_that_user_and_may_send(tmp_path: Path) -> None:
    with start(tmp_path) as server:
        other = User(f"{server.host}:{server.port}", 70_001, 70_001)
        with connect(server.host, server.port) as root:
            root.create()
        assert other.ok("whoami")["user"] == str(unix_user(70_001))
        other.ok("send", ORDERS, "--body", "hello")
        said = other.refused("receive", ORDERS)
        assert "user 70001 lacks the right receive on private$\\orders" in said
        assert "MQ_ERROR_ACCESS_DENIED" in said
        assert "create-queue" in other.refused("queue", "create", r"private$\mine")
        with openmsmq.connect(f"{server.host}:{server.port}") as manager:
            manager.queue(ORDERS).grant("user:70001", "receive")
        assert other.ok("receive", ORDERS)["body_type"]
    refusals = [line for line in audited(tmp_path) if line["result"] == "MQ_ERROR_ACCESS_DENIED"]
    assert [line["action"] for line in refusals] == ["open-queue", "create-queue"]
    assert {line["sid"] for line in refusals} == {str(unix_user(70_001))}


def test_on_the_unix_socket_users_have_their_groups(tmp_path: Path) -> None:
    open_place = Path(tempfile.mkdtemp(prefix="openmsmq-"))
    open_place.chmod(0o755)
    path = open_place / "api.sock"
    try:
        with start_server(
            str(tmp_path),
            store=MemoryStore(),
            api_socket=str(path),
            api_socket_group="users",
        ) as server:
            with openmsmq.connect(f"{server.host}:{server.port}") as manager:
                manager.create_queue(ORDERS).grant("group:100", "peek")
            member = User(str(path), 70_001, 100)
            assert "S-1-22-2-100" in member.ok("whoami")["sids"]
            assert "receive" in member.refused("receive", ORDERS)
            assert "no message" in member.refused("peek", ORDERS).lower()
            stranger = User(str(path), 70_002, 70_002)
            assert "openmsmq:" in stranger.refused("status")
    finally:
        shutil.rmtree(open_place)


# Tokens.


def test_a_token_is_good_for_its_scope_and_its_queues(tmp_path: Path) -> None:
    shown = token(tmp_path, Scope.SEND, queues=(r"private$\ord*",))
    with start(tmp_path) as server:
        with connect(server.host, server.port) as root:
            root.create()
            root.create("ledger")
        with connect(server.host, server.port, shown) as client:
            opened = client.open(AccessMode.SEND)
            assert isinstance(client.send(opened, b"x"), api.Sent)
            for name, mode in ((ORDERS, AccessMode.PEEK), (r"private$\ledger", AccessMode.SEND)):
                assert denied(client.call(api.OpenQueue(name, mode)))


@pytest.mark.parametrize("kind", ["wrong", "expired", "revoked"])
def test_a_token_that_is_no_good_is_refused_and_not_taken_for_nobody(
    tmp_path: Path, kind: str
) -> None:
    shown = token(tmp_path)
    if kind == "expired":
        shown = token(tmp_path, name="old", now_s=1_000_000, expires_days=1)
    elif kind == "revoked":
        token(tmp_path, name="other")
        revoke_token(tmp_path / "tokens.json", "web")
    else:
        shown += "x"
    with start(tmp_path) as server, RawClient.tcp(server.host, server.port) as client:
        assert denied(client.hello(shown))
        assert client.is_hung_up_on()
    (line,) = audited(tmp_path)
    assert line["action"] == "connect"


def test_tokens_are_made_and_revoked_while_the_server_runs(tmp_path: Path) -> None:
    with start(tmp_path) as server:
        shown = token(tmp_path)
        with connect(server.host, server.port, shown) as client:
            assert isinstance(client.call(api.GetStatus()), api.Status)
            revoke_token(tmp_path / "tokens.json", "web")
            token(tmp_path, name="other")
            with RawClient.tcp(server.host, server.port) as again:
                assert denied(again.hello(shown))
            assert client.is_hung_up_on()
    noted = [(line["action"], line["on"]) for line in audited(tmp_path) if "who" not in line]
    assert ("token-removed", "web") in noted
    assert ("token-added", "other") in noted


@pytest.mark.parametrize("end", ["revoked", "over"])
def test_who_stays_connected_is_cut_when_the_token_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(api_server, "TOKENS_LOOK_MS", 50)
    day_s = 24 * 3600
    made_s = read_clocks().unix_s - day_s + (2 if end == "over" else 1000)
    shown = token(tmp_path, now_s=made_s, expires_days=1)
    with start(tmp_path) as server, connect(server.host, server.port, shown) as client:
        assert isinstance(client.call(api.GetStatus()), api.Status)
        if end == "revoked":
            revoke_token(tmp_path / "tokens.json", "web")
        assert client.is_hung_up_on()


def test_the_token_of_the_operator_is_an_administrators_and_wanted_from_everybody(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n", encoding="utf-8")
    with start(tmp_path, token_file=str(file)) as server:
        with RawClient.tcp(server.host, server.port) as client:
            assert denied(client.hello())
        with connect(server.host, server.port, "s3cret") as client:
            client.create()
            client.open(AccessMode.RECEIVE)
        with connect(server.host, server.port, token(tmp_path, Scope.SEND)) as client:
            assert denied(client.call(api.OpenQueue(ORDERS, AccessMode.RECEIVE)))


@pytest.mark.parametrize("door", ["tcp", "unix"])
@pytest.mark.parametrize("kind", ["nonsense", "revoked", "expired", "for elsewhere"])
def test_a_token_that_is_shown_is_judged_though_there_are_no_others(
    tmp_path: Path, kind: str, door: str
) -> None:
    """Root itself, who would come in without one, does not with one that is no good."""
    shown = "nonsense" if kind == "nonsense" else token(tmp_path, Scope.SEND, now_s=1_000_000)
    if kind == "expired":
        revoke_token(tmp_path / "tokens.json", "web")
        shown = token(tmp_path, Scope.SEND, now_s=1_000_000, expires_days=1)
    elif kind == "for elsewhere":
        (tmp_path / "tokens.json").unlink()
    path = tmp_path / "api.sock"
    with start_server(str(tmp_path), store=MemoryStore(), api_socket=str(path)) as server:

        def come() -> RawClient:
            if door == "unix":
                return RawClient.unix(path)
            return RawClient.tcp(server.host, server.port)

        if kind == "revoked":
            with come() as client:
                client.hello(shown)
                found = client.call(api.GetCaller())
                assert isinstance(found, api.CallerStatus)
                assert found.scopes == ["send"]
                revoke_token(tmp_path / "tokens.json", "web")
        with come() as client:
            reply = client.hello(shown)
            assert denied(reply), reply
            assert isinstance(reply, api.Failed)
            assert "this queue manager does not know it" in reply.detail
        with come() as client:
            assert isinstance(client.hello(), api.Welcome), "without one the kernel vouches"


# Certificates.


_Key: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Authority:
    """Makes certificates."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(
            self._made(self._name, self._key, is_authority=True).public_bytes(
                serialization.Encoding.PEM
            )
        )

    def _made(self, name: x509.Name, key: _Key, *, is_authority: bool) -> x509.Certificate:
        begin = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days=36_500))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())

    def certificate(self, who: str, *, rsa_bits: int = 0) -> tuple[Path, bytes]:
        """Return the file of a certificate with its key, and its DER."""
        key: _Key = ec.generate_private_key(ec.SECP256R1())
        if rsa_bits:
            # Messages are signed with such keys only.
            key = rsa.generate_private_key(65_537, rsa_bits)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)])
        made = self._made(name, key, is_authority=False)
        file = self._folder / f"{who}.pem"
        file.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return file, made.public_bytes(serialization.Encoding.DER)


def user_with(sid: Sid, certificate: bytes) -> UserInfo:
    return UserInfo(
        identifier=Guid(b"u" * 16),
        security_identifier=bytes(sid),
        certificates=(certificate,),
        certificate_digests=(md5(certificate, usedforsecurity=False).digest(),),
    )


@pytest.mark.parametrize("scope", [Scope.SEND, Scope.RECEIVE])
def test_nobody_with_a_weak_token_comes_back_as_an_administrator_by_a_certificate(
    tmp_path: Path, scope: Scope
) -> None:
    ours = Authority(tmp_path, "ours")
    own, _ = ours.certificate("localhost")
    mallory, der = ours.certificate("mallory", rsa_bits=2048)
    shown = token(tmp_path, scope)
    with start(
        tmp_path, directory_server=True, tls_cert=str(own), tls_client_ca=str(ours.file)
    ) as server:
        common = Settings(
            address=f"localhost:{server.port}", tls=str(ours.file), reconnect_within_s=0
        )
        with openmsmq.connect(common, token=shown) as manager:
            with pytest.raises(AccessDenied, match="may not change certificates"):
                manager.register_certificate(der)
            with pytest.raises(AccessDenied, match="may not change certificates"):
                manager.remove_certificate(md5(der, usedforsecurity=False).digest())
            with pytest.raises(AccessDenied):
                manager.write_directory([user_with(ADMINISTRATORS, der)])
        with pytest.raises(AccessDenied, match="for no user"):
            openmsmq.connect(common, certificate=str(mallory))
        # An administrator may, and the certificate is then worth what its user is.
        with openmsmq.connect(common) as manager:
            manager.register_certificate(der)
        with openmsmq.connect(common, certificate=str(mallory)) as manager:
            assert Sid(manager.caller().user) == unix_user(os.geteuid())
            with pytest.raises(AccessDenied, match="lacks the right create-queue"):
                manager.create_queue(ORDERS)


def test_a_certificate_is_worth_what_the_directory_says_of_its_user(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    own, _ = ours.certificate("localhost")
    alice, der = ours.certificate("alice")
    unknown, _ = ours.certificate("unknown")
    foreign, _ = others.certificate("mallory")
    with start(
        tmp_path, directory_server=True, tls_cert=str(own), tls_client_ca=str(ours.file)
    ) as server:
        common = Settings(
            address=f"localhost:{server.port}", tls=str(ours.file), reconnect_within_s=0
        )
        context = ssl.create_default_context(cafile=str(ours.file))
        with RawClient.tcp(server.host, server.port, context) as root:
            # Without a certificate the kernel's word counts, as without TLS.
            assert isinstance(root.hello(), api.Welcome)
            root.create()
            changed = root.call(api.ChangeDirectory([row_of(user_with(ALICE, der))]))
            assert isinstance(changed, api.DirectoryChanged), changed
        with openmsmq.connect(common, certificate=str(alice)) as manager:
            assert Sid(manager.caller().user) == ALICE
            manager.queue(ORDERS).send("hello")
            with pytest.raises(AccessDenied, match=f"user {ALICE} lacks the right receive"):
                manager.queue(ORDERS).receive()
        with pytest.raises(AccessDenied, match="for no user"):
            openmsmq.connect(common, certificate=str(unknown))
        with pytest.raises(openmsmq.ConnectionLost):
            openmsmq.connect(common, certificate=str(foreign))


# Nothing leaks.


def test_no_token_is_in_any_log_or_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    operator = tmp_path / "token"
    operator.write_text("0perator-s3cret\n", encoding="utf-8")
    secrets = ["0perator-s3cret", "wr0ng-guess"]
    secrets += [token(data, Scope.SEND, name="one"), token(data, name="two")]
    command = [*PROGRAM, "serve", "--data", str(data), "--name", "ALPHA", "--api-port", "0"]
    command += ["--no-transfer", "--token-file", str(operator), "--log-level", "debug"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        facts = dict(fact.split("=", 1) for fact in process.stdout.readline().split()[1:])
        host, _, port = facts["address"].rpartition(":")
        try:
            for secret in secrets:
                with RawClient.tcp(host, int(port)) as client:
                    client.hello(secret)
                    with contextlib.suppress(ConnectionError):
                        client.call(api.CreateQueue(ORDERS))
                        client.call(api.DeleteQueue(ORDERS))
            revoke_token(data / "tokens.json", "one")
            with RawClient.tcp(host, int(port)) as client:
                client.hello(secrets[2])
        finally:
            process.terminate()
            rest, errors = process.communicate(timeout=30)
    written = rest + errors
    for file in data.rglob("*"):
        if file.is_file():
            written += file.read_bytes().decode("utf-8", "replace")
    assert "connection-refused" in written
    assert "delete-queue" in written
    for secret in secrets:
        assert secret not in written


# Other computers.


@contextlib.contextmanager
def serving(folder: Path, namespace: str, *options: str) -> Iterator[None]:
    command = ["ip", "netns", "exec", namespace, *PROGRAM, "serve", "--name", "ALPHA"]
    command += ["--data", str(folder), "--no-transfer", *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready ")
        yield
    finally:
        running.terminate()
        running.communicate(timeout=30)


def test_by_default_nobody_on_another_computer_gets_in(tmp_path: Path) -> None:
    with required_laboratory("lan") as lab:
        here = lab.host("here", lan="10.97.0.1")
        there = lab.host("there", lan="10.97.0.2")
        ask = [*PROGRAM, "--qm", "10.97.0.1", "status"]
        with serving(tmp_path / "data", here.name):
            ran = there.command(*ask, env=environment())
            assert "No queue manager answers" in ran.stderr
        # And it does not start on an address that others reach.
        ran = here.command(
            *PROGRAM, "serve", "--data", str(tmp_path), "--address", "10.97.0.1", env=environment()
        )
        assert ran.returncode == 2
        assert "a token is needed" in ran.stderr


def test_who_comes_from_another_computer_without_a_token_sends_and_reads_nothing(
    tmp_path: Path,
) -> None:
    with required_laboratory("lan") as lab:
        here = lab.host("here", lan="10.97.0.1")
        there = lab.host("there", lan="10.97.0.2")
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        victims = token(data, Scope.SEND, Scope.RECEIVE, name="victim")
        options = ["--address", "10.97.0.1", "--allow-remote-without-token", "--directory-server"]
        with serving(data, here.name, *options):
            with (
                RawClient.unix(data / "api.sock") as root,
                RawClient.unix(data / "api.sock") as victim,
                there.do(lambda: RawClient.tcp("10.97.0.1", 1802)) as nobody,
            ):
                for client, shown in ((root, ""), (victim, victims), (nobody, "")):
                    assert isinstance(client.hello(shown), api.Welcome)
                stage = Stage(root.call, victim.call)
                assert rows_fail(stage, "nobody from elsewhere", nobody) == []
            with openmsmq.connect(str(data / "api.sock")) as manager:
                manager.create_queue(ORDERS).send("kept")

            there.run(lambda: _try_everything("10.97.0.1"))
            with openmsmq.connect(str(data / "api.sock")) as manager:
                assert manager.queue(ORDERS).count() == 2


async def _try_everything(address: str) -> None:
    """Be root on another computer, and nobody on this one."""
    async with openmsmq.aio.connect(address) as manager:
        found = await manager.caller()
        assert sorted(map(str, map(Sid, found.sids))) == ["S-1-1-0", "S-1-5-7"]
        queue = manager.queue(ORDERS)
        await queue.send("hello")
        everybody = ("everyone", "full")
        for attempt in (
            queue.receive,
            queue.peek,
            queue.purge,
            queue.delete,
            queue.take_ownership,
            queue.reset_security,
            lambda: queue.change(label="x"),
            lambda: queue.grant(*everybody),
            lambda: queue.journal.peek(),
            lambda: manager.create_queue(r"private$\x"),
            lambda: manager.queue("system$;deadletter").peek(),
            lambda: manager.queue("system$;journal").peek(),
            lambda: manager.queue(r"DIRECT=TCP:10.97.0.2\private$\x").send("relayed"),
            lambda: manager.set_online(online=False),
            lambda: manager.resolve(bytes(16), commit=True),
            lambda: manager.forget_query("q"),
            lambda: manager.release(ORDERS),
            lambda: manager.grant(*everybody),
            manager.take_ownership,
            manager.in_doubt,
            manager.refresh_directory,
        ):
            with pytest.raises(AccessDenied):
                await attempt()


def test_a_token_opens_the_door_from_another_computer(tmp_path: Path) -> None:
    with required_laboratory("lan") as lab:
        here = lab.host("here", lan="10.97.0.1")
        there = lab.host("there", lan="10.97.0.2")
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        shown = token(data, Scope.RECEIVE)
        with serving(data, here.name, "--address", "10.97.0.1"):
            with openmsmq.connect(str(data / "api.sock")) as manager:
                manager.create_queue(ORDERS).send("kept")
            ask = [*PROGRAM, "--qm", "10.97.0.1", "receive", ORDERS]
            ran = there.command(*ask, env=environment())
            assert "the token is missing or wrong" in ran.stderr
            ran = there.command(*ask, env={**environment(), "OPENMSMQ_TOKEN": shown})
            assert ran.returncode == 0, ran.stderr
            # A user of the computer itself needs none, over its own address too.
            ran = here.command(*PROGRAM, "--qm", "10.97.0.1", "status", env=environment())
            assert ran.returncode == 0, ran.stderr

"""The HTTP door of a real server: what programs send, what they are told, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openmsmq
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.runtime.api.tokens import revoke_token
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import TOKENS_FILE, ServerConfig
from openmsmq.runtime.http import connection as http_connection
from openmsmq.runtime.http.programs import Programs
from openmsmq.runtime.limits import (
    HTTP_BODY_MAX_BYTES,
    HTTP_HEAD_MAX_BYTES,
    HTTP_PIPELINED_MAX_COUNT,
)
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import unix_user
from tests.runtime.http_peer import (
    ORDERS,
    Sender,
    hang_up,
    make_token,
    port_of,
    raw,
    serving,
    statuses,
)
from tests.runtime.raw_client import wait_until
from tests.runtime.session_certificates import Identity
from tests.server_thread import ServerThread

QUEUE = r"private$\orders"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "data"


@pytest.fixture(scope="module")
def token(data: Path) -> str:
    return make_token(data)


LINES: list[str] = []


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[ServerThread]:
    with serving(data, LINES) as running:
        with application(running) as manager:
            manager.create_queue(QUEUE)
            manager.create_queue(r"private$\ledger", transactional=True)
        yield running


@pytest.fixture
def server(running: ServerThread) -> Iterator[ServerThread]:
    LINES.clear()
    yield running
    messages(running)


@pytest.fixture(autouse=True)
def senders() -> Iterator[None]:
    yield
    hang_up()


@pytest.fixture
def sender(server: ServerThread, token: str) -> Sender:
    return Sender(port_of(server), token)


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, str]:
    """A data directory of the test's own, with a token."""
    return tmp_path / "data", make_token(tmp_path / "data")


def application(server: ServerThread) -> openmsmq.QueueManager:
    return openmsmq.connect(f"{server.host}:{server.port}")


def messages(server: ServerThread, name: str = QUEUE) -> list[ReceivedMessage]:
    with application(server) as manager:
        queue = manager.queue(name)
        found = []
        with contextlib.suppress(openmsmq.ReceiveTimeout):
            while True:
                found.append(queue.receive(timeout=0))
        return found


# Sending.


@pytest.mark.parametrize(
    ("content_type", "body", "read", "body_type"),
    [
        ("text/plain", "Grüße".encode(), "Grüße", 8),
        ("text/plain; charset=iso-8859-1", b"Gr\xfc\xdfe", "Grüße", 8),
        ('application/json; charset="utf-8"', b'{"a": 1}', '{"a": 1}', 8),
        ("application/octet-stream", b"\0\xff", b"\0\xff", 0x1011),
        ("application/xml", b"<a/>", b"<a/>", 0),
        ("text/xml", b"<a/>", b"<a/>", 0),
        ("text/plain", b"", "", 8),
    ],
)
def test_a_body_becomes_what_its_type_says(
    server: ServerThread,
    sender: Sender,
    content_type: str,
    body: bytes,
    read: object,
    body_type: int,
) -> None:
    answer = sender.send(body, Content_Type=content_type)
    assert answer.status == 201, answer.body
    (message,) = messages(server)
    assert (message.body if body_type else message.body_bytes) == read
    assert message.body_type == body_type
    assert str(message.id) == answer.json["message_id"]
    assert message.recoverable
    assert answer.headers["Content-Type"] == "application/json"


def test_headers_say_what_options_of_the_command_say(server: ServerThread, sender: Sender) -> None:
    correlation = "{11111111-2222-3333-4444-555555555555}\\7"
    answer = sender.send(
        "x",
        Msmq_Label="Bücher".encode().decode("latin-1"),
        Msmq_Priority="6",
        Msmq_Recoverable="false",
        Msmq_Time_To_Be_Received="3600",
        Msmq_Time_To_Reach_Queue="60.5",
        Msmq_Response_Queue=r"private$\answers",
        Msmq_Admin_Queue=r"DIRECT=OS:beta\private$\admin",
        Msmq_Acknowledge="full-receive",
        Msmq_Correlation_Id=correlation,
        Msmq_Application_Tag="4294967295",
        Msmq_Journal_On_Failure="true",
    )
    assert answer.status == 201, answer.body
    (message,) = messages(server)
    assert message.label == "Bücher"
    assert message.priority == 6
    assert not message.recoverable
    assert message.time_to_be_received_s == 3600
    assert message.time_to_reach_queue_s == 61
    assert str(message.response_queue) == r"DIRECT=OS:ALPHA\PRIVATE$\answers"
    assert str(message.admin_queue) == r"DIRECT=OS:beta\PRIVATE$\admin"
    assert message.acknowledge == 14
    assert message.correlation_id.hex().endswith("07000000")
    assert message.application_tag == 4294967295
    assert message.journal_on_failure


def test_a_transactional_queue_gets_transactional_messages(
    server: ServerThread, sender: Sender
) -> None:
    ledger = "/queues/private$/ledger/messages"
    assert sender.send("a", ledger).status == 201
    assert sender.send("b", ledger, Msmq_Transactional="true").status == 201
    refused = sender.send("c", ledger, Msmq_Transactional="false")
    assert (refused.status, refused.json["code"]) == (400, "MQ_ERROR_TRANSACTION_USAGE")
    assert [(each.body, each.transactional) for each in messages(server, r"private$\ledger")] == [
        ("a", True),
        ("b", True),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/queues/private$/orders/messages",
        "/queues/PRIVATE%24/Orders/messages",
        r"/queues/private$\orders/messages",
        "/queues/private%24%5Corders/messages?x=1",
        "/queues/DIRECT%3DOS%3AALPHA%5Cprivate$%5Corders/messages",
    ],
)
def test_a_queue_has_its_name_in_the_path(server: ServerThread, sender: Sender, path: str) -> None:
    assert sender.send("x", path).status == 201
    assert len(messages(server)) == 1


# Once.


def test_a_key_makes_one_message_and_one_answer(server: ServerThread, sender: Sender) -> None:
    first = sender.send("one", Idempotency_Key="order 4711/a")
    again = sender.send("one", Idempotency_Key='"order 4711/a"')
    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body
    assert (first.headers["Idempotent-Replayed"], again.headers["Idempotent-Replayed"]) == (
        None,
        "true",
    )
    asked = sender.ask("GET", first.headers["Location"])
    assert (asked.status, asked.json) == (200, first.json)
    assert len(messages(server)) == 1
    other = sender.send("two", Idempotency_Key="order 4711/a")
    assert (other.status, other.json["code"]) == (422, "MQ_ERROR_PROPERTIES_CONFLICT")
    relabelled = sender.send("one", Idempotency_Key="order 4711/a", Msmq_Label="new")
    assert relabelled.status == 422
    assert messages(server) == []
    assert sender.ask("GET", "/vouchers/unknown").status == 404


def test_keys_survive_the_end_of_the_queue_manager(own: tuple[Path, str]) -> None:
    data, token = own
    with serving(data) as server, application(server) as manager:
        manager.create_queue(QUEUE)
        first = Sender(port_of(server), token).send("one", Idempotency_Key="k")
    with serving(data) as server:
        again = Sender(port_of(server), token).send("one", Idempotency_Key="k")
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert len(messages(server)) == 1


def test_many_at_once_under_one_key_are_one(server: ServerThread, token: str) -> None:
    answers: list[Any] = []

    def send() -> None:
        answers.append(Sender(port_of(server), token).send("one", Idempotency_Key="k"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each.status for each in answers} == {201}
    assert len({each.body for each in answers}) == 1
    assert len(messages(server)) == 1


# Who.


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ({}, "send the header Authorization: Bearer TOKEN"),
        ({"Authorization": "Bearer openmsmq_nonsense"}, "openmsmq token create makes another"),
        ({"Authorization": "Basic YTpi"}, "use Bearer"),
        ({"Authorization": "Bearer"}, "send the header Authorization: Bearer TOKEN"),
    ],
)
def test_nobody_comes_in_without_a_token(
    server: ServerThread, data: Path, headers: dict[str, str], word: str
) -> None:
    stranger = Sender(port_of(server))
    answer = stranger.send("x", **headers)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert word in answer.json["detail"]
    assert stranger.ask("GET", "/vouchers/k", **headers).status == 401
    assert messages(server) == []
    assert '"action": "http"' in (data / "audit.log").read_text()


def test_rights_are_those_of_every_application(server: ServerThread, data: Path) -> None:
    port = port_of(server)
    reader = make_token(data, "reader", scopes=(Scope.RECEIVE,))
    other = make_token(data, "other", queues=(r"private$\other*",))
    user = make_token(data, "user", user=unix_user(70_001))
    assert Sender(port, reader).send().status == 403
    refused = Sender(port, other).send()
    assert (refused.status, refused.json["code"]) == (403, "MQ_ERROR_ACCESS_DENIED")
    # A token that goes is no longer good at once, over a connection that was there before.
    kept = Sender(port, user)
    assert kept.send().status == 201
    revoke_token(data / TOKENS_FILE, "user")
    assert kept.send().status == 401


def test_a_page_in_a_browser_may_not_send(server: ServerThread, sender: Sender) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        answer = sender.send("x", **headers)
        assert answer.status == 403, headers
        assert answer.headers["Access-Control-Allow-Origin"] is None
    preflight = sender.ask("OPTIONS", ORDERS, Origin="https://evil.example")
    assert preflight.status == 403
    assert messages(server) == []


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example:80", "[::2]", ""),
        # One of ours only for who reads them badly.
        *("[::1", "[::1]x", "[alpha]", "alpha:xx", "alpha:999999", "localhost:8080:9", "a@alpha"),
    ],
)
def test_a_url_names_this_computer(server: ServerThread, host: str) -> None:
    answer = raw(
        port_of(server),
        f"GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode(),
    )
    assert statuses(answer) == [400]


def test_hosts_of_proxies_are_named(own: tuple[Path, str]) -> None:
    with serving(own[0], hosts=("queues.example.com",)) as server:
        for host, status in (
            ("Queues.example.com:443", 200),
            ("ALPHA", 200),
            ("localhost", 200),
            ("[::1]:8080", 200),
            ("example.com", 400),
        ):
            data = f"GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            assert statuses(raw(port_of(server), data.encode())) == [status], host
        for place, status in (
            ("http://alpha", 200),
            ("http://evil.example", 400),
            ("http://evil.example@alpha", 400),
            ("http://alpha:99999999", 400),
            ("http://[::1]x", 400),
        ):
            absolute = f"GET {place}/openapi.json HTTP/1.1\r\nHost: alpha\r\n"
            absolute += "Connection: close\r\n\r\n"
            assert statuses(raw(port_of(server), absolute.encode())) == [status], place


# What is refused, and how.


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 404),
        ("GET", "/queues", {}, 404),
        ("POST", "/queues//messages", {}, 404),
        ("POST", "/queues/private$/missing/messages", {}, 404),
        ("GET", ORDERS, {}, 405),
        ("DELETE", ORDERS, {}, 405),
        ("POST", "/vouchers/k", {}, 405),
        ("POST", ORDERS, {"Content_Type": "image/png"}, 415),
        ("POST", ORDERS, {"Content_Type": "text/plain; charset=klingon"}, 415),
        ("POST", ORDERS, {"Content_Type": ""}, 415),
        ("POST", ORDERS, {"Msmq_Labell": "x"}, 400),
        ("POST", ORDERS, {"Msmq_Priority": "9"}, 400),
        ("POST", ORDERS, {"Msmq_Priority": "high"}, 400),
        ("POST", ORDERS, {"Msmq_Recoverable": "perhaps"}, 400),
        ("POST", ORDERS, {"Msmq_Time_To_Be_Received": "-1"}, 400),
        ("POST", ORDERS, {"Msmq_Acknowledge": "all"}, 400),
        ("POST", ORDERS, {"Msmq_Correlation_Id": "7"}, 400),
        ("POST", ORDERS, {"Msmq_Response_Queue": "a=b"}, 400),
        ("POST", ORDERS, {"Msmq_Label": "x" * 250}, 400),
        ("POST", ORDERS, {"Idempotency_Key": ""}, 400),
        ("POST", ORDERS, {"Idempotency_Key": "x" * 256}, 400),
        ("POST", "/queues/private$/orders;journal/messages", {}, 403),
        ("POST", "/queues/%ff/messages", {}, 400),
    ],
)
def test_what_is_wrong_is_said(
    server: ServerThread,
    sender: Sender,
    method: str,
    path: str,
    headers: dict[str, str],
    status: int,
) -> None:
    body = b"x" if method == "POST" else None
    given = {"Content_Type": "text/plain", **headers} if body else headers
    answer = sender.ask(method, path, body, **given)
    assert answer.status == status, answer.body
    if answer.body:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert (answer.json["status"], bool(answer.json["detail"])) == (status, True)
    # The connection is good for the next one.
    assert sender.send().status == 201
    assert len(messages(server)) == 1


def test_bodies_have_a_length_and_an_end(server: ServerThread, token: str) -> None:
    port = port_of(server)
    head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: application/octet-stream\r\n"
    chunked = head + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    assert statuses(raw(port, chunked.encode())) == [411]
    both = head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    assert statuses(raw(port, both.encode())) == [400]
    twice = head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"
    assert statuses(raw(port, twice.encode())) == [400]
    packed = head + "Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
    assert statuses(raw(port, packed.encode())) == [415]
    long = head + f"Content-Length: {HTTP_BODY_MAX_BYTES + 1}\r\n\r\n"
    assert statuses(raw(port, long.encode())) == [413]
    expecting = head + f"Content-Length: {HTTP_BODY_MAX_BYTES + 1}\r\nExpect: 100-continue\r\n\r\n"
    assert statuses(raw(port, expecting.encode())) == [413]
    too_long = Sender(port, token).send(bytes(HTTP_BODY_MAX_BYTES), **OCTETS)
    assert too_long.status == 400
    assert "bytes" in too_long.json["detail"]
    assert messages(server) == []
    fits = Sender(port, token).send(bytes(4_000_000), **OCTETS)
    assert fits.status == 201
    assert len(messages(server)[0].body_bytes) == 4_000_000


OCTETS = {"Content_Type": "application/octet-stream"}


def test_a_client_that_asks_first_is_told_to_go_on(server: ServerThread, token: str) -> None:
    head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: text/plain\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
    with socket.create_connection(("127.0.0.1", port_of(server)), 20) as made:
        made.sendall(f"{head}\r\n".encode())
        assert made.recv(1000) == b"HTTP/1.1 100 \r\n\r\n"
        made.sendall(b"ok")
        assert made.recv(1000).startswith(b"HTTP/1.1 201 ")
    assert [each.body for each in messages(server)] == ["ok"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nAuthorization: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\xfe\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX:" + b"y" * HTTP_HEAD_MAX_BYTES, 431),
        (b"POST / HTTP/1.1\r\nHost: alpha\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: alpha\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: alpha\r\nConnection: close\r\n\r\n", 400),
        (b"GET /%00 HTTP/1.1\r\nHost: alpha\r\nConnection: close\r\n\r\n", 400),
        (b"GET /openapi.json HTTP/2.0\r\nHost: alpha\r\n\r\n", 505),
        (b"GET /openapi.json HTTP/9.9\r\nHost: alpha\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"CONNECT alpha:80 HTTP/1.1\r\nHost: alpha\r\n\r\n", 400),
    ],
)
def test_what_is_not_http_is_answered_once_and_ends(
    server: ServerThread, sent: bytes, status: int
) -> None:
    assert statuses(raw(port_of(server), sent)) == [status]
    assert Sender(port_of(server)).ask("GET", "/openapi.json").status == 200


# Several at once.


def test_pipelined_requests_are_answered_in_their_order(server: ServerThread, token: str) -> None:
    count = 3 * HTTP_PIPELINED_MAX_COUNT
    data = b""
    for number in range(count):
        body = f"{number}"
        path = ORDERS if number % 5 else "/queues/private$/missing/messages"
        data += (
            f"POST {path} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            f"{'Connection: close' if number == count - 1 else 'X: y'}\r\n\r\n{body}"
        ).encode()
    assert statuses(raw(port_of(server), data)) == [
        201 if number % 5 else 404 for number in range(count)
    ]
    assert [each.body for each in messages(server)] == [
        f"{number}" for number in range(count) if number % 5
    ]


def test_one_address_may_not_have_everything_under_way(server: ServerThread, token: str) -> None:
    port = port_of(server)
    head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: text/plain\r\nContent-Length: 4000000\r\n\r\n"
    with contextlib.ExitStack() as opened:
        # Each of these says that it will send 4 MB, and does not: there is room for eleven or so.
        for _ in range(20):
            made = opened.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            made.sendall(head.encode())
        big = bytes(HTTP_BODY_MAX_BYTES)
        wait_until(lambda: Sender(port, token).send(big, **OCTETS).status == 429)
        refused = Sender(port, token).send(big, **OCTETS)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        # What needs less room comes in.
        assert Sender(port, token).send().status == 201
    # Whoever is gone holds nothing.
    wait_until(lambda: Sender(port, token).send(bytes(3_999_999), **OCTETS).status == 201)


def test_behind_a_trusted_proxy_each_client_has_its_own_share(own: tuple[Path, str]) -> None:
    data, token = own
    with serving(data, trusted_proxies=("127.0.0.1",)) as running, contextlib.ExitStack() as opened:
        with application(running) as manager:
            manager.create_queue(QUEUE)
        port = port_of(running)
        head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
        # One who says to be somebody else each time: the proxy has appended who it is.
        lies = (f"X-Forwarded-For: 198.51.100.{number}, 203.0.113.9\r\n" for number in range(20))
        for lie in lies:
            made = opened.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            made.sendall(f"{head}{lie}Content-Length: 4000000\r\n\r\n".encode())
        big = bytes(HTTP_BODY_MAX_BYTES)
        his = {"X_Forwarded_For": "203.0.113.9", **OCTETS}
        wait_until(lambda: Sender(port, token).send(big, **his).status == 429)
        # Others have their own share, and so has the proxy itself.
        other = {"X_Forwarded_For": "203.0.113.10", **OCTETS}
        assert Sender(port, token).send(bytes(4_000_000), **other).status == 201
        assert Sender(port, token).send(bytes(4_000_000), **OCTETS).status == 201


def test_who_is_slow_is_told_so(
    server: ServerThread, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for phase in http_connection.PATIENCE_MS:
        monkeypatch.setitem(http_connection.PATIENCE_MS, phase, 300)
    port = port_of(server)
    head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
    body = head + "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nab"
    assert statuses(raw(port, body.encode())) == [408]
    assert statuses(raw(port, head.encode())) == [408]
    ready = head + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nab"
    # One that is done is left alone for a while, and then let go without a word.
    assert statuses(raw(port, ready.encode())) == [201]
    assert sum("connection-broken" in each and "too late" in each for each in LINES) == 2
    assert len(messages(server)) == 1


def test_who_waits_too_long_for_an_answer_is_told_that_nothing_is_known(
    server: ServerThread, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "HTTP_ANSWER_MS", 100)
    monkeypatch.setattr(Programs, "take", lambda *_: lambda: None)
    head = f"POST {ORDERS} HTTP/1.1\r\nHost: alpha\r\nAuthorization: Bearer {token}\r\n"
    ready = head + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nab"
    last = ready.replace("Host: alpha", "Host: alpha\r\nConnection: close")
    answer = raw(port_of(server), (ready * 2 + last).encode())
    assert statuses(answer) == [503] * 3
    assert answer.count(b"is not known") == 3


def test_a_stop_answers_what_has_come(own: tuple[Path, str]) -> None:
    data, token = own
    with serving(data) as server:
        with application(server) as manager:
            manager.create_queue(QUEUE)
        idle = Sender(port_of(server), token)
        assert idle.send().status == 201
    assert idle.connection.sock is not None
    assert idle.connection.sock.recv(10) == b""


# TLS.


def tls_files(data: Path) -> tuple[Identity, Identity]:
    data.mkdir(mode=0o700, exist_ok=True)
    authority = Identity("Authority", is_authority=True)
    own = Identity("127.0.0.1", authority)
    own.save(data / "http.pem")
    (data / "ca.pem").write_text(authority.pem)
    return authority, own


def context_for(data: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(data / "ca.pem"))
    context.check_hostname = False
    return context


def test_tls_and_its_renewal(own: tuple[Path, str]) -> None:
    data, token = own
    tls_files(data)
    with serving(data, tls_cert="http.pem") as server:
        with application(server) as manager:
            manager.create_queue(QUEUE)
        assert Sender(port_of(server), token, context=context_for(data)).send().status == 201
        # Without TLS there is nothing to be had.
        assert statuses(raw(port_of(server), b"GET / HTTP/1.1\r\nHost: alpha\r\n\r\n")) == []
        tls_files(data)
        with application(server) as manager:
            assert not any(part.problem for part in manager.reload().parts)
        assert Sender(port_of(server), token, context=context_for(data)).send().status == 201


def test_tokens_do_not_cross_a_network_in_clear(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[http\] is enabled on 10\.0\.0\.7: without TLS"):
        ServerConfig(data=str(tmp_path), http=HttpTable(enabled=True, address="10.0.0.7"))
    ServerConfig(
        data=str(tmp_path), http=HttpTable(enabled=True, address="10.0.0.7", programs=False)
    )


# The description.


def test_the_description_knows_every_header(sender: Sender) -> None:
    described = sender.ask("GET", "/openapi.json").json
    names = {
        each["name"]
        for each in described["paths"]["/queues/{queue}/messages"]["post"]["parameters"]
    }
    assert {
        "queue",
        "Idempotency-Key",
        "Msmq-Label",
        "Msmq-Priority",
        "Msmq-Recoverable",
        "Msmq-Transactional",
        "Msmq-Time-To-Be-Received",
        "Msmq-Time-To-Reach-Queue",
        "Msmq-Response-Queue",
        "Msmq-Admin-Queue",
        "Msmq-Correlation-Id",
        "Msmq-Acknowledge",
        "Msmq-Application-Tag",
        "Msmq-Dead-Letter-Queue",
        "Msmq-Journal-On-Failure",
        "Msmq-Journal-On-Success",
    } == names
    assert json.dumps(described)
    assert described["paths"]["/vouchers/{key}"]["get"]["responses"]["200"]


def test_many_requests_leave_nothing_behind(server: ServerThread, sender: Sender) -> None:
    for number in range(50):
        body = hashlib.sha256(b"%d" % number).digest()
        assert sender.send(body, Content_Type="application/octet-stream").status == 201
    door = server.server.http.server
    assert door is not None
    assert (door.burden.count, door.burden.size) == (0, 0)
    assert door.answers[201] >= 50

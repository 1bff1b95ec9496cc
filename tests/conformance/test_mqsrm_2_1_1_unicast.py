"""Messages between two queue managers: SOAP 1.1 by HTTP 1.1, with and without TLS. [MQSRM 2.1.1]

The other side is a socket, so that what is shown are the bytes on the way.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import openmsmq
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.http.sending.targets import read_url
from tests.conformance.marks import shows
from tests.golden import golden_request
from tests.runtime.http_peer import port_of
from tests.runtime.raw_client import wait_until
from tests.runtime.session_certificates import Identity
from tests.server_thread import ServerThread

HERE, THERE = "127.0.0.1", "127.0.0.2"
NAME: Final = "MACHINE2"
SIMPLE: Final = r"private$\simpleQ"
EXAMPLE: Final = golden_request("mqsrm-4.2-msmq-element").replace(
    b"<TTrq>20070723T031140", b"<TTrq>20380119T031407"
)
"""The example of the specification, which is for a queue of MACHINE2, and may still arrive."""
SOAP_1_1: Final = (
    b'<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    b'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header><path '
)
PATH: Final = b"/msmq/private$/"
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def authority() -> Identity:
    return Identity("Authority", is_authority=True)


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def server(tmp_path: Path, authority: Identity, scheme: str) -> Iterator[ServerThread]:
    """A queue manager that takes and sends by one of both."""
    tmp_path.chmod(0o700)
    Identity(HERE, authority).save(tmp_path / "own.pem")
    (tmp_path / "ca.pem").write_text(authority.pem)
    http = HttpTable(
        enabled=True,
        port=0,
        hosts=(NAME,),
        queues=(r"private$\*",),
        tls_cert="own.pem" if scheme == "https" else "",
        sends=True,
        send_authorities="ca.pem",
    )
    config = ServerConfig(
        data=str(tmp_path),
        name=NAME,
        api_port=0,
        address=HERE,
        session_port=0,
        ping_port=0,
        transfer=True,
        http=http,
    )
    with ServerThread(config) as running:
        yield running


def application(server: ServerThread) -> openmsmq.QueueManager:
    return openmsmq.connect(f"{server.host}:{server.port}")


def received(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read a message of HTTP: what stands before the empty line, and what behind."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        assert piece, "hung up in the middle"
        data += piece
    head, _, content = data.partition(b"\r\n\r\n")
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    assert found is not None
    while len(content) < int(found[1]):
        piece = connection.recv(65_536)
        assert piece, "hung up in the middle"
        content += piece
    return head, content


@shows("MQSRM-2.1.1", 1, 2)
def test_a_post_of_soap_is_taken(
    server: ServerThread, authority: Identity, scheme: str, tmp_path: Path
) -> None:
    with application(server) as manager:
        manager.create_queue(SIMPLE)
        with socket.create_connection((HERE, port_of(server)), 20) as connection:
            if scheme == "https":
                other = Identity("other", authority)
                context = other.context(tmp_path / "other.pem", server_side=False, trusts=authority)
                connection = context.wrap_socket(connection)
            connection.sendall(EXAMPLE)
            head, content = received(connection)
            assert (head.partition(b"\r\n")[0], content) == (b"HTTP/1.1 200 OK", b"")
            connection.close()
        _, body = manager.queue(SIMPLE).receive(timeout=20).plain_body()
        assert body is not None
        assert b"<orderId>3</orderId>" in body


@shows("MQSRM-2.1.1", 1, 2)
def test_a_message_leaves_as_a_post_of_soap(
    server: ServerThread, authority: Identity, scheme: str, tmp_path: Path
) -> None:
    found: list[tuple[bytes, bytes]] = []
    context: ssl.SSLContext | None = None
    if scheme == "https":
        own = Identity(THERE, authority)
        context = own.context(tmp_path / "service.pem", server_side=True, trusts=authority)
        # As web servers do: who comes need not show a certificate.
        context.verify_mode = ssl.CERT_NONE

    def serve() -> None:
        accepted, _ = service.accept()
        accepted.settimeout(20)
        with accepted if context is None else context.wrap_socket(accepted, server_side=True) as on:
            found.append(received(on))
            on.sendall(OK)
            on.recv(1)

    with socket.create_server((THERE, 0)) as service:
        service.settimeout(20)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = service.getsockname()[1]
        name = f"DIRECT={scheme.upper()}://{THERE}:{port}/msmq/private$/orders"
        with application(server) as manager:
            manager.queue(name).send("an order", label="first")
            wait_until(lambda: bool(found), 20)
            # The answer is understood, too.
            wait_until(lambda: not any(each.message_count for each in manager.outgoing()), 20)
        server.stop()
        thread.join(20)
        assert not thread.is_alive()
    ((head, content),) = found
    # Paths of queues are the same in upper and lower case.
    head, content = head.replace(PATH.upper(), PATH), content.replace(PATH.upper(), PATH)
    assert head.startswith(b"POST /msmq/private$/orders HTTP/1.1\r\n")
    assert f"\r\nHost: {THERE}:{port}\r\n".encode() in head
    assert b'\r\nSOAPAction: "MSMQMessage"' in head
    assert content.count(SOAP_1_1) == 1
    assert b"<action>MSMQ:first</action>" in content
    assert f"<to>{scheme}://{THERE}:{port}/msmq/private$/orders</to>".encode() in content


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_without_a_port_it_is_the_one_of_the_scheme(scheme: str, port: int) -> None:
    target, _ = read_url(f"{scheme}://{THERE}/msmq/private$/orders")
    assert (target.host, target.port) == (THERE, port)
    target, _ = read_url(f"{scheme}://{THERE}:8080/msmq/private$/orders")
    assert target.port == 8080

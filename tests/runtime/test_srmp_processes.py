"""Messages over HTTP between two queue managers that run, with and without a proxy between."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openmsmq
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import EventLog
from tests.runtime.http_peer import free_port, port_of, raw, statuses
from tests.runtime.raw_client import wait_until
from tests.runtime.session_certificates import Identity
from tests.server_thread import ServerThread

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"


def manager(data: Path, name: str, port: int, lines: list[str], **table: Any) -> ServerThread:
    """Make a queue manager that is reached by HTTP alone."""
    data.mkdir(mode=0o700, exist_ok=True)
    scheme = "https" if "tls_cert" in table else "http"
    http = {
        "enabled": True,
        "port": port,
        "queues": (r"private$\*",),
        "sends": True,
        "url": f"{scheme}://{address_of(name)}:{port}",
        **table,
    }
    config = ServerConfig(
        data=str(data),
        name=name,
        api_port=0,
        transfer=True,
        address=address_of(name),
        http=HttpTable(**http),
    )
    return ServerThread(config, log=EventLog("text", "debug", lines.append))


def address_of(name: str) -> str:
    return {"ALPHA": "127.52.0.1", "BETA": "127.52.0.2"}[name]


@contextlib.contextmanager
def pair(folder: Path, **table: Any) -> Iterator[tuple[ServerThread, ServerThread, int]]:
    """Run a sender and a receiver; gives them, and the receiver's port."""
    lines: list[str] = []
    first, second = free_port(), free_port()
    alpha = manager(folder / "alpha", "ALPHA", first, lines, **table)
    beta = manager(folder / "beta", "BETA", second, lines, **table)
    with alpha, beta:
        with application(beta) as there:
            there.create_queue(ORDERS)
            there.create_queue(LEDGER, transactional=True)
        yield alpha, beta, second


def application(server: ServerThread) -> openmsmq.QueueManager:
    return openmsmq.connect(f"{server.host}:{server.port}")


def raw_at(port: int, data: bytes) -> bytes:
    return raw(port, data, host=address_of("BETA"))


def bodies(server: ServerThread, name: str, count: int) -> list[object]:
    """Receive so many messages."""
    with application(server) as there:
        queue = there.queue(name)
        return [queue.receive(timeout=20).body for _ in range(count)]


@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
def test_messages_go_by_url(tmp_path: Path, is_secure: bool) -> None:
    table: dict[str, Any] = {}
    if is_secure:
        authority = Identity("Authority", is_authority=True)
        for name in ("alpha", "beta"):
            (tmp_path / name).mkdir(mode=0o700)
            Identity(address_of(name.upper()), authority).save(tmp_path / name / "http.pem")
            (tmp_path / name / "ca.pem").write_text(authority.pem)
        table = {"tls_cert": "http.pem", "send_authorities": "ca.pem"}
    with pair(tmp_path, **table) as (alpha, beta, port):
        url = f"DIRECT={'HTTPS' if is_secure else 'HTTP'}://127.52.0.2:{port}/msmq/private$"
        with application(alpha) as here:
            plain = here.queue(f"{url}/orders")
            for number in range(20):
                plain.send(f"{number}", label=f"order {number}")
            ledger = here.queue(f"{url}/ledger")
            with here.transaction() as transaction:
                for number in range(20):
                    ledger.send(f"{number}", transaction=transaction)
            assert sorted(map(str, bodies(beta, ORDERS, 20)), key=int) == [*map(str, range(20))]
            assert bodies(beta, LEDGER, 20) == [*map(str, range(20))]
            # The receipt of the stream has come back by HTTP.
            wait_until(lambda: not any(each.message_count for each in here.outgoing()), 30)


def test_what_the_door_gives_to_the_queue_manager(tmp_path: Path) -> None:
    with pair(tmp_path) as (_, beta, port):
        assert port == port_of(beta)
        head = "POST /msmq/private$/orders HTTP/1.1\r\nHost: 127.52.0.2\r\nContent-Length: 2\r\n"
        head += "Connection: close\r\n"
        action = 'SOAPAction: "MSMQMessage"\r\n'
        assert statuses(raw_at(port, f"{head}\r\nxx".encode())) == [400]
        assert statuses(raw_at(port, f"{head}{action}\r\nxx".encode())) == [400]
        away = f"{head}{action}\r\nxx".replace("orders", "orders;journal")
        assert statuses(raw_at(port, away.encode())) == [400]
        public = f"{head}{action}\r\nxx".replace("private$/", "")
        assert statuses(raw_at(port, public.encode())) == [400]
        elsewhere = f"{head}{action}\r\nxx".replace("/msmq/", "/other/")
        assert statuses(raw_at(port, elsewhere.encode())) == [404]
        got = f"{head}{action}\r\nxx".replace("POST", "GET")
        assert statuses(raw_at(port, got.encode())) == [405]

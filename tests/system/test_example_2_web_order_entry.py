"""Web order entry, step by step. [MQOD 3.2]

Orders come to a web server by HTTP and become messages to an intermediary server. A back-end
application has its own queue manager read them from there, and what it makes of an order belongs
to a transaction of its own queue manager: the order is locked before it and taken out behind it.
The specification has one distributed transaction there. This queue manager takes part in none of
another computer, so the statement about this example is an exception (decision 0047).
"""

from __future__ import annotations

import contextlib
import os
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from openmsmq.client.blocking import QueueManager
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.runtime.computers import Computer, running, wait_for
from tests.runtime.remote_client import why_not
from tests.runtime.scripted_engine import free_port

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

PASSWORD = "correct horse battery"
ORDERS = r"private$\orders"
SHIPMENTS = r"private$\shipments"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture
def computers(tmp_path: Path) -> Iterator[list[Computer]]:
    """Two web servers, the intermediary server with the order queue, and the back end."""
    addresses = [f"127.0.{112 + WORKER}.{number}" for number in (2, 3, 4, 5)]
    port = free_port(*addresses)
    names = ("WEB1", "WEB2", "MIDDLE", "BACKEND")
    found = [
        Computer(tmp_path, name, address, port)
        for name, address in zip(names, addresses, strict=True)
    ]
    *_, middle, backend = found
    middle.data.mkdir()
    add_account(middle.data / ACCOUNTS_FILE, "backend", PASSWORD, administrator=False, now_s=1)
    middle.configure("[rpc]\nenabled = true\n")
    backend.data.mkdir()
    secret = backend.data / "password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    backend.configure(
        f'[rpc]\nremote_hosts = ["{middle.address}"]\nremote_user = "backend"\n'
        'remote_password_file = "password"\nremote_callers = "everybody"\n'
    )
    with running(*found):
        middle.command("queue", "create", ORDERS, "--transactional")
        middle.command("queue", "acl", "grant", ORDERS, "account:backend", "receive")
        backend.command("queue", "create", SHIPMENTS, "--transactional")
        yield found


@contextlib.contextmanager
def web_server(web: Computer, orders: str) -> Iterator[str]:
    """The web server application: gives its address."""
    manager = web.connect()

    class Application(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            order = self.rfile.read(int(self.headers["Content-Length"])).decode()
            # 2-3: the order becomes a message, which the queue manager has when it is committed.
            with manager.transaction() as transaction:
                manager.queue(orders).send(order, transaction=transaction, journal_on_failure=True)
            # 4: the completion page.
            page = f"Thank you: {order}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((web.address, 0), Application)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{web.address}:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        manager.close()


def transmit(address: str, order: str) -> str:
    """The web client: gives the page that it sees."""
    with urllib.request.urlopen(address, order.encode(), timeout=30) as page:
        return str(page.read().decode())


def waiting(web: Computer, orders: str) -> tuple[int, int]:
    """How many messages wait to leave a web server, and how many nobody has received yet."""
    (shown,) = web.objects("outgoing", "show", orders)
    return shown["message_count"], shown["unread_count"]


def process_one(manager: QueueManager, orders: str, mails: list[str], fails: bool = False) -> None:
    """The back-end application: one order, in a transaction."""
    queue = manager.queue(orders)
    # 6-8: its own queue manager opens the queue of the intermediary server, and locks a message.
    locked = queue.begin_receive(30)
    try:
        with manager.transaction() as transaction:
            # 9: it processes the order.
            manager.queue(SHIPMENTS).send(f"ship {locked.body}", transaction=transaction)
            if fails:
                raise ArithmeticError("the price list is wrong")
            # 10: it commits.
    except ArithmeticError:
        queue.end_receive(locked, remove=False)
        raise
    # 11-12: the order is taken out of the order queue.
    queue.end_receive(locked, remove=True)
    # 13: the order completion email.
    mails.append(str(locked.body))


def test_orders_of_the_web_are_processed_at_the_back_end(computers: list[Computer]) -> None:
    *webs, middle, backend = computers
    orders = middle.queue(ORDERS)
    mails: list[str] = []
    with backend.connect() as manager, middle.connect() as there:
        for number, web in enumerate(webs):
            # 1-4: the customer sees the page whether the intermediary server is there or not.
            web.command("offline")
            with web_server(web, orders) as address:
                assert transmit(address, f"order {number}") == f"Thank you: order {number}"
            assert waiting(web, orders) == (1, 0)
            # 5: the message goes to the intermediary server.
            web.command("online")
            wait_for(lambda web=web: waiting(web, orders) == (0, 1))
        assert there.queue(ORDERS).count() == 2

        # What a back end does not finish is there again, and nothing was shipped.
        with pytest.raises(ArithmeticError):
            process_one(manager, orders, mails, fails=True)
        assert there.queue(ORDERS).count() == 2
        with pytest.raises(ReceiveTimeout):
            manager.queue(SHIPMENTS).receive(0)
        assert mails == []

        # 6-13: each order is processed once.
        for _ in webs:
            process_one(manager, orders, mails)
        assert sorted(mails) == ["order 0", "order 1"]
        shipped = {manager.queue(SHIPMENTS).receive(0).body for _ in webs}
        assert shipped == {"ship order 0", "ship order 1"}

        # The final states are the initial ones, and the web servers have heard of it.
        assert there.queue(ORDERS).count() == 0
        for web in webs:
            wait_for(lambda web=web: waiting(web, orders) == (0, 0))

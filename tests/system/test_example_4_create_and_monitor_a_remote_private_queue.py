"""A private queue of another computer is created, used and watched from afar. [MQOD 3.4]

An administrator sits at ADMIN. The queue is at REMOTE; a shop and a clerk, each at a computer and
a queue manager of his own, send to it and receive from it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.runtime.computers import Computer, running, wait_for
from tests.runtime.remote_client import why_not
from tests.runtime.scripted_engine import free_port

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

PASSWORD = "correct horse battery"
ORDERS = r"private$\orders"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def made(folder: Path) -> list[Computer]:
    """The remote computer, the administrator's, the shop's and the clerk's."""
    # The endpoint mapper has one port only, so that these have addresses of their own.
    addresses = [f"127.0.{144 + WORKER}.{number}" for number in (2, 3, 4, 5)]
    port = free_port(*addresses)
    names = ("REMOTE", "ADMIN", "SHOP", "CLERK")
    found = [
        Computer(folder, name, address, port)
        for name, address in zip(names, addresses, strict=True)
    ]
    remote, _, _, clerk = found
    remote.data.mkdir()
    accounts = remote.data / ACCOUNTS_FILE
    add_account(accounts, "clerk", PASSWORD, administrator=False, now_s=1)
    add_account(accounts, "watcher", PASSWORD, administrator=True, now_s=1)
    remote.configure("[rpc]\nenabled = true\n")
    clerk.data.mkdir()
    secret = clerk.data / "password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    clerk.configure(
        f'[rpc]\nremote_hosts = ["{remote.address}"]\nremote_user = "clerk"\n'
        'remote_password_file = "password"\nremote_callers = "everybody"\n'
    )
    return found


@pytest.mark.spec("MQOD-3.4-01")
def test_a_remote_private_queue_is_created_and_monitored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Initially: the administrator and the applications know the address of the computer, and the
    # name that the queue is to have.
    remote, admin, shop, clerk = made(tmp_path)
    monkeypatch.setenv("OPENMSMQ_REMOTE_USER", "watcher")
    monkeypatch.setenv("OPENMSMQ_REMOTE_PASSWORD", PASSWORD)
    with running(remote, admin, shop, clerk):

        def count() -> object:
            """6-7: the administrator asks how many messages are there, by RPC."""
            (found,) = admin.objects("--remote", remote.address, "queue", "show", ORDERS)
            return found["message_count"]

        # 1-4: the administrator creates the queue on the remote computer, and hears of it.
        assert remote.objects("queue", "list") == []
        (created,) = remote.objects("queue", "create", ORDERS)
        assert created["path_name"] == ORDERS
        remote.command("queue", "acl", "grant", ORDERS, "account:clerk", "receive")
        assert count() == 0

        # 5: applications send to it and receive from it, through their own queue managers.
        with shop.connect() as sender, clerk.connect() as receiver:
            for number in range(3):
                sender.queue(remote.queue(ORDERS)).send(f"order {number}")
            wait_for(lambda: count() == 3)
            assert receiver.queue(remote.queue(ORDERS)).receive(30).body == "order 0"
            assert count() == 2

        # In the end there is a new queue, and to ask has not changed it.
        before = remote.objects("queue", "show", ORDERS)
        assert count() == 2
        assert remote.objects("queue", "show", ORDERS) == before
        assert [each["text"] for each in remote.objects("peek", ORDERS, "--all")] == [
            "order 1",
            "order 2",
        ]

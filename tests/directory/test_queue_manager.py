"""Queue managers in a domain: they register, publish queues, and live without the controller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import openmsmq
from openmsmq.client.blocking import QueueManager
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.file import ServerConfig
from tests.directory.domain import COMPUTERS, Domain
from tests.runtime.computers import wait_for
from tests.runtime.scripted_engine import free_port
from tests.server_thread import ServerThread

pytestmark = [pytest.mark.directory, pytest.mark.xdist_group("samba")]

OFFICE, SHOP = "127.0.0.41", "127.0.0.42"


class Members:
    """Two queue managers of the domain."""

    def __init__(self, domain: Domain, folder: Path) -> None:
        self._domain = domain
        self._folder = folder
        self._port = free_port(OFFICE, SHOP)

    @contextlib.contextmanager
    def running(self, name: str, address: str) -> Iterator[QueueManager]:
        """Run one, with the account of its computer."""
        config = msgspec.to_builtins(self._domain.config) | self._domain.as_user(f"{name}$@mq.test")
        hosts = {"office1.mq.test": (OFFICE,), "shop1.mq.test": (SHOP,)}
        server = ServerConfig(
            name=name,
            data=str(self._folder / name),
            address=address,
            api_port=0,
            api_socket="none",
            site="SiteA",
            qualified_name=f"{name.lower()}.mq.test",
            directory_poll_s=1,
            session_port=self._port,
            ping_port=self._port,
            active_directory=config,
            parameters=TransferConfig(hosts=hosts, retry_connect_ms=200),
        )
        with (
            ServerThread(server) as thread,
            openmsmq.connect(f"{thread.host}:{thread.port}") as manager,
        ):
            yield manager


@pytest.fixture
def members(domain: Domain, tmp_path: Path) -> Members:
    return Members(domain, tmp_path)


@pytest.mark.spec("MQQB-2.3-01", "MQBR-2.3-01", "MQCN-2.3-01", "MQQB-3.1.7.4-04")
@pytest.mark.timeout(300)
def test_queue_managers_work_in_a_domain_and_without_its_controller(
    domain: Domain, members: Members
) -> None:
    for computer in ("OFFICE1", "SHOP1"):
        domain.add_computer(computer)
    with members.running("OFFICE1", OFFICE) as office, members.running("SHOP1", SHOP) as shop:
        entry = f"CN=msmq,CN=SHOP1,{COMPUTERS}"
        registered = domain.look(entry, "objectGUID")
        assert registered == {"objectGUID": [shop.status().manager]}

        shop.create_queue(r".\orders", transactional=True, label="What we sell")
        assert domain.look_below(entry, "(objectClass=mSMQQueue)")
        office.refresh_directory()
        (found,) = office.find_queues(label="what we sell")
        assert found.path_name.casefold() == r"shop1\orders"
        with office.transaction() as work:
            office.queue(r"SHOP1\orders").send("one", transaction=work)
        orders = shop.queue(r".\orders")
        assert orders.receive(timeout=30).body == "one"

        # An administrator changes it in the domain; its owner hears of it.
        queue = next(iter(domain.look_below(entry, "(objectClass=mSMQQueue)")))
        domain.replace(queue, mSMQLabelEx="Renamed", mSMQQueueQuota="77")
        wait_for(lambda: orders.properties().quota_kb == 77)

        domain.controller.stop()
        with pytest.raises(NoDirectory):
            shop.create_queue(r".\more")
        wait_for(lambda: shop.status().directory_problem)
        with office.transaction() as work:
            office.queue(r"SHOP1\orders").send("two", transaction=work)
        assert orders.receive(timeout=30).body == "two"
        domain.controller.start()
        domain.close()
        shop_id = Guid(shop.status().manager)
        wait_for(lambda: not shop.status().directory_problem, 60)
        shop.delete_queue(r".\orders")
        assert not domain.look_below(entry, "(objectClass=mSMQQueue)")

    # The same data directory is the same queue manager; another object of its name is not it.
    domain.delete(entry)
    domain.write(
        QueueManagerInfo(
            identifier=NIL_GUID, computer_name="SHOP1", sites=(domain.site_a.identifier,)
        )
    )
    with members.running("SHOP1", SHOP) as shop:
        assert Guid(shop.status().manager) == shop_id
        wait_for(lambda: str(shop_id) in shop.status().directory_problem)

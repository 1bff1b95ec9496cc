"""Messages to multicast addresses leave when their turn is durable, and count until they do."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.outputs import Output, Persist, SendMulticast
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.pgm.limits import PGM_BACKLOG_MAX_BYTES
from tests.property.driver import Driver
from tests.strategies.messages import Draft
from tests.unit.manager.office import ORDERS, START_S, Office

GROUP = "234.1.1.1:8001"
TICKER = f"MULTICAST={GROUP}"


class _Driver(Driver):
    """Keeps what was asked of it."""

    def __init__(self) -> None:
        self.seen: list[Output] = []
        super().__init__(ManagerConfig(name="ALPHA"), Instant(0, START_S))

    def pump(self, *, fail: int = 0) -> int:
        failed = self.node.pump(self.now, fail=fail)
        self.seen += self.node.outputs
        self.node.outputs = []
        return failed


class Exchange(Office):
    """An application that sends to everybody."""

    driver: _Driver

    def __init__(self) -> None:
        self.driver = _Driver()
        self.app = self.driver.connect()
        self.ok(api.CreateQueue(ORDERS))
        self.begins()

    def begins(self) -> None:
        """There is multicast on this computer."""
        self.driver.manager.multicast_problem("", self.driver.now)
        self.handle = self.open(TICKER, AccessMode.SEND)

    def sent_count(self) -> int:
        """How many messages were given to the driver since the last look."""
        self.driver.pump()
        seen, self.driver.seen = self.driver.seen, []
        return sum(isinstance(each, SendMulticast) for each in seen)

    @property
    def once(self) -> api.SendOnce:
        """A message under a key."""
        return api.SendOnce(self.handle, Draft(body=b"price").packet(), "monday", b"digest")


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


def test_a_message_with_a_key_leaves_when_its_voucher_is_durable(exchange: Exchange) -> None:
    exchange.driver.request(exchange.app, exchange.once)
    taken = exchange.driver.node.take()
    # Had it left by now, then after a crash its sender would send it again.
    assert [type(each) for each in taken] == [Persist]
    exchange.restart(committed=False)
    exchange.begins()
    assert not exchange.ok(exchange.once).before
    assert exchange.sent_count() == 1
    assert exchange.ok(exchange.once).before
    assert exchange.sent_count() == 0


def test_what_the_disk_refuses_does_not_leave(exchange: Exchange) -> None:
    assert exchange.fail(exchange.once) == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert exchange.sent_count() == 0
    assert not exchange.ok(exchange.once).before
    assert exchange.sent_count() == 1


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_waits_for_the_disk_counts_like_what_waits_for_the_network(
    exchange: Exchange, is_refused: bool
) -> None:
    driver, size = exchange.driver, 60_000
    packet = Draft(body=bytes(size)).packet()
    send = api.Send(exchange.handle, [packet])
    most = PGM_BACKLOG_MAX_BYTES // (size + 1_000)
    # A turn that has to be stored, with messages in it.
    driver.request(exchange.app, api.ChangeQueue(ORDERS, label="new"))
    calls = [driver.request(exchange.app, send) for _ in range(most)]
    # The driver speaks of what it was given, and of nothing else.
    driver.manager.multicast_left(GROUP, 0, driver.now)
    late = driver.request(exchange.app, send)
    driver.pump(fail=is_refused)
    answers = driver.take_answers()
    assert isinstance(answers[exchange.app, late], api.Failed)
    taken = sum(isinstance(answers[exchange.app, call], api.Sent) for call in calls)
    assert taken == (0 if is_refused else most)
    assert exchange.sent_count() == taken
    # What the disk has refused waits no more; what the driver was given does until it says so.
    assert isinstance(exchange.ask(send), api.Sent if is_refused else api.Failed)
    driver.manager.multicast_left(GROUP, 0, driver.now)
    assert isinstance(exchange.ask(send), api.Sent)

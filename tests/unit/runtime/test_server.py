"""The pump, asked directly: what comes between the end of a connection and its last byte."""

from __future__ import annotations

import asyncio
import random

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.server import ExitCode, Pump
from openmsmq.runtime.sessions.network import TransferNetwork
from openmsmq.security.access.callers import UNLIMITED
from openmsmq.storage.memory import MemoryStore
from tests.strategies.messages import Draft

LEDGER = r"private$\ledger"


class Application:
    """One connection: it calls, and has its answer when the turn is over."""

    def __init__(self, pump: Pump) -> None:
        self.pump = pump
        self.answers: list[api.AnyReply] = []
        self.was_cut = False
        self.number = pump.connected(self, UNLIMITED)

    def deliver(self, answers: list[api.Answer], /) -> None:
        self.answers += [answer.reply for answer in answers]

    def cut(self, _reason: str, /) -> None:
        self.was_cut = True
        self.pump.disconnected(self.number)

    def go_on(self) -> None:
        """It never has so much to say that others go first."""

    def say(self, request: api.AnyRequest) -> None:
        """Make a call; nothing that is put off to the next turn of the loop happens meanwhile."""
        self.pump.request(self.number, 1, request, read_clocks())
        self.pump.turn()

    def ask(self, request: api.AnyRequest) -> api.AnyReply:
        """Make a call that is answered at once."""
        self.say(request)
        return self.answers.pop()


def test_a_commit_comes_too_late_when_an_operator_has_closed_its_connection() -> None:
    """The operator was told that what is not committed is undone, and the sockets say no more.

    Whether such bytes come in that moment is chance, and depends on the event loop: so the pump is
    given them here.
    """

    async def run() -> None:
        log, failures = EventLog(write=lambda _: None), list[ExitCode]()
        store, now = MemoryStore(), read_clocks()
        manager = QueueManager(ManagerConfig(name="ALPHA"), random.Random(1), store, now)
        pump = Pump(manager, store, log, failures.append)
        pump.network = TransferNetwork(ServerConfig(name="ALPHA", data="none"), pump, log)
        application, operator = Application(pump), Application(pump)
        application.ask(api.CreateQueue(LEDGER, transactional=True))
        opened = application.ask(api.OpenQueue(LEDGER, AccessMode.SEND))
        begun = application.ask(api.Begin())
        assert isinstance(opened, api.Opened)
        assert isinstance(begun, api.Begun)
        packets = [Draft(body=b"too late", transactional=True).packet()]
        application.ask(api.Send(opened.handle, packets, begun.transaction))

        assert isinstance(operator.ask(api.CloseConnection(application.number)), api.Done)
        assert not application.was_cut, "it may be in the middle of something"
        application.say(api.Commit(begun.transaction))
        await asyncio.sleep(0)

        assert application.was_cut
        assert application.answers == []
        found = operator.ask(api.GetQueue(LEDGER))
        assert isinstance(found, api.Queues)
        assert [queue.message_count for queue in found.queues] == [0]
        status = operator.ask(api.GetStatus())
        assert isinstance(status, api.Status)
        assert (status.connection_count, status.transaction_count) == (1, 0)
        await pump.network.close()
        pump.close()
        assert failures == []

    asyncio.run(run())

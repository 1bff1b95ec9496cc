"""A queue manager in memory for each input: with queues, messages and a directory, made quickly."""

from __future__ import annotations

from functools import cache
from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.config import DirectoryConfig, ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.storage.memory import MemoryStore
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, encode
from tests.property.driver import Driver, Node
from tests.strategies.messages import Draft

HERE: Final = "10.0.0.2"
STRANGE: Final = "10.0.0.9"
STRANGER: Final = Guid(b"a stranger here ")
ORDERS: Final = r"private$\orders"
LEDGER: Final = r"private$\ledger"
START: Final = Instant(1_000_000, 1_700_000_000)
CONFIG: Final = ManagerConfig(
    name="ALPHA",
    addresses=(HERE,),
    directory=DirectoryConfig(role=DirectoryRole.ORIGINAL, serves_others=True),
)
OPENING: Final = encode(EstablishConnection(EstablishHeader(STRANGER))) + encode(
    ConnectionParameters(ParametersHeader(500, 20_000, 64))
)
"""What a peer says until its session is open."""


class Desk(Node):
    """A queue manager that has just started with what a store has."""

    def __init__(self, store: MemoryStore) -> None:
        self._seed = 1
        self._config = CONFIG
        self.store = store
        self.answers = {}
        self.outputs = []
        self.now = START
        self.start(START)
        self.work()

    def work(self, *, passed_ms: int = 0) -> None:
        """Let time pass, and carry out all that follows."""
        ticks_ms = self.now.ticks_ms + passed_ms
        self.now = Instant(ticks_ms, START.unix_s + (ticks_ms - START.ticks_ms) // 1_000)
        self.pump(self.now)


@cache
def _furnished() -> MemoryStore:
    driver = Driver(CONFIG, START)
    application = driver.connect()

    def ask(request: api.AnyRequest) -> api.AnyReply | None:
        reply = driver.call(application, request)
        assert not isinstance(reply, api.Failed), reply
        return reply

    for path in (ORDERS, LEDGER):
        inside = path == LEDGER
        ask(api.CreateQueue(path, transactional=inside, journaling=True))
        opened = ask(api.OpenQueue(path, AccessMode.SEND, ShareMode.DENY_NONE))
        assert isinstance(opened, api.Opened)
        packets = [
            Draft(body=b"%d" % number, recoverable=True, transactional=inside).packet()
            for number in range(3)
        ]
        ask(api.Send(opened.handle, packets, api.OWN_TRANSACTION if inside else 0))
    return driver.node.store.crash()


def new_desk() -> Desk:
    """Start a queue manager; nothing that another input has done is left."""
    return Desk(_furnished().crash())

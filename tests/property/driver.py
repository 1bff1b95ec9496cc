"""A driver of a queue manager on a store in memory: what a process does, without a process."""

from __future__ import annotations

import random

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.manager.outputs import Output, Persist, Respond
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import StoreFull

ROUNDS_MAX_COUNT = 60
"""More rounds than any of our turns needs: who wants more is running in circles."""


class Node:
    """One queue manager, its store, and what it answered."""

    def __init__(self, seed: int, config: ManagerConfig, now: Instant) -> None:
        self._seed = seed
        self._config = config
        self.store = MemoryStore()
        self.answers: dict[tuple[int, int], api.AnyReply] = {}
        self.outputs: list[Output] = []
        self.start(now)

    def start(self, now: Instant) -> None:
        """Begin with what the store has."""
        self._seed += 1
        self.manager = QueueManager(
            self._config, random.Random(self._seed), self.store, now, epoch=f"life {self._seed}"
        )

    def take(self) -> list[Output]:
        """Take outputs; keep answers and everything for comparison."""
        taken = self.manager.take_outputs()
        self.outputs += taken
        for output in taken:
            if isinstance(output, Respond):
                key = output.connection, output.call
                assert key not in self.answers, f"{key} was answered twice"
                self.answers[key] = output.reply
        return taken

    def pump(self, now: Instant, *, fail: int = 0) -> int:
        """Carry out outputs, and what is due, until nothing is left; say how many commits failed.

        The disk is full for the first `fail` commits, if the first turn needs one at all.
        """
        failed = 0
        for turn in range(ROUNDS_MAX_COUNT):
            taken = self.take()
            for output in taken:
                if isinstance(output, Persist):
                    if failed < fail and (failed or turn == 0):
                        self.store.fail_next(StoreFull)
                    failed += not self.commit(output, now)
            if taken:
                continue
            due_ms = self.manager.next_wake_ms(now)
            if due_ms is None or due_ms > now.ticks_ms:
                return failed
            self.manager.wake(now)
        raise AssertionError("the queue manager never comes to rest")

    def commit(self, persist: Persist, now: Instant) -> bool:
        """Commit a batch and report how that went."""
        try:
            self.store.commit(persist.batch)
        except StoreFull as error:
            self.manager.persist_failed(persist.ticket, InsufficientResources(str(error)), now)
            return False
        self.manager.persisted(persist.ticket, now)
        return True

    def crash(self, now: Instant, *, committed: bool) -> None:
        """Lose power: before a waiting turn is committed, or just after."""
        if committed:
            for output in self.take():
                if isinstance(output, Persist):
                    self.store.commit(output.batch)
        self.store = self.store.crash()
        self.answers.clear()
        self.start(now)


class Driver:
    """Queue managers in lock step: the same inputs must give the same outputs."""

    def __init__(self, config: ManagerConfig, now: Instant, nodes: int = 1) -> None:
        self.now = now
        self._nodes = [Node(1, config, now) for _ in range(nodes)]
        self._calls = 0
        self._connections = 0
        self._asked: dict[int, api.AnyRequest] = {}
        self.pump()

    @property
    def node(self) -> Node:
        """The first of them, for those who look closely."""
        return self._nodes[0]

    @property
    def manager(self) -> QueueManager:
        """The queue manager that is compared with the model."""
        return self._nodes[0].manager

    def connect(self, caller: Caller = UNLIMITED) -> int:
        """Let an application in."""
        self._connections += 1
        for node in self._nodes:
            node.manager.connected(self._connections, caller)
        return self._connections

    def lose(self, connection: int) -> None:
        """Cut a connection."""
        for node in self._nodes:
            node.manager.connection_lost(connection, self.now)

    def request(self, connection: int, request: api.AnyRequest) -> int:
        """Hand in a request; gives its call number."""
        self._calls += 1
        self._asked[self._calls] = request
        for node in self._nodes:
            node.manager.request(connection, self._calls, request, self.now)
        return self._calls

    def wake(self) -> None:
        """Wake the queue managers, due or not."""
        for node in self._nodes:
            node.manager.wake(self.now)

    def pump(self, *, fail: int = 0) -> int:
        """Carry out everything; say how many commits failed."""
        failed = [node.pump(self.now, fail=fail) for node in self._nodes]
        for node in self._nodes:
            assert node.outputs == self._nodes[0].outputs, "same inputs, different outputs"
        for node in self._nodes:
            node.outputs = []
        return failed[0]

    def take_answers(self) -> dict[tuple[int, int], api.AnyReply]:
        """Return the answers since the last time: each is one to what was asked, or a failure."""
        for node in self._nodes[1:]:
            node.answers = {}
        answers, self._nodes[0].answers = self._nodes[0].answers, {}
        for (_, call), reply in answers.items():
            assert type(reply) in (api.Failed, self._asked[call].reply), (self._asked[call], reply)
        return answers

    def crash(self, *, committed: bool) -> None:
        """Lose power and start again."""
        for node in self._nodes:
            node.crash(self.now, committed=committed)
        for node in self._nodes:
            node.outputs = []
        self.pump()

    def call(self, connection: int, request: api.AnyRequest) -> api.AnyReply | None:
        """Hand in one request and carry everything out; None when it has no answer yet."""
        call = self.request(connection, request)
        self.pump()
        return self.take_answers().get((connection, call))

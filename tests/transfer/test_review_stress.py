"""Three queue managers and bad luck: whatever happens, each message arrives once and in order."""

from __future__ import annotations

import random

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Output, Persist
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.config import TransferConfig
from openmsmq.storage.port import StoreFull
from openmsmq.wire.packets import UserMessage, decode
from tests.strategies.messages import Draft
from tests.transfer.neighbour import LEDGER, ORDERS
from tests.transfer.network import ALPHA, BETA, GAMMA, Computer, Network, addressed

ADDRESSES = (ALPHA, BETA, GAMMA)
STEPS = 400


class SlowComputer(Computer):
    """Its disk takes its time, may be full, and the power may go at any moment."""

    def __init__(self, network: Network, name: str, address: str, rng: random.Random) -> None:
        self.rng = rng
        self.fail_share = 0.0
        self.quick = True
        super().__init__(network, name, address, TransferConfig(resend_first_s=10))

    def _carry_out(self, output: Output) -> None:
        if self.quick or not isinstance(output, Persist):
            super()._carry_out(output)
            return
        manager, store = self.manager, self.store

        def write() -> None:
            if self.manager is not manager:
                return
            failed = self.rng.random() < self.fail_share
            if failed:
                store.fail_next(StoreFull)
            try:
                store.commit(output.batch)
            except StoreFull:
                pass

            def tell() -> None:
                if self.manager is not manager:
                    return
                if failed:
                    error = InsufficientResources("full")
                    manager.persist_failed(output.ticket, error, self.network.now)
                else:
                    manager.persisted(output.ticket, self.network.now)
                self.pump()

            self.network._events.append(tell)

        self.network._events.append(write)

    def crash(self) -> None:
        self.quick = True
        super().crash()
        self.quick = False


class World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.network = Network()
        self.computers = [
            SlowComputer(self.network, name, address, self.rng)
            for name, address in zip(("ALPHA", "BETA", "GAMMA"), ADDRESSES, strict=True)
        ]
        self.asked: dict[tuple[int, int, int], list[bytes]] = {}
        self.sent: dict[str, list[bytes]] = {}
        self.next = 0
        self.lost: set[bytes] = set()
        """What an operator took out; some of it may have arrived before."""
        self.unsure = False
        """Whether an operator took out messages without looking at them."""
        for computer in self.computers:
            self.network.computers[computer.address] = computer
            computer.create(LEDGER, transactional=True)
            computer.create(ORDERS)
            computer.quick = False
        self.network.run()

    def step(self) -> None:
        rng, network = self.rng, self.network
        computer = rng.choice(self.computers)
        kind = rng.choices(
            ("send", "run", "crash", "cut", "disk", "jump", "down", "pause", "resend", "purge"),
            (30, 25, 2, 4, 3, 1, 3, 2, 2, 1),
        )[0]
        if kind == "send":
            self.send(computer)
        elif kind == "run":
            for _ in range(rng.randrange(40)):
                if network._events:
                    network._events.popleft()()
            if rng.random() < 0.3:
                network.run(rng.choice((1, 100, 600, 5_000, 12_000)))
        elif kind == "crash":
            computer.crash()
        elif kind == "cut":
            network.cut(computer.address)
        elif kind == "disk":
            computer.fail_share = rng.choice((0, 0, 0.1, 0.5))
        elif kind == "jump":
            step_s = rng.choice((-4000, -100, 100, 4000))
            network.now = Instant(network.now.ticks_ms, network.now.unix_s + step_s)
        elif kind == "down":
            network.down ^= {computer.address}
        elif kind == "purge":
            self.purge(computer)
        else:
            self.control(computer, kind)

    def purge(self, computer: SlowComputer) -> None:
        """Let an operator take messages out; which ones, only the dead-letter queues know."""
        for queue in list(computer.manager._outgoing.all()):
            opened = self.wait(computer, api.OpenQueue(queue.queue.name, AccessMode.RECEIVE_ADMIN))
            if isinstance(opened, api.Opened):
                if self.rng.random() < 0.5:
                    reply = self.wait(computer, api.Receive(opened.handle, 2, 0))
                    found = reply.entries if isinstance(reply, api.Entries) else []
                    for entry in found:
                        message = decode(entry.packet)
                        assert isinstance(message, UserMessage)
                        self.lost.add(message.properties.body)
                    if reply is None:
                        self.unsure = True
                else:
                    self.wait(computer, api.Purge(opened.handle))
                    self.unsure = True

    def wait(self, computer: SlowComputer, request: api.AnyRequest) -> api.AnyReply | None:
        reply = computer.ask(request)
        call = computer._calls
        for _ in range(100):
            if reply is not None or not self.network._events:
                break
            self.network._events.popleft()()
            reply = computer.answers.get(call)
        return reply

    def control(self, computer: SlowComputer, action: str) -> None:
        other = self.rng.choice([c for c in self.computers if c is not computer])
        name = rf"DIRECT=TCP:{other.address}\{LEDGER}"
        if action == "pause" and self.rng.random() < 0.5:
            action = "resume"
        computer.ask(api.ControlOutgoing(name, action))

    def send(self, computer: SlowComputer) -> None:
        rng = self.rng
        other = rng.choice([c for c in self.computers if c is not computer])
        transactional = rng.random() < 0.7
        queue = LEDGER if transactional else ORDERS
        name = rf"DIRECT=TCP:{other.address}\{queue}"
        reply = self.wait(computer, api.OpenQueue(name, AccessMode.SEND))
        if not isinstance(reply, api.Opened):
            return
        packets, bodies = [], []
        for _ in range(rng.randrange(1, 6)):
            self.next += 1
            body = b"%s %d" % (computer.name.encode(), self.next)
            draft = Draft(
                body=body,
                transactional=transactional,
                priority=rng.randrange(8) if transactional else 3,
                journal_on_success=rng.random() < 0.3,
                journal_on_failure=True,
                reach_queue_within_s=rng.choice((INFINITE_S, INFINITE_S, 20, 300, 4000)),
            )
            packets.append(addressed(draft.packet(), reply))
            bodies.append(body)
        own = api.OWN_TRANSACTION if transactional else 0
        life = computer._starts
        computer.ask(api.Send(reply.handle, packets, own))
        key = (self.computers.index(computer), life, computer._calls)
        self.asked[key] = bodies

    def finish(self) -> None:
        self.network.down.clear()
        for computer in self.computers:
            computer.fail_share = 0
        self.network.run(30_000)
        for computer in self.computers:
            for queue in computer.manager._outgoing.all():
                computer.ask(api.ControlOutgoing(queue.queue.name, "resume"))
        for _ in range(4):
            self.network.run(600_000)

    def check(self) -> None:
        certain: set[bytes] = set()
        possible: set[bytes] = set()
        for (index, _, call), bodies in self.asked.items():
            reply = self.computers[index].answers.get(call)
            if isinstance(reply, api.Sent):
                certain.update(bodies)
            elif reply is None:
                possible.update(bodies)
        arrived: list[bytes] = []
        for computer in self.computers:
            computer.quick = True
            for queue in (LEDGER, ORDERS):
                bodies = computer.bodies(queue, take=True)
                arrived += bodies
                if queue == LEDGER:
                    by_source: dict[bytes, list[int]] = {}
                    for body in bodies:
                        source, number = body.split()
                        by_source.setdefault(source, []).append(int(number))
                    for numbers in by_source.values():
                        assert numbers == sorted(numbers)
        assert len(arrived) == len(set(arrived))
        letters: set[bytes] = set()
        for computer in self.computers:
            for name in ("DEADXACT", "DEADLETTER"):
                found = computer.bodies(rf"DIRECT=OS:.\SYSTEM$;{name}")
                assert len(found) == len(set(found))
                letters.update(found)
        missing = certain - set(arrived) - letters - self.lost
        assert not missing
        assert set(arrived) <= certain | possible
        self.network.run(600_000)
        for computer in self.computers:
            for status in computer.outgoing():
                assert (status.message_count, status.unread_count) == (0, 0), status
                assert not status.message_bytes
            for queue in computer.manager.transfer._outgoing._table:
                assert queue.pending == 0
                assert not queue.held, queue.name
                assert queue.count == len(list(queue.rows(-1)))
            journal = computer.bodies(r"DIRECT=OS:.\SYSTEM$;JOURNAL")
            assert len(journal) == len(set(journal))
            # Messages without a transaction are journalled when the neighbour has them.
            sure = {
                message.properties.body
                for message in computer.messages(r"DIRECT=OS:.\SYSTEM$;JOURNAL")
                if message.transaction is not None
            }
            assert sure <= set(arrived)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_message_arrives_once_and_in_order(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.finish()
    world.check()

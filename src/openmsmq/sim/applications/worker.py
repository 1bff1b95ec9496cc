"""A worker: an application that sends, receives, commits, aborts and purges as its seed says."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from openmsmq.api import messages as api
from openmsmq.client.formatters.plain import BytesFormatter
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.model.identity import Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import AckRequest
from openmsmq.model.queue import AccessMode
from openmsmq.sim.applications.applications import Application, Ask, Script, outcome_unknown
from openmsmq.sim.checks.books import PURGING
from openmsmq.sim.checks.facts import Fate, Group, Kind, SimMessage
from openmsmq.sim.enterprise.enterprise import PUBLIC_PLAIN, PUBLIC_QUEUES, PUBLIC_TRANSACTIONAL
from openmsmq.sim.scenarios.scenario import ADMIN, PLAIN, SECOND, SMALL, STREAMS, TRANSACTIONAL
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_BYTES: Final = BytesFormatter()
_ACKS: Final = (
    AckRequest.FULL_RECEIVE,
    AckRequest.FULL_REACH_QUEUE,
    AckRequest.NACK_RECEIVE,
    AckRequest.POSITIVE_ARRIVAL | AckRequest.POSITIVE_RECEIVE,
)
_LIFETIMES_S: Final = (1, 5, 60)
_QUEUES: Final = (
    (TRANSACTIONAL,),
    (SECOND,),
    (TRANSACTIONAL, SECOND),
    (SECOND, TRANSACTIONAL, SECOND),
)
_DOUBT_RETRY_MS: Final = 500
_DOUBTS_MAX: Final = 200
"""How often a commit that was never answered is asked for before it counts as lost."""


class Worker(Application):
    """Does so many things, whatever happens to its connection meanwhile."""

    def __init__(self, world: World, node: Node, number: int, operation_count: int) -> None:
        super().__init__(world, node, str(number + 1))
        self._left = operation_count
        self._pause_max_ms = max(2, 2 * world.scenario.duration_ms // operation_count)
        self._prepared: list[Group] = []
        self._operations = sorted(world.scenario.operations.difference(STREAMS)) or ["recoverable"]
        self._builders: dict[str, PacketBuilder] = {}

    def script(self) -> Script:
        """Do what is left to do."""
        yield from self._end_prepared()
        while self._left > 0:
            self._left -= 1
            yield self.rng.randrange(self._pause_max_ms)
            yield from self._operation(self.rng.choice(self._operations))
            yield from self._end_prepared()

    def _operation(self, name: str) -> Script:
        match name:
            case "express":
                yield from self._send(Kind.EXPRESS, PLAIN)
            case "recoverable":
                yield from self._send(Kind.RECOVERABLE, self._one_of(PLAIN, PUBLIC_PLAIN))
            case "small":
                kind = self.rng.choice((Kind.EXPRESS, Kind.RECOVERABLE))
                yield from self._send(kind, SMALL)
            case "own transaction":
                queue = self._one_of(TRANSACTIONAL, PUBLIC_TRANSACTIONAL)
                yield from self._send(Kind.TRANSACTIONAL, queue)
            case "transaction":
                yield from self._transaction(prepare=False)
            case "prepared":
                yield from self._transaction(prepare=True)
            case "purge":
                if self.rng.random() < 0.2:
                    yield from self._purge(self.rng.choice((PLAIN, TRANSACTIONAL)))
            case _:
                queue = self.rng.choice((PLAIN, TRANSACTIONAL, SMALL))
                timeout_ms = self.rng.choice((0, 100, 5_000))
                yield from self.receive(queue, self.rng.randrange(1, 6), timeout_ms)

    # Sending.

    def _send(self, kind: Kind, queue: str) -> Script:
        target = self._target()
        opened = yield from self.opened(self._name_of(target, queue), AccessMode.SEND)
        if opened is None:
            return
        group = self.group = self.books.new_group(self.node)
        packets = [
            self._packet(group, kind, target, queue, opened)
            for _ in range(self.rng.choice((1, 1, 2, 4)))
        ]
        transaction = api.OWN_TRANSACTION if kind is Kind.TRANSACTIONAL else 0
        reply = yield Ask(
            api.Send(opened.handle, packets, transaction), lambda: self.books.commits(group)
        )
        self._ended(group, reply)

    def _ended(self, group: Group, reply: api.AnyReply) -> bool:
        self.group = None
        if not isinstance(reply, api.Failed):
            self.books.acknowledged(group)
            return True
        if outcome_unknown(reply):
            self.books.unknown(group)
        else:
            self.books.failed(group)
        return False

    def _packet(
        self, group: Group, kind: Kind, target: Node, queue: str, opened: api.Opened
    ) -> bytes:
        message = self.books.new_message(kind, group, target, queue)
        message.name = opened.format_name
        if not group.is_plain:
            self._wish(message)
        group.messages.append(message)
        builder = self._builders.get(opened.format_name)
        if builder is None:
            builder = PacketBuilder(
                opened.direct_name, self.node.name, opened.format_name, Guid(opened.owner)
            )
            self._builders[opened.format_name] = builder
        admin = None
        if message.acknowledge:
            over_http = opened.format_name.startswith("DIRECT=HTTP:")
            admin = f"DIRECT=TCP:{self.node.address}\\{ADMIN}"
            admin = _url_of(self.node, ADMIN) if over_http else admin
        return builder.build(
            OutgoingMessage(
                body=message.body,
                priority=self.rng.choice((0, 3, 3, 7)),
                recoverable=kind is Kind.RECOVERABLE,
                admin_queue=admin,
                acknowledge=message.acknowledge,
                time_to_reach_queue_s=_or_never(message.time_to_reach_queue_s),
                time_to_be_received_s=_or_never(message.time_to_be_received_s),
                journal_on_failure=message.journal_on_failure,
                journal_on_success=message.journal_on_success,
            ),
            _BYTES,
            kind is Kind.TRANSACTIONAL,
        )

    def _wish(self, message: SimMessage) -> None:
        wishes, rng = self.world.scenario.wishes, self.rng
        if rng.random() < wishes.lifetimes:
            message.time_to_be_received_s = rng.choice((*_LIFETIMES_S, INFINITE_S))
            message.time_to_reach_queue_s = rng.choice((*_LIFETIMES_S, INFINITE_S))
        message.journal_on_success = rng.random() < wishes.journals
        message.journal_on_failure = rng.random() < wishes.dead_letters
        if rng.random() < wishes.acknowledgments:
            message.acknowledge = int(rng.choice(_ACKS))

    def _target(self) -> Node:
        nodes = self.world.lasting
        if len(nodes) == 1 or self.rng.random() >= self.world.remote_share:
            return self.node
        return self.rng.choice([node for node in nodes if node is not self.node])

    def _one_of(self, private: str, public: str) -> str:
        """Choose a queue; those that are public have a name of their own."""
        if self.world.enterprise is None or self.rng.choice(self.world.scenario.names) != "public":
            return private
        return public

    def _name_of(self, target: Node, queue: str) -> str:
        if target is self.node:
            return queue
        if self.world.enterprise is not None and queue in PUBLIC_QUEUES:
            return f"PUBLIC={self.world.enterprise.public[target.index, queue]}"
        match self.rng.choice(self.world.scenario.names):
            case "address":
                return f"DIRECT=TCP:{target.address}\\{queue}"
            case "name":
                return f"DIRECT=OS:{target.name}\\{queue}"
            case "http":
                return _url_of(target, queue)
            case _:
                shelf = self.books.disks.watches[target.index].by_path[queue]
                return f"PRIVATE={target.identifier}\\{shelf.number:x}"

    # Transactions.

    def _transaction(self, *, prepare: bool) -> Script:
        reply = yield Ask(api.Begin())
        if not isinstance(reply, api.Begun):
            return
        group = self.group = self.books.new_group(self.node)
        group.unit_of_work = reply.unit_of_work
        number = reply.transaction
        for _ in range(self.rng.randrange(1, 4)):
            if self.rng.random() < 0.3:
                yield from self._take(group, number)
            else:
                yield from self._stage(group, number)
            yield self.rng.choice((0, 1, 10, 300))
        group.commits = self.rng.random() < 0.75
        if prepare and not (yield from self._prepare(group, number)):
            return
        if group.commits:
            yield from self._commit(group, number)
        else:
            yield from self._abort(group, number)

    def _take(self, group: Group, number: int) -> Script:
        opened = yield from self.opened(TRANSACTIONAL, AccessMode.RECEIVE)
        if opened is None:
            return
        count = self.rng.randrange(1, 3)
        reply = yield Ask(api.Receive(opened.handle, count, transaction=number))
        if isinstance(reply, api.Entries):
            self.books.given(self.node, TRANSACTIONAL, reply.entries, group)

    def _stage(self, group: Group, number: int) -> Script:
        if not self.world.scenario.two_queues:
            target = self._target()
            queue = self._one_of(TRANSACTIONAL, PUBLIC_TRANSACTIONAL)
            yield from self._stage_for(group, number, target, queue)
            return
        if not group.messages:
            group.is_plain = self.rng.random() < 0.7
        target = self.node if group.is_plain else self._target()
        for queue in self.rng.choice(_QUEUES):
            yield from self._stage_for(group, number, target, queue)

    def _stage_for(self, group: Group, number: int, target: Node, queue: str) -> Script:
        name = self._name_of(target, queue)
        opened = yield from self.opened(name, AccessMode.SEND)
        if opened is None:
            return
        before = len(group.messages)
        packets = [
            self._packet(group, Kind.TRANSACTIONAL, target, queue, opened)
            for _ in range(self.rng.randrange(1, 3))
        ]
        reply = yield Ask(api.Send(opened.handle, packets, number))
        if not isinstance(reply, api.Sent):
            # Refused: they are no part of the transaction, and nobody may ever see them.
            refused = self.books.new_group(self.node)
            refused.messages = group.messages[before:]
            del group.messages[before:]
            for message in refused.messages:
                message.group = refused
            self.books.failed(refused)

    def _prepare(self, group: Group, number: int) -> Generator[Ask | int, Any, bool]:
        reply = yield Ask(api.Prepare(number), lambda: self._prepared.append(group))
        if isinstance(reply, api.Failed):
            self._prepared.remove(group)
            if outcome_unknown(reply):
                self._prepared.append(group)
                group.doubtful = True
                self.group = None
                return False
            yield from self._abort(group, number)
            return False
        group.prepared = True
        yield self.rng.choice((0, 10, 1_000, 10_000))
        return True

    def _commit(self, group: Group, number: int) -> Script:
        reply = yield Ask(api.Commit(number), lambda: self.books.commits(group))
        if isinstance(reply, api.Failed) and not outcome_unknown(reply):
            # The transaction goes on; this application gives it up, unless it is prepared.
            group.fate = Fate.STAGED
            if group.prepared:
                self.group = None
                yield from self._end_prepared()
            else:
                yield from self._abort(group, number)
            return
        if group in self._prepared:
            if outcome_unknown(reply):
                self.group = None
                return
            self._prepared.remove(group)
        self._ended(group, reply)

    def _abort(self, group: Group, number: int) -> Script:
        group.fate = Fate.STAGED
        group.commits = False
        reply = yield Ask(api.Abort(number), lambda: _may_let_go(group))
        self.group = None
        if isinstance(reply, api.Failed) and not outcome_unknown(reply):
            group.doubtful = False
        if not isinstance(reply, api.Failed):
            if group in self._prepared:
                self._prepared.remove(group)
            self.books.failed(group)
        elif group.prepared:
            yield from self._end_prepared()
        else:
            self.books.failed(group)

    def lost(self, group: Group) -> None:
        """The connection was lost: what is prepared, or may be, is ended later."""
        if group in self._prepared:
            group.doubtful = group.doubtful or not group.prepared
        else:
            super().lost(group)

    def _end_prepared(self) -> Script:
        """Do as a coordinator does: tell the queue manager how prepared transactions end."""
        doubts = 0
        if self._prepared:
            # Others may come first: what is prepared must be out of their reach.
            yield self.rng.choice((0, 0, 3_000))
        while self._prepared:
            reply = yield Ask(api.ListTransactions())
            if isinstance(reply, api.Failed):
                # The disk is full: what the list stood on fell with it. Nobody else ends these.
                yield _DOUBT_RETRY_MS
                continue
            assert isinstance(reply, api.Transactions)
            group = self._prepared[0]
            if any(each.unit_of_work == group.unit_of_work for each in reply.transactions):
                yield from self._resolve(group)
            elif group.fate is Fate.UNDER_WAY and not _applied(group) and doubts < _DOUBTS_MAX:
                # The commit may be on its way to the disk.
                doubts += 1
                yield _DOUBT_RETRY_MS
            else:
                self._prepared.pop(0)
                self._judge_forgotten(group)

    def _resolve(self, group: Group) -> Script:
        def before() -> None:
            if group.commits:
                self.books.commits(group)
            else:
                _may_let_go(group)

        reply = yield Ask(api.Resolve(group.unit_of_work, group.commits), before)
        if isinstance(reply, api.Failed):
            if not outcome_unknown(reply):
                group.doubtful = False
            yield _DOUBT_RETRY_MS
            return
        self._prepared.remove(group)
        if group.commits:
            self.books.acknowledged(group)
        else:
            self.books.failed(group)

    def _judge_forgotten(self, group: Group) -> None:
        """A prepared transaction is not there any more: it ended, or it never was prepared."""
        if group.fate is Fate.UNDER_WAY:
            self.books.acknowledged(group)
        elif group.prepared and group.commits:
            raise Violation(
                f"{group} was prepared at {self.node.name}, and is forgotten",
                messages=tuple(message.number for message in group.messages),
            )
        else:
            self.books.failed(group)

    # Purging.

    def _purge(self, queue: str) -> Script:
        opened = yield from self.opened(queue, AccessMode.RECEIVE)
        if opened is None:
            return

        def begun() -> None:
            self.errand = self.books.errand(self.node, queue, PURGING)

        reply = yield Ask(api.Purge(opened.handle), begun)
        if self.errand is not None:
            self.books.errand_ends(self.errand, self.node, unknown=isinstance(reply, api.Failed))
            if isinstance(reply, api.Removed):
                self.books.purged(self.errand, self.node, queue)
            self.errand = None


def _may_let_go(group: Group) -> None:
    """An abort is handed in: from now on others may have what the group has taken.

    A disk that fails may have the abort all the same, and after the restart it counts.
    """
    group.doubtful = True


def _applied(group: Group) -> bool:
    return group.applied_ms is not None or not (group.messages or group.taken)


def _url_of(node: Node, queue: str) -> str:
    path = queue.replace("\\", "/")
    return f"DIRECT=HTTP://{node.name}/msmq/{path}"


def _or_never(within_s: int) -> float | None:
    return None if within_s == INFINITE_S else within_s

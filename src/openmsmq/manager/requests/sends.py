"""What applications send: to one queue or to several, at once or in a transaction."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.targets import QueueList, in_its_kind
from openmsmq.manager.requests.sending import Sending
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.work import Transaction
from openmsmq.model.clock import Instant
from openmsmq.model.errors import AccessDenied, InsufficientResources, QueueDeleted
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Caller
from openmsmq.storage.records import StagedSend


class SendRequests:
    """Takes messages from applications."""

    def __init__(
        self,
        config: ManagerConfig,
        sending: Sending,
        table: QueueTable,
        transactions: TransactionRequests,
        replies: Replies,
    ) -> None:
        self._config = config
        self._sending = sending
        self._table = table
        self._transactions = transactions
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.Send, self.send)

    def send(self, state: Connection, call: int, request: api.Send, now: Instant) -> None:
        """Put messages into a queue, or into all queues of a list: all of them or none."""
        opened = state.queue(request.handle)
        target = opened.target
        if opened.access is not AccessMode.SEND:
            raise AccessDenied(f"{target.name} is not open for sending")
        transactional = request.transaction != 0
        if isinstance(target, QueueList):
            self._require_room_for_copies(target, request.packets)
            copies = [
                (in_its_kind(queue, transactional=transactional), packets)
                for queue, packets in target.copies(request.packets)
            ]
        else:
            copies = [(in_its_kind(target, transactional=transactional), request.packets)]
        for queue, _ in copies:
            if queue not in self._table:
                raise QueueDeleted(queue.name)
        if not request.transaction and not isinstance(target, QueueList):
            queue, packets = copies[0]
            numbers = self._sending.put_new(queue, packets, state.caller, now)
            self._replies.answer_when_done(state.id, call, api.Sent(numbers, now.unix_s))
            return
        own = request.transaction == api.OWN_TRANSACTION
        work = None
        if request.transaction and not own:
            work = self._transactions.find(state, request.transaction)
        accepted = self._accepted(copies, state.caller, now, transactional=own or work is not None)
        reply = api.Sent(accepted[0][2], now.unix_s)
        if work is None:
            self._sending.put_all(
                [(queue, sends) for queue, sends, _ in accepted], now, own_transaction=own
            )
            self._replies.answer_when_done(state.id, call, reply)
        else:
            self._stage(work, [send for _, sends, _ in accepted for send in sends])
            self._replies.answer(state.id, call, reply)

    def _require_room_for_copies(self, target: QueueList, packets: list[bytes]) -> None:
        """Refuse what would be too much before it is copied: a list has many queues."""
        size, size_max = target.size_of_copies(packets), self._config.transaction_bytes_max
        if size > size_max:
            raise InsufficientResources(
                f"copies for {len(target.targets)} queues have {size} bytes, and {size_max} may be "
                "sent at once: send fewer messages at once, or to fewer queues"
            )

    def _accepted(
        self,
        copies: list[tuple[LocalQueue, list[bytes]]],
        caller: Caller,
        now: Instant,
        *,
        transactional: bool,
    ) -> list[tuple[LocalQueue, list[StagedSend], list[int]]]:
        """Check everything before anything is put."""
        accept = self._sending.accept
        return [
            (target, *accept(target, packets, caller, now, transactional=transactional))
            for target, packets in copies
        ]

    def _stage(self, work: Transaction, sends: list[StagedSend]) -> None:
        self._transactions.require_room(work, len(sends))
        size = sum(len(send.packet) for send in sends)
        if work.bytes + size > self._config.transaction_bytes_max:
            raise InsufficientResources(
                f"a transaction may send {self._config.transaction_bytes_max} bytes"
            )
        work.will_send(sends, size)

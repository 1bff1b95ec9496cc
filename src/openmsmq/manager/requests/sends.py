"""What applications send: to one queue or to several, at once or in a transaction."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.targets import MulticastTarget, QueueList, in_its_kind
from openmsmq.manager.requests.multicast.sends import MulticastSends
from openmsmq.manager.requests.sending import Sending
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.vouchers import Vouchers
from openmsmq.manager.transactions.work import Transaction
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    MessageNotFound,
    QueueDeleted,
    TransactionUsage,
)
from openmsmq.model.limits import SEND_MAX_COUNT, STAGED_MAX_AGE_S, VOUCHER_WINDOW_S
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Caller
from openmsmq.storage.records import StagedSend, VoucherRecord


class SendRequests:
    """Takes messages from applications."""

    def __init__(
        self,
        config: ManagerConfig,
        sending: Sending,
        table: QueueTable,
        transactions: TransactionRequests,
        replies: Replies,
        access: AccessControl,
        vouchers: Vouchers,
        multicast: MulticastSends,
    ) -> None:
        self._config = config
        self._sending = sending
        self._table = table
        self._transactions = transactions
        self._replies = replies
        self._access = access
        self._vouchers = vouchers
        self._multicast = multicast

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.Send, self.send)
        handlers.add(api.SendOnce, self.send_once)
        handlers.add(api.GetVoucher, self.get_voucher)

    def send(self, state: Connection, call: int, request: api.Send, now: Instant) -> None:
        """Put messages into a queue, or into all queues of a list: all of them or none."""
        sent = self._put(state, request, now)
        if request.transaction > 0:
            # What is only staged is not stored yet.
            self._replies.answer(state.id, call, sent)
        else:
            self._replies.answer_when_done(state.id, call, sent)

    def send_once(self, state: Connection, call: int, request: api.SendOnce, now: Instant) -> None:
        """Put a message into a queue, unless it was done before; the voucher comes with it."""
        if request.transaction > 0:
            raise TransactionUsage(
                "a message with a key is sent alone, in no transaction of others"
            )
        vouchers, key = self._vouchers, request.key
        found = vouchers.find_same(state.caller, key, request.digest, now)
        before = found is not None
        if found is None:
            vouchers.make_room(state.caller, now)
            send = api.Send(request.handle, [request.packet], request.transaction)
            sent = self._put(state, send, now)
            found = VoucherRecord(
                state.caller.owner_name,
                sent.numbers[0],
                sent.sent_time_s,
                state.queue(request.handle).target.name,
                request.digest,
            )
            vouchers.keep(state.caller, key, found)
        self._replies.answer_when_done(state.id, call, _reply(found, before=before))

    def get_voucher(
        self, state: Connection, call: int, request: api.GetVoucher, now: Instant
    ) -> None:
        """Tell what was sent under a key."""
        found = self._vouchers.find(state.caller, request.key, now)
        if found is None:
            raise MessageNotFound(
                f"nothing is known of a message with the key {request.key!r}: none was sent, or it "
                f"was more than {VOUCHER_WINDOW_S} s ago, or by somebody else"
            )
        self._replies.answer_when_done(state.id, call, _reply(found, before=True))

    def _put(self, state: Connection, request: api.Send, now: Instant) -> api.Sent:
        """Put, or stage, messages with this turn."""
        opened = state.queue(request.handle)
        target = opened.target
        if opened.access is not AccessMode.SEND:
            raise AccessDenied(f"{target.name} is not open for sending")
        if len(request.packets) > SEND_MAX_COUNT:
            raise InsufficientResources(
                f"{len(request.packets)} messages at once; at most {SEND_MAX_COUNT}: send fewer"
            )
        transactional = request.transaction != 0
        if isinstance(target, MulticastTarget):
            return self._send_to_many(target, request, now)
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
            return api.Sent(numbers, now.unix_s)
        own = request.transaction == api.OWN_TRANSACTION
        work = None
        if request.transaction and not own:
            work = self._transactions.find(state, request.transaction)
        accepted = self._accepted(
            copies,
            state.caller,
            now,
            mark=0 if own else None if work is None else work.mark,
            are_copies=isinstance(target, QueueList),
        )
        reply = api.Sent(accepted[0][2], now.unix_s)
        if work is None:
            self._sending.put_all(
                [(queue, sends) for queue, sends, _ in accepted], now, own_transaction=own
            )
        else:
            sends = [(queue, sends) for queue, sends, _ in accepted]
            self._stage(work, sends, state.caller, now)
        return reply

    def _send_to_many(self, target: MulticastTarget, request: api.Send, now: Instant) -> api.Sent:
        if request.transaction:
            raise TransactionUsage(
                f"{target.name} is a multicast address, which no transaction reaches"
            )
        return api.Sent(self._multicast.send(target, request.packets, now), now.unix_s)

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
        mark: int | None,
        are_copies: bool,
    ) -> list[tuple[LocalQueue, list[StagedSend], list[int]]]:
        """Check everything before anything is put."""
        return [
            (
                target,
                *self._sending.accept(
                    target,
                    packets,
                    caller,
                    now,
                    mark=mark,
                    are_copies=are_copies,
                ),
            )
            for target, packets in copies
        ]

    def _stage(
        self,
        work: Transaction,
        copies: list[tuple[LocalQueue, list[StagedSend]]],
        caller: Caller,
        now: Instant,
    ) -> None:
        """Let a transaction send to queues when it commits, if there is room for it."""
        self._transactions.require_room(work, sum(len(sends) for _, sends in copies))
        sizes = [sum(len(send.packet) for send in sends) for _, sends in copies]
        size = sum(sizes)
        if work.bytes + size > self._config.transaction_bytes_max:
            raise InsufficientResources(
                f"a transaction may send {self._config.transaction_bytes_max} bytes"
            )
        staged, administers = self._transactions.staged, self._access.administers(caller)
        if not staged.has_room(work, size, administers=administers):
            self._give_up_old_parts(now)
            if not staged.has_room(work, size, administers=administers):
                raise staged.refusal(work, administers=administers)
        for (queue, sends), each in zip(copies, sizes, strict=True):
            work.will_send(sends, each)
            staged.add(work, queue.id, each)

    def _give_up_old_parts(self, now: Instant) -> None:
        """Abort parts of batches that nobody has committed for very long."""
        for part in self._transactions.prepared():
            if part.query and part.prepared_time_s < now.unix_s - STAGED_MAX_AGE_S:
                self._transactions.end_abort(part, now)


def _reply(found: VoucherRecord, *, before: bool) -> api.Voucher:
    until_s = found.sent_time_s + VOUCHER_WINDOW_S
    return api.Voucher(found.number, found.sent_time_s, found.queue, until_s, before)

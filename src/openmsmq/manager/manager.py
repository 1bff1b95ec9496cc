"""QueueManager: all inputs, one list of outputs, one deadline.

Construction is recovery: the store a queue manager is given is what it goes on from, and an empty
one makes a new queue manager. Nothing here waits, reads a clock or touches a disk; the driver
persists what `take_outputs` asks for and says so with `persisted`. Only then do replies leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import HandlerTable, all_handlers
from openmsmq.manager.access.message_security import MessageSecurity
from openmsmq.manager.access.quotas import take_quotas
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.directory.service import MOVED_PAUSE_MS, DirectoryService
from openmsmq.manager.directory.ways import Ways
from openmsmq.manager.incoming.arrivals import Arrivals
from openmsmq.manager.incoming.history import History
from openmsmq.manager.incoming.notifications import Notifications
from openmsmq.manager.incoming.order_acks import OrderAcks
from openmsmq.manager.incoming.streams import IncomingStreams
from openmsmq.manager.incoming.unrouted import Unrouted
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.messages.named_queues import NamedQueues
from openmsmq.manager.messages.plain_delivery import PlainDelivery
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.notices import Notices
from openmsmq.manager.outputs import Output
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.outgoing import OutgoingQueues
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.bulk_reads import BulkReads
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.recovery import open_machine, restore_queues, restore_transactions
from openmsmq.manager.requests.access import AccessRequests
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.directory import DirectoryRequests
from openmsmq.manager.requests.name_lookups import NameLookups
from openmsmq.manager.requests.outgoing import OutgoingRequests
from openmsmq.manager.requests.public_queues import PublicQueues
from openmsmq.manager.requests.queues import QueueRequests
from openmsmq.manager.requests.security import SecurityRequests
from openmsmq.manager.requests.sending import Sending
from openmsmq.manager.requests.sends import SendRequests
from openmsmq.manager.transactions.batches import StagedBatches
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.work import TransactionWork
from openmsmq.manager.transfer.transfer import Transfer
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.manager.turn.timers import earliest
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, DirectoryChanges
from openmsmq.model.errors import InvalidParameter, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.session_states import CloseReason
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.security.access.sids import Sid
from openmsmq.security.own_key import OwnKey
from openmsmq.storage.port import StoreReader

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from openmsmq.manager.queues.queue import LocalQueue


class QueueManager:
    """A queue manager as a value machine: the same inputs give the same outputs."""

    def __init__(
        self,
        config: ManagerConfig,
        rng: random.Random,
        reader: StoreReader,
        now: Instant,
        keys: Sequence[OwnKey] = (),
        epoch: str = "",
    ) -> None:
        self.config = config
        self.notices = Notices()
        self._now = now
        ledger = self._ledger = Ledger()
        replies = self._replies = Replies(ledger)
        counters = self._counters = Counters(open_machine(config, rng, reader), ledger, rng)
        counters.open(epoch)
        copy = DirectoryCopy(ledger, reader)
        self.directory = DirectoryService(config, copy, counters, rng, now)
        table = self._table = QueueTable(config, counters, ledger, reader, rng, copy)
        self.access = AccessControl(table, ledger, reader)
        self._deadlines = Deadlines(reader)
        staging = Staging(counters, config.transfer.clock_skew_max_s)
        delivery = Delivery(table, counters, ledger, self._deadlines)
        Reporter(table, counters, delivery, staging, self.notices)
        plain = PlainDelivery(delivery, counters, ledger, self._deadlines)
        work = TransactionWork(table, delivery, plain, ledger)
        self._transactions = TransactionRequests(
            config, counters, ledger, work, replies, rng, self.access
        )
        restore_queues(reader, table)
        restore_transactions(reader, work, self._transactions.adopt)
        self._housekeeping = Housekeeping(
            table, delivery, self._deadlines, counters, ledger, reader, self.notices
        )
        self.keys = OwnKeys(config.security, keys, now)
        self.keys.publish = self.directory.publish
        self.directory.own_keys = lambda: self.keys.public
        security = MessageSecurity(config.security.policy, self.keys, copy, self.access)
        delivery.may_enter_plain = security.may_enter_plain
        self._ways = Ways(config.transfer, copy, counters, config.directory.role)
        self.transfer = self._build_transfer(table, delivery, plain, staging, reader, security, now)
        sending = Sending(
            config,
            table,
            delivery,
            plain,
            staging,
            counters,
            security,
            NamedQueues(table, self.access, counters.identifier),
        )
        self._reads = ReadRequests(
            config,
            table,
            delivery,
            self._deadlines,
            self._housekeeping,
            self._transactions,
            replies,
            ledger,
        )
        self._bulk = BulkReads(
            config,
            table,
            delivery,
            counters,
            self._deadlines,
            self._housekeeping,
            self._reads,
            replies,
            ledger,
            reader,
            self.access,
        )
        self._batches = StagedBatches(
            config, self._transactions, replies, ledger, reader, self.access
        )
        self._sends = SendRequests(config, sending, self._reads, self._transactions, replies)
        admin = self._admin = Administration(
            config, table, counters, ledger, rng, self.notices, started_time_s=now.unix_s
        )
        admin.is_online = lambda: self.transfer.online
        self._queues = QueueRequests(
            config,
            table,
            ledger,
            admin,
            self._housekeeping,
            self._reads,
            self._transactions,
            replies,
            self.access,
        )
        self._operators = OutgoingRequests(
            table, self._outgoing, self.transfer, replies, hardened=config.transfer.hardened
        )
        self._lookups = DirectoryRequests(self.directory, replies)
        self._public = self._queues.public = PublicQueues(
            config, table, counters, admin, self.directory, replies, self._queues.delete
        )
        self._notifications = Notifications(
            counters, delivery, self.directory, config.name, config.directory.server
        )
        self._rights = AccessRequests(
            table, self.access, admin, self._public, copy, replies, config.directory
        )
        self._security = SecurityRequests(config, self.directory, self.keys, counters, replies, rng)
        self._arrivals.notified = self._notifications.take
        admin.directory_status = self._directory_status
        self._take_quotas()
        self.directory.changed = self._directory_changed
        self.directory.open(now)
        self._public.take(copy.image.queues_of(counters.identifier), now)
        self._names = NameLookups(table.published, self._ways, replies)
        self._handlers = self._guarded_handlers()

    def _guarded_handlers(self) -> HandlerTable:
        handlers = all_handlers(
            (
                self._sends,
                self._reads,
                self._bulk,
                self._queues,
                self._rights,
                self._operators,
                self._lookups,
                self._security,
                self._transactions,
                self._batches,
            )
        )
        return self._names.asking(self.access.guarded(handlers))

    def _build_transfer(
        self,
        table: QueueTable,
        delivery: Delivery,
        plain: PlainDelivery,
        staging: Staging,
        reader: StoreReader,
        security: MessageSecurity,
        now: Instant,
    ) -> Transfer:
        config, ledger, counters = self.config, self._ledger, self._counters
        claims = Claims(config.transfer.peers.silence_s, now)
        identities = Identities(config, claims, self._ways, counters.identifier, self.notices)
        outgoing = OutgoingQueues(
            config.transfer, table, delivery, counters, ledger, reader, claims
        )
        self._outgoing = outgoing
        streams = IncomingStreams(config.transfer, ledger, reader, identities, claims, now)
        self._sequences = streams.records
        history = History(config.transfer, ledger, reader, now)
        acks = OrderAcks(counters, delivery, outgoing, streams, identities, self.notices)
        shares = Shares(
            table,
            delivery.reporter,
            self.notices,
            permit_insecure_nacks=config.transfer.permit_insecure_nacks,
        )
        delivery.copied = shares.copied
        arrivals = self._arrivals = Arrivals(
            config,
            table,
            delivery,
            plain,
            staging,
            counters,
            acks,
            streams,
            history,
            security,
            identities,
            self.notices,
            shares,
        )
        self._unrouted = arrivals.unrouted = Unrouted(
            table,
            counters,
            delivery,
            self._housekeeping,
            acks,
            self._ways,
            self.notices,
            permit_insecure_nacks=config.transfer.permit_insecure_nacks,
        )
        transfer = Transfer(
            config,
            delivery,
            counters,
            ledger,
            outgoing,
            streams,
            history,
            arrivals,
            acks,
            self._housekeeping,
            self._transactions,
            self._ways,
            identities,
            claims,
            now,
        )
        self._unrouted.has_way = arrivals.has_way
        return transfer

    def _directory_status(self) -> tuple[str, str, int]:
        directory = self.directory
        problem = directory.problem or self._public.problem
        return directory.role.value, problem, directory.copy.position.number

    def _directory_changed(self, changes: list[Change], now: Instant) -> None:
        """Do what follows from changes of the directory."""
        self._take_quotas()
        self._public.take(changes, now)
        self.transfer.ways_changed(now)

    def _take_quotas(self) -> None:
        take_quotas(self.config, self._table, self.directory.own_object)
        self._sequences.quota_kb = self._table.totals.quota_kb

    @property
    def queues(self) -> Iterable[LocalQueue]:
        """All queues, for checks that look at each entry of them."""
        return self._table

    @property
    def identifier(self) -> Guid:
        """Who this queue manager is."""
        return self._counters.identifier

    # Inputs.

    def connected(self, connection: int, caller: Caller = UNLIMITED) -> None:
        """An application has connected; the driver has let it in, and knows who it is."""
        self._replies.connections[connection] = Connection(connection, caller)

    def user_of(self, certificate: bytes) -> Sid | None:
        """Say for whom the directory has this certificate, X.509 in DER; None for nobody."""
        return self._rights.user_of(certificate)

    def connection_lost(self, connection: int, now: Instant) -> None:
        """An application is gone: its waits end, its queues close, its transactions abort."""
        self._now = now
        state = self._replies.connections.pop(connection)
        for opened in list(state.queues.values()):
            self._queues.close_queue(state, opened, None)
        self._transactions.abort_all(state, now)
        self._bulk.connection_lost(state)
        self._lookups.forget(connection)
        self._reads.serve_waiting(now)

    def request(self, connection: int, call: int, request: api.AnyRequest, now: Instant) -> None:
        """An application asks for something."""
        self._now = now
        state = self._replies.connections[connection]
        if now.unix_s >= self._deadlines.next_s:
            self._housekeeping.expire(now)
        try:
            handler = self._handlers.get(type(request))
            if handler is None:
                raise InvalidParameter(f"{type(request).__name__} is not expected here")
            handler(state, call, request, now)
        except MsmqError as error:
            self._replies.fail(connection, call, error)
        self._reads.serve_waiting(now)

    def session_accepted(self, session: int, address: str, now: Instant, peer: str = "") -> None:
        """Another queue manager has connected; the driver numbers such sessions evenly.

        Over TLS, `peer` is the name of the rule whose certificate it has shown.
        """
        self._now = now
        self.transfer.accepted(session, address, now, peer)

    def session_connected(self, session: int, now: Instant, peer: str = "") -> None:
        """The connection asked for with `Connect` is there; `peer` as above."""
        self._now = now
        self.transfer.connected(session, now, peer)

    def session_failed(
        self, session: int, status: ConnectionStatus, now: Instant, reason: str = ""
    ) -> None:
        """The connection asked for with `Connect` cannot be made; `reason` may say more."""
        self._now = now
        self.transfer.failed(session, status, now, reason)

    def session_data(self, session: int, data: bytes, now: Instant) -> None:
        """Bytes of another queue manager came."""
        self._now = now
        if now.unix_s >= self._deadlines.next_s:
            self._housekeeping.expire(now)
        self.transfer.data(session, data, now)
        self._reads.serve_waiting(now)

    def session_held_bytes(self, session: int) -> int:
        """Return how many bytes of a packet wait for the rest of it."""
        peer = self.transfer.peers.get(session)
        return 0 if peer is None else peer.engine.held_bytes

    def session_lost(
        self, session: int, now: Instant, reason: CloseReason = CloseReason.PEER_CLOSED
    ) -> None:
        """The connection to another queue manager is gone."""
        self._now = now
        self.transfer.lost(session, now, reason)

    def host_resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses asked for with `Resolve` are known; none if there are none."""
        self._now = now
        self.transfer.resolved(host, addresses, now)

    def datagram_received(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool = False
    ) -> None:
        """A datagram came to the ping port, or to the port from which we asked (`is_answer`)."""
        self._now = now
        self.transfer.datagram(address, port, data, now, is_answer=is_answer)

    def directory_told(self, told: DirectoryChanges, now: Instant) -> None:
        """The directory has answered `AskDirectory`."""
        self._now = now
        self.directory.told(told, now)
        self._unrouted.heard(now)
        self._public.retry()
        self._names.heard(now)
        self._reads.serve_waiting(now)

    def directory_failed(self, error: MsmqError, now: Instant) -> None:
        """The directory could not be asked."""
        self._now = now
        self.directory.failed(error, now)
        self._names.failed(error)

    def directory_moved(self, now: Instant) -> None:
        """The directory is not any more where it was when it answered last."""
        self._now = now
        self.directory.hint(now, MOVED_PAUSE_MS)

    def directory_changed(self, ticket: int, changes: Sequence[Change], now: Instant) -> None:
        """The directory has the changes of `ChangeDirectory`, and has them so."""
        self._now = now
        self.directory.written(ticket, changes, now)
        self._reads.serve_waiting(now)

    def directory_refused(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """The directory refuses the changes, or cannot be reached."""
        self._now = now
        self.directory.refused(ticket, error, now)

    def keys_made(self, keys: Sequence[OwnKey], now: Instant) -> None:
        """The key pairs of `MakeKeys` are there, and in their files."""
        self._now = now
        self.keys.made(keys, now)

    @property
    def kept_keys(self) -> tuple[OwnKey, ...]:
        """All key pairs that are of use."""
        return self.keys.kept

    def keys_failed(self, error: MsmqError, now: Instant) -> None:
        """The key pairs of `MakeKeys` could not be made."""
        self._now = now
        self.keys.failed(error, now)

    def persisted(self, ticket: int, now: Instant) -> None:
        """A batch is durable."""
        self._now = now
        self._admin.store_took()
        self._ledger.settle(ticket)
        self._reads.serve_waiting(now)

    def persist_failed(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """A batch was refused; nothing of it is in the store."""
        self._now = now
        self._admin.store_refused(error, now)
        self._ledger.revoke(ticket, error)
        self.transfer.disk_refused(now)
        self._reads.serve_waiting(now)

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        self._now = now
        self._reads.end_timeouts(now)
        self._housekeeping.run(now)
        self.transfer.wake(now)
        self._unrouted.wake(now)
        self._names.wake(now)
        self._lookups.wake(now)
        self.directory.wake(now)
        self.keys.wake(now)
        self._reads.serve_waiting(now)

    # Outputs.

    def take_outputs(self) -> list[Output]:
        """Return what is to be done now. Call it after every input, until it gives nothing."""
        self.transfer.dispatch(self._now)
        persist = self._ledger.seal()
        outputs, self._replies.outputs = self._replies.outputs, []
        if self.transfer.outputs:
            outputs += self.transfer.outputs
            self.transfer.outputs.clear()
        if self.keys.outputs:
            outputs += self.keys.outputs
            self.keys.outputs = []
        if self.directory.outputs:
            outputs += self.directory.outputs
            self.directory.outputs = []
        outputs += self.notices.take()
        if persist is not None:
            outputs.append(persist)
        return outputs

    def next_wake_ms(self, now: Instant) -> int | None:
        """When to call `wake`, in ticks; None when nothing is due."""
        return earliest(
            self._housekeeping.next_run_ms(now),
            self._reads.next_timeout_ms(),
            self.transfer.next_wake_ms(now),
            self._unrouted.next_wake_ms(now),
            self._names.next_wake_ms,
            self._lookups.next_wake_ms,
            self.directory.next_wake_ms,
            self.keys.next_wake_ms(now),
        )

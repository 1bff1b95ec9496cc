"""QueueManager: all inputs, one list of outputs, one deadline.

Construction is recovery: the store a queue manager is given is what it goes on from, and an empty
one makes a new queue manager. Nothing here waits, reads a clock or touches a disk; the driver
persists what `take_outputs` asks for and says so with `persisted`. Only then do replies leave.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from openmsmq.api import messages as api
from openmsmq.manager.access.quotas import take_quotas
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.service import MOVED_PAUSE_MS
from openmsmq.manager.outputs import BackupProgress, Output, Persist, ReadAuditLog
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.rooms import Desk, Stock, Traffic, foundation
from openmsmq.manager.turn.timers import earliest
from openmsmq.manager.turn.trace import TurnTrace
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, DirectoryChanges
from openmsmq.model.errors import InvalidParameter, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.posts import PostFailure, ReceivedPost
from openmsmq.protocol.session_states import CloseReason
from openmsmq.security.access.callers import UNKNOWN_ORIGIN, UNLIMITED, Caller, Origin
from openmsmq.security.access.sids import Sid
from openmsmq.security.own_key import KeptKey
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
        keys: Sequence[KeptKey] = (),
        epoch: str = "",
    ) -> None:
        self.config = config
        self._now = now
        base = self._base = foundation(config, rng, reader, now, epoch)
        self.identifier: Guid = base.counters.identifier
        """Who this queue manager is."""
        self.notices = base.notices
        self._ledger = base.ledger
        self.turns: TurnTrace = self._ledger.trace
        """Descriptions of turns, for a driver that switches them on."""
        stock = Stock(base, keys)
        traffic = Traffic(base, stock)
        desk = Desk(base, stock, traffic)
        self.access, self.keys = stock.access, stock.keys
        self.admin = desk.admin
        """Takes what a driver has measured of its disk and its loop."""
        self.elsewhere = desk.opens.elsewhere
        """Hears which queues of other computers could not be opened."""
        self.pages, self.operators = desk.pages, desk.operators
        """What a driver looks at for alarms."""
        self.directory, self.transfer = traffic.directory, traffic.transfer
        self._stock, self._traffic, self._desk = stock, traffic, desk
        self._sessions = traffic.sessions
        self._handles = count(1)
        self._reads, self._housekeeping = stock.reads, stock.housekeeping
        self._news = stock.placing.news
        take_quotas(config, stock.table, stock.ourselves.known)
        self.directory.open()
        self._heed_directory()
        desk.public.take(stock.copy.image.queues_of(self.identifier), now)

    def _heed_directory(self) -> None:
        """Do what follows from changes of the directory."""
        while self.directory.news:
            changes = self.directory.news.pop(0)
            self._stock.former.heed(self._now)
            take_quotas(self.config, self._stock.table, self._stock.ourselves.known)
            self._desk.public.take(changes, self._now)
            self._traffic.control.ways_changed(self._now)

    @property
    def queues(self) -> Iterable[LocalQueue]:
        """All queues, for checks that look at each entry of them."""
        return self._stock.table

    # Inputs.

    def _came(self, kind: str, now: Instant) -> None:
        self._now = now
        if self.turns.is_on:
            self.turns.came(kind, now)

    def _serve_reads(self, now: Instant) -> None:
        """Let reads that wait have what became available by an input."""
        if self._news.available:
            self._reads.serve_waiting(now)

    def connected(
        self, connection: int, caller: Caller = UNLIMITED, origin: Origin = UNKNOWN_ORIGIN
    ) -> None:
        """An application has connected; the driver has let it in, and knows who it is."""
        self._stock.replies.connections[connection] = Connection(
            connection, self._handles, caller, origin
        )

    def user_of(self, certificate: bytes) -> Sid | None:
        """Say for whom the directory has this certificate, X.509 in DER; None for nobody."""
        return self._desk.rights.user_of(certificate)

    def connection_lost(self, connection: int, now: Instant) -> None:
        """An application is gone: its waits end, its queues close, its transactions abort."""
        self._came("connection lost", now)
        state = self._stock.replies.connections.pop(connection)
        for opened in list(state.queues.values()):
            self._desk.opens.close_queue(state, opened, None)
        for handle in list(state.elsewhere):
            self.elsewhere.leave(state, handle)
        self._stock.transactions.abort_all(state, now)
        self._desk.bulk.connection_lost(state)
        self._desk.lookups.forget(connection)
        self._serve_reads(now)

    def request(self, connection: int, call: int, request: api.AnyRequest, now: Instant) -> None:
        """An application asks for something."""
        self._now = now
        if self.turns.is_on:
            self.turns.came("request", now, type(request).__name__)
        state = self._stock.replies.connections[connection]
        if now.unix_s >= self._base.deadlines.next_s:
            self._housekeeping.expire(now)
        try:
            handler = self._desk.handlers.get(type(request))
            if handler is None:
                raise InvalidParameter(f"{type(request).__name__} is not expected here")
            if not state.elsewhere or not self.elsewhere.takes(state, call, request):
                handler(state, call, request, now)
        except MsmqError as error:
            self._stock.replies.fail(connection, call, error)
        self._serve_reads(now)

    def session_accepted(self, session: int, address: str, now: Instant, peer: str = "") -> None:
        """Another queue manager has connected; the driver numbers such sessions evenly.

        Over TLS, `peer` is the name of the rule whose certificate it has shown.
        """
        self._came("session accepted", now)
        self._sessions.accepted(session, address, now, peer)

    def session_connected(self, session: int, now: Instant, peer: str = "") -> None:
        """The connection asked for with `Connect` is there; `peer` as above."""
        self._came("session connected", now)
        self._sessions.connected(session, now, peer)

    def session_failed(
        self, session: int, status: ConnectionStatus, now: Instant, reason: str = ""
    ) -> None:
        """The connection asked for with `Connect` cannot be made; `reason` may say more."""
        self._came("session failed", now)
        self._sessions.failed(session, status, now, reason)

    def session_data(self, session: int, data: bytes, now: Instant) -> None:
        """Bytes of another queue manager came."""
        self._came("session data", now)
        if now.unix_s >= self._base.deadlines.next_s:
            self._housekeeping.expire(now)
        self._sessions.data(session, data, now)
        self._serve_reads(now)

    def session_held_bytes(self, session: int) -> int:
        """Return how many bytes of a packet wait for the rest of it."""
        peer = self._sessions.peers.get(session)
        return 0 if peer is None else peer.engine.held_bytes

    def session_lost(
        self, session: int, now: Instant, reason: CloseReason = CloseReason.PEER_CLOSED
    ) -> None:
        """The connection to another queue manager is gone."""
        self._came("session lost", now)
        self._sessions.lost(session, now, reason)

    def host_resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses asked for with `Resolve` are known; none if there are none."""
        self._came("host resolved", now)
        self._sessions.resolved(host, addresses, now)

    def datagram_received(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool = False
    ) -> None:
        """A datagram came to the ping port, or to the port from which we asked (`is_answer`)."""
        self._came("datagram received", now)
        self._sessions.datagram(address, port, data, now, is_answer=is_answer)

    def posts_received(self, posts: list[ReceivedPost], now: Instant) -> None:
        """Somebody has posted to the URLs of queues; each post is answered by a `PostAnswer`."""
        self._came("posts received", now)
        if now.unix_s >= self._base.deadlines.next_s:
            self._housekeeping.expire(now)
        self._traffic.posted.take(posts, now, online=self._sessions.online)
        self._serve_reads(now)

    def post_answered(self, call: int, status: int, now: Instant) -> None:
        """An `OutgoingPost` was answered."""
        self._came("post answered", now)
        self._traffic.posts.answered(call, status, now)

    def post_failed(self, call: int, failure: PostFailure, now: Instant, reason: str = "") -> None:
        """An `OutgoingPost` has no answer."""
        self._came("post failed", now)
        self._traffic.posts.failed(call, failure, reason, now)

    def multicast_received(self, address: str, group: str, payload: bytes, now: Instant) -> None:
        """Something came to a multicast address from an address."""
        self._came("multicast received", now)
        self._traffic.multicast.take(address, group, payload, now)
        self._serve_reads(now)

    def multicast_left(self, group: str, size: int, now: Instant) -> None:
        """So many bytes of what was sent to a multicast address wait by now."""
        self._came("multicast left", now)
        self._desk.multicast.took_backlog(group, size)

    def multicast_problem(self, problem: str, now: Instant) -> None:
        """Why there is no multicast on this computer; nothing if there is."""
        self._came("multicast problem", now)
        self._desk.multicast.take_problem(problem)

    @property
    def multicast_addresses(self) -> frozenset[str]:
        """The addresses that queues have; another object after each change."""
        return self._stock.table.addresses

    def directory_told(self, told: DirectoryChanges, now: Instant) -> None:
        """The directory has answered `AskDirectory`."""
        self._came("directory told", now)
        self.directory.told(told, now)
        self._traffic.unrouted.heard(now)
        self._desk.public.retry()
        self._desk.names.heard(now)
        self._serve_reads(now)

    def directory_failed(self, error: MsmqError, now: Instant) -> None:
        """The directory could not be asked."""
        self._came("directory failed", now)
        self.directory.failed(error, now)
        self._desk.names.failed(error)

    def directory_moved(self, now: Instant) -> None:
        """The directory is not any more where it was when it answered last."""
        self._came("directory moved", now)
        self.directory.hint(now, MOVED_PAUSE_MS)

    def directory_changed(self, ticket: int, changes: Sequence[Change], now: Instant) -> None:
        """The directory has the changes of `ChangeDirectory`, and has them so."""
        self._came("directory changed", now)
        self.directory.written(ticket, changes, now)
        self._serve_reads(now)

    def directory_refused(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """The directory refuses the changes, or cannot be reached."""
        self._came("directory refused", now)
        self.directory.refused(ticket, error, now)

    def keys_told(self, made: Sequence[KeptKey] | MsmqError, now: Instant) -> None:
        """The key pairs of `MakeKeys` are there, and in their files; or could not be made."""
        self._came("keys told", now)
        if isinstance(made, MsmqError):
            self.keys.failed(made, now)
        else:
            self.keys.made(made, self.directory, now)

    def backup_told(self, progress: BackupProgress, now: Instant) -> None:
        """The back-up of `BackUp` has come further, or is over."""
        self._came("backup told", now)
        self._desk.backups.told(progress, now)

    def audit_told(
        self, asked: ReadAuditLog, found: api.AuditLines | MsmqError, now: Instant
    ) -> None:
        """A page of the audit log was read, or cannot be."""
        self._came("audit told", now)
        self._desk.audit.told(asked, found)

    def persisted(self, ticket: int, now: Instant) -> None:
        """A batch is durable."""
        self._came("persisted", now)
        if self.admin.store_problem:
            self.admin.store_took()
        self._ledger.settle(ticket)
        self._serve_reads(now)

    def persist_failed(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """A batch was refused; nothing of it is in the store."""
        self._now = now
        self.admin.store_refused(error, now)
        self._ledger.revoke(ticket, error)
        # What was built on the batch fell with it: this is an input of the next turn.
        self._came("persist failed", now)
        self.transfer.disk_refused(now)
        self._serve_reads(now)

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        self._came("wake", now)
        self._reads.end_timeouts(now)
        self._housekeeping.run(now)
        self.transfer.wake(now)
        self._traffic.posts.wake(now)
        self._traffic.acks.wake(now)
        self._traffic.history.wake(now)
        self._stock.sequences.wake(now)
        self._traffic.unrouted.wake(now)
        self._desk.names.wake(now)
        self._desk.lookups.wake(now)
        self.directory.wake(now)
        self.keys.wake(now)
        self._serve_reads(now)

    # Outputs.

    def take_outputs(self) -> list[Output]:
        """Return what is to be done now. Call it after every input, until it gives nothing."""
        if self.directory.news:
            self._heed_directory()
        if self._desk.lookups.waiting and self._desk.lookups.has_news:
            self._desk.lookups.tell_all()
        if self._stock.finals.own:
            self._traffic.acks.heed_own(self._now)
        if self._news.ready:
            self.transfer.dispatch(self._now)
        persist: Persist | None = None
        if self._ledger.has_work:
            persist = self._ledger.seal()
        elif self.turns.is_on:
            self.turns.passed()
        outputs = list(self._base.outputs)
        self._base.outputs.clear()
        if self.notices.waiting:
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
            self._traffic.posts.next_wake_ms,
            self._traffic.acks.next_wake_ms,
            self._traffic.history.next_wake_ms,
            self._stock.sequences.next_wake_ms,
            self._traffic.unrouted.next_wake_ms(now),
            self._desk.names.next_wake_ms,
            self._desk.lookups.next_wake_ms,
            self.directory.next_wake_ms,
            self.keys.next_wake_ms(now),
        )

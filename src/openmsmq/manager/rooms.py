"""What is built from what: all rooms of a queue manager, from the bottom up.

Whoever is built later knows those built before, and is handed them once. What goes the other way
is a port that the lower room names (`Protocol`), or something that the manager passes on: the news
of the directory, final acknowledgments to ourselves, outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import all_handlers
from openmsmq.manager.access.message_security import MessageSecurity
from openmsmq.manager.askers import Acting
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.former_ways import FormerWays
from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.directory.own_object import OwnObject
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.incoming.arrivals import Arrivals
from openmsmq.manager.incoming.destinations import Judging
from openmsmq.manager.incoming.forwarding import Forwarding
from openmsmq.manager.incoming.history import History
from openmsmq.manager.incoming.incoming_sequences import IncomingSequences
from openmsmq.manager.incoming.local_arrivals import LocalArrivals
from openmsmq.manager.incoming.multicast.arrivals import MulticastArrivals
from openmsmq.manager.incoming.notifications import Heeded, Notifications
from openmsmq.manager.incoming.order_acks import FinalAcks, OrderAcks
from openmsmq.manager.incoming.refusals import Refusals
from openmsmq.manager.incoming.runs import Runs
from openmsmq.manager.incoming.traces import Traces
from openmsmq.manager.incoming.unrouted import Unrouted
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.messages.named_queues import NamedQueues
from openmsmq.manager.messages.news import News
from openmsmq.manager.messages.placing import Placing
from openmsmq.manager.messages.plain_delivery import PlainDelivery
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.notices import Notices
from openmsmq.manager.peers.acquaintances import Acquaintances
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.confirmations import Confirmations
from openmsmq.manager.peers.doubts import Doubts
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.open_sessions import OpenSessions
from openmsmq.manager.peers.outgoing import OutgoingQueues
from openmsmq.manager.posts.arrivals import PostArrivals
from openmsmq.manager.posts.departures import PostDepartures
from openmsmq.manager.posts.receipts import StreamReceipts
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.bulk_reads import BulkReads
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.recovery import open_machine, restore_queues, restore_transactions
from openmsmq.manager.requests.access import AccessRequests
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.backups import BackupRequests
from openmsmq.manager.requests.directory import DirectoryRequests
from openmsmq.manager.requests.multicast.sends import MulticastSends
from openmsmq.manager.requests.name_lookups import NameLookups
from openmsmq.manager.requests.opening import OpenRequests
from openmsmq.manager.requests.outgoing import OutgoingRequests
from openmsmq.manager.requests.public_queues import PublicQueues
from openmsmq.manager.requests.queues import QueueRequests
from openmsmq.manager.requests.removal import QueueRemoval
from openmsmq.manager.requests.security import SecurityRequests
from openmsmq.manager.requests.sending import Sending
from openmsmq.manager.requests.sends import SendRequests
from openmsmq.manager.requests.watching.audit import AuditRequests
from openmsmq.manager.requests.watching.connections import ConnectionRequests
from openmsmq.manager.requests.watching.program import ProgramRequests
from openmsmq.manager.requests.watching.queue_pages import QueuePages
from openmsmq.manager.requests.watching.sequences import SequenceRequests
from openmsmq.manager.requests.watching.sessions import SessionRequests
from openmsmq.manager.requests.watching.sightings import MessageSearch
from openmsmq.manager.transactions.batches import StagedBatches
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.staged import Staged
from openmsmq.manager.transactions.vouchers import Vouchers
from openmsmq.manager.transactions.work import TransactionWork
from openmsmq.manager.transfer.control import TransferControl
from openmsmq.manager.transfer.departures import Departures
from openmsmq.manager.transfer.neighbours import Neighbours
from openmsmq.manager.transfer.sessions import Sessions
from openmsmq.manager.transfer.transfer import Transfer
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.security.own_key import KeptKey
from openmsmq.storage.port import StoreReader

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


def foundation(
    config: ManagerConfig, rng: random.Random, reader: StoreReader, now: Instant, epoch: str
) -> Foundation:
    """Return what every room stands on; `epoch` is a word for this life of the queue manager."""
    ledger = Ledger()
    counters = Counters(open_machine(config, rng, reader), ledger, rng)
    counters.open(epoch)
    return Foundation(
        config=config,
        reader=reader,
        ledger=ledger,
        counters=counters,
        deadlines=Deadlines(reader),
        outputs=[],
        notices=Notices(),
        acting=Acting(),
        rng=rng,
        started=now,
    )


class Stock:
    """Queues and messages, who may use them, and who others are."""

    def __init__(self, base: Foundation, keys: Sequence[KeptKey]) -> None:
        config, ledger, reader, counters = base.config, base.ledger, base.reader, base.counters
        self.replies = Replies(ledger, base.outputs)
        self.copy = DirectoryCopy(ledger, reader)
        self.table = QueueTable(config, counters, ledger, reader, base.rng, self.copy)
        restore_queues(reader, self.table)
        self.access = AccessControl(self.table, ledger, reader)
        self.keys = OwnKeys(base, keys)
        self.ourselves = OwnObject(base, self.copy, self.keys)
        self.security = MessageSecurity(config.security.policy, self.keys, self.copy, self.access)
        # Who others are, and how they are reached.
        self.ways = KnownWays(config.transfer, self.copy, counters, config.directory.role)
        self.acquaintances = Acquaintances(config.transfer, self.ways)
        sessions = OpenSessions()
        claims = Claims(config.transfer.peers.silence_s, sessions, base.started)
        self.former = FormerWays(self.copy)
        self.identities = Identities(base, claims, self.ways, self.former)
        self.neighbours = Neighbours(config.transfer, self.ways, self.identities, sessions)
        news = News()
        self.outgoing = OutgoingQueues(base, self.table, claims, news)
        self.sequences = IncomingSequences(base, self.table.totals, self.identities, claims)
        # Messages, into queues and out of them.
        self.staging = Staging(counters, config.transfer.clock_skew_max_s)
        self.shares = Shares(base, self.table)
        self.placing = Placing(base, self.table, news, self.outgoing)
        self.reporter = Reporter(
            base,
            self.table,
            self.placing,
            self.staging,
            self.security,
            self.acquaintances,
            self.neighbours,
        )
        self.finals = FinalAcks(base, self.reporter, self.sequences)
        self.delivery = Delivery(
            base,
            self.table,
            self.placing,
            self.reporter,
            self.finals,
            self.outgoing,
            self.shares,
        )
        self.housekeeping = Housekeeping(base, self.table, self.delivery)
        work = TransactionWork(self.table, self.placing, self.delivery, ledger)
        staged = Staged(base.config, self.table)
        self.transactions = TransactionRequests(base, work, self.replies, self.access, staged)
        restore_transactions(reader, work, self.transactions)
        self.reads = ReadRequests(
            base, self.table, self.delivery, self.housekeeping, self.transactions, self.replies
        )
        self.plain = PlainDelivery(base, self.placing, self.reads)


class Traffic:
    """What other queue managers send, and what they are sent."""

    def __init__(self, base: Foundation, stock: Stock) -> None:
        table, delivery, reporter, finals = (
            stock.table,
            stock.delivery,
            stock.reporter,
            stock.finals,
        )
        outgoing, sequences, identities = stock.outgoing, stock.sequences, stock.identities
        neighbours, news, staging = stock.neighbours, stock.placing.news, stock.staging
        housekeeping = stock.housekeeping
        self.directory = DirectoryService(
            base, stock.copy, stock.ourselves, Notifications(base, reporter, stock.keys)
        )
        confirmations = Confirmations(base, table, delivery, outgoing, news)
        self.acks = OrderAcks(
            base, reporter, finals, outgoing, confirmations, sequences, identities
        )
        self.history = History(base)
        self.unrouted = Unrouted(
            base, table, delivery, housekeeping, finals, stock.ways, neighbours
        )
        traces = Traces(base, table, reporter)
        runs = Runs(base, table, delivery, stock.plain, stock.shares)
        refusals = Refusals(delivery, reporter, finals, stock.shares, runs)
        doubts = Doubts(identities)
        judging = Judging(base, table, identities, doubts, sequences)
        local = LocalArrivals(
            stock.security, sequences, self.history, staging, stock.shares, refusals, traces
        )
        self.multicast = MulticastArrivals(base.acting, table, base.config.name, local, runs)
        forwarding = Forwarding(base, table, judging, staging, self.unrouted, refusals, traces)
        heeded = Heeded(self.directory, stock.security)
        arrivals = Arrivals(base.acting, judging, local, forwarding, self.acks, heeded, runs)
        departures = Departures(base, delivery, housekeeping, traces)
        self.receipts = StreamReceipts(base, outgoing, confirmations)
        self.posts = PostDepartures(base, news, departures, delivery, housekeeping, self.receipts)
        self.posted = PostArrivals(
            base, table, stock.security, sequences, local, runs, self.receipts
        )
        self.sessions = Sessions(
            base, news, neighbours, identities, departures, arrivals, stock.acquaintances
        )
        self.transfer = Transfer(
            base,
            stock.placing,
            self.sessions,
            neighbours,
            outgoing,
            stock.transactions,
            self.posts,
        )
        self.control = TransferControl(
            base, news, self.sessions, neighbours, outgoing, departures, self.posts
        )


class Desk:
    """What applications ask for."""

    def __init__(self, base: Foundation, stock: Stock, traffic: Traffic) -> None:
        config, counters = base.config, base.counters
        table, replies, access, reads = stock.table, stock.replies, stock.access, stock.reads
        delivery, housekeeping = stock.delivery, stock.housekeeping
        transactions, directory = stock.transactions, traffic.directory
        self.admin = Administration(base, table, traffic.sessions, directory, stock.ways)
        removal = QueueRemoval(base.ledger, table, reads, housekeeping)
        self.public = PublicQueues(base, table, self.admin, directory, replies, removal)
        named = NamedQueues(table, access, counters.identifier)
        sending = Sending(base, table, delivery, stock.plain, stock.staging, stock.security, named)
        self.opens = OpenRequests(base, table, self.admin, reads, replies, access)
        self.bulk = BulkReads(base, table, delivery, reads, replies, access)
        self.rights = AccessRequests(
            table, access, self.admin, self.public, stock.copy, replies, config.directory
        )
        self.operators = OutgoingRequests(
            table,
            stock.outgoing,
            traffic.control,
            traffic.posts,
            replies,
            hardened=config.transfer.hardened,
        )
        self.pages = QueuePages(table, self.admin, replies, access, base.started)
        self.lookups = DirectoryRequests(directory, replies)
        self.backups = BackupRequests(base, replies)
        self.audit = AuditRequests(replies, base.outputs)
        vouchers = Vouchers(base, access)
        self.multicast = MulticastSends(base)
        self.names = NameLookups(table.published, stock.ways, replies)
        handlers = all_handlers(
            (
                SendRequests(
                    config, sending, table, transactions, replies, access, vouchers, self.multicast
                ),
                reads,
                self.bulk,
                self.opens,
                QueueRequests(
                    table, self.admin, self.public, removal, transactions, replies, access
                ),
                self.rights,
                self.operators,
                self.pages,
                MessageSearch(table, access, replies),
                SessionRequests(traffic.sessions, stock.copy, replies),
                SequenceRequests(stock.sequences, stock.copy, replies),
                ConnectionRequests(replies, base.outputs),
                self.lookups,
                SecurityRequests(config, directory, stock.keys, counters, replies, base.rng),
                transactions,
                self.backups,
                ProgramRequests(base.outputs),
                self.audit,
                StagedBatches(base, transactions, replies, access),
            )
        )
        self.handlers = self.names.asking(access.guarded(handlers))

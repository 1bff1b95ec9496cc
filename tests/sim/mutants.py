"""Defects that the simulator must notice: one line of the core each, changed while a test runs.

A mutant names a function, a piece of its source and what stands there instead. The function is
compiled again with the change and put in its place; nothing is written to disk. A piece that is
not found exactly once means that the core has changed: look where the defect would be now.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NamedTuple

from openmsmq.sim.runner import Result, run_seed
from openmsmq.sim.scenarios.scenario import Options


class Mutant(NamedTuple):
    """A defect, and the number of seeds within which it must be noticed."""

    name: str
    where: str
    """Module below `openmsmq`, a colon, and the function with its class."""
    old: str
    new: str
    seeds: int = 60
    options: Options = Options()
    likely: int | None = None
    """The seed that noticed it before: it comes first, as long as it still does."""


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Put a defect in place, and take it out again."""
    module_name, _, path = mutant.where.partition(":")
    module = importlib.import_module(f"openmsmq.{module_name}")
    owner: Any = module
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    whole = inspect.getattr_static(owner, name)
    function = whole.fget if isinstance(whole, property) else whole
    assert isinstance(function, FunctionType), f"{mutant.where} is no function"
    source = textwrap.dedent(inspect.getsource(function))
    if isinstance(whole, property):
        source = source.replace("@property\n", "", 1)
    assert source.count(mutant.old) == 1, f"{mutant.name}: {mutant.old!r} is not once in {path}"
    code = compile(
        source.replace(mutant.old, mutant.new),
        f"<{mutant.name}>",
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    made: dict[str, Any] = {}
    exec(code, module.__dict__, made)
    changed = made[name]
    setattr(owner, name, property(changed) if isinstance(whole, property) else changed)
    try:
        yield
    finally:
        setattr(owner, name, whole)


def caught(mutant: Mutant, *, seeds: int | None = None) -> Result | None:
    """Run seeds until one notices a defect that is not there without the mutant."""
    first = [] if mutant.likely is None else [mutant.likely]
    for seed in [*first, *range(mutant.seeds if seeds is None else seeds)]:
        with applied(mutant):
            result = run_seed(seed, mutant.options)
        if not result.good and run_seed(seed, mutant.options).good:
            return result
    return None


_OVERTAKING = Options(
    managers=4,
    operations=20,
    names=("identifier",),
    doing=("own transaction",),
    only=("crash", "partition", "cut"),
)
"""Two routers lie between the others, so that messages can overtake each other."""

_STREAMS = Options(
    operations=12,
    doing=("stream", "batches", "recoverable", "own transaction", "transaction", "purge"),
    only=("crash", "disk full", "application", "clock"),
)
"""Streams and batches, and others who want the same messages."""

_ASIDE = Options(
    managers=1,
    operations=12,
    doing=("prepared", "batches"),
    only=("crash", "disk full", "application"),
)
"""Transactions that are prepared, of which most are set aside."""

_PURGES = Options(
    managers=1,
    operations=30,
    doing=("transaction", "own transaction", "receive", "purge"),
    faults=False,
)
"""Purges, and transactions that hold what they are to remove."""

_WAITING = Options(
    managers=1,
    operations=60,
    doing=("transaction", "prepared", "own transaction", "purge"),
    only=("disk slow",),
)
"""Purges that come while transactions wait for the disk."""

_ENTERPRISE = Options(enterprise=True, managers=14)
"""Sites, links and gates, of which some fail."""

MUTANTS = (
    # One queue manager: disk, locks, transactions.
    Mutant(
        "an answer leaves before its batch is durable",
        "manager.queues.replies:Replies.answer_when_done",
        "self._ledger.add_waiting(Replied(self, connection, call, reply))",
        "self.answer(connection, call, reply)",
    ),
    Mutant(
        "a batch counts as durable when it is handed over",
        "manager.turn.ledger:Ledger.seal",
        "self._under_way[self._ticket] = turn\n",
        "self._under_way[self._ticket] = turn\n"
        "    following, turn.following = turn.following, []\n"
        "    [effect.follow() for effect in following]\n",
    ),
    Mutant(
        "what the disk refused is not undone",
        "manager.turn.ledger:Ledger.revoke",
        "for turn in (later, refused):",
        "for turn in (later,):",
    ),
    Mutant(
        "recoverable messages are kept only in memory",
        "manager.messages.effects:EntriesPlaced.__init__",
        "self.express = express",
        "self.express = True",
    ),
    Mutant(
        "a transaction receives without removing",
        "manager.transactions.work:TransactionWork.commit",
        "self._delivery.end(queue, rows, MessageClass.ACK_RECEIVE, now)",
        "queue.entries.free([row[0] for row in rows])",
    ),
    Mutant(
        "a commit is made of two batches",
        "manager.transactions.work:TransactionWork.commit",
        "self._delivery.end(queue, rows, MessageClass.ACK_RECEIVE, now)",
        "end, effect = self._delivery.end, HoldsReleased.__base__\n"
        "        follow = lambda _, q=queue, r=rows: end(q, r, MessageClass.ACK_RECEIVE, now)\n"
        "        self._ledger.add(type('Later', (effect,), {'follow': follow})())",
    ),
    Mutant(
        "an aborted transaction gives nothing back",
        "manager.transactions.work:TransactionWork._give_back",
        "self._delivery.give_back(queue, lookup_id, value)",
        "pass",
    ),
    Mutant(
        "an aborted transaction sends all the same",
        "manager.transactions.work:TransactionWork.abort",
        "prepared = work.state is TransactionState.ABORTING_PREPARED",
        "prepared = work.state is TransactionState.ABORTING_PREPARED\n"
        "    for send in work.sends:\n"
        "        self._delivery.put(self._table.by_id(send.queue), [send], now)",
    ),
    Mutant(
        "prepared transactions are forgotten at a restart",
        "manager.recovery:_all",
        "found: list[tuple[bytes, bytes]] = []",
        'found: list[tuple[bytes, bytes]] = []\n    if kind == b"T":\n        return found',
        seeds=150,
        likely=6,
    ),
    Mutant(
        "prepared transactions lose what is set aside at a restart",
        "manager.transactions.work:TransactionWork.restore",
        "work.aside = record.aside",
        "work.aside = []",
        seeds=150,
        likely=6,
    ),
    Mutant(
        "what is set aside is taken by an abort as well",
        "manager.transactions.work:TransactionWork.abort",
        "prepared = work.state is TransactionState.ABORTING_PREPARED",
        "prepared = work.state is TransactionState.ABORTING_PREPARED\n"
        "    for run in work.aside:\n"
        "        queue = self._table.by_id(run.queue)\n"
        "        self._placing.take_aside(queue, work.key, 0, run, now)",
        seeds=150,
    ),
    Mutant(
        "each queue gets the first of what is set aside",
        "manager.transactions.work:TransactionWork.commit",
        "first += run.count",
        "first += 0",
        options=_ASIDE,
    ),
    Mutant(
        "what is set aside counts as smaller than it is",
        "manager.transactions.work:TransactionWork.set_aside",
        "sum([len(packet) for packet in packets])",
        "sum([len(packet) for packet in packets[1:]])",
        options=_ASIDE,
    ),
    Mutant(
        "a prepared transaction does not say what is aside",
        "manager.transactions.work:Transaction.record",
        "self.owner, self.aside",
        "self.owner, []",
        options=_ASIDE,
    ),
    Mutant(
        "a restart takes what is aside in another order",
        "manager.transactions.work:TransactionWork.restore",
        "work.aside = record.aside",
        "work.aside = record.aside[::-1]",
        options=_ASIDE,
    ),
    Mutant(
        "what is set aside stays for ever",
        "manager.transactions.effects:TransactionEnded.store",
        "writes.drop(self.work.key)",
        "pass",
        options=_ASIDE,
    ),
    Mutant(
        "what is set aside stays after an abort",
        "manager.transactions.effects:TransactionEnded.store",
        "if self.work.aside:",
        "if self.work.aside and self.event is TransactionEvent.COMMIT:",
        options=_ASIDE,
    ),
    Mutant(
        "all transactions set aside under one name",
        "manager.transactions.work:Transaction.key",
        "transaction_key(self.unit_of_work)",
        "transaction_key(type(self.unit_of_work)(bytes(16)))",
        options=_ASIDE,
    ),
    Mutant(
        "what is taken gets too few arrival numbers",
        "manager.messages.placing:Placing.take_aside",
        "take_arrivals(run.count)",
        "take_arrivals(1)",
        options=_ASIDE,
    ),
    Mutant(
        "what is taken is not counted on the disk",
        "manager.messages.effects:EntriesTaken.store",
        "writes.touch(self.queue)",
        "pass",
        options=_ASIDE,
    ),
    Mutant(
        "messages that ask for more are set aside",
        "manager.transactions.work:TransactionWork.set_aside",
        "are_plain_sends(work.sends)",
        "are_plain_sends(work.sends[:1])",
        options=_ASIDE,
    ),
    Mutant(
        "messages for other computers are set aside",
        "manager.transactions.work:TransactionWork.set_aside",
        "queue is None or queue.can.lead_away",
        "queue is None",
    ),
    # Purges, and what transactions hold.
    Mutant(
        "a purge forgets what a transaction holds",
        "manager.queues.entries:Entries.doom",
        "self._doomed[lookup_id] = reason",
        "pass",
        likely=57,
        options=_PURGES,
    ),
    Mutant(
        "an abort that waits for the disk gives back what is purged meanwhile",
        "manager.transactions.work:TransactionWork.release_unpurged",
        "if reason is None:",
        "if True:",
        likely=27,
        options=_WAITING,
    ),
    Mutant(
        "the front of a queue is what a transaction holds",
        "manager.queues.queue:LocalQueue.front",
        "if lookup_id in held:",
        "if held.get(lookup_id, 1) < 1:",
        likely=39,
        options=_PURGES,
    ),
    Mutant(
        "prepared transactions lose their locks at a restart",
        "manager.transactions.work:TransactionWork.restore",
        "queue.entries.hold([held.lookup_id], work.number)",
        "pass",
        options=Options(
            managers=1, operations=20, doing=("prepared", "transaction"), only=("crash",)
        ),
    ),
    Mutant(
        "a message that is being removed is given to another reader",
        "manager.queues.queue:LocalQueue.front",
        "if lookup_id in held:",
        "if held.get(lookup_id, 0):",
    ),
    Mutant(
        "a received message is not journaled",
        "manager.messages.delivery:Delivery._journal_for",
        "if reason is not MessageClass.ACK_RECEIVE or",
        "if True or",
    ),
    Mutant(
        "an expired message is no dead letter",
        "manager.messages.delivery:Delivery.tell",
        "if asks & ASKS_DEAD_LETTER and is_negative(reason):",
        "if False:",
        seeds=100,
    ),
    Mutant(
        "message numbers begin again after a crash",
        "manager.turn.counters:Counters.open",
        "self._change(message_limit=self._message + BLOCK_COUNT)",
        "self._message = 1\n    self._change(message_limit=self._message + BLOCK_COUNT)",
    ),
    # The lives of entries and transactions.
    Mutant(
        "nobody notes that an entry has arrived",
        "manager.queues.entries:Entries.arrive",
        "self._leave_arriving(lookup_ids, EntryEvent.ARRIVE)",
        "pass",
    ),
    Mutant(
        "an entry that has gone still counts as leaving",
        "manager.queues.entries:Entries.gone",
        "self._stop_leaving(lookup_ids, EntryEvent.GO)",
        "pass",
    ),
    Mutant(
        "a removal is not counted when it begins",
        "manager.queues.entries:Entries.remove",
        "self._passage.removed += len(lookup_ids)",
        "pass",
    ),
    Mutant(
        "what the disk kept is not held again by who held it",
        "manager.queues.entries:Entries.stay",
        "self.held.update(before)",
        "pass",
        seeds=100,
    ),
    Mutant(
        "what the disk kept is not counted again",
        "manager.messages.effects:EntriesRemoved.revert",
        "self.queue.count_many_in(lookup_ids, size_of(part), express=express)",
        "pass",
        seeds=100,
    ),
    Mutant(
        "what is given back lies where nobody looks",
        "manager.queues.queue:LocalQueue.became_available",
        "self.floor = min(self.floor, lookup_id)",
        "pass",
    ),
    Mutant(
        "finished entries are seen again",
        "manager.queues.entries:Entries.finish",
        "held.update(dict.fromkeys(lookup_ids, _FINISHED))",
        "pass",
        options=Options(
            managers=2, operations=30, doing=("express", "recoverable"), only=("disk full", "clock")
        ),
    ),
    Mutant(
        "a transaction that ends is aborted when its application goes",
        "manager.transactions.requests:TransactionRequests.end_abort",
        "if work.state not in UNDER_WAY:",
        "if False:",
        seeds=100,
        likely=48,
    ),
    Mutant(
        "a transaction counts as committed though the disk refused it",
        "manager.transactions.requests:TransactionRequests.go_back",
        "work.happen(TransactionEvent.REFUSE)",
        "pass",
        seeds=100,
        likely=13,
    ),
    # Streams and batches.
    Mutant(
        "reservations are forgotten at a restart",
        "manager.reading.bulk_reads:BulkReads.__init__",
        "queue.keep(kept)",
        "pass",
        options=_STREAMS,
    ),
    Mutant(
        "a reservation counts before it is durable",
        "manager.reading.bulk_reads:BulkReads.reserve",
        "self._replies.answer_when_done(state.id, call, api.Reserved(stop))",
        "self._replies.answer(state.id, call, api.Reserved(stop))",
        options=_STREAMS,
        likely=1,
    ),
    Mutant(
        "a refused completion gives up the reservation",
        "manager.reading.effects:ReservationChanged.revert",
        "self.queue.keep(self.before)",
        "pass",
        options=_STREAMS,
        likely=1,
    ),
    Mutant(
        "others are given what is reserved",
        "manager.queues.queue:LocalQueue.front",
        "reserved = self.reservation.stop > 0",
        "reserved = False",
        options=_STREAMS,
        likely=10,
    ),
    Mutant(
        "a purge takes what is reserved",
        "manager.queues.queue:LocalQueue.rows",
        "if self.is_reserved(found):",
        "if False:",
        options=_STREAMS,
        likely=10,
    ),
    Mutant(
        "what is reserved expires",
        "manager.messages.housekeeping:Housekeeping.expire",
        "elif not queue.is_held(lookup_id):",
        "elif lookup_id not in queue.entries.held:",
        options=Options(
            managers=1, operations=40, doing=("stream", "recoverable"), only=("clock",)
        ),
        likely=38,
    ),
    Mutant(
        "what is completed as a range ends one message later",
        "manager.reading.effects:RangeRemoved.store",
        "level << 56 | stop)",
        "level << 56 | stop + 1)",
        options=_STREAMS,
        likely=5,
    ),
    Mutant(
        "what is completed as a range is not taken out of all priorities",
        "manager.reading.effects:RangeRemoved.store",
        "for level in range(8):",
        "for level in range(4):",
        options=_STREAMS,
    ),
    Mutant(
        "a range that the disk kept stays out of sight",
        "manager.reading.effects:RangeRemoved.revert",
        "self.queue.entries.range_gone(self.bounds)",
        "pass",
        seeds=200,
        likely=130,
        options=_STREAMS,
    ),
    Mutant(
        "what is not plain goes as a range too",
        "manager.reading.bulk_looks:BulkLooks._note",
        "if facts[:4] != _NEVER or facts[-1]:",
        "if False:",
        seeds=200,
        options=_STREAMS,
        likely=4,
    ),
    Mutant(
        "a part of what is reserved counts for more than it is",
        "manager.reading.bulk_looks:BulkLooks._note",
        "size - records.FACTS_BYTES * count",
        "size",
        seeds=200,
        options=_STREAMS,
    ),
    Mutant(
        "a look ends before the range does",
        "manager.reading.bulk_looks:_Look.take",
        "self.next_start = self._arrivals.start",
        "self.next_start = self._stop; self._count = 0",
        seeds=200,
        options=_STREAMS,
    ),
    Mutant(
        "a reservation goes beyond what transactions hold",
        "manager.reading.bulk_reads:BulkReads._stop_for",
        "if mine_below <= arrival < stop:",
        "if False:",
        options=_STREAMS,
        likely=10,
    ),
    Mutant(
        "completed messages stay in their queue",
        "manager.reading.bulk_reads:BulkReads._take_out",
        "self._delivery.end(queue, free, MessageClass.ACK_RECEIVE, now)",
        "queue.entries.free([row[0] for row in free])",
        options=_STREAMS,
    ),
    Mutant(
        "only the first part of a batch is committed",
        "manager.transactions.batches:StagedBatches.commit_batch",
        "for work in parts:",
        "for work in parts[:1]:",
        options=_STREAMS,
    ),
    Mutant(
        "parts that nobody named are committed too",
        "manager.transactions.batches:StagedBatches._named_parts",
        "return [mine[unit] for unit in request.units_of_work]",
        "return list(mine.values())",
        options=_STREAMS,
    ),
    Mutant(
        "parts that nobody named wait for ever",
        "manager.transactions.batches:StagedBatches._abort_parts",
        "self._transactions.end_abort(work, now)",
        "pass",
        options=_STREAMS,
    ),
    Mutant(
        "the number of a batch is forgotten at a restart",
        "manager.transactions.effects:LastBatchChanged.store",
        "writes.put(key, records.encode_record(self.after))",
        "pass",
        options=_STREAMS,
        likely=4,
    ),
    Mutant(
        "the number of a batch counts though the disk refused it",
        "manager.transactions.effects:LastBatchChanged.revert",
        "_set(self.last, self.query, self.before)",
        "self.before is None or _set(self.last, self.query, self.before)",
        seeds=200,
        options=_STREAMS,
        likely=4,
    ),
    # Effects: what a turn does, what follows, and the way back.
    Mutant(
        "what the disk refused follows all the same",
        "manager.turn.ledger:Ledger.revoke",
        "turn.revert(error)",
        "turn.revert(error)\n        turn.follow()",
    ),
    Mutant(
        "what grows follows when the turn is sealed",
        "manager.turn.ledger:Turn.complete",
        "effect.store(self.writes)",
        "effect.store(self.writes)\n        effect.follow()",
        seeds=400,
        likely=38,
    ),
    Mutant(
        "a session goes on though the disk refused its packets",
        "manager.transfer.effects:PacketsTaken.revert",
        "self.sessions.refuse(self.peer, self.now)",
        "pass",
        likely=17,
    ),
    Mutant(
        "a session acknowledges packets that the disk refused",
        "manager.transfer.effects:PacketsTaken.revert",
        "self.sessions.refuse(self.peer, self.now)",
        "self.follow()",
    ),
    Mutant(
        "nobody hears that the disk refused a call",
        "manager.queues.replies:Replied.revert",
        "self.replies.fail(self.connection, self.call, error)",
        "pass",
    ),
    Mutant(
        "a call that the disk refused is answered as if it were done",
        "manager.queues.replies:Replied.revert",
        "self.replies.fail(self.connection, self.call, error)",
        "self.follow()",
    ),
    # Two queue managers: sessions.
    Mutant(
        "a session acknowledges what is not durable yet",
        "manager.transfer.sessions:Sessions._take",
        "self._ledger.add_waiting(PacketsTaken(self, peer, len(packets), now))",
        "self.acknowledge(peer, len(packets), now)",
    ),
    Mutant(
        "a session counts what has arrived as stored",
        "protocol.session_windows:ReceiveWindow.arrived",
        "self.recoverable_received_count += recoverable",
        "self.recoverable_received_count += recoverable\n    self._stored_count += recoverable",
    ),
    Mutant(
        "what a broken session did not deliver stays with it",
        "manager.transfer.sessions:Sessions._closed",
        'cast("list[Transit]", peer.engine.unacknowledged())',
        "()",
    ),
    Mutant(
        "nobody tries to connect a second time",
        "protocol.link:Link.wake",
        "self._begin_round(now, may_ping=False)",
        "pass",
        likely=3,
    ),
    Mutant(
        "outgoing queues are not looked at after a restart",
        "manager.peers.outgoing:OutgoingQueues.__init__",
        "news.ready[queue] = None",
        "pass",
    ),
    Mutant(
        "the rest of a packet that came in pieces is lost",
        "wire.packet_buffer:PacketBuffer._keep",
        "pieces[-1] += data",
        "pieces[-1][:] = data",
        likely=30,
    ),
    # Duplicates.
    Mutant(
        "nobody looks for duplicates",
        "manager.incoming.history:History.saw",
        "if identifier in self.filter:",
        "if False:",
    ),
    Mutant(
        "identifiers of recoverable messages are forgotten at a restart",
        "manager.incoming.effects:IdentifiersNoted.store",
        "if self.number > 0:",
        "if False:",
        seeds=400,
    ),
    Mutant(
        "identifiers count as seen though the disk refused the messages",
        "manager.incoming.effects:IdentifiersNoted.revert",
        "self.history.filter.forget(self.number)",
        "pass",
        seeds=200,
    ),
    Mutant(
        "messages of different senders with the same number are taken for one",
        "manager.incoming.local_arrivals:LocalArrivals._take_plain",
        "message_bytes.message_id_under(source, packet)",
        "message_bytes.message_id_under(bytes(16), packet)",
        likely=26,
    ),
    # Sequences.
    Mutant(
        "a transactional message is taken twice",
        "protocol.incoming_sequence:IncomingSequence.judge",
        "if number <= self._assumed_number:",
        "if number < 0:",
    ),
    Mutant(
        "a message of an older sequence is taken",
        "protocol.incoming_sequence:IncomingSequence.judge",
        "return Verdict.STALE",
        "return Verdict.ACCEPT",
        seeds=150,
        likely=95,
        options=_OVERTAKING,
    ),
    Mutant(
        "the place in a sequence is acknowledged before it is durable",
        "manager.incoming.effects:SequenceAdvanced.apply",
        "self.flow.sequence.assume(self.sequence, self.number)",
        "self.flow.sequence.assume(self.sequence, self.number)\n"
        "    self.flow.sequence.settle(self.sequence, self.number)",
        seeds=400,
        likely=38,
    ),
    Mutant(
        "the place in a sequence stays assumed though the disk refused it",
        "manager.incoming.incoming_sequences:Flow.take_back",
        "self.sequence.forget_assumed()",
        "pass",
        seeds=100,
        likely=38,
    ),
    Mutant(
        "the place in a sequence is forgotten at a restart",
        "manager.incoming.effects:SequenceAdvanced.store",
        "writes.put(self.flow.key, records.encode_record(record))",
        "pass",
        seeds=200,
    ),
    Mutant(
        "the numbers of a sequence begin again after a restart",
        "manager.peers.effects:store_outgoing",
        "writes.put(records.outgoing_key(outgoing.queue.id), record)",
        "pass",
        seeds=200,
        likely=3,
    ),
    Mutant(
        "all sequences have the same identifier",
        "manager.turn.counters:Counters.take_sequence",
        "before.ordinal + 1",
        "1",
    ),
    Mutant(
        "an order acknowledgment releases one message too many",
        "protocol.outgoing_sequence:OutgoingSequence.order_acked",
        "bisect_right(self._numbers, number)",
        "bisect_right(self._numbers, number + 1)",
        likely=16,
    ),
    Mutant(
        "a transactional message is done when the next node has it",
        "manager.transfer.departures:Departures.acknowledged",
        "if message_bytes.is_transactional(value, FACTS_BYTES) and",
        "if False and",
    ),
    Mutant(
        "nothing is ever sent again",
        "manager.transfer.departures:Departures.send_again",
        "outgoing.sequence.outstanding()",
        "()",
        seeds=200,
        likely=35,
    ),
    Mutant(
        "order acknowledgments are never sent",
        "manager.incoming.incoming_sequences:IncomingSequences.heard",
        "flow.sequence.heard(now)",
        "pass",
        likely=3,
    ),
    Mutant(
        "a message names the number before it, though that one is gone",
        "protocol.outgoing_sequence:OutgoingSequence.previous_of",
        "if not numbers:\n        return 0\n",
        "return number - 1\n",
        seeds=100,
    ),
    # The end of transactional messages.
    Mutant(
        "final acknowledgments are never sent",
        "manager.incoming.order_acks:FinalAcks.send",
        "self._reporter.post(name, encode(carrier), now, is_final=True)",
        "pass",
    ),
    Mutant(
        "a message that was received elsewhere is not journaled",
        "manager.peers.confirmations:Confirmations.final_acked",
        "self._delivery.journal_sent(value, now)",
        "pass",
    ),
    Mutant(
        "a message is journaled when it has arrived, not when it was received",
        "manager.peers.confirmations:Confirmations.arrived",
        "for row in waiting:",
        "for row in waiting:\n        self._delivery.journal_sent(row[1], now)",
    ),
    # Routing.
    Mutant(
        "all sites count as nearer to the destination",
        "routing.next_hops:Routes._next_sites",
        "and (costs[site], site) < min(ranks)",
        "",
        options=_ENTERPRISE,
        likely=3,
    ),
    Mutant(
        "messages go to the gates of the own site instead of the next one",
        "routing.next_hops:Routes._to_next_sites",
        "self.enterprise.gates[site]",
        "self.enterprise.gates[own[0]]",
        options=_ENTERPRISE,
    ),
    Mutant(
        "only the first next hop is tried",
        "routing.next_hops:Routes.next_hops",
        "self.hops(destination))",
        "self.hops(destination)[:1])",
        options=_ENTERPRISE,
        likely=13,
    ),
    Mutant(
        "a routing server that is no gate passes messages to others like itself",
        "routing.next_hops:Routes._from_routing_server",
        "self.enterprise.gates_of(me.sites)",
        "self.enterprise.routing_servers(me.sites)",
        options=_ENTERPRISE,
        likely=3,
    ),
    Mutant(
        "in-routing servers are passed by",
        "routing.next_hops:Routes._within_site",
        "if servers:",
        "if False:",
        options=_ENTERPRISE,
    ),
    Mutant(
        "out-routing servers are passed by",
        "routing.next_hops:Routes._from_others",
        "enterprise.serving(me.out_routing_servers)",
        "()",
        options=_ENTERPRISE,
        likely=4,
    ),
    Mutant(
        "a message forgets how many hops it has made",
        "manager.incoming.forwarding:Forwarding.take",
        "counted = message_bytes.hop_counted(packet)",
        "counted = packet",
        options=_ENTERPRISE,
    ),
    Mutant(
        "messages to public queues go to any queue manager",
        "manager.directory.known_ways:KnownWays.owner_of",
        "else queue.manager",
        "else min(self._copy.image.managers)",
        options=_ENTERPRISE,
    ),
    # A directory that changes.
    Mutant(
        "the next hops stay as they were when the directory changes",
        "manager.directory.known_ways:KnownWays.routes",
        "not image.routes_like(before)",
        "False",
        options=_ENTERPRISE,
    ),
    Mutant(
        "messages that wait are not rerouted when the directory changes",
        "manager.transfer.control:TransferControl.ways_changed",
        "self._retry(outgoing, now)",
        "pass",
        options=_ENTERPRISE,
    ),
    Mutant(
        "a session that has become the wrong way is kept",
        "manager.transfer.neighbours:Neighbours.kept",
        "not outgoing.is_rerouted or self._leads_on(outgoing, peer)",
        "True",
        options=_ENTERPRISE,
        likely=3,
    ),
    Mutant(
        "messages go round between gates with different directories until they are lost",
        "manager.transfer.neighbours:Neighbours._is_in_doubt",
        "return not doubt.is_settled",
        "return False",
        seeds=300,
        likely=112,
        options=_ENTERPRISE,
    ),
    Mutant(
        "what is brought by a way that is not known yet is dropped as forged",
        "manager.incoming.destinations:Judging.refuse_foreign",
        "self._doubts.leave(peer, now) or ",
        "",
        seeds=300,
        likely=5191,
        options=Options(enterprise=True),
    ),
    Mutant(
        "messages that have gone round wait for ever",
        "manager.directory.service:DirectoryService.told",
        "if real or doubts:",
        "if real:",
        seeds=300,
        likely=87,
        options=_ENTERPRISE,
    ),
    Mutant(
        "a copy of the directory keeps links that were removed",
        "manager.directory.copy:DirectoryCopy.take",
        "changes: Sequence[Change] = told.changes",
        "changes: Sequence[Change] = [c for c in told.changes if not isinstance(c, Removal)]",
        options=_ENTERPRISE,
        likely=6,
    ),
)

GAP = Mutant(
    "a message is taken although one before it is missing",
    "protocol.incoming_sequence:IncomingSequence.judge",
    "return Verdict.ACCEPT if previous <= self._assumed_number else Verdict.GAP",
    "return Verdict.ACCEPT",
)
"""Senders of ours send everything outstanding again when they connect, so no simulated network has
gaps any more; other senders may make them."""

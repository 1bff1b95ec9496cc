"""Requests and replies of the application interface that are about transactions."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Number, Octets, Reply, Request, Several, Text
from openmsmq.api.facts import KNOWN, OWN, OWNER, Facts, Repeats
from openmsmq.model.transaction import Xid


class Begun(Reply, frozen=True, tag="begun"):
    """The number by which this connection names the transaction, and its lasting name."""

    transaction: int
    unit_of_work: bytes


class Begin(Request[Begun], frozen=True, tag="begin"):
    """Begin a transaction; it ends with the connection if it was not prepared."""

    facts = Facts(OWN, Repeats.ALWAYS)

    distributed: bool = False
    """Whether it is to be part of a transaction of other resource managers."""


class Prepare(Request[Done], frozen=True, tag="prepare"):
    """Make a transaction survive everything until a coordinator commits or aborts it.

    With a `query` it is a part of one of its batches, which `CommitBatch` commits.
    """

    facts = Facts(OWNER, Repeats.NEVER)

    transaction: Number
    query: Text = ""
    batch: Number = 0
    checkpoint: Text = ""
    """The identity of what numbers the batches of the query, if it has one."""
    xid: Xid | None = None
    """What its coordinator calls it; no other prepared one of the same owner may be called so."""


class Commit(Request[Done], frozen=True, tag="commit"):
    """Make everything in the transaction take effect, at once."""

    facts = Facts(OWN, Repeats.NEVER)

    transaction: Number


class Abort(Request[Done], frozen=True, tag="abort"):
    """Undo everything in the transaction."""

    facts = Facts(OWN, Repeats.NEVER)

    transaction: Number


class InDoubt(msgspec.Struct, frozen=True, array_like=True):
    """A prepared transaction."""

    unit_of_work: bytes
    prepared_time_s: int
    sent_count: int
    received_count: int
    query: str = ""
    """The query whose batch it is a part of, if it is one."""
    batch: int = 0
    owner: str = ""
    """Who may end it beside administrators: a SID, or `token:` and the name of a token."""
    xid: Xid | None = None
    """What its coordinator calls it, if it has said so."""


class Transactions(Reply, frozen=True, tag="transactions"):
    """The prepared transactions."""

    transactions: list[InDoubt]


class ListTransactions(Request[Transactions], frozen=True, tag="list-transactions"):
    """Ask for the prepared transactions that wait for their coordinator's word.

    Those of the caller; who may change the queue manager is told of all.
    """

    facts = Facts(OWNER, Repeats.ALWAYS)


class Resolve(Request[Done], frozen=True, tag="resolve"):
    """Commit or abort a prepared transaction by its lasting name."""

    facts = Facts(OWNER, Repeats.NEVER, is_audited=True)

    unit_of_work: Octets
    commit: bool


# Batches of a query: several prepared transactions that commit together, once.


class LastBatch(Reply, frozen=True, tag="last-batch"):
    """The number of the last batch committed; -1 before the first."""

    batch: int


class GetBatch(Request[LastBatch], frozen=True, tag="get-batch"):
    """Ask for the last batch that a query has committed.

    With a `batch`, one that neither is the last nor can follow it is refused.
    """

    facts = Facts(KNOWN, Repeats.ALWAYS)

    query: Text
    batch: Number = -1
    checkpoint: Text = ""


class QueryStatus(msgspec.Struct, frozen=True, array_like=True):
    """A query, and the last batch that it has committed."""

    query: str
    batch: int
    committed_time_s: int
    owner: str = ""
    """Whose it is: a SID, or `token:` and the name of a token."""
    checkpoint: str = ""


class Queries(Reply, frozen=True, tag="queries"):
    """Some of the queries; none is left after an answer without any."""

    queries: list[QueryStatus]


class ListQueries(Request[Queries], frozen=True, tag="list-queries"):
    """Ask for the queries whose last batch is remembered, in the order of their names.

    Those of the caller; who may change the queue manager is told of all. An answer has a bounded
    number: `after` the last name of one, the next goes on.
    """

    facts = Facts(OWNER, Repeats.ALWAYS)

    prefix: Text = ""
    after: Text = ""


class BatchCommitted(Reply, frozen=True, tag="batch-committed"):
    """The batch is committed; `before` says that it was already."""

    before: bool


class CommitBatch(Request[BatchCommitted], frozen=True, tag="commit-batch"):
    """Commit prepared transactions of a batch, all at once; other parts of the query abort.

    A batch that was committed just before is not committed again; an older one, or one of another
    checkpoint, is refused.
    """

    facts = Facts(KNOWN, Repeats.ALWAYS)

    query: Text
    batch: Number
    units_of_work: Several[Octets]
    checkpoint: Text = ""
    row_count: Number = -1
    """How many rows the batch has, by which a larger one of the same number is noticed."""
    end: Text = ""
    """Where the batch ends, by which another one of the same number is noticed; empty if unknown.
    """


class AbortBatch(Request[Done], frozen=True, tag="abort-batch"):
    """Abort the prepared transactions of a batch that was not committed."""

    facts = Facts(KNOWN, Repeats.ALWAYS)

    query: Text
    batch: Number
    checkpoint: Text = ""


class ForgetQuery(Request[Done], frozen=True, tag="forget-query"):
    """Forget the last batch of a query that will not come again, and abort its parts."""

    facts = Facts(KNOWN, Repeats.ALWAYS, is_audited=True)

    query: Text
    is_over: bool = False
    """Whether its name is never used again: parts that come late are then refused."""

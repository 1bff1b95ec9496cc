"""Transactions as an application holds them, and what it can do with them. [MQDMPR 3.1.4]"""

from __future__ import annotations

from typing import Final, TypeAlias

from openmsmq.api import messages as api
from openmsmq.client.connections.engine import Keeper
from openmsmq.client.context import ClientContext
from openmsmq.client.steps import Steps, ask
from openmsmq.model.errors import TransactionSequence, TransactionUsage
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.transaction import TransactionState, Xid


class SingleMessage:
    """Says that a send is a transaction of its own (MQ_SINGLE_MESSAGE). Use `SINGLE_MESSAGE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SINGLE_MESSAGE"


SINGLE_MESSAGE: Final = SingleMessage()


class TransactionHandle(Keeper):
    """A transaction of this application: sends and receives that take effect together."""

    def __init__(self, context: ClientContext) -> None:
        self.context = context
        """The client it belongs to."""
        self._generation = 0
        self._number = 0
        self.unit_of_work = NIL_GUID
        """Its lasting name: what `resolve` takes after `prepare`, also on another connection."""
        self.state = TransactionState.ACTIVE
        """How far it has come, as this application knows."""

    @property
    def number(self) -> int:
        """What requests name it by; raises when it can take no more."""
        if self.state is not TransactionState.ACTIVE:
            raise TransactionSequence(f"the transaction is {self.state.value}: begin another")
        if self._generation != self.context.generation:
            self.state = TransactionState.ABORTED
            raise TransactionSequence(
                "the connection was lost, and with it everything done in the transaction: begin "
                "another"
            )
        return self._number

    def begun(self, reply: api.Begun, generation: int) -> None:
        """Take the queue manager's answer, which came over the connection of a generation."""
        self._generation = generation
        self._number = reply.transaction
        self.unit_of_work = Guid(reply.unit_of_work)


TransactionLike: TypeAlias = TransactionHandle | SingleMessage | None


def number_of(transaction: TransactionLike, context: ClientContext) -> int:
    """Return what a request of a client says about its transaction, which must be of that client.

    Each connection numbers its own. The same number may be another transaction elsewhere.
    """
    if transaction is None:
        return 0
    if isinstance(transaction, SingleMessage):
        return api.OWN_TRANSACTION
    if transaction.context is not context:
        raise TransactionUsage(
            "the transaction was begun with another connection or another queue manager: use the "
            "queues of the object that has begun it, or send in two transactions"
        )
    return transaction.number


def begin(transaction: TransactionHandle, *, distributed: bool = False) -> Steps[None]:
    """Begin the transaction. A distributed one is refused: there is no coordinator for it."""
    generation = transaction.context.generation
    transaction.begun((yield from ask(api.Begin(distributed))), generation)


def prepare(
    transaction: TransactionHandle,
    *,
    query: str = "",
    batch: int = 0,
    checkpoint: str = "",
    xid: Xid | None = None,
) -> Steps[None]:
    """Make it survive everything until it is committed or aborted, here or by `resolve`.

    With a `query` it is a part of one of its batches, and `commit_batch` commits it. With an `xid`
    its coordinator finds it again among those that are `in_doubt` (`openmsmq.xa`).
    """
    yield from ask(api.Prepare(transaction.number, query, batch, checkpoint, xid))
    transaction.state = TransactionState.PREPARED


def commit(transaction: TransactionHandle) -> Steps[None]:
    """Make everything in it take effect, at once."""
    yield from _end(transaction, TransactionState.COMMITTED)


def abort(transaction: TransactionHandle) -> Steps[None]:
    """Undo everything in it; what it received is in its queue again."""
    yield from _end(transaction, TransactionState.ABORTED)


def _end(transaction: TransactionHandle, state: TransactionState) -> Steps[None]:
    committing = state is TransactionState.COMMITTED
    request: api.AnyRequest
    if transaction.state is TransactionState.PREPARED:
        request = api.Resolve(bytes(transaction.unit_of_work), committing)
    elif committing:
        request = api.Commit(transaction.number)
    else:
        request = api.Abort(transaction.number)
    yield from ask(request)
    transaction.state = state

"""A queue manager in transactions of the package `transaction`, as Zope and Pyramid have them."""

from __future__ import annotations

from typing import Any, Final

from openmsmq.client.blocking import QueueManager, Transaction
from openmsmq.model.transaction import TransactionState, Xid

XID_FORMAT: Final = 1_836_281_202
"""Says that an xid was given by a data manager."""


class DataManager:
    """A queue manager's part of one transaction; `join` makes one.

    It prepares when votes are taken. Its sort key lets it vote before data managers that commit
    with their vote, such as zope.sqlalchemy's.
    """

    def __init__(self, manager: QueueManager, transaction_manager: Any) -> None:
        self.transaction_manager = transaction_manager
        """What the package asks its data managers for."""
        self.transaction: Final[Transaction] = manager.begin()
        """What sends and receives take as their `transaction`."""
        self._manager = manager

    def sortKey(self) -> str:  # noqa: N802 - so the package calls it
        """Return where it stands among those that vote."""
        return f"openmsmq:{self._manager.name}:{self.transaction.unit_of_work}"

    def abort(self, _transaction: Any) -> None:
        """Undo everything, before anybody was asked for a vote."""
        self._undo()

    def tpc_begin(self, _transaction: Any) -> None:
        """Hear that the two phases begin."""

    def commit(self, _transaction: Any) -> None:
        """Hear that all is said that belongs to the transaction."""

    def tpc_vote(self, _transaction: Any) -> None:
        """Vote: prepare, or raise what stands against it."""
        self.transaction.prepare(
            xid=Xid(XID_FORMAT, "transaction", str(self.transaction.unit_of_work))
        )

    def tpc_finish(self, _transaction: Any) -> None:
        """Commit, as everybody has voted for it."""
        self.transaction.commit()

    def tpc_abort(self, _transaction: Any) -> None:
        """Undo everything, as somebody has voted against it, or a vote went wrong."""
        self._undo()

    def _undo(self) -> None:
        # The package asks some twice.
        if self.transaction.state in (TransactionState.ACTIVE, TransactionState.PREPARED):
            self.transaction.abort()


def join(manager: QueueManager, transaction_manager: Any = None) -> Transaction:
    """Let a queue manager take part in the current transaction of a transaction manager.

    Without one, it is that of the thread. Return what sends and receives take as `transaction`.
    The package keeps no log: if the program dies between the votes and the end, the queue
    manager's part stays in doubt (`openmsmq transaction list`). `two_phase` knows no such moment.
    """
    if transaction_manager is None:
        import transaction

        transaction_manager = transaction.manager
    part = DataManager(manager, transaction_manager)
    transaction_manager.get().join(part)
    return part.transaction

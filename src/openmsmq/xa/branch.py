"""A queue manager's part of a transaction, by the names that PEP 249 has for databases."""

from __future__ import annotations

from openmsmq.api.messages import InDoubt
from openmsmq.client.blocking import QueueManager, Transaction
from openmsmq.client.errors import ConnectionLost
from openmsmq.model.errors import TransactionSequence
from openmsmq.model.transaction import Xid


class Branch:
    """What a coordinator tells a queue manager about its part of one transaction after the other.

    The coordinator must have written down its decision before it calls `tpc_commit`: the queue
    manager keeps what it has prepared until it hears, however long that takes, and asks nobody.
    """

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._transaction: Transaction | None = None
        self._xid: Xid | None = None

    def xid(self, format_id: int, global_id: str, branch: str) -> Xid:
        """Return a name for `tpc_begin`; raise `InvalidParameter` if it cannot be one."""
        xid = Xid(format_id, global_id, branch)
        xid.require_valid()
        return xid

    @property
    def transaction(self) -> Transaction:
        """What sends and receives of this part take as their `transaction`."""
        return self._under_way()[0]

    def tpc_begin(self, xid: Xid) -> None:
        """Begin a part of a transaction."""
        if self._transaction is not None:
            raise TransactionSequence(
                f"the part called {self._xid} has not ended: commit it or roll it back first"
            )
        self._transaction, self._xid = self._manager.begin(), xid

    def tpc_prepare(self) -> None:
        """Make the part survive everything until `tpc_commit` or `tpc_rollback`."""
        transaction, xid = self._under_way()
        try:
            transaction.prepare(xid=xid)
        except ConnectionLost:
            # It may be prepared: then `tpc_recover` has it.
            self._forget()
            raise

    def tpc_commit(self, xid: Xid | None = None) -> None:
        """Let the part take effect: the one under way, prepared or not, or one of `tpc_recover`."""
        self._end(xid, commit=True)

    def tpc_rollback(self, xid: Xid | None = None) -> None:
        """Undo the part: the one under way, or one of `tpc_recover`."""
        self._end(xid, commit=False)

    def tpc_recover(self) -> list[Xid]:
        """Return the names of prepared parts that wait for the word of their coordinator."""
        return [one.xid for one in self._own() if one.xid is not None]

    def _under_way(self) -> tuple[Transaction, Xid]:
        if self._transaction is None or self._xid is None:
            raise TransactionSequence("no part of a transaction is under way: call tpc_begin first")
        return self._transaction, self._xid

    def _end(self, xid: Xid | None, *, commit: bool) -> None:
        if xid is not None and xid != self._xid:
            self._manager.resolve(self._prepared(xid).unit_of_work, commit=commit)
            return
        transaction, _ = self._under_way()
        try:
            if commit:
                transaction.commit()
            else:
                transaction.abort()
        except ConnectionLost:
            # If it was prepared, `tpc_recover` knows whether it waits; else it went with the
            # connection.
            self._forget()
            raise
        self._forget()

    def _forget(self) -> None:
        self._transaction = self._xid = None

    def _own(self) -> list[InDoubt]:
        """Return what is in doubt and ours: who administers is told of others' parts, too."""
        owner = self._manager.caller().owner
        return [one for one in self._manager.in_doubt() if one.owner == owner]

    def _prepared(self, xid: Xid) -> InDoubt:
        for one in self._own():
            if one.xid == xid:
                return one
        raise TransactionSequence(
            f"no prepared transaction of yours is called {xid}: it has ended, or was never prepared"
        )

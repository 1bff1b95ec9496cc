"""One transaction of a queue manager and PostgreSQL, without a coordinator beside them.

The database is the log: whether a transaction commits is one row, which is inserted in the very
transaction of the database that it decides about.

    the application                            the queue manager        the database
    1  inserts the row that says "commit"                               not to be seen yet
    2  prepares                                prepared, survives
    3  commits the database                                             row and changes, durable
    4  says commit                             commits
    5  deletes the row with its next one                                gone

The row comes before the preparation, so that whoever finds a prepared transaction can ask: to
insert the same row waits for who has inserted it, fails if he has committed, and succeeds if he is
gone and nothing of his will ever be there. Nothing else decides, no clock and no time that passes.
It needs no `max_prepared_transactions`, which most servers have switched off.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final, NamedTuple, TypeAlias

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from openmsmq.api.messages import InDoubt
from openmsmq.client.blocking import QueueManager, Transaction
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.model.errors import (
    AccessDenied,
    InvalidParameter,
    MsmqError,
    TransactionSequence,
)
from openmsmq.model.identity import Guid
from openmsmq.model.transaction import Xid

logger: Final = logging.getLogger("openmsmq.xa")

XID_FORMAT: Final = 1_836_281_201
"""Says that an xid was given here: "msmq" as a number, with the last bits that make it ours."""

DECISIONS_TABLE: Final = "openmsmq_decisions"
"""Where it stands that a transaction commits, in the first schema of the search path."""

BUSY_WAIT_MS: Final = 2_000
"""How long recovery waits for somebody who is just committing, before it leaves him alone. [ours]
"""

_TABLE: Final = sql.Identifier(DECISIONS_TABLE)
_CREATE: Final = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {} (unit_of_work uuid PRIMARY KEY, queue_manager uuid NOT NULL,"
    " owner text NOT NULL, name text NOT NULL, decided_time timestamptz NOT NULL DEFAULT now())"
).format(_TABLE)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
# To create what is there already needs the right to create, too.
_EXISTS: Final = "SELECT to_regclass(%s) IS NOT NULL"
_DURABLY: Final = (
    "SELECT set_config('synchronous_commit', 'on', true)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
_PATIENCE: Final = f"SELECT set_config('lock_timeout', '{BUSY_WAIT_MS}', true)"
_CALMLY: Final = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE"
_DECIDE: Final = sql.SQL(
    "INSERT INTO {} (unit_of_work, queue_manager, owner, name) VALUES (%s, %s, %s, %s)"
).format(_TABLE)
_ASK: Final = _DECIDE + sql.SQL(" ON CONFLICT DO NOTHING")
_WRITE: Final = sql.SQL(
    "INSERT INTO {} (unit_of_work, queue_manager, owner, name)"
    " VALUES (gen_random_uuid(), %s, %s, %s) RETURNING unit_of_work"
).format(_TABLE)
_DECIDED: Final = sql.SQL(
    "SELECT unit_of_work FROM {} WHERE queue_manager = %s AND owner = %s AND name = %s"
).format(_TABLE)
_FORGET: Final = sql.SQL("DELETE FROM {} WHERE unit_of_work = ANY(%s)").format(_TABLE)

_WAITS_FOR_STANDBY: Final = "SyncRepWaitForLSN"
"""Where PostgreSQL warns that a commit is not replicated; its words are in the server's language.
"""

Block: TypeAlias = AbstractContextManager[psycopg.Transaction]
"""A transaction of the database, which begins and ends with a block."""


class Recovered(NamedTuple):
    """What became of the transactions that were in doubt."""

    committed: int
    aborted: int
    busy: int
    """Left alone: the connection that decides about them is still at it."""


class TwoPhase:
    """Transactions of a queue manager and a database, one after the other, for `with`.

    Each `with` begins one in both. At its end both commit, or neither; an exception undoes both.
    What a crash has left in doubt is decided when an object of the same name is made, or by
    `recover`.
    """

    def __init__(
        self, manager: QueueManager, database: psycopg.Connection, *, name: str = "two-phase"
    ) -> None:
        Xid(XID_FORMAT, name, "").require_valid()
        if not name:
            raise InvalidParameter("two_phase needs a name, by which it finds what it has left")
        self._manager = manager
        self._database = database
        self._name = name
        self._owner = manager.caller().owner
        self._transaction: Transaction | None = None
        self._block: Block | None = None
        self._ended: list[str] = []
        """What has committed everywhere, and whose rows nobody will ask for."""
        self._has_unheard = False
        """Whether the queue manager may not have heard of a decision."""
        self._require_idle()
        try:
            self._have_table()
            self.recover()
        except psycopg.errors.InsufficientPrivilege as error:
            raise AccessDenied(self._wanted_rights(error)) from error
        except psycopg.errors.UndefinedColumn as error:
            raise InvalidParameter(
                f"the table {DECISIONS_TABLE} of the database is not what this version of OpenMSMQ "
                f"makes ({_words(error)}): use the version that has made it"
            ) from error

    def __enter__(self) -> Transaction:
        """Begin in both; sends and receives take what this returns as their `transaction`."""
        if self._transaction is not None:
            raise TransactionSequence("a transaction is under way: they come one after the other")
        self._require_idle()
        if self._has_unheard:
            self.recover()
        transaction = self._manager.begin()
        block = self._database.transaction()
        try:
            block.__enter__()
        except BaseException:
            transaction.abort()
            raise
        self._transaction, self._block = transaction, block
        return transaction

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit in both, or undo both."""
        transaction, block = self._transaction, self._block
        assert transaction is not None
        assert block is not None
        self._transaction = self._block = None
        if error is not None:
            self._undo(transaction, block, error)
            return
        try:
            self._decide(transaction)
            self._prepare(transaction)
        except BaseException as problem:
            self._undo(transaction, block, problem)
            raise
        self._commit_database(transaction, block)
        self._tell(transaction)

    def recover(self) -> Recovered:
        """Decide what is in doubt of this name, and say how many of each there were.

        A prepared transaction commits if its row is there. If it is not, and nobody is about to
        commit it, it aborts.
        """
        self._require_idle()
        # First: who is in doubt later than that has not ended when the row was seen.
        with self._database.transaction():
            rows = self._database.execute(_DECIDED, self._whose).fetchall()
        left = {str(row[0]) for row in rows}
        # Who administers the queue manager is told of those of others, too.
        mine = [one for one in self._manager.in_doubt() if self._is_mine(one)]
        asked = [(one, self._ask(_unit(one))) for one in mine]
        if any(outcome is not None for _, outcome in asked):
            self._confirm()
        counts = {True: 0, False: 0, None: 0}
        for one, outcome in asked:
            counts[outcome] += 1
            if outcome is None:
                left.discard(_unit(one))
            else:
                self._resolve(one, commit=outcome)
        with self._database.transaction():
            self._database.execute(_FORGET, [sorted({*left, *self._ended})])
        self._ended = []
        self._has_unheard = counts[None] > 0
        return Recovered(counts[True], counts[False], counts[None])

    def _have_table(self) -> None:
        database = self._database
        with database.transaction():
            database.execute(_LOCK, [DECISIONS_TABLE])
            row = database.execute(_EXISTS, [DECISIONS_TABLE]).fetchone()
            if row is None or not row[0]:
                database.execute(_CREATE)

    def _wanted_rights(self, error: psycopg.Error) -> str:
        user = self._database.info.user
        return (
            f"user {user} of the database may not do what two_phase does there ({_words(error)}). "
            f"Let somebody who may do so run: {_CREATE.as_string(self._database)}; "
            f'GRANT SELECT, INSERT, DELETE ON {DECISIONS_TABLE} TO "{user}";'
        )

    @contextmanager
    def _replicated(self) -> Iterator[None]:
        """Take no commit for one whose wait for the standby of the database somebody has ended."""
        warnings: list[str] = []

        def noticed(notice: psycopg.errors.Diagnostic) -> None:
            if notice.source_function == _WAITS_FOR_STANDBY:
                warnings.append(notice.message_primary or _WAITS_FOR_STANDBY)

        self._database.add_notice_handler(noticed)
        try:
            yield
        finally:
            self._database.remove_notice_handler(noticed)
        if warnings:
            self._has_unheard = True
            raise OutcomeUnknown("the commit of the database", warnings[0])

    def _confirm(self) -> None:
        """Commit something, so that what was seen cannot be lost any more.

        After a restart a database shows what its synchronous standby does not have yet. When a
        later transaction is on both, so is everything before it.
        """
        with self._replicated(), self._database.transaction():
            self._database.execute(_DURABLY)
            written = self._database.execute(_WRITE, self._whose).fetchone()
            self._database.execute(_FORGET, [list(written or ())])

    @property
    def _whose(self) -> list[str]:
        """By whom rows can be told that may be deleted."""
        return [str(self._manager.identifier), self._owner, self._name]

    def _is_mine(self, one: InDoubt) -> bool:
        return (
            one.owner == self._owner
            and one.xid is not None
            and (one.xid.format_id, one.xid.global_id) == (XID_FORMAT, self._name)
        )

    def _require_idle(self) -> None:
        status = self._database.info.transaction_status
        if status is not TransactionStatus.IDLE:
            raise InvalidParameter(
                f"the connection to the database is {status.name.lower()}, not idle: end what was "
                "begun there, or give two_phase a connection of its own"
            )

    def _decide(self, transaction: Transaction) -> None:
        """Write that it commits, as a part of what commits."""
        self._database.execute(_DURABLY)
        if self._ended:
            self._database.execute(_FORGET, [self._ended])
        self._database.execute(_DECIDE, [str(transaction.unit_of_work), *self._whose])

    def _prepare(self, transaction: Transaction) -> None:
        transaction.prepare(xid=Xid(XID_FORMAT, self._name, str(transaction.unit_of_work)))

    def _commit_database(self, transaction: Transaction, block: Block) -> None:
        try:
            with self._replicated():
                block.__exit__(None, None, None)
        except psycopg.Error as error:
            if error.diag.severity_nonlocalized != "ERROR":
                # The connection is gone, or the server ends it: that may come behind the commit.
                self._has_unheard = True
                raise OutcomeUnknown("the commit of the database", _words(error)) from error
            # The server has refused it, and lives: it is not there, and never will be.
            self._abort(transaction)
            raise
        except BaseException:
            # Interrupted while it waited: it may be there.
            self._has_unheard = True
            raise
        self._ended.append(str(transaction.unit_of_work))

    def _tell(self, transaction: Transaction) -> None:
        """Let the queue manager commit; what cannot be said now is said by `recover`."""
        try:
            transaction.commit()
        except (ConnectionLost, MsmqError) as error:
            self._ended.pop()
            self._has_unheard = True
            logger.warning(
                "Transaction %s is committed in the database, and %s has not confirmed it: %s. It "
                "hears it before the next transaction, or when the program starts again.",
                transaction.unit_of_work,
                self._manager.name,
                error,
            )
        except BaseException:
            self._ended.pop()
            self._has_unheard = True
            raise

    def _undo(self, transaction: Transaction, block: Block, error: BaseException) -> None:
        """Undo both; the database first, by which the other is decided."""
        try:
            block.__exit__(type(error), error, error.__traceback__)
        except psycopg.Error as problem:
            logger.warning("The database has lost what it should undo: %s", _words(problem))
        finally:
            self._abort(transaction)

    def _abort(self, transaction: Transaction) -> None:
        """Abort in the queue manager; if it is gone, that is done when it was not prepared."""
        try:
            transaction.abort()
        except (ConnectionLost, MsmqError):
            # It may be prepared, whatever this side has heard.
            self._has_unheard = True

    def _ask(self, unit: str) -> bool | None:
        """Whether the database has decided to commit; None while somebody is about to."""
        try:
            with self._database.transaction(force_rollback=True):
                self._database.execute(_CALMLY)
                self._database.execute(_PATIENCE)
                asked = self._database.execute(_ASK, [unit, *self._whose])
                return asked.rowcount == 0
        except psycopg.errors.LockNotAvailable:
            return None

    def _resolve(self, one: InDoubt, *, commit: bool) -> None:
        try:
            self._manager.resolve(one.unit_of_work, commit=commit)
        except TransactionSequence:
            if any(other.unit_of_work == one.unit_of_work for other in self._manager.in_doubt()):
                raise


def two_phase(
    manager: QueueManager, database: psycopg.Connection, *, name: str = "two-phase"
) -> TwoPhase:
    """Let a queue manager and PostgreSQL commit together: exactly once, whoever dies.

    What was left in doubt under this `name` is decided first. Programs that run side by side need
    a name each, or the same one if they are one program started several times.
    """
    return TwoPhase(manager, database, name=name)


def _unit(one: InDoubt) -> str:
    return str(Guid(one.unit_of_work))


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__

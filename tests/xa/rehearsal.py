"""Two-phase commit that says, before each of its steps, where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

import openmsmq as mq
from openmsmq.xa import Recovered, TwoPhase

STEPS = ("begin", "decide", "prepare", "commit", "tell", "end")
"""The steps of a transaction, in their order."""
RECOVERY = ("ask", "resolve")
"""Those of a recovery that finds something."""


class Rehearsal(TwoPhase):
    """Calls somebody before each step; he may do what he likes."""

    def __init__(
        self,
        manager: mq.QueueManager,
        database: psycopg.Connection,
        *,
        at: Callable[[str], None],
        name: str = "two-phase",
    ) -> None:
        self._at = at
        self.recovered: list[Recovered] = []
        super().__init__(manager, database, name=name)

    def __enter__(self) -> mq.Transaction:
        self._at("begin")
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._at("end")

    def recover(self) -> Recovered:
        self.recovered.append(super().recover())
        return self.recovered[-1]

    def _decide(self, transaction: mq.Transaction) -> None:
        self._at("decide")
        super()._decide(transaction)

    def _prepare(self, transaction: mq.Transaction) -> None:
        self._at("prepare")
        super()._prepare(transaction)

    def _commit_database(self, transaction: mq.Transaction, block: Any) -> None:
        self._at("commit")
        super()._commit_database(transaction, block)

    def _tell(self, transaction: mq.Transaction) -> None:
        self._at("tell")
        super()._tell(transaction)

    def _undo(self, transaction: mq.Transaction, block: Any, error: BaseException) -> None:
        if isinstance(error, Died):
            # Who is dead undoes nothing; his connections are closed for him.
            raise error
        super()._undo(transaction, block, error)

    def _ask(self, unit: str) -> bool | None:
        self._at("ask")
        return super()._ask(unit)

    def _resolve(self, one: Any, *, commit: bool) -> None:
        self._at("resolve")
        super()._resolve(one, commit=commit)


class Died(BaseException):
    """The program is no more."""

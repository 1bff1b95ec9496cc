"""Transactions that a queue manager shares with others: two-phase commit as Python knows it.

    from openmsmq import xa

    with xa.two_phase(manager, database) as transaction:
        order = orders.receive(transaction=transaction)
        database.execute("INSERT INTO orders (label) VALUES (%s)", [order.label])

`two_phase` is for a queue manager and PostgreSQL, `Branch` has the names of PEP 249 for a
coordinator of your own, and `join` is for the package `transaction`. What only one of them needs is
imported when its name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openmsmq.model.transaction import Xid as Xid
    from openmsmq.xa.branch import Branch as Branch
    from openmsmq.xa.coordinator import Recovered as Recovered
    from openmsmq.xa.coordinator import TwoPhase as TwoPhase
    from openmsmq.xa.coordinator import two_phase as two_phase
    from openmsmq.xa.data_manager import DataManager as DataManager
    from openmsmq.xa.data_manager import join as join

__all__ = ["Branch", "DataManager", "Recovered", "TwoPhase", "Xid", "join", "two_phase"]

_HOME_OF: Final = {
    "Branch": "xa.branch",
    "DataManager": "xa.data_manager",
    "Recovered": "xa.coordinator",
    "TwoPhase": "xa.coordinator",
    "Xid": "model.transaction",
    "join": "xa.data_manager",
    "two_phase": "xa.coordinator",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'openmsmq.xa' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"openmsmq.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])

"""A transaction's life: each pair of the table."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.manager.transactions.states import (
    TRANSITIONS,
    UNDER_WAY,
    TransactionEvent,
    TransactionState,
    after,
)
from openmsmq.manager.transactions.work import Transaction
from openmsmq.manager.turn.defects import Defect
from openmsmq.model.identity import NIL_GUID

# Written from what transactions are for, not from the table.
ORACLE: Final = {
    "ACTIVE": {"PREPARE": "PREPARED", "COMMIT": "COMMITTING", "ABORT": "ABORTED"},
    "PREPARED": {
        "COMMIT": "COMMITTING_PREPARED",
        "ABORT": "ABORTING_PREPARED",
        "REFUSE": "ACTIVE",
    },
    "COMMITTING": {"SETTLE": "COMMITTED", "REFUSE": "ACTIVE"},
    "COMMITTING_PREPARED": {"SETTLE": "COMMITTED", "REFUSE": "PREPARED"},
    "ABORTING_PREPARED": {"SETTLE": "ABORTED", "REFUSE": "PREPARED"},
    "COMMITTED": {},
    "ABORTED": {},
}


@given(st.sampled_from(list(TransactionState)), st.sampled_from(list(TransactionEvent)))
def test_a_transaction_goes_where_the_table_says_or_not_at_all(
    state: TransactionState, event: TransactionEvent
) -> None:
    target = ORACLE[state.name].get(event.name)
    if target is None:
        assert (state, event) not in TRANSITIONS
        with pytest.raises(Defect, match=f"transaction 3 is {state.value}, .* '{event.value}'"):
            after(3, state, event)
    else:
        assert after(3, state, event) is TransactionState[target]


def test_the_table_has_no_pair_beside() -> None:
    assert len(TRANSITIONS) == sum(map(len, ORACLE.values()))


@given(st.lists(st.sampled_from(list(TransactionEvent)), max_size=8))
def test_a_transaction_follows_the_table_and_ends_once(events: list[TransactionEvent]) -> None:
    work = Transaction(3, 1, NIL_GUID, 1)
    name = "ACTIVE"
    for event in events:
        target = ORACLE[name].get(event.name)
        if target is None:
            with pytest.raises(Defect):
                work.happen(event)
        else:
            work.happen(event)
            name = target
        assert work.state.name == name
        assert (work.state in UNDER_WAY) == (name in ("ACTIVE", "PREPARED"))

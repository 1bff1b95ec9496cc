"""Defects of the manager that no simulated day brings to light, and the property that must notice.

They are put in while the property runs, as those of the store are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.property import test_effects as effects
from tests.property import test_order as order
from tests.property.test_effects import QUEUES, Wish
from tests.property.test_order import Sent, Wait
from tests.sim.mutants import Mutant, applied


class Defect(NamedTuple):
    """A defect, and a case in which a property does not hold any more."""

    name: str
    where: str
    old: str
    new: str
    test: Callable[..., Any]
    case: Mapping[str, Any]


def wish(kind: str, count: int = 1) -> Wish:
    return Wish(kind, QUEUES[0], count, recoverable=True)


DEFECTS = [
    Defect(
        "effects are taken back in the order in which they were added",
        "manager.turn.ledger:Turn.revert",
        "reversed(self.effects)",
        "self.effects",
        effects.test_a_turn_that_the_disk_refuses_leaves_no_trace_in_memory,
        {"earlier": [wish("send", 3)], "refused": [wish("reserve", 1), wish("reserve", 2)]},
    ),
    Defect(
        "a message overtakes those that wait for the disk",
        "manager.messages.plain_delivery:PlainDelivery._put_ready",
        "and not queue.entries.arriving ",
        "",
        order.test_no_message_overtakes_one_of_its_priority,
        {"steps": [Sent(plain=False), Wait(), Sent()]},
    ),
    Defect(
        "what was to be set aside stays so though the disk refused it",
        "manager.transactions.work:Transaction.unprepare",
        "self.aside = []",
        "pass",
        effects.test_a_turn_that_the_disk_refuses_leaves_no_trace_in_memory,
        {"earlier": [], "refused": [wish("prepare")]},
    ),
    Defect(
        "a transaction has lost what it sends when the disk refuses to set that aside",
        "manager.transactions.work:Transaction.unprepare",
        "self.marked = []",
        "self.marked = self.sends = []",
        effects.test_a_turn_that_the_disk_refuses_leaves_no_trace_in_memory,
        {"earlier": [], "refused": [wish("prepare")]},
    ),
    Defect(
        "a queue counts what was taken though the disk refused it",
        "manager.messages.effects:EntriesPlaced.revert",
        "self.queue.count_many_out(self.lookup_ids, self.size, express=self.express)",
        "pass",
        effects.test_a_turn_that_the_disk_refuses_leaves_no_trace_in_memory,
        {"earlier": [], "refused": [wish("commit batch")]},
    ),
]


@pytest.mark.parametrize("defect", [pytest.param(defect, id=defect.name) for defect in DEFECTS])
def test_a_defect_is_noticed(defect: Defect) -> None:
    property_of = defect.test.hypothesis.inner_test  # type: ignore[attr-defined]
    property_of(**defect.case)
    mutant = Mutant(defect.name, defect.where, defect.old, defect.new)
    with applied(mutant), pytest.raises(AssertionError):
        property_of(**defect.case)


def test_each_defect_has_its_own_name() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)

"""Whether an entry was forgotten on its way to the disk, or believed to be there too early."""

from __future__ import annotations

import pytest

from openmsmq.manager.turn.defects import Defect
from openmsmq.manager.turn.passage import Passage


def test_what_was_sealed_and_nothing_else_has_ended_when_a_turn_is_settled() -> None:
    passage = Passage()
    passage.placed += 3
    passage.removed += 2
    passage.seal()
    # The next turn begins while the first is on its way.
    passage.placed += 1
    passage.arrived += 3
    passage.gone += 2
    passage.settled("settle")
    passage.seal()
    passage.arrived += 1
    passage.settled("settle")


@pytest.mark.parametrize(
    ("arrived", "gone"), [(2, 2), (4, 2), (3, 1), (3, 3)], ids=["lost", "early", "stays", "gone"]
)
def test_an_entry_that_is_forgotten_or_early_is_noticed(arrived: int, gone: int) -> None:
    passage = Passage()
    passage.placed += 3
    passage.removed += 2
    passage.seal()
    passage.placed += 1
    passage.removed += 1
    passage.arrived += arrived
    passage.gone += gone
    with pytest.raises(Defect, match="at the settle: of 4 entries"):
        passage.settled("at the settle")


def test_nothing_is_sealed_while_something_waits_from_before() -> None:
    passage = Passage()
    passage.placed += 1
    passage.seal()
    with pytest.raises(Defect, match="before a turn is sealed"):
        passage.seal()


def test_a_refusal_takes_along_what_came_after() -> None:
    passage = Passage()
    passage.placed += 2
    passage.seal()
    passage.placed += 1
    passage.take_along()
    passage.arrived += 3
    passage.settled("refused")

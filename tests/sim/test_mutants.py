"""Each defect of the list is noticed: the checkers check, and the faults reach what they must."""

from __future__ import annotations

import pytest

from tests.sim.hostile_mutants import HOSTILE_MUTANTS
from tests.sim.mutants import MUTANTS, Mutant, applied, caught

ALL = (*MUTANTS, *HOSTILE_MUTANTS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.name) for mutant in ALL])
def test_a_defect_is_noticed(mutant: Mutant) -> None:
    assert caught(mutant) is not None


@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.name) for mutant in ALL])
def test_a_defect_can_be_put_in_and_taken_out(mutant: Mutant) -> None:
    with applied(mutant):
        pass
    with applied(mutant):
        pass


def test_there_are_enough_defects_and_each_has_its_own_name() -> None:
    assert len({mutant.name for mutant in ALL}) == len(ALL) >= 45

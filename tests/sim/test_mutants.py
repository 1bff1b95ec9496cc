"""Each defect of the list is noticed: the checkers check, and the faults reach what they must."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import SequenceId
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.incoming_sequence import IncomingSequence, Verdict
from tests.sim.hostile_mutants import HOSTILE_MUTANTS
from tests.sim.http_mutants import HTTP_MUTANTS
from tests.sim.mutants import GAP, MUTANTS, Mutant, applied, caught
from tests.sim.remote_mutants import REMOTE_MUTANTS

ALL = (*MUTANTS, *HOSTILE_MUTANTS, *REMOTE_MUTANTS, *HTTP_MUTANTS)


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
    assert len({mutant.name for mutant in ALL}) == len(ALL) >= 67


def test_a_gap_that_is_passed_over_is_noticed() -> None:
    def judged() -> Verdict:
        sequence = IncomingSequence(TransferConfig(), SequenceId(1, 1), 3)
        return sequence.judge(SequenceId(1, 1), 6, 5)

    assert judged() is Verdict.GAP
    with applied(GAP):
        assert judged() is Verdict.ACCEPT

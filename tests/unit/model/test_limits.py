from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from openmsmq.model import limits
from openmsmq.wire.srmp import limits as over_http

UNITS = (
    "BYTES",
    "CHARACTERS",
    "COUNT",
    "FACTOR",
    "BITS",
    "KB",
    "LEVEL",
    "NUMBER",
    "MS",
    "PORT",
    "S",
    "UNITS",
)
STATEMENTS = [
    statement
    for module in (limits, over_http)
    for statement in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
]
VALUES = vars(limits) | vars(over_http)
CONSTANTS = [
    (statement.target.id, below)
    for statement, below in pairwise(STATEMENTS)
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
]


def test_every_public_value_is_a_declared_constant():
    public = {name for name in VALUES if name.isupper()}
    assert public == {name for name, _ in CONSTANTS}
    assert all(isinstance(VALUES[name], int) for name in public)


@pytest.mark.parametrize(("name", "below"), CONSTANTS, ids=[name for name, _ in CONSTANTS])
def test_a_limit_has_its_unit_in_its_name_and_its_source_beside_it(name, below):
    assert name.rpartition("_")[2] in UNITS
    assert isinstance(below, ast.Expr)
    text = ast.literal_eval(below.value)
    assert re.fullmatch(r"[A-Z].*\. \[(ours|(MQ[A-Z]+|RPCE) \d[^\]]*)\]", text, re.DOTALL)


def test_pairs_of_limits_are_in_order():
    for name, _ in CONSTANTS:
        if "_MIN_" in name:
            assert getattr(limits, name) < getattr(limits, name.replace("_MIN_", "_MAX_"))


def test_resends_come_ever_later():
    pauses = [
        limits.RESEND_FIRST_S, limits.RESEND_SECOND_S, limits.RESEND_THIRD_S, limits.RESEND_LAST_S
    ]  # fmt: skip
    assert pauses == sorted(pauses)
    assert pauses[-1] == 6 * 60 * 60


def test_a_window_stays_below_half_of_the_16_bit_counters():
    assert limits.WINDOW_MAX_COUNT < 2**15

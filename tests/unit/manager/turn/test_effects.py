"""Effects are values: they print and compare, and one that says nothing does nothing."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

from openmsmq.api import messages as api
from openmsmq.manager.queues.replies import Replied, Replies
from openmsmq.manager.turn.effects import Effect, attributes
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.errors import InsufficientResources


def test_effects_with_the_same_facts_are_equal() -> None:
    replies = Replies(Ledger(), [])
    effect = Replied(replies, 1, 2, api.Done())
    assert effect == Replied(replies, 1, 2, api.Done())
    assert hash(effect) == hash(Replied(replies, 1, 2, api.Done()))
    assert effect != Replied(replies, 1, 3, api.Done())
    assert effect != Replied(Replies(Ledger(), []), 1, 2, api.Done())
    assert effect != Effect()
    assert effect != 5


def test_an_effect_prints_what_it_describes() -> None:
    effect = Replied(Replies(Ledger(), []), 1, 2, api.Sent([7], 8))
    assert effect.describe() == {"connection": 1, "call": 2, "reply": "Sent"}
    assert repr(effect) == "Replied(connection=1, call=2, reply='Sent')"


def test_an_effect_that_says_nothing_does_nothing() -> None:
    ledger = Ledger()
    ledger.add(Effect())
    assert ledger.has_work
    assert ledger.seal() is None
    assert not ledger.has_work
    Effect().revert(InsufficientResources("full"))
    assert repr(Effect()) == "Effect()"


ADDING = ("add", "add_growing", "add_waiting")
MANAGER = Path(__file__).parents[4] / "src/openmsmq/manager"


def added(*how: str) -> list[tuple[str, ast.expr]]:
    """Return everything that is handed to a ledger, and where."""
    return [
        (f"{path.relative_to(MANAGER)}:{node.lineno}", node.args[0])
        for path in sorted(MANAGER.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in how
        and ast.unparse(node.func.value).endswith("ledger")
    ]


def test_a_ledger_is_handed_effects_and_no_functions() -> None:
    handed_over = added(*ADDING)
    assert len(handed_over) > 30
    for place, handed in handed_over:
        assert not any(isinstance(node, ast.Lambda) for node in ast.walk(handed)), place
    for name, method in inspect.getmembers(Ledger, inspect.isfunction):
        assert "Callable" not in str(inspect.signature(method)), name


def test_every_effect_tells_what_it_is_about() -> None:
    for path in sorted(MANAGER.rglob("*.py")):
        importlib.import_module(".".join(("openmsmq.manager", *relative(path))))
    kinds = [kind for kind in all_kinds(Effect) if kind.__module__.startswith("openmsmq.")]
    assert len(kinds) > 25
    silent = [kind.__name__ for kind in kinds if kind.describe is Effect.describe]
    assert silent == []
    loose = [kind.__name__ for kind in kinds if not attributes(kind)]
    assert loose == [], "what is equal is seen by the attributes"


def test_what_waits_has_no_first_half_that_nobody_would_carry_out() -> None:
    halves = {
        kind.__name__: kind.apply is not Effect.apply or kind.store is not Effect.store
        for kind in all_kinds(Effect)
        if kind.__module__.startswith("openmsmq.")
    }
    for how, is_whole in (("add", True), ("add_waiting", False)):
        names = {ast.unparse(made.func) for _, made in added(how) if isinstance(made, ast.Call)}
        assert names, how
        assert {name for name in names if halves[name] is not is_whole} == set(), how


def relative(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(MANAGER).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def all_kinds(kind: type[Effect]) -> list[type[Effect]]:
    return [each for below in kind.__subclasses__() for each in (below, *all_kinds(below))]

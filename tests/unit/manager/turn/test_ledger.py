"""The order in which a ledger carries out effects, lets them follow and takes them back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.manager.turn.effects import Effect
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import InsufficientResources, MsmqError

pytestmark = pytest.mark.skipif(
    hasattr(Effect, "__mypyc_attrs__"),
    reason="the effects of these tests are not compiled, and cannot be below one that is",
)

FULL = InsufficientResources("the disk is full")


class Noted(Effect):
    """Says what is done with it."""

    def __init__(self, told: list[str], name: str, *, keeps: bool = True):
        self.told = told
        self.name = name
        self.keeps = keeps

    def apply(self) -> None:
        self.told.append(f"apply {self.name}")

    def store(self, writes: Writes) -> None:
        self.told.append(f"store {self.name}")
        if self.keeps:
            writes.put(self.name.encode(), b"")

    def follow(self) -> None:
        self.told.append(f"follow {self.name}")

    def revert(self, error: MsmqError, /) -> None:
        self.told.append(f"revert {self.name}: {error.detail}")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def done(told: list[str]) -> Callable[[], list[str]]:
    """Return what was told since the last look."""

    def look() -> list[str]:
        seen = list(told)
        told.clear()
        return seen

    return look


Look = Callable[[], list[str]]


def test_an_effect_is_applied_and_stored_at_once_and_follows_when_the_disk_has_it(
    told: list[str], done: Look
) -> None:
    ledger = Ledger()
    ledger.add(Noted(told, "a"))
    ledger.add(Noted(told, "b"))
    assert done() == ["apply a", "store a", "apply b", "store b"]
    persist = ledger.seal()
    assert persist is not None
    assert persist.batch.changes == [(b"a", b""), (b"b", b"")]
    assert done() == []
    ledger.settle(persist.ticket)
    assert done() == ["follow a", "follow b"]
    assert not ledger.has_work


def test_what_follows_after_the_others_does(told: list[str], done: Look) -> None:
    ledger = Ledger()
    ledger.add_waiting(Noted(told, "reader"), last=True)
    ledger.add(Noted(told, "sender", keeps=False))
    done()
    assert ledger.seal() is None
    assert done() == ["follow sender", "follow reader"]


def test_what_the_disk_refuses_is_taken_back_last_first_whenever_it_follows(
    told: list[str], done: Look
) -> None:
    ledger = Ledger()
    ledger.add(Noted(told, "a"))
    ledger.add_growing(Noted(told, "b"))
    ledger.add_waiting(Noted(told, "c"), last=True)
    ledger.add(Noted(told, "d"))
    persist = ledger.seal()
    assert persist is not None
    ledger.add(Noted(told, "later"))
    ledger.add_growing(Noted(told, "later still"))
    done()
    ledger.revoke(persist.ticket, FULL)
    assert done() == [
        f"revert {name}: the disk is full" for name in ("later still", "later", "d", "c", "b", "a")
    ]
    assert not ledger.has_work
    assert ledger.seal() is None
    assert done() == []


def test_what_grows_is_stored_when_the_turn_ends_and_follows_after_what_came_meanwhile(
    told: list[str], done: Look
) -> None:
    ledger = Ledger()
    ledger.add_growing(Noted(told, "a"))
    ledger.add_growing(Noted(told, "b"))
    ledger.add(Noted(told, "c"))
    assert done() == ["apply a", "apply b", "apply c", "store c"]
    persist = ledger.seal()
    assert persist is not None
    assert done() == ["store b", "store a"]
    ledger.settle(persist.ticket)
    assert done() == ["follow c", "follow b", "follow a"]


def test_a_turn_stays_open_while_a_batch_is_under_way(told: list[str], done: Look) -> None:
    ledger = Ledger()
    ledger.add(Noted(told, "first"))
    first = ledger.seal()
    assert first is not None
    ledger.add_growing(Noted(told, "second"))
    done()
    assert ledger.seal() is None
    assert done() == []
    ledger.settle(first.ticket)
    second = ledger.seal()
    assert second is not None
    assert second.ticket != first.ticket
    assert done() == ["follow first", "store second"]

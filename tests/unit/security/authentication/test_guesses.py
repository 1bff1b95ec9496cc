from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication import guesses
from openmsmq.security.authentication.guesses import (
    ACCOUNT_GUESS_MS,
    ACCOUNT_GUESSES_BURST,
    ADDRESS_GUESS_MS,
    ADDRESS_GUESSES_BURST,
    GUESS_ACCOUNTS_MAX_COUNT,
    GUESS_ADDRESSES_MAX_COUNT,
    KNOWN_ADDRESSES_MAX_COUNT,
    GuessGuard,
)

DAY_MS = 24 * 3600 * 1000


def fail(guard: GuessGuard, count: int, address: str = "mallory", now_ms: int = 0) -> None:
    for _ in range(count):
        guard.failed("alice", address, now_ms, exists=True)


def tries(guard: GuessGuard, address: str, until_ms: int, step_ms: int = 500) -> int:
    """Guess as often as it goes; give how many guesses were judged."""
    judged = 0
    for now_ms in range(0, until_ms, step_ms):
        while not guard.wait_ms("alice", address, now_ms):
            guard.failed("alice", address, now_ms, exists=True)
            judged += 1
            assert judged < 10_000, "guessing has no end"
    return judged


def test_somebody_who_mistypes_a_few_times_does_not_wait() -> None:
    guard = GuessGuard()
    fail(guard, ADDRESS_GUESSES_BURST - 1)
    assert guard.wait_ms("alice", "mallory", 0) == 0
    fail(guard, 1)
    assert guard.wait_ms("alice", "mallory", 0) == ADDRESS_GUESS_MS


def test_one_address_guesses_slowly() -> None:
    judged = tries(GuessGuard(), "mallory", DAY_MS // 24)
    assert judged == ADDRESS_GUESSES_BURST + (DAY_MS // 24 - 500) // ADDRESS_GUESS_MS


def test_the_wait_ends_by_itself() -> None:
    guard = GuessGuard()
    fail(guard, ADDRESS_GUESSES_BURST)
    assert guard.wait_ms("alice", "mallory", ADDRESS_GUESS_MS - 1) == 1
    assert guard.wait_ms("alice", "mallory", ADDRESS_GUESS_MS) == 0
    fail(guard, 1, now_ms=ADDRESS_GUESS_MS)
    assert guard.wait_ms("alice", "mallory", ADDRESS_GUESS_MS) == ADDRESS_GUESS_MS


def test_guessing_for_many_users_costs_the_same_address() -> None:
    guard = GuessGuard()
    for number in range(ADDRESS_GUESSES_BURST):
        guard.failed(f"user{number}", "mallory", 0, exists=number % 2 == 0)
    assert guard.wait_ms("alice", "mallory", 0) > 0
    assert guard.wait_ms("alice", "elsewhere", 0) == 0


def test_a_stranger_does_not_lock_out_where_the_right_password_came_from() -> None:
    guard = GuessGuard()
    guard.succeeded("alice", "office")
    for number in range(ACCOUNT_GUESSES_BURST):
        fail(guard, 1, f"bot{number}")
    assert guard.wait_ms("alice", "new place", 0) > 0
    assert guard.wait_ms("alice", "office", 0) == 0


def test_where_the_right_password_came_from_guessing_is_as_slow_as_elsewhere() -> None:
    guard = GuessGuard()
    guard.succeeded("alice", "office")
    hour_ms = DAY_MS // 24
    judged = tries(guard, "office", hour_ms)
    assert judged == ADDRESS_GUESSES_BURST + (hour_ms - 500) // ADDRESS_GUESS_MS


def test_an_account_of_ones_own_gives_no_guesses_for_others() -> None:
    guard = GuessGuard()
    for _ in range(ADDRESS_GUESSES_BURST):
        guard.succeeded("mallory", "office")
        fail(guard, 1, "office")
    assert guard.wait_ms("alice", "office", 0) > 0
    assert guard.wait_ms("mallory", "office", 0) == 0


def test_many_addresses_together_cannot_close_an_account_for_long() -> None:
    """Somebody from a new place gets a turn within a second, whenever nobody else takes it."""
    guard = GuessGuard()
    for number in range(ACCOUNT_GUESSES_BURST * 3):
        if not guard.wait_ms("alice", f"bot{number}", 0):
            fail(guard, 1, f"bot{number}")
    assert guard.wait_ms("alice", "new place", 0) == ACCOUNT_GUESS_MS
    assert guard.wait_ms("alice", "new place", ACCOUNT_GUESS_MS) == 0


def test_names_that_do_not_exist_fill_nothing() -> None:
    guard = GuessGuard()
    for number in range(ACCOUNT_GUESSES_BURST + 1):
        guard.failed("nobody", f"bot{number}", 0, exists=False)
    assert guard.wait_ms("nobody", "new place", 0) == 0


def test_what_is_remembered_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "GUESS_ADDRESSES_MAX_COUNT", 3)
    guard = GuessGuard()
    for address in ("first", "second", "third"):
        fail(guard, ADDRESS_GUESSES_BURST, address)
    fail(guard, 1, "first")
    fail(guard, 1, "fourth")
    # The one that was quiet for longest is forgotten.
    waits = [guard.wait_ms("bob", each, 0) > 0 for each in ("first", "second", "third")]
    assert waits == [True, False, True]


def test_what_is_remembered_of_accounts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "GUESS_ACCOUNTS_MAX_COUNT", 1)
    guard = GuessGuard()
    guard.succeeded("alice", "office")
    guard.succeeded("bob", "office")
    fail(guard, ACCOUNT_GUESSES_BURST)
    assert guard.wait_ms("alice", "office", 0) > 0


def test_only_the_latest_places_of_an_account_are_remembered() -> None:
    guard = GuessGuard()
    for number in range(KNOWN_ADDRESSES_MAX_COUNT + 1):
        guard.succeeded("alice", f"place{number}")
    fail(guard, ACCOUNT_GUESSES_BURST)
    assert guard.wait_ms("alice", "place0", 0) > 0
    assert guard.wait_ms("alice", "place1", 0) == 0


@given(st.lists(st.integers(0, 10 * ADDRESS_GUESS_MS), max_size=60))
def test_nobody_waits_longer_than_one_place_takes(moments: list[int]) -> None:
    """In whatever order time comes, and were it backwards."""
    guard = GuessGuard()
    for now_ms in moments:
        if not guard.wait_ms("alice", "office", now_ms):
            guard.failed("alice", "office", now_ms, exists=True)
        assert guard.wait_ms("alice", "office", now_ms) <= ADDRESS_GUESS_MS


def test_there_is_room_for_all_accounts_that_there_can_be() -> None:
    from openmsmq.runtime.api.accounts import ACCOUNTS_MAX_COUNT

    assert GUESS_ACCOUNTS_MAX_COUNT >= ACCOUNTS_MAX_COUNT
    assert GUESS_ADDRESSES_MAX_COUNT >= ACCOUNT_GUESSES_BURST

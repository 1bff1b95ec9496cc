"""Vouchers: what is sent under a key is there once, however often it is sent."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.transactions.vouchers import (
    VOUCHER_GRACE_S,
    VOUCHER_KEY_MAX_CHARACTERS,
    VOUCHER_WINDOW_S,
)
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Scope, token_caller
from openmsmq.security.access.sids import ADMINISTRATORS, unix_user
from tests.property.snapshots import snapshot
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

INVALID = "MQ_ERROR_INVALID_PARAMETER"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
UNKNOWN = "MQ_ERROR_MESSAGE_NOT_FOUND"


def once(office: Office, key: str, body: bytes, app: int | None = None, name: str = ORDERS) -> Any:
    """Return the request that sends a body under a key."""
    inside = name == LEDGER
    handle = office.open(name, AccessMode.SEND, app=app)
    return api.SendOnce(
        handle,
        Draft(body=body, transactional=inside).packet(),
        key,
        hashlib.sha256(body).digest()[:16],
        api.OWN_TRANSACTION if inside else 0,
    )


def voucher(office: Office, key: str, body: bytes, **where: Any) -> api.Voucher:
    found = office.ok(once(office, key, body, **where), where.get("app"))
    assert isinstance(found, api.Voucher)
    return found


def by_token(office: Office, name: str, user: int = 70_001) -> int:
    """Connect with a token of some user, who may send."""
    scopes = frozenset({Scope.SEND})
    return office.driver.connect(token_caller(name, unix_user(user), scopes))


@pytest.mark.parametrize("name", [ORDERS, LEDGER])
def test_a_repetition_has_the_voucher_of_the_first_time_and_no_message(name: str) -> None:
    office = Office()
    first = voucher(office, "k1", b"one", name=name)
    assert (first.before, first.sent_time_s) == (False, START_S)
    assert first.until_s == START_S + VOUCHER_WINDOW_S
    office.pass_time(7)
    again = voucher(office, "k1", b"one", name=name)
    assert again == api.Voucher(first.number, START_S, first.queue, first.until_s, True)
    assert voucher(office, "k2", b"one", name=name).number != first.number
    assert office.bodies(name) == [b"one", b"one"]
    assert office.ok(api.GetVoucher("k1")) == again


def test_two_at_once_are_one() -> None:
    office = Office()
    handle = office.open(ORDERS, AccessMode.SEND)
    request = api.SendOnce(handle, Draft(body=b"one").packet(), "k", b"digest")
    calls = [office.driver.request(office.app, request) for _ in range(3)]
    office.driver.pump()
    answers = office.driver.take_answers()
    found = [answers[office.app, call] for call in calls]
    assert all(isinstance(each, api.Voucher) for each in found)
    assert len({each.number for each in found}) == 1  # type: ignore[union-attr]
    assert [each.before for each in found] == [False, True, True]  # type: ignore[union-attr]
    assert office.bodies() == [b"one"]


@pytest.mark.parametrize("is_recoverable", [True, False])
def test_power_may_fail_right_after(is_recoverable: bool) -> None:
    office = Office()
    handle = office.open(ORDERS, AccessMode.SEND)
    packet = Draft(body=b"one", recoverable=is_recoverable).packet()
    office.ok(api.SendOnce(handle, packet, "k", b"digest"))
    office.restart()
    handle = office.open(ORDERS, AccessMode.SEND)
    again = office.ok(api.SendOnce(handle, packet, "k", b"digest"))
    assert again.before
    # An express message is gone with the power, and known to have been sent.
    assert office.bodies() == ([b"one"] if is_recoverable else [])


def test_something_else_under_the_same_key_is_a_mistake() -> None:
    office = Office()
    voucher(office, "k", b"one")
    assert office.error(once(office, "k", b"two")) == "MQ_ERROR_PROPERTIES_CONFLICT"
    assert office.bodies() == [b"one"]


def test_what_is_refused_leaves_no_voucher() -> None:
    office = Office()
    plain = once(office, "k", b"one")
    wrong = api.SendOnce(plain.handle, plain.packet, "k", b"d", api.OWN_TRANSACTION)
    assert office.error(wrong) == "MQ_ERROR_TRANSACTION_USAGE"
    assert office.error(api.GetVoucher("k")) == UNKNOWN
    begun = office.begin()
    staged = api.SendOnce(plain.handle, plain.packet, "k", b"d", begun)
    assert office.error(staged) == "MQ_ERROR_TRANSACTION_USAGE"
    assert not voucher(office, "k", b"one").before


def test_keys_are_of_those_who_send() -> None:
    office = Office()
    alice, bob = by_token(office, "alice"), by_token(office, "bob", 70_002)
    first = voucher(office, "k", b"alice's", app=alice)
    assert office.error(api.GetVoucher("k"), bob) == UNKNOWN
    other = voucher(office, "k", b"bob's", app=bob)
    assert (first.before, other.before) == (False, False)
    assert office.bodies() == [b"alice's", b"bob's"]


@pytest.mark.parametrize("key", ["", "x" * (VOUCHER_KEY_MAX_CHARACTERS + 1), "tab\t", "käse"])
def test_a_key_can_be_printed_and_has_an_end(key: str) -> None:
    office = Office()
    assert office.error(once(office, key, b"one")) == INVALID
    assert office.error(api.GetVoucher(key)) == INVALID
    assert office.bodies() == []


@pytest.mark.parametrize("digest", [b"", bytes(17)])
def test_a_digest_has_a_length(digest: bytes) -> None:
    office = Office()
    handle = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.SendOnce(handle, Draft().packet(), "k", digest)) == INVALID


def test_a_key_is_forgotten_after_its_window() -> None:
    office = Office()
    voucher(office, "k", b"one")
    office.pass_time(VOUCHER_WINDOW_S - 1)
    assert voucher(office, "k", b"one").before
    office.pass_time(1)
    assert office.error(api.GetVoucher("k")) == UNKNOWN
    assert not voucher(office, "k", b"one").before
    office.restart()
    assert voucher(office, "k", b"one").before


def test_who_is_in_a_hurry_is_told_when_all_places_are_taken() -> None:
    office = Office(vouchers_max=3)
    for number in range(3):
        voucher(office, f"k{number}", b"x")
        office.pass_time(1)
    assert office.error(once(office, "k3", b"x")) == FULL
    assert len(office.bodies()) == 3
    office.pass_time(VOUCHER_GRACE_S)
    assert not voucher(office, "k3", b"x").before
    # The oldest one has made room, and only that.
    assert [office.ok(api.GetVoucher(f"k{number}")).before for number in (1, 2, 3)] == [True] * 3
    assert office.error(api.GetVoucher("k0")) == UNKNOWN


def test_one_token_cannot_take_all_places() -> None:
    office = Office(vouchers_max=8)
    greedy, modest = by_token(office, "greedy"), by_token(office, "modest")
    taken = Counter(
        type(office.ask(once(office, f"k{number}", b"x", app=greedy), greedy)).__name__
        for number in range(8)
    )
    assert taken["Voucher"] == 4
    assert not voucher(office, "k", b"mine", app=modest).before


def test_a_full_disk_refuses_message_and_voucher() -> None:
    office = Office(vouchers_max=2)
    for number in range(2):
        voucher(office, f"k{number}", b"x")
    office.pass_time(VOUCHER_GRACE_S)
    request = once(office, "k2", b"y")
    kept = {path: fact for path, fact in snapshot(office.driver.manager).items() if "_kept" in path}
    order = office.driver.manager
    assert office.fail(request) == [FULL]
    again = {
        path: fact for path, fact in snapshot(office.driver.manager).items() if "_kept" in path
    }
    assert again == kept
    assert order is office.driver.manager
    # The one that was to make room is still the oldest.
    assert not voucher(office, "k2", b"y").before
    assert office.error(api.GetVoucher("k0")) == UNKNOWN
    assert office.ok(api.GetVoucher("k1")).before


def test_administrators_may_take_more_than_their_share() -> None:
    office = Office(vouchers_max=8)
    scopes = frozenset({Scope.ADMIN})
    admin = office.driver.connect(token_caller("root", ADMINISTRATORS, scopes))
    for number in range(8):
        voucher(office, f"k{number}", b"x", app=admin)


steps = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 4)),
    st.tuples(st.just("fail"), st.integers(0, 4)),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, VOUCHER_GRACE_S])),
)


@given(st.lists(steps, max_size=14))
def test_whatever_fails_each_key_has_one_message(history: list[tuple[str, Any]]) -> None:
    office = Office()
    sent: set[int] = set()
    for what, number in history:
        if what == "send":
            found = voucher(office, f"k{number}", b"%d" % number)
            assert found.before == (number in sent)
            sent.add(number)
        elif what == "fail" and number not in sent:
            assert office.fail(once(office, f"k{number}", b"%d" % number)) == [FULL]
        elif what == "restart":
            office.restart(committed=number)
        elif what == "wait":
            office.pass_time(number)
    expected = Counter(b"%d" % number for number in sent)
    assert Counter(office.bodies()) == expected

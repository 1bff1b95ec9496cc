"""Rules about peers: who is let in, as whom, and from where."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import Guid
from openmsmq.model.peers import PeerBook, PeerPolicy, PeerRule, Refusal, canonical_address

OFFICE, SHOP, OTHER = (Guid(bytes([number]) * 16) for number in (1, 2, 3))
HOME = "10.1.0.7"
AWAY = "10.2.0.7"


def book(*rules: PeerRule, strict: bool = False) -> PeerBook:
    return PeerBook(PeerPolicy(rules=rules, strict=strict))


PINNED = PeerRule(name="office", identifiers=(OFFICE,), addresses=(HOME,))


@pytest.mark.parametrize(
    ("claimed", "address", "refusal", "pinned"),
    [
        (OFFICE, HOME, None, True),
        (OFFICE, AWAY, Refusal.ELSEWHERE, False),
        (SHOP, HOME, None, False),
        (SHOP, AWAY, None, False),
    ],
)
def test_a_rule_says_where_somebody_is_and_nothing_of_others(
    claimed: Guid, address: str, refusal: Refusal | None, pinned: bool
) -> None:
    found = book(PINNED).judge(claimed, address, "")
    assert (found.refusal, found.is_pinned) == (refusal, pinned)


@pytest.mark.parametrize(
    ("claimed", "address", "refusal"),
    [
        (OFFICE, HOME, None),
        (OFFICE, AWAY, Refusal.ELSEWHERE),
        (SHOP, HOME, Refusal.UNNAMED),
        (SHOP, AWAY, Refusal.UNNAMED),
    ],
)
def test_a_strict_book_lets_only_those_in_whom_a_rule_names(
    claimed: Guid, address: str, refusal: Refusal | None
) -> None:
    assert book(PINNED, strict=True).judge(claimed, address, "").refusal is refusal


def test_a_strict_book_without_rules_lets_nobody_in() -> None:
    assert book(strict=True).judge(OFFICE, HOME, "").refusal is Refusal.UNNAMED
    assert book(strict=True).judge_address(HOME, "") is Refusal.UNNAMED
    assert book().judge_address(HOME, "") is None


def test_strict_is_known_by_the_address_where_no_rule_can_fit() -> None:
    rules = book(PINNED, strict=True)
    assert rules.judge_address(HOME, "") is None
    assert rules.judge_address(AWAY, "") is Refusal.UNNAMED


def test_networks_have_all_their_addresses_and_no_others() -> None:
    rules = book(PeerRule(name="lan", addresses=("10.1.0.0/16", "2001:db8::/32")), strict=True)
    for address in (HOME, "10.1.255.255", "::ffff:10.1.0.7", "2001:db8::9"):
        assert rules.judge(SHOP, address, "").refusal is None
    for address in (AWAY, "2001:db9::9", "no address"):
        assert rules.judge(SHOP, address, "").refusal is Refusal.UNNAMED


@pytest.mark.parametrize(
    ("rule", "claimed", "address", "refused"),
    [
        (PeerRule(name="bad", addresses=(AWAY,), refuse=True), SHOP, AWAY, True),
        (PeerRule(name="bad", addresses=(AWAY,), refuse=True), SHOP, HOME, False),
        (PeerRule(name="bad", identifiers=(SHOP,), refuse=True), SHOP, HOME, True),
        (PeerRule(name="bad", identifiers=(SHOP,), refuse=True), OFFICE, HOME, False),
        (
            PeerRule(name="bad", identifiers=(SHOP,), addresses=(AWAY,), refuse=True),
            SHOP,
            HOME,
            False,
        ),
    ],
)
def test_a_refusal_goes_before_every_other_rule(
    rule: PeerRule, claimed: Guid, address: str, refused: bool
) -> None:
    everybody = PeerRule(name="all", addresses=("0.0.0.0/0",))
    found = book(everybody, rule).judge(claimed, address, "")
    assert found.refusal is (Refusal.RULE if refused else None)
    # Before he says who he is, only the address counts.
    by_address = refused and not rule.identifiers
    known = book(everybody, rule).judge_address(address, "")
    assert known is (Refusal.RULE if by_address else None)


def test_who_has_to_show_a_certificate_is_not_let_in_without_it() -> None:
    rule = PeerRule(name="office", identifiers=(OFFICE,), certificates=("ab" * 32,), tls=True)
    rules = book(rule)
    assert rules.judge(OFFICE, HOME, "").refusal is Refusal.TLS
    shown = rules.judge(OFFICE, HOME, "office")
    assert (shown.refusal, shown.rule, shown.is_pinned) == (None, rule, True)
    assert rules.judge(SHOP, HOME, "office").refusal is Refusal.UNNAMED
    assert rules.judge(SHOP, HOME, "").refusal is None
    assert rules.judge_address(HOME, "") is None


def test_a_certificate_of_one_does_not_make_him_another() -> None:
    office = PeerRule(name="office", identifiers=(OFFICE,), certificates=("ab" * 32,), tls=True)
    shop = PeerRule(name="shop", certificates=("cd" * 32,), tls=True)
    rules = book(office, shop, strict=True)
    assert rules.judge(OFFICE, HOME, "shop").refusal is Refusal.ELSEWHERE
    found = rules.judge(OTHER, HOME, "shop")
    assert (found.refusal, found.rule, found.is_pinned) == (None, shop, False)


def test_an_address_may_be_for_tls_only() -> None:
    rules = book(PeerRule(name="a", addresses=(HOME,), certificates=("ab" * 32,), tls=True))
    assert rules.judge_address(HOME, "") is Refusal.TLS
    assert rules.judge_address(HOME, "a") is None
    assert rules.judge_address(AWAY, "") is None


def test_a_rule_by_certificate_alone_does_not_believe_an_address() -> None:
    rules = book(PeerRule(name="office", identifiers=(OFFICE,), certificates=("ab" * 32,)))
    assert rules.judge(OFFICE, HOME, "").refusal is Refusal.ELSEWHERE
    assert rules.judge(OFFICE, HOME, "office").is_pinned


def test_a_rule_without_a_place_names_somebody_and_pins_nobody() -> None:
    found = book(PeerRule(name="office", identifiers=(OFFICE,)), strict=True).judge(
        OFFICE, HOME, ""
    )
    assert (found.refusal, found.is_pinned) == (None, False)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.1.0.7", "10.1.0.7"),
        ("::ffff:10.1.0.7", "10.1.0.7"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("office", "office"),
    ],
)
def test_an_address_has_one_text(text: str, canonical: str) -> None:
    assert canonical_address(text) == canonical

"""Rules about peers by address: the narrowest counts."""

from __future__ import annotations

import pytest

from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.runtime.config.peer_rules import PeerRules

NETWORK = PeerRule(name="network", addresses=("10.1.0.0/16",), tls=True)
HOST = PeerRule(name="host", addresses=("10.1.2.3", "2001:db8::1"))
SECRET = PeerRule(name="secret", addresses=("10.1.2.4",), tls=True)
SHARED = PeerRule(name="shared", addresses=("10.1.2.4",))
ANYWHERE = PeerRule(name="anywhere", tls=True)
RULES = PeerRules(PeerPolicy(rules=(NETWORK, HOST, SECRET, SHARED, ANYWHERE)))


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("10.1.9.9", ["network"]),
        ("10.1.2.3", ["host"]),
        ("::ffff:10.1.2.3", ["host"]),
        ("2001:db8::1", ["host"]),
        ("10.1.2.4", ["secret", "shared"]),
        ("10.2.0.1", []),
        ("no address", []),
    ],
)
def test_the_rule_that_names_an_address_most_exactly_counts(address, names):
    assert [rule.name for rule in RULES.nearest(address)] == names


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [("10.1.9.9", True), ("10.1.2.3", False), ("10.1.2.4", False), ("10.2.0.1", False)],
)
def test_an_address_is_kept_from_plain_sessions_if_all_who_are_there_need_tls(address, is_refused):
    assert bool(RULES.why_not_plain(address)) is is_refused


@pytest.mark.parametrize(
    ("address", "names"),
    [("10.1.9.9", ["network"]), ("10.1.2.3", []), ("10.1.2.4", ["secret"]), ("10.2.0.1", [])],
)
def test_an_address_is_called_over_tls_if_anybody_there_needs_it(address, names):
    assert [rule.name for rule in RULES.reached_by_tls(address)] == names


def test_who_has_no_address_may_come_from_anywhere_and_others_from_theirs_only():
    assert RULES.allows(ANYWHERE, "192.0.2.1")
    assert RULES.allows(NETWORK, "10.1.2.3")
    assert not RULES.allows(HOST, "10.1.2.4")
    assert not RULES.allows(HOST, "no address")

from __future__ import annotations

import pytest

from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.security.access.sids import ADMINISTRATORS, AUTHENTICATED, EVERYONE, Sid
from openmsmq.security.authentication.pac import DomainUser
from openmsmq.security.authentication.ports import AuthenticationFailed

ALICE = Sid.parse("S-1-5-21-1-2-3-1100")
ADMINS = Sid.parse("S-1-5-21-1-2-3-512")
USERS = Sid.parse("S-1-5-21-1-2-3-513")


def test_somebody_is_whom_the_ticket_says() -> None:
    found = DomainUsers().identify("alice@MQ.TEST", DomainUser(ALICE, frozenset({USERS})))
    assert (found.name, found.user) == ("user alice@MQ.TEST", ALICE)
    assert found.sids == {ALICE, USERS, EVERYONE, AUTHENTICATED}


def test_the_ticket_counts_before_the_table() -> None:
    users = DomainUsers({"alice@MQ.TEST": ADMINS})
    assert users.identify("alice@MQ.TEST", DomainUser(ALICE, frozenset())).user == ALICE


def test_the_table_says_who_somebody_is_whose_ticket_says_nothing() -> None:
    users = DomainUsers({"alice@MIT.TEST": ALICE})
    assert users.identify("alice@MIT.TEST", None).user == ALICE
    with pytest.raises(AuthenticationFailed, match=r"bob@MIT\.TEST has no SID"):
        users.identify("bob@MIT.TEST", None)


@pytest.mark.parametrize("who", [ALICE, ADMINS])
def test_the_operator_says_who_are_administrators(who: Sid) -> None:
    users = DomainUsers(administrators=frozenset({who}))
    found = users.identify("alice@MQ.TEST", DomainUser(ALICE, frozenset({ADMINS})))
    assert found.is_administrator
    assert not users.identify("bob@MQ.TEST", DomainUser(USERS, frozenset())).is_administrator


def test_nobody_is_an_administrator_because_a_domain_says_so() -> None:
    told = DomainUser(ALICE, frozenset({ADMINS}))
    assert ADMINISTRATORS not in DomainUsers().identify("alice@MQ.TEST", told).sids

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.security.access.callers import (
    UNLIMITED,
    Caller,
    Scope,
    account_caller,
    anonymous,
    certificate_caller,
    domain_caller,
    token_caller,
    unix_caller,
)
from openmsmq.security.access.sids import ADMINISTRATORS, EVERYONE, Sid, unix_group, unix_user

scopes = st.frozensets(st.sampled_from(Scope), min_size=1)


def token(*scopes: Scope, queues: tuple[str, ...] = ()) -> Caller:
    return token_caller("web", ADMINISTRATORS, frozenset(scopes), queues)


@given(scopes, st.sampled_from(Scope))
def test_a_further_scope_takes_nothing_away(some: frozenset[Scope], further: Scope) -> None:
    fewer, more = token(*some), token(*some, further)
    assert fewer.queue_limit & ~more.queue_limit == 0
    assert fewer.manager_limit & ~more.manager_limit == 0


def test_each_scope_is_for_one_thing() -> None:
    send, receive = token(Scope.SEND).queue_limit, token(Scope.RECEIVE).queue_limit
    assert send & QueueAccess.WRITE_MESSAGE
    assert not send & QueueAccess.RECEIVE_MESSAGE
    assert receive & QueueAccess.RECEIVE_MESSAGE == QueueAccess.RECEIVE_MESSAGE
    assert not receive & QueueAccess.WRITE_MESSAGE
    for limit in (send, receive):
        assert not limit & (QueueAccess.SET_PROPERTIES | QueueAccess.TAKE_OWNERSHIP)
    for scope in (Scope.SEND, Scope.RECEIVE):
        assert not token(scope).manager_limit & ManagerAccess.SET_PROPERTIES
        assert not token(scope).manager_limit & ManagerAccess.CREATE_QUEUE
    assert token(Scope.ADMIN).manager_limit & ManagerAccess.GENERIC_ALL == ManagerAccess.GENERIC_ALL


def test_a_token_for_some_queues_changes_nothing_about_the_queue_manager() -> None:
    bound = token(Scope.ADMIN, queues=(r"private$\a*",))
    assert not bound.manager_limit & ManagerAccess.SET_PROPERTIES
    assert not bound.manager_limit & ManagerAccess.CREATE_QUEUE
    assert bound.queue_limit & QueueAccess.DELETE_QUEUE


@pytest.mark.parametrize(
    ("pattern", "name", "covers"),
    [
        (r"private$\orders", r"PRIVATE$\Orders", True),
        (r"private$\o*", r"private$\orders", True),
        (r"private$\o*", r"private$\porders", False),
        (r"private$\order?", r"private$\orders", True),
        (r"private$\[ab]", r"private$\a", True),
        ("*", "anything", True),
        ("", "anything", False),
    ],
)
def test_patterns_cover_names_without_regard_to_case(pattern, name, covers) -> None:
    assert token(Scope.SEND, queues=(pattern,)).covers(name) is covers
    assert token(Scope.SEND).covers(name)


def test_users_have_the_sids_of_their_groups() -> None:
    alice = unix_caller("alice", 7, frozenset({8}), administrator=False)
    assert {unix_user(7), unix_group(8), EVERYONE} <= alice.sids
    assert alice.is_known
    assert not alice.is_administrator
    assert unix_caller("root", 0, frozenset(), administrator=True).is_administrator


def test_only_the_program_itself_is_without_limits() -> None:
    assert UNLIMITED.is_unlimited
    assert UNLIMITED.is_administrator
    nobody = anonymous("192.0.2.1")
    assert not nobody.is_known
    assert "192.0.2.1" in nobody.name
    for caller in (nobody, certificate_caller(Sid.of(5, 21, 1)), token(Scope.ADMIN)):
        assert not caller.is_unlimited


@pytest.mark.parametrize(
    ("caller", "owner", "is_bounded", "may_vouch"),
    [
        (unix_caller("a", 7, frozenset(), administrator=False), "S-1-22-1-7", False, True),
        (unix_caller("root", 0, frozenset(), administrator=True), "S-1-22-1-0", False, True),
        (certificate_caller(unix_user(7)), "S-1-22-1-7", False, True),
        (token_caller("t", ADMINISTRATORS, frozenset({Scope.SEND})), "token:t", True, False),
        (token_caller("t", ADMINISTRATORS, frozenset({Scope.ADMIN})), "token:t", False, True),
        (token_caller("t", unix_user(7), frozenset({Scope.ADMIN})), "token:t", False, False),
        (token_caller("t", ADMINISTRATORS, None, ("a*",)), "token:t", True, False),
        (anonymous("192.0.2.1"), "S-1-5-7", False, False),
        (account_caller("a", administrator=False), "S-1-9-1330467665-97", False, True),
        (
            domain_caller("a@B", Sid.of(5, 21, 1), frozenset(), administrator=False),
            "S-1-5-21-1",
            False,
            True,
        ),
    ],
)
def test_what_a_caller_makes_is_its_own_and_few_vouch_for_users(
    caller: Caller, owner: str, is_bounded: bool, may_vouch: bool
) -> None:
    assert (caller.owner_name, caller.is_bounded, caller.may_vouch) == (
        owner,
        is_bounded,
        may_vouch,
    )


def test_accounts_and_users_of_domains_are_who_they_have_proved_to_be() -> None:
    alice = account_caller("Alice", administrator=False)
    assert (alice.name, str(alice.user)) == ("account:alice", "S-1-9-1330467665-1667853409-101")
    assert alice.is_known
    assert not alice.is_administrator
    assert account_caller("alice", administrator=True).is_administrator
    group = Sid.of(5, 21, 1, 513)
    bob = domain_caller("bob@B", Sid.of(5, 21, 1, 7), frozenset({group}), administrator=False)
    assert bob.sids >= {group, bob.user}
    assert not bob.is_administrator
    assert domain_caller("bob@B", bob.user, frozenset(), administrator=True).is_administrator

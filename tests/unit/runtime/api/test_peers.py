from __future__ import annotations

import os
import socket

import pytest

from openmsmq.runtime.api.peers import (
    Peer,
    caller_of,
    local_caller,
    may_enter,
    peer_of,
    socket_caller,
)
from openmsmq.security.access.sids import unix_group, unix_user

OTHER_USER = 65_533 if os.geteuid() != 65_533 else 65_532


def test_the_kernel_says_who_is_at_the_other_end():
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_of(ours) == Peer(os.getpid(), os.geteuid(), os.getegid())


@pytest.mark.parametrize(
    ("user", "user_group", "allowed_group", "enters"),
    [
        (os.geteuid(), 7, None, True),
        (0, 7, None, True),
        (OTHER_USER, 7, None, False),
        (OTHER_USER, 7, 8, False),
        (OTHER_USER, 8, 8, True),
    ],
)
def test_only_the_own_user_root_and_the_group_may_enter(user, user_group, allowed_group, enters):
    assert may_enter(Peer(1, user, user_group), allowed_group) is enters


def test_root_and_the_servers_own_user_are_administrators_and_nobody_else_is():
    assert caller_of(0).is_administrator
    assert caller_of(os.geteuid()).is_administrator
    assert not caller_of(OTHER_USER).is_administrator


def test_a_user_has_a_name_and_groups_if_the_computer_knows_them():
    root = caller_of(0)
    assert root.name == "user root"
    assert {unix_user(0), unix_group(0)} <= root.sids
    unknown = caller_of(OTHER_USER, 7)
    assert unknown.name == f"user {OTHER_USER}"
    assert {unix_user(OTHER_USER), unix_group(7)} <= unknown.sids
    assert unknown.is_known


def test_a_socket_vouches_for_its_user_or_for_its_group():
    assert socket_caller(None).is_administrator
    member = socket_caller(7)
    assert unix_group(7) in member.sids
    assert not member.is_administrator


def test_a_tcp_peer_on_this_computer_is_its_user_and_any_other_is_not_known():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            found = local_caller(server.getpeername(), server.getsockname())
            assert found is not None
            assert found.user == unix_user(os.geteuid())
            assert local_caller(None, server.getsockname()) is None
            assert local_caller(("192.0.2.1", 5), server.getsockname()) is None
            assert local_caller(("no address", 5), server.getsockname()) is None
            assert local_caller(("127.0.0.1", 5), server.getsockname()) is None

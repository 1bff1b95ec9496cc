from __future__ import annotations

import os
import socket

import pytest

from openmsmq.runtime.peers import Peer, may_enter, peer_of

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

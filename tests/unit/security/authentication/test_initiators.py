from __future__ import annotations

import pytest

from openmsmq.security.authentication.initiators import credentials_of, negotiated
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ntlm.parties import Chance
from tests.unit.security.authentication.negotiations import agree, ntlm_server
from tests.unit.security.authentication.sides import ALICE, PASSWORD, TIME


@pytest.mark.parametrize(
    ("text", "user", "domain"),
    [
        ("alice", "alice", ""),
        (r"SALES\alice", "alice", "SALES"),
        ("alice@sales.example", "alice@sales.example", ""),
    ],
)
def test_a_user_may_have_a_domain(text: str, user: str, domain: str) -> None:
    found = credentials_of(text, PASSWORD, "BETA")
    assert (found.user, found.domain, found.workstation) == (user, domain, "BETA")
    assert found.nt_hash == nt_hash(PASSWORD)


def test_a_server_believes_it() -> None:
    chance = Chance(b"\xaa" * 8, b"\x55" * 16, TIME)
    client, server = negotiated(credentials_of("alice", PASSWORD), chance, ""), ntlm_server()
    agree(client, server)
    assert server.caller is ALICE

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from openmsmq.model.clock import Instant
from openmsmq.runtime.api.accounts import AccountBook, add_account, set_disabled
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.rpc.authentication import Authentication, Surroundings, kerberos_by
from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.security.access.sids import account
from openmsmq.security.authentication.guesses import ADDRESS_GUESSES_BURST
from openmsmq.security.authentication.ntlm.messages import AvId, decode_challenge, decode_pairs
from openmsmq.security.authentication.ports import (
    AuthenticationFailed,
    ProviderKind,
    SecurityContext,
)
from openmsmq.security.authentication.spnego.tokens import decode_response
from tests.unit.security.authentication.negotiations import Endless, ntlm_client, two_mechanisms
from tests.unit.security.authentication.sides import PASSWORD, initiator

NOW_S = 1_800_000_000


@pytest.fixture
def book(tmp_path: Path) -> AccountBook:
    path = tmp_path / "accounts.json"
    add_account(path, "alice", PASSWORD, administrator=False, now_s=0)
    return AccountBook(path)


def around() -> Surroundings:
    numbers = itertools.count(1)
    return Surroundings(
        computer="a-computer-with-a-long-name",
        dns_name="alpha.example",
        clock=lambda: Instant(0, NOW_S),
        random_bytes=lambda size: next(numbers).to_bytes(size, "big"),
    )


def enter(client: SecurityContext, server: SecurityContext) -> None:
    token = client.step(b"").token
    while True:
        step = server.step(token)
        if step.is_complete:
            return
        token = client.step(step.token).token


@pytest.mark.parametrize(
    ("kind", "client"),
    [
        (ProviderKind.NTLM, initiator),
        (ProviderKind.SPNEGO, ntlm_client),
        (ProviderKind.SPNEGO, two_mechanisms),
    ],
)
def test_an_account_comes_in(book: AccountBook, kind: ProviderKind, client) -> None:
    one = Authentication(around(), book, None).of_connection("192.0.2.1")
    context = one.begin(kind)
    assert context is not None
    enter(client(), context)
    assert context.caller.user == account("alice")


def test_a_kind_that_is_not_offered_is_none(book: AccountBook) -> None:
    only_accounts = Authentication(around(), book, None)
    assert only_accounts.is_possible
    assert only_accounts.of_connection("::1").begin(ProviderKind.KERBEROS) is None
    only_kerberos = Authentication(around(), None, Endless)
    assert only_kerberos.is_possible
    one = only_kerberos.of_connection("::1")
    assert one.begin(ProviderKind.NTLM) is None
    assert isinstance(one.begin(ProviderKind.KERBEROS), Endless)
    assert one.is_still_good
    nothing = Authentication(around(), None, None)
    assert not nothing.is_possible
    assert nothing.of_connection("::1").begin(ProviderKind.SPNEGO) is None


def test_nothing_is_possible_without_an_account(tmp_path: Path) -> None:
    assert not Authentication(around(), AccountBook(tmp_path / "none"), None).is_possible


def test_kerberos_is_taken_before_ntlm(book: AccountBook) -> None:
    one = Authentication(around(), book, Endless).of_connection("192.0.2.1")
    context = one.begin(ProviderKind.SPNEGO)
    assert context is not None
    answer = decode_response(context.step(two_mechanisms().step(b"").token).token)
    assert answer.token == b"moremore", "the hopeful token went to Kerberos"


def test_every_challenge_is_another_and_says_the_time(book: AccountBook) -> None:
    one = Authentication(around(), book, None).of_connection("192.0.2.1")
    found = []
    for _ in range(2):
        context = one.begin(ProviderKind.NTLM)
        assert context is not None
        found.append(decode_challenge(context.step(initiator().step(b"").token).token))
    assert found[0].server_challenge != found[1].server_challenge
    pairs = decode_pairs(found[0].target_info)
    assert pairs[AvId.COMPUTER].decode("utf-16-le") == "A-COMPUTER-WITH"
    filetime = int.from_bytes(pairs[AvId.TIMESTAMP], "little")
    assert filetime // 10_000_000 - 11_644_473_600 == NOW_S


def test_guesses_of_one_address_count_over_all_its_connections(book: AccountBook) -> None:
    shared = Authentication(around(), book, None)

    def attempt(address: str, password: str) -> None:
        context = shared.of_connection(address).begin(ProviderKind.NTLM)
        assert context is not None
        enter(initiator(password=password), context)

    for number in range(ADDRESS_GUESSES_BURST):
        with pytest.raises(AuthenticationFailed, match="password is wrong"):
            # All addresses of a network of IPv6 are one.
            attempt(f"2001:db8::{number + 1}", "wrong horse")
    with pytest.raises(AuthenticationFailed, match="too many wrong passwords"):
        attempt("2001:db8::ffff", PASSWORD)
    attempt("2001:db8:0:1::1", PASSWORD)


def test_a_connection_ends_with_its_account(book: AccountBook, tmp_path: Path) -> None:
    one = Authentication(around(), book, None).of_connection("192.0.2.1")
    context = one.begin(ProviderKind.NTLM)
    assert context is not None
    enter(initiator(), context)
    assert one.is_still_good
    set_disabled(tmp_path / "accounts.json", "alice", disabled=True)
    book.look()
    assert not one.is_still_good


def test_without_the_package_kerberos_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "openmsmq.runtime.rpc.kerberos", raising=False)
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install 'openmsmq\[kerberos\]'"):
        kerberos_by(tmp_path / "keytab", DomainUsers())


def test_a_keytab_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    pytest.importorskip("gssapi")
    keytab = tmp_path / "alpha.keytab"
    with pytest.raises(ConfigError, match=r"cannot read the keytab .*alpha\.keytab"):
        kerberos_by(keytab, DomainUsers())
    keytab.touch(0o600)
    with pytest.raises(ConfigError, match=r"cannot use the keytab .*alpha\.keytab"):
        kerberos_by(keytab, DomainUsers())
    keytab.chmod(0o604)
    with pytest.raises(ConfigError, match="everybody may use the keys"):
        kerberos_by(keytab, DomainUsers())

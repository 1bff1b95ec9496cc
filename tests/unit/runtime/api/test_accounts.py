from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from openmsmq.model.clock import Instant
from openmsmq.runtime.api import accounts
from openmsmq.runtime.api.accounts import (
    ACCOUNTS_FILE_MAX_BYTES,
    ACCOUNTS_MAX_COUNT,
    PASSWORD_MAX_CHARACTERS,
    PASSWORD_MIN_CHARACTERS,
    AccountBook,
    AccountDesk,
    StoredAccount,
    add_account,
    change_password,
    read_accounts,
    remove_account,
    set_disabled,
)
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.security.access.sids import ADMINISTRATORS, account
from openmsmq.security.authentication.guesses import (
    ADDRESS_GUESS_MS,
    ADDRESS_GUESSES_BURST,
    GuessGuard,
)
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ports import AuthenticationFailed

PASSWORD = "correct horse battery"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "accounts.json"


def add(path: Path, name: str = "alice", **options: bool) -> StoredAccount:
    return add_account(path, name, PASSWORD, **{"administrator": False, **options}, now_s=5)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> Instant:
        return Instant(self.now_ms, 0)


def test_an_account_that_was_added_is_found_in_any_case(path: Path) -> None:
    made = add(path, "Alice")
    book = AccountBook(path)
    assert made.name == "alice"
    assert book.find("ALICE") == book.find("alice") == made
    assert book.find("bob") is None
    assert len(book) == 1
    assert made.caller.user == account("alice")
    assert not made.caller.is_administrator
    assert made.caller.name == "account:alice"


def test_an_administrator_is_one(path: Path) -> None:
    made = add(path, administrator=True)
    assert made.caller.is_administrator
    assert made.caller.user != ADMINISTRATORS


def test_the_file_has_the_hash_alone_and_is_its_owners(path: Path) -> None:
    add(path)
    assert PASSWORD not in path.read_text()
    assert nt_hash(PASSWORD).hex() in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="accounts are not believed"):
        read_accounts(path)


@pytest.mark.parametrize("size", [0, PASSWORD_MIN_CHARACTERS - 1, PASSWORD_MAX_CHARACTERS + 1])
def test_passwords_have_a_length(path: Path, size: int) -> None:
    with pytest.raises(ConfigError, match="12 to 256 characters"):
        add_account(path, "alice", "x" * size, administrator=False, now_s=0)
    add(path)
    with pytest.raises(ConfigError, match="12 to 256 characters"):
        change_password(path, "alice", "x" * size, now_s=0)


@pytest.mark.parametrize("size", [PASSWORD_MIN_CHARACTERS, PASSWORD_MAX_CHARACTERS])
def test_passwords_of_the_least_and_the_most_length_are_taken(path: Path, size: int) -> None:
    made = add_account(path, "alice", "ü" * size, administrator=False, now_s=0)
    assert made.nt_hash == nt_hash("ü" * size).hex()


@pytest.mark.parametrize("name", ["", "a b", "ålice", "x" * 21, "-a", "a\\b", "a@b", "."])
def test_a_name_that_cannot_be_one_is_refused(path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of an account"):
        add(path, name)


def test_an_account_is_there_once(path: Path) -> None:
    add(path)
    with pytest.raises(ConfigError, match="there is an account alice already"):
        add(path, "ALICE")


def test_there_are_only_so_many(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "ACCOUNTS_MAX_COUNT", 2)
    add(path)
    add(path, "bob")
    with pytest.raises(ConfigError, match="has 2 accounts already"):
        add(path, "carol")


def test_as_many_as_there_may_be_fit_into_the_file(path: Path) -> None:
    one = {"name": "x", "nt_hash": "0" * 32, "created_time_s": 10**10, "password_time_s": 10**10}
    many = [{**one, "name": f"{number:020}"} for number in range(ACCOUNTS_MAX_COUNT)]
    path.touch(0o600)
    path.write_text(json.dumps({"accounts": many}, indent=2))
    assert path.stat().st_size < ACCOUNTS_FILE_MAX_BYTES
    assert len(read_accounts(path)) == ACCOUNTS_MAX_COUNT
    path.write_text(json.dumps({"accounts": [*many, {**one, "name": "y"}]}))
    with pytest.raises(ConfigError, match="no file of accounts"):
        read_accounts(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no file of accounts"),
        ('{"accounts": [{"name": "a"}]}', "nt_hash"),
        ('{"accounts": [{"name": "A", "nt_hash": "%s"}]}' % ("0" * 32), "small letters"),
        ('{"accounts": [{"name": "a b", "nt_hash": "%s"}]}' % ("0" * 32), "no name"),
        ('{"accounts": [{"name": "a", "nt_hash": "0"}]}', "nt_hash"),
        ('{"version": 2}', "version"),
        ("x" * (ACCOUNTS_FILE_MAX_BYTES + 1), "is longer than"),
    ],
)
def test_a_file_that_is_none_is_refused(path: Path, text: str, problem: str) -> None:
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_accounts(path)


def test_a_file_with_an_account_twice_is_refused(path: Path) -> None:
    one = {"name": "a", "nt_hash": "0" * 32}
    path.touch(0o600)
    path.write_text(json.dumps({"accounts": [one, one]}))
    with pytest.raises(ConfigError, match="twice"):
        read_accounts(path)


def test_accounts_are_disabled_enabled_changed_and_removed(path: Path) -> None:
    add(path)
    add(path, "bob")
    book = AccountBook(path)
    assert set_disabled(path, "Alice", disabled=True).is_disabled
    assert book.look()
    assert book.find("alice") is None
    assert book.find("bob") is not None
    set_disabled(path, "alice", disabled=False)
    changed = change_password(path, "alice", "another password", now_s=9)
    assert (changed.created_time_s, changed.password_time_s) == (5, 9)
    assert book.look()
    assert book.find("alice") == changed
    assert changed.nt_hash == nt_hash("another password").hex()
    assert remove_account(path, "ALICE") == changed
    assert book.look()
    assert book.find("alice") is None
    assert not book.look()
    for act in (
        lambda: remove_account(path, "alice"),
        lambda: set_disabled(path, "alice", disabled=True),
        lambda: change_password(path, "alice", PASSWORD, now_s=0),
    ):
        with pytest.raises(ConfigError, match="there is no account alice"):
            act()


def test_a_file_that_is_spoilt_lets_nobody_in(path: Path) -> None:
    add(path)
    said: list[str] = []
    book = AccountBook(path, said.append)
    path.chmod(0o644)
    assert book.look()
    assert book.find("alice") is None
    assert len(said) == 1
    assert "chmod 600" in said[0]


def test_a_desk_finds_accounts_and_slows_guessing_down(path: Path) -> None:
    add(path)
    book, guard, clock = AccountBook(path), GuessGuard(), Clock()
    desk = AccountDesk(book, guard, "192.0.2.1", clock)
    found = desk.find("ALICE")
    assert found is not None
    assert found.nt_hash == nt_hash(PASSWORD)
    for _ in range(ADDRESS_GUESSES_BURST):
        assert desk.find("Alice") is not None
        desk.note("Alice", proved=False)
    with pytest.raises(AuthenticationFailed, match="looked at in 30 s"):
        desk.find("alice")
    other = AccountDesk(book, guard, "192.0.2.2", clock)
    assert other.find("alice") is not None
    clock.now_ms = ADDRESS_GUESS_MS
    assert desk.find("alice") is not None


def test_a_right_password_is_remembered_for_its_address(path: Path) -> None:
    add(path)
    guard = GuessGuard()
    book = AccountBook(path)
    AccountDesk(book, guard, "192.0.2.1", Clock()).note("ALICE", proved=True)
    for _ in range(ADDRESS_GUESSES_BURST):
        guard.failed("bob", "192.0.2.1", 0, exists=False)
    desk = AccountDesk(book, guard, "192.0.2.1", Clock())
    assert desk.find("Alice") is not None
    with pytest.raises(AuthenticationFailed):
        desk.find("bob")


def test_a_desk_sees_changes_of_the_file_at_once(path: Path) -> None:
    desk = AccountDesk(AccountBook(path), GuessGuard(), "192.0.2.1", Clock())
    assert desk.find("alice") is None
    add(path)
    assert desk.find("alice") is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda path: set_disabled(path, "alice", disabled=True),
        lambda path: change_password(path, "alice", "another password", now_s=9),
        lambda path: remove_account(path, "alice"),
    ],
)
def test_whoever_is_in_is_not_good_any_more_when_the_account_changes(path: Path, change) -> None:
    add(path)
    book = AccountBook(path)
    desk = AccountDesk(book, GuessGuard(), "192.0.2.1", Clock())
    assert desk.is_still_good, "nobody came in yet"
    desk.note("alice", proved=True)
    assert desk.is_still_good
    change(path)
    book.look()
    assert not desk.is_still_good


def test_who_comes_in_twice_is_good_while_both_accounts_are(path: Path) -> None:
    add(path)
    add_account(path, "bob", "a good long password", administrator=False, now_s=1)
    book = AccountBook(path)
    desk = AccountDesk(book, GuessGuard(), "192.0.2.1", Clock())
    desk.note("alice", proved=True)
    desk.note("bob", proved=True)
    assert desk.is_still_good
    set_disabled(path, "alice", disabled=True)
    book.look()
    assert not desk.is_still_good

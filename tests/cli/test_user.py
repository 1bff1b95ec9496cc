"""`openmsmq user`."""

from __future__ import annotations

import getpass
import io
import sys
from pathlib import Path

import pytest

from openmsmq.runtime.api.accounts import read_accounts
from openmsmq.security.authentication.ntlm.keys import nt_hash

PASSWORD = "correct horse battery"
LINE = f"{PASSWORD}\n".encode()


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"--data={tmp_path}"


def test_an_account_is_added_listed_changed_and_removed(offline, data: str, tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    added = offline("user", "add", "Alice", data, "--json", stdin=LINE).object
    assert (added["name"], added["administrator"], added["disabled"]) == ("alice", False, False)
    assert added["sid"] == "S-1-9-1330467665-1667853409-101"
    (stored,) = read_accounts(path)
    assert stored.nt_hash == nt_hash(PASSWORD).hex()
    listed = offline("user", "list", data, "--json")
    assert listed.object == added
    table = offline("user", "list", data).out
    assert "alice" in table
    for shown in (listed.out, table):
        assert stored.nt_hash not in shown
    assert offline("user", "disable", "alice", data, "--json").object["disabled"] is True
    assert "disabled" in offline("user", "list", data).out
    assert offline("user", "enable", "ALICE", data, "--json").object["disabled"] is False
    changed = offline("user", "password", "alice", data, stdin=b"quite another one\r\n")
    assert "alice has another password" in changed.out
    assert read_accounts(path)[0].nt_hash == nt_hash("quite another one").hex()
    assert "removed alice" in offline("user", "remove", "alice", data).out
    assert read_accounts(path) == ()
    assert "there are no accounts" in offline("user", "list", data).out


def test_for_people_it_says_how_to_go_on(offline, data: str) -> None:
    out = offline("user", "add", "alice", data, stdin=LINE).out
    assert "openmsmq queue acl grant QUEUE account:alice receive" in out


def test_an_administrator_is_shown_as_one(offline, data: str, tmp_path: Path) -> None:
    offline("user", "add", "root", "--administrator", data, stdin=LINE)
    assert read_accounts(tmp_path / "accounts.json")[0].is_administrator
    assert "yes" in offline("user", "list", data).out


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    left = list(answers)
    monkeypatch.setattr(getpass, "getpass", lambda _: left.pop(0))
    monkeypatch.setattr(io, "TextIOWrapper", Terminal)


def test_at_a_terminal_a_password_is_asked_for_twice(
    offline, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_terminal(monkeypatch, PASSWORD, PASSWORD)
    offline("user", "add", "alice", data)
    assert read_accounts(tmp_path / "accounts.json")[0].nt_hash == nt_hash(PASSWORD).hex()


def test_two_different_passwords_change_nothing(
    offline, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_terminal(monkeypatch, PASSWORD, "correct horse batterie")
    assert "two passwords" in offline("user", "add", "alice", data, code=2).err
    assert not (tmp_path / "accounts.json").exists()


@pytest.mark.parametrize(
    ("words", "stdin", "what"),
    [
        (("add", "alice"), b"short\n", "12 to 256 characters"),
        (("add", "alice"), b"", "12 to 256 characters"),
        (("add", "alice"), b"x" * 5000, "12 to 256 characters"),
        (("add", "alice"), b"\xff\xfe" * 20, "not UTF-8"),
        (("add", "a b"), LINE, "is no name of an account"),
        (("add",), LINE, "NAME"),
        (("password", "alice"), LINE, "there is no account alice"),
        (("remove", "alice"), b"", "there is no account alice"),
        (("disable", "alice"), b"", "there is no account alice"),
        (("add", "alice", "a password on the line"), LINE, "unexpected"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    offline, data: str, words, stdin: bytes, what: str
) -> None:
    result = offline("user", *words, data, code=2, stdin=stdin)
    assert what in result.err
    assert len(result.err.splitlines()) == 1


def test_without_a_place_the_person_is_asked_for_it(offline, monkeypatch) -> None:
    monkeypatch.delenv("OPENMSMQ_DATA", raising=False)
    assert "Give --data" in offline("user", "list", code=2).err


def test_a_file_that_others_may_read_is_named(offline, data: str, tmp_path: Path) -> None:
    offline("user", "add", "alice", data, stdin=LINE)
    (tmp_path / "accounts.json").chmod(0o644)
    for words in (("list",), ("disable", "alice")):
        assert "chmod 600" in offline("user", *words, data, code=2).err


def test_there_is_no_input_to_read_from(offline, data: str, monkeypatch) -> None:
    monkeypatch.setattr(io, "TextIOWrapper", lambda _: None)
    assert "no input" in offline("user", "add", "alice", data, code=2).err
    assert sys.stdin is None

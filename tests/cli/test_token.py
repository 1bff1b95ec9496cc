"""`openmsmq token`."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.runtime.api.tokens import TokenBook, read_tokens
from openmsmq.security.access.callers import Scope


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"--data={tmp_path}"


def test_a_token_is_made_listed_and_revoked(offline, data: str, tmp_path: Path) -> None:
    made = offline(
        *("token", "create", "web", "--scope", "send", "--scope", "receive"),
        *("--queue", r"private$\a*", "--user", "user:7", "--expires", "3", data, "--json"),
    ).object
    (token,) = read_tokens(tmp_path / "tokens.json")
    assert TokenBook(tmp_path / "tokens.json").find(made["token"], 0) == token
    assert token.scopes == (Scope.SEND, Scope.RECEIVE)
    assert (made["user"], made["queues"]) == ("S-1-22-1-7", [r"private$\a*"])
    listed = offline("token", "list", data, "--json")
    assert listed.object == {key: value for key, value in made.items() if key != "token"}
    assert made["token"] not in listed.out
    assert made["token"] not in offline("token", "list", data).out
    assert "web" in offline("token", "list", data).out
    assert "revoked web" in offline("token", "revoke", "web", data).out
    assert read_tokens(tmp_path / "tokens.json") == ()
    assert "there are no tokens" in offline("token", "list", data).out


def test_for_people_the_token_alone_is_printed(offline, data: str) -> None:
    out = offline("token", "create", "web", "--scope", "admin", data).out
    assert out.startswith("openmsmq_")
    assert len(out.split()) == 1
    assert "revoked" in offline("token", "list", data).out, "it has no other end"


def test_the_variable_of_the_server_says_where_the_tokens_are(
    offline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENMSMQ_DATA", str(tmp_path))
    offline("token", "create", "web", "--scope", "send")
    assert (tmp_path / "tokens.json").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("create", "web"), "--scope"),
        (("create", "web", "--scope", "everything"), "send"),
        (("create", "a b", "--scope", "send"), "is no name of a token"),
        (("create", "web", "--scope", "send", "--expires", "0"), "--expires"),
        (("create", "web", "--scope", "send", "--user", "me"), "is nobody"),
        (("revoke", "web"), "there is no token web"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(offline, data: str, words, what: str) -> None:
    result = offline("token", *words, data, code=2)
    assert what in result.err
    assert len(result.err.splitlines()) == 1


def test_without_a_place_the_person_is_asked_for_it(offline, monkeypatch) -> None:
    monkeypatch.delenv("OPENMSMQ_DATA", raising=False)
    assert "Give --data" in offline("token", "list", code=2).err

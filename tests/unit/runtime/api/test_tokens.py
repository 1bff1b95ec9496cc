from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.runtime.api.tokens import (
    TOKENS_FILE_MAX_BYTES,
    TOKENS_MAX_COUNT,
    Token,
    TokenBook,
    create_token,
    digest_of,
    operator_caller,
    read_tokens,
    revoke_token,
)
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS, unix_user

NOW_S = 1_000_000
DAY_S = 24 * 3600


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def make(path: Path, name: str = "web", **options) -> tuple[str, Token]:
    return create_token(path, name, options.pop("scopes", (Scope.SEND,)), now_s=NOW_S, **options)


def test_a_token_that_was_made_is_found_and_no_other_is(path: Path) -> None:
    text, token = make(path)
    book = TokenBook(path)
    assert book.find(text, NOW_S) == token
    for wrong in ("", text[:-1], text + "x", text.upper(), token.digest):
        assert book.find(wrong, NOW_S) is None


def test_the_file_has_nothing_by_which_one_comes_in_and_is_its_owners_alone(path: Path) -> None:
    text, token = make(path)
    assert text not in path.read_text()
    assert text.partition("_")[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert TokenBook(path).find(token.digest, NOW_S) is None


def test_tokens_are_long_random_and_never_the_same(path: Path) -> None:
    texts = {make(path, f"t{number}")[0] for number in range(20)}
    assert len(texts) == 20
    assert all(len(text) >= 43 and text.startswith("openmsmq_") for text in texts)


def test_a_token_is_good_until_its_time_is_up(path: Path) -> None:
    text, token = make(path, expires_days=2)
    book = TokenBook(path)
    assert book.find(text, NOW_S + 2 * DAY_S - 1) == token
    assert book.still_has(token, NOW_S + 2 * DAY_S - 1)
    assert book.find(text, NOW_S + 2 * DAY_S) is None
    assert not book.still_has(token, NOW_S + 2 * DAY_S)


def test_a_change_of_the_file_is_seen_at_the_next_look(path: Path) -> None:
    heard: list[tuple[list[str], list[str]]] = []
    book = TokenBook(
        path,
        lambda old, new: heard.append(([each.name for each in old], [each.name for each in new])),
    )
    assert len(book) == 0
    assert not book.look()
    text, token = make(path)
    assert book.look()
    assert book.find(text, NOW_S) == token
    revoke_token(path, "web")
    assert book.find(text, NOW_S) == token
    assert book.look()
    assert book.find(text, NOW_S) is None
    assert not book.still_has(token, NOW_S)
    assert heard == [([], ["web"]), (["web"], [])]


@pytest.mark.parametrize("damage", ["mode", "nonsense", "gone", "folder"])
def test_a_file_that_cannot_be_believed_any_more_lets_nobody_in(path: Path, damage: str) -> None:
    text, _ = make(path)
    problems: list[str] = []
    book = TokenBook(path, failed=problems.append)
    if damage == "mode":
        path.chmod(0o644)
    elif damage == "nonsense":
        path.write_text("{")
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
    assert book.look()
    assert book.find(text, NOW_S) is None
    assert len(problems) == (damage != "gone")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "no file of tokens"),
        ('{"version": 2}', "no file of tokens"),
        ('{"tokens": [{"name": "a"}]}', "no file of tokens"),
        ('{"surprise": 1}', "no file of tokens"),
        ("x" * (TOKENS_FILE_MAX_BYTES + 1), "is longer than"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(path: Path, content: str, what: str) -> None:
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=what):
        read_tokens(path)


def test_a_user_who_is_none_is_refused(path: Path) -> None:
    make(path)
    path.write_text(path.read_text().replace(str(ADMINISTRATORS), "S-1-x"))
    with pytest.raises(ConfigError, match="no file of tokens"):
        read_tokens(path)


def test_a_file_that_others_can_use_is_refused_with_what_to_do(path: Path) -> None:
    make(path)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        TokenBook(path)
    with pytest.raises(ConfigError, match="chmod 600"):
        make(path, "other")


@given(name=st.text(max_size=80))
def test_any_name_is_taken_or_refused_and_nothing_is_written_for_it(tmp_path_factory, name) -> None:
    path = tmp_path_factory.mktemp("tokens") / "tokens.json"
    try:
        make(path, name)
    except ConfigError:
        assert not path.exists()
    else:
        assert [token.name for token in read_tokens(path)] == [name]


def test_a_name_is_given_once_and_what_is_not_there_cannot_be_revoked(path: Path) -> None:
    make(path)
    with pytest.raises(ConfigError, match="already"):
        make(path)
    assert revoke_token(path, "web").name == "web"
    with pytest.raises(ConfigError, match="no token web"):
        revoke_token(path, "web")


def test_there_is_room_for_so_many_tokens_and_no_more(path: Path) -> None:
    make(path)
    content = json.loads(path.read_text())
    (first,) = content["tokens"]
    content["tokens"] = [
        {**first, "name": f"t{number}", "digest": digest_of(str(number))}
        for number in range(TOKENS_MAX_COUNT)
    ]
    path.write_text(json.dumps(content))
    assert len(TokenBook(path)) == TOKENS_MAX_COUNT
    with pytest.raises(ConfigError, match="revoke some"):
        make(path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        make(tmp_path / "absent" / "tokens.json")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_a_file_that_root_makes_belongs_to_whom_the_directory_belongs(path: Path) -> None:
    os.chown(path.parent, 70_001, 70_001)
    make(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (70_001, 70_001)


def test_a_token_says_who_shows_it(path: Path) -> None:
    _, token = make(
        path, scopes=(Scope.SEND, Scope.SEND, Scope.RECEIVE), queues=("a*",), user=unix_user(7)
    )
    caller = token.caller
    assert caller.name == "token web"
    assert caller.user == unix_user(7)
    assert caller.scopes == {Scope.SEND, Scope.RECEIVE}
    assert caller.queues == ("a*",)
    assert not caller.is_administrator
    _, plain = make(path, "plain")
    assert plain.caller.is_administrator
    assert operator_caller().is_administrator
    assert operator_caller().scopes is None

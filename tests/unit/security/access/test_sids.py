from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.access.sids import (
    ADMINISTRATORS,
    ANONYMOUS,
    ANONYMOUS_IDENTITIES,
    AUTHENTICATED,
    EVERYONE,
    SUB_AUTHORITIES_MAX_COUNT,
    WORDS,
    Sid,
    account,
    account_name,
    identities,
    is_sid,
    parse_sid,
    sid_words,
    unix_group,
    unix_number,
    unix_user,
)

sids = st.builds(
    lambda authority, numbers: Sid.of(authority, *numbers),
    st.integers(0, (1 << 48) - 1),
    st.lists(st.integers(0, 0xFFFFFFFF), max_size=SUB_AUTHORITIES_MAX_COUNT),
)


@given(sids)
def test_a_sid_survives_its_text_and_its_words(sid: Sid) -> None:
    assert Sid.parse(str(sid)) == sid
    assert parse_sid(sid_words(sid)) == sid
    assert is_sid(bytes(sid))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_sid_or_refused(data: bytes) -> None:
    if is_sid(data):
        assert Sid.parse(str(Sid(data))) == data
    else:
        assert str(Sid(data)).startswith("no SID")


@given(st.text(max_size=40))
def test_any_text_is_somebody_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert is_sid(parse_sid(text))


@pytest.mark.parametrize(
    ("sid", "text"),
    [
        (EVERYONE, "S-1-1-0"),
        (ANONYMOUS, "S-1-5-7"),
        (AUTHENTICATED, "S-1-5-11"),
        (ADMINISTRATORS, "S-1-5-32-544"),
        (unix_user(1000), "S-1-22-1-1000"),
        (unix_group(100), "S-1-22-2-100"),
    ],
)
def test_well_known_sids_have_their_published_text(sid: Sid, text: str) -> None:
    assert str(sid) == text


def test_the_sid_of_the_published_packet_is_read() -> None:
    data = bytes.fromhex("010500000000000515000000a065cf7e784b9b5fe77c8770e8030000")
    assert str(Sid(data)) == "S-1-5-21-2127521184-1604012920-1887927527-1000"


@pytest.mark.parametrize(
    "text", ["", "S-1", "S-2-5-7", "S-1-5-x", "S-1-5-4294967296", "S-1-5" + "-1" * 16, "user:x"]
)
def test_what_is_no_sid_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(ValueError, match=r"S-1-|too large"):
        parse_sid(text)


def test_sixteen_sub_authorities_are_one_too_many() -> None:
    assert is_sid(bytes((1, 15)) + bytes(6 + 60))
    assert not is_sid(bytes((1, 16)) + bytes(6 + 64))


def test_users_and_groups_of_unix_are_told_apart() -> None:
    assert unix_number(unix_user(7)) == ("user", 7)
    assert unix_number(unix_group(7)) == ("group", 7)
    assert unix_number(EVERYONE) is None
    assert unix_number(Sid.of(22, 3, 7)) is None


def test_everybody_is_everyone_and_only_the_anonymous_are_not_authenticated() -> None:
    known = identities(unix_user(7), (unix_group(8),))
    assert known == {unix_user(7), unix_group(8), EVERYONE, AUTHENTICATED}
    assert {ANONYMOUS, EVERYONE} == ANONYMOUS_IDENTITIES


@pytest.mark.parametrize("word", sorted(WORDS))
def test_words_are_read_and_said(word: str) -> None:
    assert sid_words(parse_sid(word.upper())) == word


account_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,19}", fullmatch=True)


@given(account_names)
def test_an_account_has_a_sid_with_its_name_inside(name: str) -> None:
    sid = account(name)
    assert is_sid(sid)
    assert str(sid).startswith("S-1-9-1330467665-")
    assert account_name(sid) == name.lower()
    assert parse_sid(f"account:{name}") == parse_sid(sid_words(sid)) == sid
    assert sid_words(sid) == f"account:{name.lower()}"


@given(account_names, account_names)
def test_two_accounts_have_two_sids(one: str, other: str) -> None:
    assert (account(one) == account(other)) == (one.lower() == other.lower())


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "-a", ".a", "_a", "a:b", "a\\b", "a@b", "x" * 21, "é", "a\0", "a\n"]
)
def test_what_cannot_be_the_name_of_an_account_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of an account"):
        account(name)


@pytest.mark.parametrize(
    "text",
    [
        "S-1-9",
        "S-1-9-1330467665",
        "S-1-9-1330467666-97",  # of another program
        "S-1-9-1330467665-97-0",  # a name that goes on with nothing
        "S-1-9-1330467665-65",  # a capital letter
        "S-1-9-1330467665-4294967295",
        "S-1-5-1330467665-97",
        "S-1-9-1330467665-1633771873-1633771873-1633771873-1633771873-1633771873-97",
    ],
)
def test_another_sid_is_no_account(text: str) -> None:
    sid = Sid.parse(text)
    assert account_name(sid) is None
    assert sid_words(sid) == text

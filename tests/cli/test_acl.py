"""`openmsmq queue acl`, `openmsmq acl` and `openmsmq whoami`."""

from __future__ import annotations

import pytest

from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS


def rights_of(shown: dict, who: str) -> list[tuple[bool, list[str]]]:
    return [
        (entry["allowed"], entry["rights"]) for entry in shown["entries"] if entry["who"] == who
    ]


def test_rights_are_granted_denied_taken_back_and_reset(openmsmq, queue) -> None:
    before = openmsmq("queue", "acl", "show", queue, "--json").object
    assert before["owner"] == "administrators"
    assert rights_of(before, "administrators") == [(True, ["full"])]
    shown = openmsmq(
        "queue", "acl", "grant", queue, "user:70001", "receive", "peek", "send", "--json"
    ).object
    assert rights_of(shown, "user:70001") == [(True, ["receive", "send"])]
    shown = openmsmq("queue", "acl", "deny", queue, "user:70001", "send", "--json").object
    assert shown["entries"][0]["allowed"] is False
    assert rights_of(shown, "user:70001") == [(False, ["send"]), (True, ["receive"])]
    shown = openmsmq("queue", "acl", "revoke", queue, "user:70001", "receive", "--json").object
    assert rights_of(shown, "user:70001") == [(False, ["send"])]
    shown = openmsmq("queue", "acl", "revoke", queue, "user:70001", "--json").object
    assert rights_of(shown, "user:70001") == []
    openmsmq("queue", "acl", "grant", queue, "group:root", "full")
    assert openmsmq("queue", "acl", "reset", queue, "--json").object == before
    assert openmsmq("queue", "acl", "show", queue, "--json").object == before


def test_a_table_shows_people_their_rights(openmsmq, queue) -> None:
    out = openmsmq("queue", "acl", "grant", queue, "user:root", "receive", "get-properties").out
    assert f"{queue} belongs to administrators" in out
    assert "user:root       allowed  receive, get-properties" in out
    assert "S-1-22-1-0" in out


def test_an_account_is_named_and_shown_by_its_name(openmsmq, queue) -> None:
    shown = openmsmq("queue", "acl", "grant", queue, "account:Alice", "receive", "--json").object
    assert rights_of(shown, "account:alice") == [(True, ["receive"])]
    shown = openmsmq("acl", "grant", "account:alice", "peek-dead-letters", "--json").object
    assert rights_of(shown, "account:alice") == [(True, ["peek-dead-letters"])]
    openmsmq("acl", "reset")
    sentence = openmsmq("acl", "grant", "account:a b", "full", code=2).err
    assert "is no name of an account" in sentence


def test_the_owner_is_changed_and_taken_back(openmsmq, queue) -> None:
    assert openmsmq("queue", "acl", "owner", queue, "user:70001", "--json").object["owner"] == (
        "user:70001"
    )
    assert openmsmq("queue", "acl", "owner", queue, "--json").object["owner"] == "administrators"


def test_rights_on_the_queue_manager_are_changed_likewise(openmsmq) -> None:
    before = openmsmq("acl", "show", "--json").object
    assert before["on"] == "the queue manager"
    shown = openmsmq("acl", "grant", "authenticated", "create-queue", "--json").object
    assert rights_of(shown, "authenticated") == [(True, ["create-queue"])]
    shown = openmsmq("acl", "deny", "anonymous", "get-properties", "--json").object
    assert rights_of(shown, "anonymous") == [(False, ["get-properties"])]
    openmsmq("acl", "revoke", "anonymous")
    assert openmsmq("acl", "owner", "everyone", "--json").object["owner"] == "everyone"
    assert openmsmq("acl", "owner", "--json").object["owner"] == "administrators"
    assert openmsmq("acl", "reset", "--json").object == before


@pytest.mark.parametrize("who", ["user:nobody-here-has-this-name", "group:nor-this", "S-1-x", "me"])
def test_who_is_nobody_is_said_in_one_sentence(openmsmq, queue, who: str) -> None:
    result = openmsmq("queue", "acl", "grant", queue, who, "send", code=2)
    assert "WHO" in result.err
    assert len(result.err.splitlines()) == 1


def test_an_unknown_right_is_refused_with_the_known_ones(openmsmq, queue) -> None:
    for words, command in (
        (QUEUE_WORDS, ("queue", "acl", "grant", queue)),
        (MANAGER_WORDS, ("acl", "grant")),
    ):
        result = openmsmq(*command, "everyone", "write", code=2)
        assert all(word in result.err for word in words)


def test_a_queue_that_is_not_there_has_no_rights(openmsmq) -> None:
    result = openmsmq("queue", "acl", "show", r"private$\absent", code=1)
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in result.err


def test_whoami_says_who_one_is(openmsmq) -> None:
    found = openmsmq("whoami", "--json").object
    assert found["scopes"] is None
    assert "S-1-5-32-544" in found["sids"]
    assert "administrators" in openmsmq("whoami").out


def test_a_certificate_needs_tls(openmsmq) -> None:
    result = openmsmq("--cert", "file.pem", "status", code=2)
    assert "need TLS" in result.err
    result = openmsmq("--tls", "--cert", "absent.pem", "status", code=2)
    assert "absent.pem" in result.err

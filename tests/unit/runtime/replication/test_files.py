"""Files beside the log are compared by their digests, and named."""

from __future__ import annotations

from pathlib import Path

from openmsmq.runtime.replication.files import (
    NAMED_MAX_COUNT,
    decode_digests,
    differing,
    digests,
    encode_digests,
)


def test_files_are_alike_by_content_and_place_and_digests_tell_nothing_else(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name / "keys").mkdir(parents=True)
        (tmp_path / name / "keys" / "a.pem").write_text("secret")
        (tmp_path / name / "audit.log").write_text(f"what {name} did")
    one, other = (digests(tmp_path / name, "log") for name in ("one", "other"))
    assert (one, list(one)) == (other, ["keys/a.pem"])
    assert digests(tmp_path / "one", "log of another") != one
    (tmp_path / "other" / "keys" / "a.pem").write_text("another secret")
    (tmp_path / "other" / "b.pem").write_text("more")
    assert differing(one, digests(tmp_path / "other", "log")) == ["b.pem", "keys/a.pem"]


def test_what_another_computer_says_is_believed_only_if_it_makes_sense() -> None:
    assert decode_digests(encode_digests({"a": "1"}).decode()) == {"a": "1"}
    for text in ("", "{", "[1]", '{"a": 1}', '{"a": "' + "x" * (3 << 20) + '"}'):
        assert decode_digests(text) is None
    assert differing({"a": "1"}, None) == []


def test_of_very_many_files_the_first_are_named() -> None:
    many = {f"{number:03}": "1" for number in range(200)}
    assert differing(many, {}) == [f"{number:03}" for number in range(NAMED_MAX_COUNT)]

"""Lines are counted by package, and modules that came are told from those that were renamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.count_lines import (
    Change,
    compared,
    git,
    main,
    newcomers,
    package_of,
    report,
    report_commits,
)

OLD, NEW, MOVED = (f"src/openmsmq/{name}.py" for name in ("a/old", "a/new", "b/moved"))


def test_a_module_that_was_renamed_did_not_come() -> None:
    changes = [
        Change("1 begins", "A", NEW),
        Change("2 renames", "R", OLD, MOVED),
        Change("3 renames", "R", NEW, OLD),
    ]
    assert newcomers(changes) == {OLD: "1 begins"}


def test_a_module_that_came_and_went_is_none() -> None:
    assert newcomers([Change("1", "A", NEW), Change("2", "D", NEW)]) == {}


def test_lines_of_old_and_new_modules_are_told_apart() -> None:
    changes = [Change("1", "R", OLD, MOVED), Change("2 a feature", "A", NEW)]
    found = compared({OLD: 10}, {MOVED: 7, NEW: 1_005}, changes)
    assert (found.before, found.kept) == ({"a": 10}, {"b": 7})
    assert found.new == {NEW: (1_005, "2 a feature")}
    assert report(found) == [
        "package          before      now     kept      new",
        "a                    10    1,005        0    1,005",
        "b                     0        7        7        0",
        "together             10    1,012        7    1,005",
        "",
        "2 a feature",
        "  1,005  a/new.py",
    ]


def test_what_features_brought_is_left_out_of_the_sum() -> None:
    brought = {"abc one": 1_000, "def two": -30, "fed nothing": 0}
    assert report_commits(brought, ["abc"])[:2] == ["  +1,000 * abc one", "     -30   def two"]
    assert report_commits(brought, ["abc"])[2:] == [
        "  +1,000 * features",
        "     -30   for the same features",
    ]
    assert report_commits(brought, [])[-1] == "    +970   for the same features"


def test_a_module_beside_the_packages_stands_for_itself() -> None:
    assert package_of("src/openmsmq/aio.py") == "aio.py"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module; it is renamed, and another one comes in the next commit."""
    monkeypatch.setattr("scripts.count_lines.ROOT", tmp_path)
    package = tmp_path / "src/openmsmq/a"
    package.mkdir(parents=True)
    (package / "old.py").write_text("x = 1\n" * 10, encoding="utf-8")
    git("init", "-q")
    for name, value in (("user.name", "nobody"), ("user.email", "nobody@example.org")):
        git("config", name, value)
    commit("begin")
    (package / "old.py").rename(package / "renamed.py")
    commit("rename")
    (package / "new.py").write_text("y = 2\n" * 3, encoding="utf-8")
    commit("bring")
    return package


def commit(subject: str) -> None:
    git("add", "-A")
    git("commit", "-q", "-m", subject)


def test_commits_say_what_was_renamed_and_what_came(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "renamed.py").write_text("x = 1\n" * 4, encoding="utf-8")
    main(["HEAD~2"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split() == ["a", "10", "7", "4", "3"]
    assert shown[-2].endswith(" bring")
    assert shown[-1].split() == ["3", "a/new.py"]


@pytest.mark.usefixtures("repository")
def test_commits_say_how_much_they_brought(capsys: pytest.CaptureFixture[str]) -> None:
    brought = git("log", "-1", "--format=%h").strip()
    main(["HEAD~2", "--commits", "--features", brought])
    shown = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["+3", "*", brought, "bring"],
        ["+3", "*", "features"],
        ["+0", "for", "the", "same", "features"],
    ]

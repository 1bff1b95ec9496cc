"""The conformance report counts what was shown and names what is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import report
from tests.conformance.catalogue import Exemption, Statement
from tests.conformance.report import Counts, Outcome

STATEMENTS = [
    Statement("MQMQ-2.1-01", "MUST", "2.1"),
    Statement("MQMQ-2.1.1-01", "MUST", "2.1.1"),
    Statement("MQMQ-2.10-01", "MUST", "2.10"),
    Statement("MQSD-2.1-01", "MUST", "2.1"),
]
SHOWN = {"MQMQ-2.1-01"}
EXCEPTED = {"MQSD-2.1-01": Exemption("MQSD-2.1", "not-applicable", "No IPX.")}


def test_it_counts_shown_excepted_and_open_statements() -> None:
    rows = report.count(STATEMENTS, SHOWN, EXCEPTED, lambda s: s.specification)
    assert rows == [Counts("MQMQ", 3, 1, 0, 2), Counts("MQSD", 1, 0, 1, 0)]
    assert report.total(rows) == Counts("all", 4, 1, 1, 2)


def test_it_draws_the_same_numbers_as_text_and_as_a_table() -> None:
    row = Counts("MQMQ", 30, 10, 5, 15)
    assert report.as_text([row]).splitlines()[1].split() == ["MQMQ", "30", "10", "5", "15"]
    assert report.as_markdown([row]).splitlines()[2] == "| MQMQ | 30 | 10 | 5 | 15 |"


def test_open_statements_are_looked_for_under_the_prefix_only() -> None:
    assert report.open_ids(STATEMENTS, ["MQMQ-2.1", "MQSD-2"], SHOWN, EXCEPTED) == ["MQMQ-2.1.1-01"]


def test_a_statement_is_shown_when_a_test_passed_and_none_failed() -> None:
    outcomes = {
        "MQMQ-2.1-01": Outcome(["a", "b"], []),
        "MQMQ-2.1-02": Outcome(["a"], ["b"]),
        "MQMQ-2.1-03": Outcome([], ["b"]),
    }
    assert report.shown_ids(outcomes) == {"MQMQ-2.1-01"}


class Project:
    """A small project with a catalogue of its own, on which the real report runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "catalogue").mkdir()
        rows = [f"{s.id}\t{s.level}\t{s.section}" for s in STATEMENTS]
        self.write("catalogue/all.tsv", "\n".join(["id\tlevel\tsection", *rows]))
        self.write("required.toml", 'MQMQ = ["2.1"]')
        self.write(
            "exceptions.toml",
            '[MQSD]\n"MQSD-2.1" = { kind = "not-applicable", reason = "No IPX." }',
        )
        self.write("pytest.ini", "[pytest]\nmarkers =\n    spec(id): shown\n")

    @property
    def page(self) -> Path:
        return self.root / report.PAGE

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def write_tests(self, *, good: list[str], bad: list[str]) -> None:
        self.write(
            "test_it.py",
            f"""
import pytest

@pytest.mark.parametrize("id", [pytest.param(i, marks=pytest.mark.spec(i)) for i in {good}])
def test_good(id): pass

@pytest.mark.parametrize("id", [pytest.param(i, marks=pytest.mark.spec(i)) for i in {bad}])
def test_bad(id): assert False

def test_of_no_specification(): assert False
""",
        )

    def report(self, *arguments: str) -> int:
        plugin = ["--", "-p", "tests.conformance.plugin"]
        return report.main([*arguments, *plugin], root=self.root, folder=self.root)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PYTHONPATH", str(report.ROOT))
    return Project(tmp_path)


def test_it_succeeds_and_writes_the_page_when_nothing_required_is_open(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_tests(good=["MQMQ-2.1-01", "MQMQ-2.1.1-01"], bad=[])
    assert project.report("--sections") == 0
    printed = capsys.readouterr().out
    assert "0 required statements are open (MQMQ-2.1)." in printed
    assert "MQMQ 2.1.1 " in printed
    page = project.page.read_text(encoding="utf-8")
    assert "| MQMQ | 3 | 2 | 0 | 1 |\n| MQSD | 1 | 0 | 1 | 0 |\n| all | 4 | 2 | 1 | 1 |" in page


def test_it_fails_and_names_what_is_required_but_open(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_tests(good=["MQMQ-2.1-01"], bad=[])
    assert project.report("--require", "MQMQ-2.10", "--no-write") == 1
    named = [line for line in capsys.readouterr().out.splitlines() if line.startswith("open")]
    assert named == ["open, but required: MQMQ-2.1.1-01", "open, but required: MQMQ-2.10-01"]
    assert not project.page.exists()


def test_a_failing_test_fails_it_and_leaves_the_page_alone(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_tests(good=["MQMQ-2.1-01", "MQMQ-2.1.1-01"], bad=["MQMQ-2.10-01"])
    assert project.report() == 1
    assert "tests failed" in capsys.readouterr().err
    assert not project.page.exists()


def test_a_mistake_in_what_is_required_is_said_before_anything_runs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.report("--require", "MQBR-9") == 2
    assert "under MQBR-9" in capsys.readouterr().err

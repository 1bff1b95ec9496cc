"""Recorded defects: which are taken, and that only a test that fails counts as noticing one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import catalogue, defects, report
from tests.conformance.catalogue import CatalogueError
from tests.conformance.defects import Defect
from tests.conformance.forks import ENDLESS

FIRST = ["MQDSSM-3.1.6.9-03", "MQMQ-2.3.12.5-01", "MQDSSM-3.1.6.16-03"]
HALF = Defect("half.py", "n // 2", "n", "test_half.py")


def test_a_defect_changes_its_place_only() -> None:
    assert HALF.applied_to("return n // 2\n") == "return n\n"
    behind = Defect("half.py", "1", "2", "test_half.py", after="def second")
    assert behind.applied_to("1 def second 1 1") == "1 def second 2 1"
    inside = Defect("half.py", "1", "2", "test_half.py", after="x1")
    assert inside.applied_to("x1 1") == "x1 2"


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ("", "nothing of it"),
        ("", "n // 2 and n // 2"),
        ("def", "n // 2"),
        ("def", "def def n // 2"),
        ("def", "n // 2 def"),
    ],
)
def test_a_place_that_is_not_clear_is_refused(after: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"half\.py"):
        Defect("half.py", "n // 2", "n", "test_half.py", after).applied_to(text)


def test_what_is_drawn_stays_the_same() -> None:
    """Written down by hand: another draw would let somebody pick what is easy."""
    known = catalogue.load_catalogue()
    drawn = defects.drawn(known)
    assert len(set(drawn)) == defects.DRAWN_COUNT
    assert drawn[:3] == FIRST


def test_every_recorded_defect_has_its_place() -> None:
    """What the source has become must still have the line; whether tests notice takes longer."""
    recorded = defects.load_defects(catalogue.load_catalogue())
    for id_, defect in recorded.items():
        text = (report.ROOT / defects.SOURCE / defect.file).read_text(encoding="utf-8")
        assert defect.applied_to(text) != text, id_
        assert (report.ROOT / defect.test.partition("::")[0]).is_file(), id_


class Project:
    """A small project with a function, a test that shows a statement, and defects."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("catalogue/all.tsv", "id\tlevel\tsection\nMQMQ-2.1-01\tMUST\t2.1\n")
        self.write("exceptions.toml", "")
        self.write("required.toml", "")
        self.write("src/openmsmq/__init__.py", "")
        self.write("src/openmsmq/half.py", "def half(n: int) -> int:\n    return n // 2\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def write_defect(self, old: str, new: str) -> None:
        entry = f'["MQMQ-2.1-01"]\nfile = "half.py"\nold = "{old}"\nnew = "{new}"\n'
        self.write("defects/MQMQ.toml", entry + 'test = "test_half.py"\n')

    def write_test(self, statement: str) -> None:
        self.write(
            "test_half.py",
            f"""
import pytest
from openmsmq.half import half

@pytest.mark.spec("MQMQ-2.1-01")
def test_half(): {statement}

def test_of_no_statement(): assert half(6) == 3
""",
        )

    def report(self, *arguments: str) -> int:
        return report.main(arguments, root=self.root, folder=self.root)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PYTHONPATH", str(report.ROOT))
    options = f"-p tests.conformance.plugin --conformance-folder={tmp_path}"
    monkeypatch.setenv("PYTEST_ADDOPTS", options)
    project = Project(tmp_path)
    project.write("pytest.ini", "[pytest]\nmarkers =\n    spec(id): shown\n")
    project.write_test("assert half(4) == 2")
    project.write_defect("n // 2", "n // 3")
    return project


def test_a_defect_is_noticed_and_the_project_stays_as_it_is(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.report("--break", "MQMQ-2.1-01") == 0
    assert "1 of 1 defects were noticed" in capsys.readouterr().out
    assert "n // 2" in (project.root / "src/openmsmq/half.py").read_text(encoding="utf-8")


def test_a_test_that_passes_with_the_defect_does_not_show_the_statement(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another test, without the id, fails: that does not count."""
    project.write_test("assert half(0) == 0")
    assert project.report("--break", "all") == 1
    assert "not noticed" in capsys.readouterr().out


def test_a_test_that_fails_anyway_notices_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_test("assert half(4) == 3")
    assert project.report("--break", "all") == 2
    assert "do not pass without a defect" in capsys.readouterr().err


def test_a_module_that_cannot_be_imported_shows_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_defect("half(n", "quarter(n")
    assert project.report("--break", "all") == 1
    assert "could not run with the defect" in capsys.readouterr().out


def test_code_that_no_longer_works_violates_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_defect("n // 2", "n.half")
    assert project.report("--break", "all") == 1
    said = capsys.readouterr().out
    assert "a mistake in the code, not against it (AttributeError" in said


def test_a_set_up_that_fails_is_not_the_test(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write(
        "test_half.py",
        """
import pytest
from openmsmq.half import half

@pytest.fixture
def two():
    assert half(4) == 2
    return 2

@pytest.mark.spec("MQMQ-2.1-01")
def test_half(two): assert two == 2
""",
    )
    assert project.report("--break", "all") == 1
    assert "what failed was the set-up of a test" in capsys.readouterr().out


def test_what_the_test_saw_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_test("assert half(4) == 2, 'four has no half'")
    assert project.report("--break", "MQMQ-2.1") == 0
    assert "MQMQ-2.1-01: noticed (AssertionError: four has no half" in capsys.readouterr().out


def test_tests_that_do_not_end_are_ended(project: Project, tmp_path: Path) -> None:
    project.write_test("exec('while True: pass')")
    copy = tmp_path / "copy"
    copy.mkdir()
    workshop = defects.Workshop(project.root, copy)
    try:
        assert workshop.run(["MQMQ-2.1-01"], "test_half.py", timeout_s=1).code == ENDLESS
        project.write_test("assert half(4) == 2")
        (copy / "test_half.py").write_bytes((project.root / "test_half.py").read_bytes())
        assert workshop.run(["MQMQ-2.1-01"], "test_half.py").code == 0
    finally:
        workshop.close()


def test_defects_are_chosen_by_statement_and_section() -> None:
    recorded = dict.fromkeys(["MQMQ-2.1-01", "MQMQ-2.1.2-01", "MQMQ-2.10-01", "MQSD-2-01"], HALF)

    def chosen(wanted: str) -> list[str]:
        return list(report.choose(recorded, wanted))

    assert chosen("all") == list(recorded)
    assert chosen("MQMQ-2.1") == ["MQMQ-2.1-01", "MQMQ-2.1.2-01"]
    assert chosen("MQSD,MQMQ-2.10-01") == ["MQSD-2-01", "MQMQ-2.10-01"]
    with pytest.raises(CatalogueError, match=r"no defect is recorded for MQMQ-2\.3"):
        chosen("MQMQ-2.3")


def test_a_defect_whose_line_is_gone_is_named(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_defect("n // 4", "n")
    assert project.report("--break", "all") == 1
    assert "look where the defect would be now" in capsys.readouterr().out


def test_nothing_recorded_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.report("--break", "MQMQ-2.1-09") == 2
    assert "no defect is recorded for MQMQ-2.1-09" in capsys.readouterr().err
    assert project.report("--drawn") == 0
    assert capsys.readouterr().out == "MQMQ-2.1-01 test_half.py\n"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('["MQMQ-2.1-09"]', "was not drawn"),
        ('["MQMQ-2.1-01"]\nfile = "half.py"', "missing required field"),
        (
            '["MQMQ-2.1-01"]\nfile = "a"\nold = "1\\n"\nnew = "2"\ntest = "t"',
            "a piece of one line",
        ),
        ('["MQMQ-2.1-01"]\nfile = "a"\nold = "1"\nnew = "1"\ntest = "t"', "a piece of one line"),
        ('["MQQB-2.1-01"]', "belongs into another file"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, entry: str, problem: str) -> None:
    (tmp_path / "MQMQ.toml").write_text(entry, encoding="utf-8")
    with pytest.raises(CatalogueError, match=problem):
        defects.load_defects(["MQMQ-2.1-01"], tmp_path)

"""The catalogue and its exceptions say something, and say it once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance import catalogue
from tests.conformance.catalogue import CatalogueError, Statement

KNOWN = {
    statement.id: statement
    for statement in (
        Statement("MQMQ-2.1-01", "MUST", "2.1"),
        Statement("MQMQ-2.1.1-01", "MUST", "2.1.1"),
        Statement("MQMQ-2.1.1-02", "SHOULD", "2.1.1"),
        Statement("MQMQ-2.1.1-03", "MUST NOT", "2.1.1"),
        Statement("MQMQ-2.10-01", "MUST", "2.10"),
    )
}


def excepted(folder: Path, text: str) -> list[str]:
    path = folder / "exceptions.toml"
    path.write_text(text, encoding="utf-8")
    return list(catalogue.load_exceptions(KNOWN, path))


def test_the_catalogue_of_the_project_is_consistent() -> None:
    known = catalogue.load_catalogue()
    assert {s.level for s in known.values()} == {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT"}
    wrong = [
        s.id
        for s in known.values()
        if not re.fullmatch(rf"{s.specification}-{re.escape(s.section)}-\d\d+", s.id)
    ]
    assert wrong == []


def test_the_exceptions_and_requirements_of_the_project_are_valid() -> None:
    known = catalogue.load_catalogue()
    catalogue.load_exceptions(known)
    assert catalogue.load_required(known) != []


def test_a_statement_twice_in_the_catalogue_is_refused(tmp_path: Path) -> None:
    row = "MQMQ-2.1-01\tMUST\t2.1\n"
    (tmp_path / "MQMQ.tsv").write_text(f"id\tlevel\tsection\n{row}{row}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"MQMQ-2\.1-01 is there twice"):
        catalogue.load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("MQMQ-2.1.1-02", ["MQMQ-2.1.1-02"]),
        ("MQMQ-2.1.1-02..03", ["MQMQ-2.1.1-02", "MQMQ-2.1.1-03"]),
        ("MQMQ-2.1.1", ["MQMQ-2.1.1-01", "MQMQ-2.1.1-02", "MQMQ-2.1.1-03"]),
        (
            "MQMQ-2.1",
            ["MQMQ-2.1-01", "MQMQ-2.1.1-01", "MQMQ-2.1.1-02", "MQMQ-2.1.1-03"],
        ),
    ],
)
def test_an_exception_covers_a_statement_a_range_or_a_section(
    tmp_path: Path, pattern: str, ids: list[str]
) -> None:
    text = f'[MQMQ]\n"{pattern}" = {{ kind = "not-applicable", reason = "No SPX." }}\n'
    assert excepted(tmp_path, text) == ids


@pytest.mark.parametrize("pattern", ["MQMQ-2.1.1-04", "MQMQ-2.1.1-02..04", "MQMQ-2.2", "MQMQ-2."])
def test_an_exception_from_nothing_is_stale(tmp_path: Path, pattern: str) -> None:
    text = f'[MQMQ]\n"{pattern}" = {{ kind = "not-applicable", reason = "No SPX." }}\n'
    with pytest.raises(CatalogueError, match="not in the catalogue"):
        excepted(tmp_path, text)


def test_two_exceptions_for_one_statement_are_refused(tmp_path: Path) -> None:
    text = """
    [MQMQ]
    "MQMQ-2.1.1" = { kind = "not-applicable", reason = "No SPX." }
    "MQMQ-2.1.1-02" = { kind = "not-applicable", reason = "No SPX." }
    """
    with pytest.raises(CatalogueError, match=r"covers MQMQ-2\.1\.1-02, as MQMQ-2\.1\.1 does"):
        excepted(tmp_path, text)


def test_an_exception_stands_in_the_table_of_its_specification(tmp_path: Path) -> None:
    text = '[MQQB]\n"MQMQ-2.1.1-02" = { kind = "not-applicable", reason = "No SPX." }\n'
    with pytest.raises(CatalogueError, match="in the table of MQQB"):
        excepted(tmp_path, text)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('{ kind = "later", reason = "No time." }', "has the kind 'later'"),
        ('{ reason = "No SPX." }', "has the kind ''"),
        ('"No SPX."', "needs a table of texts"),
        ('{ kind = "not-applicable" }', "needs exactly kind, reason"),
        ('{ kind = "not-applicable", reason = " " }', "has an empty reason"),
        ('{ kind = "decided", reason = "We send 0." }', "needs exactly decision, kind, reason"),
        ('{ kind = "decided", reason = "We send 0.", decision = "12" }', "such as C-12"),
        ('{ kind = "behaviour", reason = "It drops it." }', "has the kind 'behaviour'"),
        ('{ kind = "by-design", reason = "A copy." }', "needs exactly kind, reason, record"),
        ('{ kind = "by-design", reason = "A copy.", record = "21" }', "number of a record"),
        ('{ kind = "by-design", reason = "A copy.", record = "9999" }', "number of a record"),
    ],
)
def test_an_exception_that_does_not_say_why_is_refused(
    tmp_path: Path, entry: str, problem: str
) -> None:
    with pytest.raises(CatalogueError, match=problem):
        excepted(tmp_path, f'[MQMQ]\n"MQMQ-2.1.1-02" = {entry}\n')


@pytest.mark.parametrize(
    "entry",
    [
        '{ kind = "decided", reason = "We send 0.", decision = "C-12" }',
        '{ kind = "not-applicable", reason = "There is no SPX." }',
        '{ kind = "by-design", reason = "A copy answers.", record = "0021" }',
    ],
)
def test_each_kind_of_exception_has_its_own_keys(tmp_path: Path, entry: str) -> None:
    assert excepted(tmp_path, f'[MQMQ]\n"MQMQ-2.1.1-02" = {entry}\n') == ["MQMQ-2.1.1-02"]


def test_a_requirement_for_a_section_without_statements_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "required.toml"
    path.write_text('MQMQ = ["2.1", "2.3"]\n', encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"MQMQ-2\.3"):
        catalogue.load_required(KNOWN, path)

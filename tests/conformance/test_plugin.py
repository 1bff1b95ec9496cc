"""The spec mark and its record, shown by small pytest runs, in one process and in several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CATALOGUE = "id\tlevel\tsection\nMQMQ-2.1-01\tMUST\t2.1\nMQMQ-2.1-02\tMUST\t2.1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue/MQMQ.tsv").write_text(CATALOGUE, encoding="utf-8")
    (tmp_path / "exceptions.toml").write_text("", encoding="utf-8")
    return tmp_path


def run(pytester: pytest.Pytester, folder: Path, *arguments: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nmarkers =\n    spec(id): shown\nxfail_strict = true\n")
    return pytester.runpytest_inprocess(
        "-p",
        "tests.conformance.plugin",
        f"--conformance-folder={folder}",
        f"--conformance-results={folder / 'results.json'}",
        *arguments,
    )


def recorded(folder: Path) -> dict[str, tuple[int, int]]:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {id_: (len(r["passed"]), len(r["failed"])) for id_, r in results.items()}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_passed_and_failed_tests_of_an_id_are_recorded(
    pytester: pytest.Pytester, folder: Path, workers: str
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.spec("MQMQ-2.1-01")
        def test_good(): pass

        @pytest.mark.spec("MQMQ-2.1-01", "MQMQ-2.1-02")
        @pytest.mark.parametrize("n", [1, 2])
        def test_half_good(n): assert n == 1

        def test_unmarked(): pass
        """
    )
    run(pytester, folder, "-n", workers).assert_outcomes(passed=3, failed=1)
    assert recorded(folder) == {"MQMQ-2.1-01": (2, 1), "MQMQ-2.1-02": (1, 1)}


@pytest.mark.parametrize(("count", "errors"), [(8, 0), (9, 1)])
def test_a_test_shows_eight_statements_at_most(
    pytester: pytest.Pytester, folder: Path, count: int, errors: int
) -> None:
    ids = [f"MQMQ-2.2-{number:02}" for number in range(count)]
    rows = "".join(f"{id_}\tMUST\t2.2\n" for id_ in ids)
    (folder / "catalogue/MQMQ.tsv").write_text("id\tlevel\tsection\n" + rows, encoding="utf-8")
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.spec({ids[0]!r}, {ids[0]!r})
        @pytest.mark.spec(*{ids!r})
        def test_much(): pass
        """
    )
    result = run(pytester, folder)
    result.assert_outcomes(passed=1 - errors, errors=errors)
    if errors:
        result.stdout.fnmatch_lines(["*it carries 9 ids, at most 8 are allowed*"])


def test_marks_of_the_class_and_the_module_count(pytester: pytest.Pytester, folder: Path) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.spec("MQMQ-2.1-01")

        @pytest.mark.spec("MQMQ-2.1-02")
        class TestBoth:
            def test_good(self): pass
        """
    )
    run(pytester, folder).assert_outcomes(passed=1)
    assert recorded(folder) == {"MQMQ-2.1-01": (1, 0), "MQMQ-2.1-02": (1, 0)}


def test_skipped_and_expected_failures_show_nothing(
    pytester: pytest.Pytester, folder: Path
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.spec("MQMQ-2.1-01")
        @pytest.mark.skip
        def test_skipped(): pass

        @pytest.mark.spec("MQMQ-2.1-02")
        @pytest.mark.xfail
        def test_expected_to_fail(): assert False
        """
    )
    run(pytester, folder).assert_outcomes(skipped=1, xfailed=1)
    assert recorded(folder) == {}


def test_a_failing_tear_down_is_a_failure(pytester: pytest.Pytester, folder: Path) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken():
            yield
            raise RuntimeError

        @pytest.mark.spec("MQMQ-2.1-01")
        def test_good(broken): pass
        """
    )
    run(pytester, folder).assert_outcomes(passed=1, errors=1)
    assert recorded(folder) == {"MQMQ-2.1-01": (1, 1)}


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ('"MQMQ-2.1-03"', "MQMQ-2.1-03 is not in the conformance catalogue"),
        ("", "takes one or more ids"),
        ('id="MQMQ-2.1-01"', "takes one or more ids"),
    ],
)
def test_a_wrong_mark_is_a_collection_error(
    pytester: pytest.Pytester, folder: Path, workers: str, mark: str, problem: str
) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.spec({mark})\ndef test_good(): pass\n")
    result = run(pytester, folder, "-n", workers)
    assert result.ret != 0
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(f"*::test_good: *{problem}*")


def test_a_mark_for_an_excepted_id_is_a_collection_error(
    pytester: pytest.Pytester, folder: Path
) -> None:
    (folder / "exceptions.toml").write_text(
        '[MQMQ]\n"MQMQ-2.1" = { kind = "not-applicable", reason = "No SPX." }\n', encoding="utf-8"
    )
    pytester.makepyfile('import pytest\n@pytest.mark.spec("MQMQ-2.1-01")\ndef test_good(): pass\n')
    result = run(pytester, folder)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("*MQMQ-2.1-01 is excepted by MQMQ-2.1 in exceptions.toml*")


def test_a_broken_exceptions_file_ends_the_run_with_one_sentence(
    pytester: pytest.Pytester, folder: Path
) -> None:
    (folder / "exceptions.toml").write_text(
        '[MQMQ]\n"MQMQ-9" = { kind = "not-applicable", reason = "No SPX." }\n', encoding="utf-8"
    )
    pytester.makepyfile("def test_good(): pass")
    result = run(pytester, folder)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: exceptions.toml: MQMQ-9 is not in the catalogue*")

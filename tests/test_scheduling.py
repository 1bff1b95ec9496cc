"""Tests go to workers by files, by the groups that are marked, or one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduling import SINGLE, together

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "part"),
    [
        ("tests/unit/wire/test_base.py::test_a[1-@x]", "tests/unit/wire/test_base.py"),
        ("tests/unit/wire/test_base.py::TestA::test_b", "tests/unit/wire/test_base.py"),
        ("tests/directory/test_objects.py::test_a[x]@samba", "samba"),
        ("tests/spark/test_sink.py::test_a@spark", "spark"),
        ("tests/sim/test_mutants.py::test_a[a@b]", "tests/sim/test_mutants.py::test_a[a@b]"),
        ("tests/docs/test_pages.py::test_a", "tests/docs/test_pages.py::test_a"),
        ("tests/test_tidy.py::test_a", "tests/test_tidy.py"),
    ],
)
def test_each_test_has_its_part(test: str, part: str) -> None:
    assert together(test) == part


def test_the_folders_of_single_tests_are_there() -> None:
    assert all((ROOT / folder).is_dir() for folder in SINGLE)


def test_two_workers_get_files_whole(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        from tests.conftest import pytest_xdist_make_scheduler
        """
    )
    note = "import os\nimport pytest\n\n@pytest.mark.parametrize('n', range(20))\n"
    note += "def test_a(n, worker_id):\n    open(f'{__name__}-{worker_id}', 'w').close()\n"
    pytester.makepyfile(test_one=note, test_other=note)
    ran = pytester.runpytest_subprocess("-n2", "--dist=loadgroup")
    ran.assert_outcomes(passed=40)
    assert len(list(pytester.path.glob("test_one-gw*"))) == 1
    assert len(list(pytester.path.glob("test_other-gw*"))) == 1

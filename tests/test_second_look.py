"""Which failures CI looks at once more, and which stand."""

from __future__ import annotations

import pytest

from scripts.second_look import refusal

PROCESSES = [f"tests/spark/test_sink.py::test_{number}" for number in range(4)]


@pytest.mark.parametrize("count", [1, 4])
def test_a_few_tests_of_processes_are_looked_at_again(count: int) -> None:
    assert refusal(PROCESSES[:count]) == ""


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        ([], "without naming"),
        ([*PROCESSES, "tests/docs/test_pages.py::test_page"], "more than 4"),
        ([PROCESSES[0], "tests/transfer/test_doubts.py::test_x"], "test_doubts.py::test_x"),
        (["tests/sparkling/test_x.py::test_x"], "starts no process"),
        (["tests/unit/runtime/test_x.py::test_x"], "starts no process"),
    ],
)
def test_everything_else_stands(failed: list[str], reason: str) -> None:
    assert reason in refusal(failed)

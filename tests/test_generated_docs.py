"""The reference pages that come from the code are as the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "scripts/generate_docs.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    script = (ROOT / "scripts/generate_docs.py").read_text(encoding="utf-8")
    (tmp_path / "scripts/generate_docs.py").write_text(script, encoding="utf-8")
    (tmp_path / "src").symlink_to(ROOT / "src")
    return tmp_path


def test_the_pages_in_the_repository_are_up_to_date():
    result = generate(ROOT, "--check")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_page_that_was_changed_by_hand_is_found_and_repaired(copy):
    assert generate(copy).returncode == 0
    page = copy / "docs/reference/errors.md"
    right = page.read_text(encoding="utf-8")
    page.write_text(right + "an opinion\n", encoding="utf-8")

    result = generate(copy, "--check")
    assert result.returncode == 1
    assert "docs/reference/errors.md" in result.stderr
    assert "limits.md" not in result.stderr
    assert page.read_text(encoding="utf-8") != right

    assert generate(copy).returncode == 0
    assert page.read_text(encoding="utf-8") == right


def test_unknown_arguments_are_refused_with_the_usage(copy):
    result = generate(copy, "--chek")
    assert result.returncode == 2
    assert "--check" in result.stderr
    assert not (copy / "docs").exists()

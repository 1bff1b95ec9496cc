"""Pages about the code name files that are there, and links between pages lead somewhere.

Guides are left out where they name files of their readers; their links count.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
PLACES: Final = ("", "src", "src/openmsmq", "src/openmsmq/manager", "src/openmsmq/sim")
"""Where paths on pages begin; elsewhere the page says a whole path."""
PACKAGES: Final = sorted(path.parent for path in ROOT.glob("src/openmsmq/*/__init__.py"))
PAGES: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ABOUT_THE_CODE: Final = [
    page
    for page in PAGES
    if page.parent == ROOT or ROOT / "docs/internals" in page.parents or page.stem == "benchmarks"
]

_CODE: Final = re.compile(r"`([^`\n]+)`")
_PATH: Final = re.compile(r"(?:[a-z_]\w*/)+\w+(?:\.\w+)?/?|\w+\.py")
_LINK: Final = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
_GENERATED: Final = ("build/", "dist/")


def each(pages: list[Path]) -> pytest.MarkDecorator:
    """Return the mark that runs a test for each page."""
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


def exists(path: str) -> bool:
    """Whether a file or folder is called so, from one of the places, with or without `.py`."""
    if "/" not in path:
        return any(ROOT.glob(f"src/**/{path}")) or any(ROOT.glob(f"[stb]*/**/{path}"))
    starts = [*(ROOT / place for place in PLACES), *PACKAGES]
    return any((start / path).exists() or (start / f"{path}.py").exists() for start in starts)


def named_paths(text: str) -> list[str]:
    """Return the paths that a page names as code, without what is generated."""
    names = [name for name in _CODE.findall(text) if _PATH.fullmatch(name)]
    return [name for name in names if not name.startswith(_GENERATED)]


@each(ABOUT_THE_CODE)
def test_files_that_a_page_names_exist(page: Path) -> None:
    names = named_paths(page.read_text(encoding="utf-8"))
    assert [name for name in names if not exists(name)] == []


@each(PAGES)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_path_that_is_not_there_is_noticed() -> None:
    text = "`manager/nowhere`, `hostile_plan.py`, `turn/ledger`, `build/demo`, `make test`, `a.b`"
    assert named_paths(text) == ["manager/nowhere", "hostile_plan.py", "turn/ledger"]
    assert [name for name in named_paths(text) if not exists(name)] == [
        "manager/nowhere",
        "hostile_plan.py",
    ]


def test_pages_name_files_at_all() -> None:
    architecture = (ROOT / "docs/internals/ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(named_paths(architecture)) > 50

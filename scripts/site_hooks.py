"""What MkDocs is told beside mkdocs.yml when it builds the site of the documentation.

Pages are written for those who read them in the repository: they link to README, to examples and to
folders. Here such links are led to where the site has the same.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT: Final = Path(__file__).resolve().parents[1]
MERMAID: Final = ROOT / "build/mermaid/package/dist/mermaid.min.js"
MERMAID_PLACE: Final = "assets/mermaid.min.js"
MERMAID_LICENCE: Final = ROOT / "build/mermaid/package/LICENSE"
MERMAID_LICENCE_PLACE: Final = "assets/mermaid.LICENSE.txt"

BESIDE: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "LICENSE.txt",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
}
"""What stands beside docs in the repository, and where the site has it."""

TESTS: Final = ("tests/system/*.py", "tests/runtime/test_directory_servers.py")
"""Tests to which pages lead their readers."""

_HOME_OF: Final = {place: name for name, place in BESIDE.items()}
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]+)")
_FIRST_COMMENT: Final = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in its place; show diagrams as text if nothing draws them."""
    docs = Path(config.docs_dir)
    config.nav = _without_folders(config.nav, docs)
    if not MERMAID.is_file():
        config.mdx_configs["pymdownx.superfences"]["custom_fences"] = []
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands beside docs, the lists of folders, some tests, and what draws diagrams."""
    for name, place in BESIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    examples = sorted(path for path in (ROOT / "examples").rglob("*") if path.is_file())
    tests = sorted(path for pattern in TESTS for path in ROOT.glob(pattern))
    for path in (*examples, *tests):
        place = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(path)))
    names = [path.relative_to(ROOT / "examples").as_posix() for path in examples]
    files.append(_list(config, "examples", "Examples", {name: name for name in names}))
    decisions = sorted((Path(config.docs_dir) / "internals/decisions").glob("*.md"))
    titles = {path.name: _title(path) for path in decisions}
    files.append(_list(config, "internals/decisions", "Decisions", titles))
    if MERMAID.is_file():
        files.append(File.generated(config, MERMAID_PLACE, abs_src_path=str(MERMAID)))
        files.append(
            File.generated(config, MERMAID_LICENCE_PLACE, abs_src_path=str(MERMAID_LICENCE))
        )
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Lead links out of docs, and to folders, to where the site has them.

    The comment at the head of a generated page goes: MkDocs takes a heading for the title of a page
    only if nothing stands before it.
    """
    markdown = _FIRST_COMMENT.sub("", markdown)
    here = page.file.src_uri
    home = _HOME_OF.get(here, posixpath.join("docs", here))
    if page.file.abs_src_path is None:
        return markdown

    def led(found: re.Match[str]) -> str:
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(home), found[1]))
        place = _place(wanted)
        if files.get_file_from_path(place) is None:
            # Left as it is: the build names the page and the link, and fails.
            return found[1]
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    return _LINK.sub(led, markdown)


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Load what draws diagrams on pages that have one; elsewhere its megabytes are for nothing."""
    if '<pre class="mermaid">' not in html:
        return html
    return f'{html}\n<script src="{get_relative_url(MERMAID_PLACE, page.url)}"></script>'


def _place(path: str) -> str:
    """Return where the site has a file of the repository, or the list of a folder."""
    place = BESIDE.get(path, path.removeprefix("docs/"))
    if not (ROOT / path).is_dir():
        return place
    return "examples/index.md" if place.startswith("examples") else f"{place}/index.md"


def _list(config: MkDocsConfig, folder: str, title: str, entries: dict[str, str]) -> File:
    lines = [f"- [{text}]({name})" for name, text in entries.items()]
    content = f"# {title}\n\n" + "\n".join(lines) + "\n"
    return File.generated(config, f"{folder}/index.md", content=content)


def _title(path: Path) -> str:
    found = _TITLE.search(path.read_text(encoding="utf-8"))
    return path.stem if found is None else found[1]


def _without_folders(entry: Any, docs: Path) -> Any:
    """Return a part of the navigation with the pages of folders in their places."""
    if isinstance(entry, list):
        return [_without_folders(part, docs) for part in entry]
    if isinstance(entry, dict):
        return {name: _without_folders(part, docs) for name, part in entry.items()}
    if isinstance(entry, str) and entry.endswith("/"):
        pages = sorted(path.name for path in (docs / entry).glob("*.md"))
        return [f"{entry}{name}" for name in ("index.md", *pages)]
    return entry

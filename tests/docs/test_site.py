"""The site is whole: every page is reached, nothing comes from elsewhere, and it can be searched.

The pictures are in `build/site-pictures`, for people to look at.
"""

from __future__ import annotations

import functools
import html
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import openmsmq
from openmsmq import aio
from tests.spark.browser import Browser, browsing

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build/site-pictures"
MERMAID = ROOT / "build/mermaid/package/dist/mermaid.min.js"
CHROMIUM = shutil.which("chromium")
WIDE, PHONE = 1280, 390
PAUSE_S = 0.05
PAUSES_MAX_COUNT = 1200
"""A minute: the computer may be busy with other tests."""

LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
"""What a browser loads by itself when it shows a page, and by which attribute."""
TEXTS = ("p", "li", "td")
STYLES_LOAD = re.compile(r"""(?:url\(|@import)\s*['"]?((?:https?:)?//[^'")\s]+)""")

# One build for all of them.
pytestmark = pytest.mark.xdist_group("site")


def build(root: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a tree as `make site` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once."""
    target = tmp_path_factory.mktemp("site")
    built = build(ROOT, target)
    assert built.returncode == 0, built.stdout + built.stderr
    return target


class PageOf(HTMLParser):
    """What a page loads, where its navigation leads, what its headings are, and its plain text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.navigation: list[str] = []
        self.ids: set[str] = set()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.loads += [found[name] or "" for name in LOADED.get(tag, ()) if found.get(name)]
        self.loads += STYLES_LOAD.findall(found.get("style") or "")
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag == "a" and "md-nav__link" in (found.get("class") or ""):
            self.navigation.append(found.get("href") or "")
        if tag in (*TEXTS, "code", "pre", "style", "script"):
            self._open.append(tag)
            self.texts += [""] if tag in TEXTS else []

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            # What is in a list may have left its own open.
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in TEXTS:
            self.texts[-1] += data
        elif self._open and self._open[-1] == "style":
            self.loads += STYLES_LOAD.findall(data)


def pages_of(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_of_docs_is_reached_from_the_navigation(site: Path) -> None:
    home = site / "index.html"
    led = {unquote(urlsplit(urljoin(home.as_uri(), to)).path) for to in PageOf(home).navigation}
    docs = ROOT / "docs"
    wanted = {
        str(site / path.relative_to(docs).with_suffix(".html")) for path in docs.rglob("*.md")
    }
    assert len(wanted) > 80
    assert wanted - led == set()
    assert [path for path in led if not Path(path).is_file()] == []


def test_pages_go_by_their_titles_and_not_by_the_names_of_files(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        title = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert title, page
        shown = html.escape(title[1].replace("`", ""), quote=False)
        assert f"{shown}\n" in home, page


def test_no_page_names_another_host_for_what_it_loads(site: Path) -> None:
    pages = pages_of(site)
    assert len(pages) > 80
    outside = {
        (page.relative_to(site).as_posix(), loaded)
        for page in pages
        for loaded in PageOf(page).loads
        if loaded.startswith(("http:", "https:", "//"))
    }
    assert outside == set()
    for style in site.rglob("*.css"):
        assert STYLES_LOAD.findall(style.read_text(encoding="utf-8")) == [], style


def test_what_pages_load_is_in_the_site(site: Path) -> None:
    missing = set()
    for page in pages_of(site):
        for loaded in PageOf(page).loads:
            if page.name == "404.html" or loaded.startswith("data:"):
                # It is shown for any address, so its own are absolute.
                continue
            path = unquote(urlsplit(urljoin(page.as_uri(), loaded)).path)
            if not Path(path).exists():
                missing.add((page.name, loaded))
    assert missing == set()


def test_a_page_with_diagrams_has_with_it_what_draws_them(site: Path) -> None:
    """Without it the theme would fetch one from elsewhere, when somebody looks at the page."""
    drawn = [
        page for page in pages_of(site) if 'class="mermaid"' in page.read_text(encoding="utf-8")
    ]
    assert len(drawn) == (5 if MERMAID.is_file() else 0)
    for page in drawn:
        assert any(loaded.endswith("assets/mermaid.min.js") for loaded in PageOf(page).loads)


def test_pages_come_out_as_they_are_meant(site: Path) -> None:
    """Lists and blocks that only GitHub understands would be left in the text as they are."""
    left = re.compile(r"^(?:```|\|.*\||[-*] \S|[2-9]\. \S)|\]\(", re.MULTILINE)
    found = {
        (page.relative_to(site).as_posix(), text)
        for page in pages_of(site)
        for text in PageOf(page).texts
        if left.search(text)
    }
    assert found == set()


def test_the_reference_of_the_client_has_every_public_name(site: Path) -> None:
    headings = PageOf(site / "reference/python.html").ids
    assert "connect" in openmsmq.__all__
    assert {name for name in openmsmq.__all__ if name.lower() not in headings} == set()
    for word in ("queuemanagercreate_queue", "queuesend", "queuereceive", "transactioncommit"):
        assert word in headings
    other = (site / "reference/python-asyncio.html").read_text(encoding="utf-8")
    assert {name for name in aio.__all__ if f">{name}<" not in other.replace("¶", "<")} == set()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree of which pages can be broken."""
    for name in ("mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    for name in ("docs", "examples", "tests"):
        left = shutil.ignore_patterns("__pycache__", "fuzz", "golden")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/site_hooks.py", tmp_path / "scripts")
    return tmp_path


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("docs/start.md", "[away](guides/nowhere.md)", "guides/nowhere.md"),
        ("docs/start.md", "[away](guides/operate.md#nowhere)", "nowhere"),
        ("docs/start.md", "[away](../examples/nowhere.yaml)", "examples/nowhere.yaml"),
        ("README.md", "[away](docs/nowhere.md)", "nowhere.md"),
        ("docs/guides/lonely.md", "# A page that nobody is led to", "guides/lonely.md"),
    ],
)
def test_what_is_broken_fails_the_build(copy: Path, page: str, text: str, said: str) -> None:
    with (copy / page).open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")
    built = build(copy, copy / "site")
    assert built.returncode != 0
    assert said in built.stderr


def test_a_new_decision_is_led_to_without_further_ado(copy: Path) -> None:
    (copy / "docs/internals/decisions/9999-tea.md").write_text("# 9999: Tea\n", encoding="utf-8")
    built = build(copy, copy / "site")
    assert built.returncode == 0, built.stderr
    listed = (copy / "site/internals/decisions/index.html").read_text(encoding="utf-8")
    assert ">9999: Tea<" in listed


# In a browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs chromium: scripts/ensure-chromium installs it on Debian")
    with browsing(CHROMIUM, tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The address of the site where a server has it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def wait(browser: Browser, condition: str) -> None:
    for _ in range(PAUSES_MAX_COUNT):
        if browser.evaluate(condition):
            return
        time.sleep(PAUSE_S)
    pytest.fail(f"never came: {condition}; problems: {browser.problems}")


FOUND = """[...document.querySelectorAll(".md-search-result__link")].map((one) => one.href)"""


def search(browser: Browser, home: str, word: str) -> list[str]:
    browser.problems.clear()
    browser.open(f"{home}?q={word}", WIDE)
    wait(browser, f"{FOUND}.length > 0")
    assert browser.problems == []
    links: list[str] = browser.evaluate(FOUND)
    return links


def test_a_copy_on_the_disk_can_be_searched(site: Path, browser: Browser) -> None:
    browser.allowed = ("file:", "data:")
    found = search(browser, (site / "index.html").as_uri(), "deadletter")
    assert all(link.startswith("file:") for link in found)
    assert any("/reference/cli.html" in link for link in found)


def test_a_copy_on_a_server_can_be_searched(served: str, browser: Browser) -> None:
    browser.allowed = (served, "data:")
    found = search(browser, f"{served}/index.html", "register_formatter")
    assert any("/reference/python.html" in link for link in found)


@pytest.mark.parametrize(
    "name",
    ["index", "start", "reference/python", "concepts/sessions-and-sequences"],
)
@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (WIDE, True), (PHONE, False)])
def test_a_page_fits_and_fetches_nothing_from_elsewhere(
    site: Path, browser: Browser, name: str, width: int, dark: bool
) -> None:
    browser.allowed = ("file:", "data:")
    browser.problems.clear()
    path = site / f"{name}.html"
    browser.show(path, width, dark=dark)
    diagrams = path.read_text(encoding="utf-8").count('<pre class="mermaid"')
    wait(browser, f"document.querySelectorAll('div.mermaid').length === {diagrams}")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    scheme = browser.evaluate("document.body.dataset.mdColorScheme")
    assert scheme == ("slate" if dark else "default")
    assert browser.problems == []
    PICTURES.mkdir(parents=True, exist_ok=True)
    kind = "phone" if width == PHONE else "dark" if dark else "light"
    browser.picture(PICTURES / f"{name.replace('/', '-')}-{kind}.png")

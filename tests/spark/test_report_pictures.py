"""The page in a browser: nothing is cut, nothing lies on something else, and filters filter.

The pictures are in `build/report-pictures`, for people to look at.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.spark.pipelines.report.page import page
from tests.spark.browser import LOOK, Browser, browsing
from tests.spark.report_example import a_day
from tests.spark.report_texts import HOSTILE

PICTURES = Path(__file__).parents[2] / "build/report-pictures"
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium: scripts/ensure-chromium installs it on Debian"
)

VISIBLE = "[...document.querySelectorAll('tbody tr')].filter((row) => row.offsetHeight).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert CHROMIUM is not None
    with browsing(CHROMIUM, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "day.html"
    path.write_text(page(a_day(), "A day of the enterprise"), encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1600, 1200, 390])
def test_nothing_is_cut_and_nothing_lies_on_something_else(
    browser: Browser, day: Path, width: int, dark: bool
) -> None:
    browser.show(day, width, dark=dark)
    assert browser.evaluate("document.documentElement.clientWidth") == width
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser.picture(PICTURES / f"report-{width}-{'dark' if dark else 'light'}.png")
    assert browser.evaluate(LOOK) == []
    assert browser.problems == []


@pytest.mark.parametrize("width", [1200, 390])
def test_names_of_any_length_and_letters_are_not_cut_and_do_nothing(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    for name in (HOSTILE, "W" * 200, "\u6ce8\u6587" * 60):
        path = tmp_path / "page.html"
        path.write_text(page(a_day(name), name), encoding="utf-8")
        browser.show(path, width)
        assert browser.evaluate(LOOK) == []
        assert browser.evaluate("document.querySelectorAll('img, script').length") == 1
        assert browser.problems == []


def test_filters_leave_the_rows_that_fit_and_say_how_many_messages(
    browser: Browser, day: Path
) -> None:
    browser.show(day, 1200)
    everything = browser.evaluate(VISIBLE)
    assert browser.evaluate("document.querySelector('form.filters').offsetHeight") > 0
    data = a_day()
    chosen = [row for row in data.ledger if row.outcome == "dead_letter"]
    browser.evaluate(
        """(() => {
          const select = document.querySelector("select[name=f]");
          const wanted = "dead letter: bad destination queue";
          select.value = [...select.options].find((one) => one.text === wanted).value;
          select.dispatchEvent(new Event("change"));
        })()"""
    )
    said = browser.evaluate("document.querySelector('output').textContent")
    count = sum(row.message_count for row in chosen)
    total = data.totals.message_count
    rows = f"in {len(chosen)} rows of the ledger"
    assert said == f"{count:,} of {total:,} messages fit, {rows}"
    assert browser.evaluate(VISIBLE) < everything
    browser.evaluate("document.querySelector('button[type=reset]').click()")
    # The script looks again when the form has been reset.
    browser.ask(
        "Runtime.evaluate", expression="new Promise((done) => setTimeout(done))", awaitPromise=True
    )
    assert browser.evaluate(VISIBLE) == everything


def test_a_click_shows_the_messages_of_a_kind_and_a_path_leads_to_its_links(
    browser: Browser, day: Path
) -> None:
    browser.show(day, 1200)
    browser.evaluate("document.querySelector('.advice a').click()")
    kinds = browser.evaluate(
        "[...document.querySelectorAll('.messages tbody tr')].filter((row) => row.offsetHeight)"
        ".map((row) => row.querySelector('.tag').textContent)"
    )
    assert kinds == ["lost"] * 3
    browser.evaluate("document.querySelector('.messages .path summary').click()")
    browser.evaluate("document.querySelector('.messages .path a').click()")
    assert browser.evaluate("document.querySelector(':target').cells[1].textContent") == "HUB-EAST"


def test_without_scripts_everything_is_shown_and_no_filters(browser: Browser, day: Path) -> None:
    browser.show(day, 1200)
    everything = browser.evaluate(VISIBLE)
    browser.show(day, 1200, script=False)
    assert browser.evaluate("document.querySelector('form.filters').offsetHeight") == 0
    assert browser.evaluate(VISIBLE) == everything
    assert browser.evaluate(LOOK) == []

"""No page is left out: of the looks in a browser, of axe-core, or of the pictures in the pages."""

from __future__ import annotations

import re

import pytest
from starlette.routing import Route

from openmsmq import Settings
from openmsmq.console.app import Console
from openmsmq.console.config import ConsoleConfig
from openmsmq.console.pages import PAGES
from tests.console.tour import DOWNLOADS, KINDS, PICTURES, TOUR, Stop

PAGE = PICTURES.parent / "console-pictures.md"
PICTURES_MAX_BYTES = 3 << 20
"""All of them: whoever fetches the repository fetches them."""

PICTURE = re.compile(r"!\[([^\]]+)\]\(console/([a-z-]+)-(light|dark|phone)\.webp\)")


def test_every_page_is_in_the_tour_once() -> None:
    toured = {stop.route for stop in TOUR} | DOWNLOADS
    assert {page.path for page in PAGES} <= toured
    names = [stop.name for stop in TOUR]
    assert len(set(names)) == len(names)


def test_every_address_that_answers_a_browser_is_a_page_of_the_tour() -> None:
    config = ConsoleConfig(host="127.0.0.1", port=0, own=Settings())
    console = Console(config, lambda: 0.0, lambda *_: None)
    routes = console.app._app.routes  # type: ignore[attr-defined]  # noqa: SLF001 - all of them
    found = {route.path for route in routes if isinstance(route, Route)}
    toured = {stop.route for stop in TOUR} - {""}
    assert found - toured - DOWNLOADS == {
        "/sign-out",
        "/static/{name}",
        "/metrics",
        "/health/live",
        "/health/ready",
    }, "these have no page; whatever else answers belongs into the tour"
    assert toured <= found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", TOUR, ids=lambda stop: stop.name)
def test_every_page_has_its_picture_in_the_documentation(stop: Stop, kind: str) -> None:
    picture = PICTURES / f"{stop.name}-{kind}.webp"
    assert picture.is_file(), "make console-pictures makes it"
    assert picture.read_bytes()[:4] == b"RIFF"
    shown = {(name, kind) for _, name, kind in PICTURE.findall(PAGE.read_text(encoding="utf-8"))}
    assert (stop.name, kind) in shown, f"{PAGE.name} does not show it"


def test_there_is_no_picture_of_what_is_no_page_any_more() -> None:
    wanted = {f"{stop.name}-{kind}.webp" for stop in TOUR for kind in KINDS}
    assert {path.name for path in PICTURES.iterdir()} == wanted


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) <= PICTURES_MAX_BYTES

"""An operator's day in a browser: what a person does, sees, and can reach by keyboard.

The pictures are in `build/console-pictures`, for people to look at.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq
from openmsmq import SINGLE_MESSAGE
from openmsmq.directory.plans.changes import changes_for
from openmsmq.directory.plans.plan import read_plan
from openmsmq.model.identity import Guid
from tests.cli.conftest import WORKER
from tests.console.people import Place, opened_place, queue_path
from tests.console.tour import BYTES, ELSEWHERE, KINDS, ORDERS, TOUR, addresses
from tests.console.tour import PICTURES as DOCUMENTED
from tests.server_thread import start_server
from tests.spark.browser import LOOK, Browser, browsing

PICTURES = Path(__file__).parents[2] / "build/console-pictures"
AXE = Path(__file__).parents[2] / "build/axe/package/axe.min.js"
CHROMIUM = shutil.which("chromium")
WIDE, PHONE = 1280, 390
ENTERPRISE = Path(__file__).parents[2] / "examples/enterprise.yaml"
WRITES_PAGES = os.environ.get("OPENMSMQ_CONSOLE_PICTURES") == "docs"
"""Whether the pictures of the documentation are made anew: `make console-pictures`."""

QUALITY = 40
"""Of pictures in the documentation, of 100: letters are sharp, and all of them stay small."""

ALPHA, BETA = (f"127.0.{128 + WORKER}.{number}" for number in (7, 8))
PAUSE_S = 0.02
PAUSES_MAX_COUNT = 3000
"""A minute: pages look again every five seconds, and the computer may be busy with other tests."""

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs chromium: scripts/ensure-chromium installs it on Debian"
    ),
    # One browser for all of them.
    pytest.mark.xdist_group("console-pictures"),
]

# What a tool for accessibility finds first: names for fields and pictures, headings, contrast.
ACCESSIBLE = r"""
(() => {
  const found = [];
  const name = (one) =>
    `${one.tagName}#${one.id}.${one.className} ${one.textContent.trim().slice(0, 40)}`;
  const shown = (one) => one.offsetWidth && getComputedStyle(one).visibility !== "hidden";
  for (const one of document.querySelectorAll("input, select, textarea"))
    if (one.type !== "hidden" && !one.labels.length && !one.ariaLabel)
      found.push(`no label: ${name(one)}`);
  for (const one of document.querySelectorAll("button, a"))
    if (shown(one) && !one.textContent.trim() && !one.ariaLabel)
      found.push(`no name: ${name(one)}`);
  for (const one of document.querySelectorAll("img"))
    if (!one.hasAttribute("alt")) found.push("a picture without alt");
  for (const one of document.querySelectorAll("svg[role=img]"))
    if (!one.getAttribute("aria-label")) found.push("a chart without a name");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  if (!document.documentElement.lang) found.push("no language");
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size !== ids.length) found.push(`an id twice: ${ids}`);
  for (const one of document.querySelectorAll("thead th"))
    if (one.scope !== "col") found.push(`no scope: ${name(one)}`);
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
  };
  const ground = (one) => {
    for (let each = one; each; each = each.parentElement) {
      const colour = channels(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > .99) return colour;
    }
    return [255, 255, 255];
  };
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !shown(one) || one.closest("option")) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(channels(style.color)), light(ground(one))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    const isLarge = parseFloat(style.fontSize) >= 24 ||
      (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${name(one)}`);
  }
  return found;
})()
"""


class Hands:
    """Does what a person does with mouse and keyboard."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address

    def go(self, path: str, width: int = WIDE, *, dark: bool = False) -> None:
        self.browser.open(f"{self.address}{path}", width, dark=dark)

    def click(self, text: str) -> None:
        """Press the last button or link that says this, and wait for the page behind it."""
        box = self.browser.evaluate(
            f"""(() => {{
              const all = [...document.querySelectorAll("a, button")];
              const one = all.findLast((each) => each.textContent.trim() === {text!r});
              if (!one) return null;
              one.scrollIntoView({{block: "center"}});
              const box = one.getBoundingClientRect();
              window.isOld = true;
              return [box.left + box.width / 2, box.top + box.height / 2];
            }})()"""
        )
        assert box, f"nothing says {text!r}"
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.ask(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )
        self.wait("!window.isOld && document.readyState === 'complete'")

    def fill(self, field: str, text: str) -> None:
        """Put a text in place of what a field has."""
        assert self.browser.evaluate(
            f"(() => {{ const one = document.getElementById({field!r});"
            " one.focus(); one.select(); return document.activeElement === one; })()"
        )
        self.browser.ask("Input.insertText", text=text)

    def key(self, key: str, text: str = "") -> None:
        extra = {"text": text} if text else {}
        code = 13 if key == "Enter" else (9 if key == "Tab" else ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            self.browser.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra
            )

    def wait(self, condition: str) -> None:
        for _ in range(PAUSES_MAX_COUNT):
            try:
                if self.browser.evaluate(condition):
                    return
            except AssertionError:
                # The page is just being replaced.
                pass
            time.sleep(PAUSE_S)
        state = "[document.visibilityState, document.title, document.body.innerText.slice(0, 500)]"
        shown = self.browser.evaluate(state)
        pytest.fail(f"never came: {condition}; {shown}; problems: {self.browser.problems}")

    @property
    def text(self) -> str:
        return " ".join(str(self.browser.evaluate("document.body.innerText")).split())


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """An enterprise on a bad day."""
    options = {
        "transfer": True,
        "address": ALPHA,
        "directory_server": True,
        "enterprise": "Example",
    }
    # Pages name the folder.
    folder = Path(tempfile.mkdtemp(prefix="alpha-"))
    with (
        opened_place(folder, **options) as found,
        start_server(
            str(folder / "beta"), name="BETA", transfer=True, address=BETA, api_socket="none"
        ) as other,
        found.manager() as application,
        openmsmq.connect(f"{other.host}:{other.port}") as beta,
    ):
        with found.manager() as manager:
            _talk(manager, beta)
            binary = (
                bytes.fromhex("0001000000ffffffff01000000") + b"\x0c\x02System.Data.DataSet" * 9
            )
            manager.create_queue(BYTES).send(binary, label="an object of .NET")
            for number in range(130):
                manager.create_queue(rf"private$\branch-{number:03}", transactional=number % 3 == 0)
            orders = manager.create_queue(
                ORDERS, transactional=True, journaling=True, label="Orders of the web shop"
            )
            billing = manager.create_queue(r"private$\billing", transactional=True)
            for number in range(120):
                body = f'{{"order": {4711 + number}, "items": [{{"sku": "A-{number}", "n": 2}}]}}'
                orders.send(
                    body.encode(), label=f"order {4711 + number}", transaction=SINGLE_MESSAGE
                )
            xml = (
                '<invoice id="9"><line sku="A-1">2</line><total unit="EUR">19.90</total></invoice>'
            )
            for number in range(12):
                billing.send(
                    xml,
                    label=f"invoice {number}",
                    journal_on_failure=True,
                    transaction=SINGLE_MESSAGE,
                )
            billing.purge()
            manager.queue(ELSEWHERE).send_many([f"invoice {number}" for number in range(40)])
            transaction = manager.begin()
            orders.send("in doubt", transaction=transaction)
            transaction.prepare()
            plan = read_plan(ENTERPRISE.read_text(encoding="utf-8"), ENTERPRISE.name)
            image = manager.read_directory()
            numbers = itertools.count(1)
            manager.write_directory(
                changes_for(plan, image, lambda: Guid(next(numbers).to_bytes(16, "big")))
            )
            _live_through(found, manager)
        application.queue(ORDERS).peek(0)
        yield found
    shutil.rmtree(folder)


def _talk(manager: openmsmq.QueueManager, beta: openmsmq.QueueManager) -> None:
    """Let two queue managers send transactional messages to each other."""
    ledger = beta.create_queue(r"private$\ledger", transactional=True)
    returns = manager.create_queue(r"private$\returns", transactional=True)
    for number in range(5):
        manager.queue(rf"DIRECT=TCP:{BETA}\private$\ledger").send(
            number, transaction=SINGLE_MESSAGE
        )
        beta.queue(rf"DIRECT=TCP:{ALPHA}\private$\returns").send(number, transaction=SINGLE_MESSAGE)
    for _ in range(PAUSES_MAX_COUNT):
        if ledger.count() == 5 and returns.count() == 5:
            return
        time.sleep(PAUSE_S)
    pytest.fail("they never heard of each other")


def _live_through(place: Place, manager: openmsmq.QueueManager) -> None:
    """Let ten minutes pass in the history."""
    history = place.console.server.console.history
    for step in range(50):
        place.console.clock.now_s += 10
        for number in (1, 2, 4, 5, 7, 8, 10, 11):
            queue = manager.queue(rf"private$\branch-{number:03}")
            if step % 9 == number:
                queue.purge()
            elif (step + number) % 4 < 2:
                queue.send_many(["x" * 50] * (number + step % 3))
        history.note(manager.queues())


@pytest.fixture(scope="module")
def hands(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hands]:
    assert CHROMIUM is not None
    PICTURES.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("browser")
    with browsing(CHROMIUM, folder, f"{place.console.address}/") as browser:
        yield Hands(browser, place.console.address)


def test_a_person_signs_in_and_does_an_operators_day(place: Place, hands: Hands) -> None:
    # Sign in.
    hands.go("/")
    assert "Token of the queue manager" in hands.text
    hands.browser.picture(PICTURES / "sign-in.png")
    hands.fill("token", "wrong")
    hands.click("Sign in")
    assert "MQ_ERROR_ACCESS_DENIED" in hands.text
    hands.fill("token", place.token())
    hands.key("Enter", "\r")
    hands.wait("document.title.startsWith('Overview')")
    # What needs somebody comes first: a stuck outgoing queue, with its reason.
    with place.manager() as manager:
        stuck = manager.outgoing_queue(ELSEWHERE)
    assert "40 messages cannot leave for" in hands.text
    assert stuck.explanation.split(":")[0].split("(")[0].strip() in hands.text
    # Find a queue, by keyboard.
    hands.click("Queues")
    hands.key("/", "/")
    assert hands.browser.evaluate("document.activeElement.id") == "find"
    hands.browser.ask("Input.insertText", text="orders")
    hands.key("Enter", "\r")
    hands.wait("location.search.includes('find=orders')")
    hands.wait("document.readyState === 'complete'")
    assert "1 to 1 of 1" in hands.text
    hands.click(ORDERS)
    # Read a message.
    hands.click("order 4711")
    assert '"order": 4711' in hands.text
    # Send one.
    hands.go(queue_path(r"private$\branch-001"))
    hands.click("Send a message")
    hands.fill("label", "by hand")
    hands.fill("message-body", "hello <b>world</b>")
    hands.click("Send")
    assert "Sent as" in hands.text
    # Purge, by typing the name.
    hands.click("Purge")
    hands.fill("typed", r"private$\branch-001")
    hands.click("Purge the queue")
    assert "Deleted" in hands.text
    assert "There are no messages in this queue." in hands.text
    # Replay dead letters: a dry run, and then the run.
    hands.click("Dead letters")
    assert "The queue was purged" in hands.text
    hands.click("Replay…")
    assert "exactly once" in hands.text
    hands.click("Replay 12 dead letters")
    assert "Sent again: 12 dead letters." in hands.text
    with place.manager() as manager:
        assert manager.queue(r"private$\billing").count() == 12
        # For the pictures that come.
        manager.queue(r"private$\billing").purge()
    assert hands.browser.problems == [
        "Failed to load resource: the server responded with a status of 403 (Forbidden)"
    ]
    hands.browser.problems.clear()


def test_a_page_looks_again_by_itself_and_can_be_told_not_to(place: Place, hands: Hands) -> None:
    name = r"private$\branch-004"
    hands.go(queue_path(name))
    hands.browser.evaluate("window.isOld = true")
    with place.manager() as manager:
        manager.queue(name).purge()
        manager.queue(name).send_many(["x"] * 321)
    hands.wait("document.getElementById('counts').innerText.includes('321')")
    assert hands.browser.evaluate("window.isOld"), "the page was not loaded anew"
    hands.browser.evaluate("document.querySelector('button.live').click()")
    assert hands.browser.evaluate("document.querySelector('button.live').ariaPressed") == "false"
    hands.browser.evaluate("localStorage.clear()")
    assert hands.browser.problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_fits_is_readable_and_fetches_nothing_from_elsewhere(
    place: Place, hands: Hands, kind: str
) -> None:
    found: dict[str, list[str]] = {}
    for name, path in addresses(place).items():
        look_at(hands, path, kind)
        hands.browser.picture(PICTURES / f"{name}-{kind}.png")
        if WRITES_PAGES:
            hands.browser.glance(DOCUMENTED / f"{name}-{kind}.webp", QUALITY)
        found[name] = [
            *hands.browser.evaluate(LOOK),
            *hands.browser.evaluate(ACCESSIBLE),
            *(each for each in hands.browser.problems if not is_expected(name, each)),
        ]
        hands.browser.problems.clear()
    assert set(found) == {stop.name for stop in TOUR}
    assert {name: problems for name, problems in found.items() if problems} == {}


def look_at(hands: Hands, path: str, kind: str) -> None:
    hands.go(path, PHONE if kind == "phone" else WIDE, dark=kind == "dark")


def is_expected(name: str, problem: str) -> bool:
    """Whether a browser complains that there is no such page, and there is none."""
    return name == "error" and "404" in problem


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: scripts/ensure-axe gets it by npm")
@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_for_accessibility_finds_nothing_serious(
    place: Place, hands: Hands, kind: str
) -> None:
    found: dict[str, list[str]] = {}
    for name, path in addresses(place).items():
        look_at(hands, path, kind)
        found[name] = axe(hands)
    hands.browser.problems.clear()
    assert set(found) == {stop.name for stop in TOUR}
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: scripts/ensure-axe gets it by npm")
def test_the_tool_for_accessibility_finds_what_is_there(place: Place, hands: Hands) -> None:
    assert place
    hands.go("/queues")
    hands.browser.evaluate(
        "document.body.insertAdjacentHTML('beforeend', "
        "'<main><img src=\"/static/icon.svg\"><button></button></main>')"
    )
    (image, button) = sorted(
        one.partition(":")[0] for one in axe(hands) if one.startswith(("image-alt", "button-name"))
    )[::-1]
    assert (image, button) == ("image-alt", "button-name")


def axe(hands: Hands) -> list[str]:
    """Return the serious and critical faults of the page that is open."""
    hands.browser.evaluate(AXE.read_text(encoding="utf-8"))
    hands.browser.evaluate(
        "axe.run().then((found) => { window.axeFound = found.violations"
        ".filter((one) => ['serious', 'critical'].includes(one.impact))"
        ".map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(', ')}`); })"
        "&& undefined"
    )
    hands.wait("window.axeFound !== undefined")
    found: list[str] = hands.browser.evaluate("window.axeFound")
    return found


def test_names_of_any_length_are_not_cut_on_a_phone(place: Place, hands: Hands) -> None:
    name = "private$\\" + "W" * 120
    with place.manager() as manager:
        manager.create_queue(name, exist_ok=True).send("x" * 500, label="W" * 240)
        lookup_id = manager.queue(name).peek(0).lookup_id
    for path in ("/queues?find=WWW", queue_path(name), f"{queue_path(name)}/messages/{lookup_id}"):
        for width in (WIDE, PHONE):
            hands.go(path, width)
            assert hands.browser.evaluate(LOOK) == []

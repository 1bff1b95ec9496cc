"""A browser without a screen, driven through a pipe: what a person would see of a page."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe", "about:blank"),
)

LOOK = r"""
(() => {
  const found = [];
  const wide = document.documentElement.clientWidth;
  const name = (one) =>
    `${one.tagName}.${one.getAttribute("class") || ""} ${one.textContent.trim().slice(0, 40)}`;
  const box = (one) => one.getBoundingClientRect();
  if (document.documentElement.scrollWidth > wide) found.push("the page is wider than the window");
  for (const one of document.querySelectorAll("main *")) {
    const own = box(one);
    if (!own.width || !own.height || one.closest("option,select")) continue;
    if (own.right > wide + 1 || own.left < -1) found.push(`out of the window: ${name(one)}`);
    if (one.closest("svg")) continue;
    if (one.clientWidth && one.scrollWidth > one.clientWidth + 1)
      found.push(`wider than its box: ${name(one)}`);
  }
  const cells = document.querySelectorAll("td, th");
  for (const one of cells) {
    const around = box(one.closest("table").parentElement);
    if (box(one).right > around.right + 1) found.push(`a column is cut: ${name(one)}`);
  }
  for (const svg of document.querySelectorAll("figure svg[role=img]")) {
    const texts = [...svg.querySelectorAll("text")];
    texts.forEach((one, i) => {
      const a = box(one), around = box(svg);
      if (a.left < around.left - 1 || a.right > around.right + 1 ||
          a.top < around.top - 1 || a.bottom > around.bottom + 1)
        found.push(`cut by its figure: ${name(one)}`);
      for (const other of texts.slice(i + 1)) {
        const b = box(other);
        if (a.left < b.right - .5 && b.left < a.right - .5 &&
            a.top < b.bottom - 1.5 && b.top < a.bottom - 1.5)
          found.push(`on each other: ${name(one)} / ${name(other)}`);
      }
    });
  }
  return found;
})()
"""
"""What is cut, outside of the window, or lies on something else."""


class Browser:
    """Speaks the protocol of Chromium's developer tools with one page."""

    def __init__(self, to_browser: int, from_browser: int, allowed: str | tuple[str, ...]) -> None:
        self.allowed = allowed
        """How the addresses begin that it may fetch."""
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self.problems: list[str] = []
        """What the page complained about: blocked scripts, styles and fetches, and exceptions."""
        (target,) = (
            each
            for each in self._ask("Target.getTargets", {}, "")["targetInfos"]
            if each["type"] == "page"
        )
        wanted = {"targetId": target["targetId"], "flatten": True}
        self._session = self._ask("Target.attachToTarget", wanted, "")["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{part}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        return self._ask(method, parameters, self._session)

    def _ask(self, method: str, parameters: dict[str, Any], session: str) -> Any:
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self._to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        match message.get("method"):
            case "Log.entryAdded":
                self.problems.append(message["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.problems.append(str(message["params"]["exceptionDetails"]))
            case "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(self.allowed):
                    self.problems.append(f"fetched {url}")
        return message

    def show(self, path: Path, width: int, *, dark: bool = False, script: bool = True) -> None:
        """Open a page at a width, and wait until it is there."""
        self.open(path.as_uri(), width, dark=dark, script=script)

    def open(self, url: str, width: int, *, dark: bool = False, script: bool = True) -> None:
        """Open an address at a width, and wait until it is there."""
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.ask("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what the whole page looks like."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def glance(self, path: Path, quality: int) -> None:
        """Write what is seen of the page without scrolling, as small as can be."""
        found = self.ask("Page.captureScreenshot", format="webp", quality=quality)
        path.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def browsing(
    program: str, folder: Path, allowed: str | tuple[str, ...] = "file:"
) -> Iterator[Browser]:
    """Start a browser that keeps everything in a folder; it ends with the block."""
    to_child, to_browser = os.pipe()
    from_browser, from_child = os.pipe()
    # The browser takes its orders from the descriptor 3, and answers to 4.
    started = subprocess.Popen(
        [
            *("bash", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "browser", program),
            *(f"--user-data-dir={folder}", *OPTIONS),
        ],
        pass_fds=(to_child, from_child),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_child)
    os.close(from_child)
    try:
        yield Browser(to_browser, from_browser, allowed)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        started.terminate()
        started.wait(10)

"""Does what a page asks for, as its reader would: in one shell, and one Python started from it.

Runs in a network and a process namespace of its own, so that every page has all ports and loopback
addresses for itself, and nothing that it starts survives. Use: `page_runner.py STEPS RESULTS
PYTHON`, where PYTHON is what the reader starts for the blocks of code.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time
import traceback
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

POLL_S = 0.02
_SERVE = re.compile(r"\bopenmsmq serve\b(?:[^\n&]|\\\n)*&$", re.MULTILINE)
_READY = re.compile(rb"^ready name=", re.MULTILINE)
_SIGN_IN = re.compile(r"(http://\S+)/sign-in/\S+")
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_TAG = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.DOTALL)
LOOK_AGAIN_S = 0.5


def now_s() -> float:
    """Return the time by which a reader loses patience."""
    return time.monotonic()  # noqa: TID251


class Host:
    """A program that is fed one block after the other and answers each with a file."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log.open("ab"), stderr=subprocess.STDOUT,
            env=environment, text=True,
        )  # fmt: skip

    def feed(self, line: str, answer: Path, deadline: float) -> str:
        """Return a line, and wait for its answer; gives what is wrong."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "it has ended before"
        while not answer.exists():
            if self.process.poll() is not None:
                return f"it ended with status {self.process.returncode}"
            if now_s() > deadline:
                return "it takes too long"
            time.sleep(POLL_S)
        return answer.read_text(encoding="utf-8").strip()


class Browser:
    """Whoever looks at the console: opens the link that it has printed, and presses the button."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._console = ""
        jar = urllib.request.HTTPCookieProcessor(CookieJar())
        # A proxy of whoever runs the tests does not know this network.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    def look(self, path: str, text: str, deadline: float) -> str:
        """Wait until a page of the console shows a text; gives what is wrong."""
        shown = "the console has not printed its link"
        while now_s() < deadline:
            if self._console or self._sign_in():
                shown = self._shown(self._console + path)
                if text in shown:
                    return ""
            time.sleep(LOOK_AGAIN_S)
        return f"the console does not show {text!r} at {path}: {shown}"

    def _sign_in(self) -> bool:
        link = _SIGN_IN.search(self._log.read_text(encoding="utf-8", errors="replace"))
        if link is None:
            return False
        with self._opener.open(link[0]) as page:
            fields = {name: html.unescape(value) for name, value in _HIDDEN.findall(_text(page))}
        pressed = urllib.request.Request(
            f"{link[1]}/sign-in",
            urllib.parse.urlencode(fields).encode(),
            {"Origin": link[1]},
        )
        with self._opener.open(pressed):
            self._console = link[1]
        return True

    def _shown(self, address: str) -> str:
        with self._opener.open(address) as page:
            return " ".join(html.unescape(_TAG.sub("", _text(page))).split())


def _text(page: object) -> str:
    return str(page.read().decode("utf-8"))  # type: ignore[attr-defined]


def be_python() -> None:
    """Run blocks of code as they come, one after the other, in one namespace."""
    # Spark takes functions apart by the name of their module.
    names: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        code, answer = json.loads(line)
        try:
            exec(compile(code, "<page>", "exec", dont_inherit=True), names)
            problem = ""
        except BaseException as error:
            traceback.print_exc()
            problem = f"{type(error).__name__}: {error}"
        sys.stdout.flush()
        temporary = Path(answer + ".part")
        temporary.write_text(problem, encoding="utf-8")
        temporary.rename(answer)


def run(
    steps: list[dict[str, object]], place: Path, log: Path, interpreter: str
) -> list[dict[str, str]]:
    """Do the steps until one fails; gives for each what was printed and what is wrong."""
    shell = Host(["bash", "--norc", "--noprofile", "-s"], log, dict(os.environ))
    python: Host | None = None
    browser = Browser(log)
    results: list[dict[str, str]] = []
    serving = 0
    for number, step in enumerate(steps):
        begin = log.stat().st_size
        deadline = now_s() + float(str(step["seconds"]))
        answer = place / f"{number}.done"
        if step["kind"] == "file":
            Path(str(step["name"])).write_text(str(step["text"]), encoding="utf-8")
            problem = ""
        elif step["kind"] == "console":
            problem = browser.look(str(step["name"]), str(step["text"]).strip(), deadline)
        elif step["kind"] == "shell":
            block = place / f"{number}.sh"
            block.write_text(str(step["text"]), encoding="utf-8")
            serving += len(_SERVE.findall(str(step["text"])))
            # What fails ends the shell; nothing may read the blocks that are still to come.
            problem = shell.feed(
                f"set -e; source {block} < /dev/null; set +e; : > {answer}", answer, deadline
            )
        else:
            if python is None:
                exported = place / "environment"
                shell.feed(f"env -0 > {exported}; : > {exported}.done",
                           Path(f"{exported}.done"), deadline)  # fmt: skip
                pairs = exported.read_text(encoding="utf-8").split("\0")
                environment = dict(pair.split("=", 1) for pair in pairs if pair)
                python = Host([interpreter, "-u", __file__, "--python"], log, environment)
            problem = python.feed(json.dumps([step["text"], str(answer)]), answer, deadline)
        while (
            not problem and len(_READY.findall(log.read_bytes())) < serving and now_s() < deadline
        ):
            # A reader sees that line before the next block is pasted.
            time.sleep(POLL_S)
        printed = log.read_bytes()[begin:].decode("utf-8", "replace")
        results.append({"printed": printed, "problem": problem})
        if problem:
            break
    return results


def main() -> None:
    if sys.argv[1:] == ["--python"]:
        be_python()
        return
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    asked, told = Path(sys.argv[1]), Path(sys.argv[2])
    steps = json.loads(asked.read_text(encoding="utf-8"))
    results = run(steps, told.parent, told.parent / "log", sys.argv[3])
    told.write_text(json.dumps(results), encoding="utf-8")
    # The namespace ends with this process, and everything in it.
    os._exit(0)


if __name__ == "__main__":
    main()

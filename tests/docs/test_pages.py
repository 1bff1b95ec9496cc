"""Every command and code block of README, the first steps and the guides runs as it is pasted.

Each page runs in order, in an empty directory, in namespaces of its own: it has all ports and all
loopback addresses to itself, and nothing that it starts survives it.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.docs import preparations
from tests.docs.pages import (
    PAGES,
    ROOT,
    SHELLS,
    left_out,
    missing_lines,
    notes,
    steps,
)
from tests.java import VARIABLES

RUNNER = Path(__file__).with_name("page_runner.py")
STEP_S = 60
SPARK_STEP_S = 300
KEPT_BACK = (
    "OPENMSMQ_",
    "PYTEST_",
    "PYSPARK_",
    "COV_",
    "XDG_",
)
"""Variables of whoever runs the tests that a reader does not have."""

PREPARED: dict[str, str] = {
    "docs/guides/analyse-captures.md": preparations.CAPTURES,
    "docs/guides/migrate-from-windows.md": preparations.WHAT_WINDOWS_SENT,
}
"""What a page takes for granted, and the reader has: commands that run before it."""

PRINTED: dict[str, list[str]] = {
    "docs/guides/spark-batch.md": [
        r"|private$\orders|1             |order|",
        "| tea|  15|",
        "received so far: 1",
        "chosen: 2",
        "numbers 2 and 3: 2",
        '4 answers, such as {"ITEM": "TEA", "CUPS": 2}',
        "after two attempts: 8",
        "after two numbers: 16",
    ],
    "docs/guides/spark-streaming.md": [
        "in the table: 3",
        "in the queue: 0",
        r"private$\orders is 0 messages behind, and has 5",
        "['done: order 9', 'done: order 10', 'done: order 11']",
        "['a cup of tea', 'a cup of tea']",
    ],
    "docs/guides/migrate-from-windows.md": [
        "kept: 5",
        "|     3|     Eve|",
        "| 4711|",
        "|order|              0|      1|",
        r"|DIRECT=OS:ALPHA\PRIVATE$\orders|NACK_QUEUE_PURGED |1    |",
    ],
}
"""What the code of a page prints, as its text says."""

RUN = [page for page in PAGES if any(step.kind in ("shell", "python") for step in steps(page))]
WITH_SPARK = [
    page
    for page in RUN
    if any(word in step.text for step in steps(page) for word in ("spark", "openmsmq pipeline"))
]


@functools.cache
def namespaces() -> tuple[str, ...]:
    """Return the command that makes namespaces here; none if they are not permitted."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return ()
    options = ["--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        options.append("--map-root-user")
    command = ("unshare", *options)
    probe = subprocess.run(
        [*command, "ip", "link", "set", "lo", "up"], capture_output=True, check=False
    )
    return command if probe.returncode == 0 else ()


def environment(home: Path, *, activated: bool) -> dict[str, str]:
    """Return the environment of a reader who has activated the virtual environment, or has not."""
    # One page, that of whoever has not activated it, shows Java as readers have it.
    unknown = KEPT_BACK if activated else (*KEPT_BACK, *VARIABLES)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(unknown)}
    ours = str(Path(sys.executable).parent)
    others = [folder for folder in os.environ["PATH"].split(":") if folder != ours]
    return kept | {
        "PATH": ":".join([ours, *others] if activated else others),
        "HOME": str(home),
        "TERM": "dumb",
        # There is no other network here, whatever the name of this computer means outside.
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


def run_page(page: str, place: Path, *, activated: bool = True) -> list[dict[str, str]]:
    """Do what a page asks for; gives what came of each step, up to the first that failed."""
    work, told = place / "work", place / "told"
    work.mkdir()
    told.mkdir()
    (told / "log").touch()
    # Whoever has not activated the virtual environment writes .venv/bin/.
    (work / ".venv").symlink_to(Path(sys.executable).parent.parent)
    wanted: list[dict[str, Any]] = []
    if page in PREPARED:
        text = PREPARED[page]
        wanted.append({"kind": "shell", "name": "preparation", "text": text, "seconds": STEP_S})
    seconds = SPARK_STEP_S if page in WITH_SPARK else STEP_S
    wanted += [
        {**step._asdict(), "seconds": seconds} for step in steps(page) if step.kind != "prints"
    ]
    (told / "steps").write_text(json.dumps(wanted), encoding="utf-8")
    python = "python" if activated else ".venv/bin/python"
    files = [str(told / "steps"), str(told / "results")]
    ran = subprocess.run(
        [*namespaces(), sys.executable, str(RUNNER), *files, python],
        cwd=work,
        env=environment(place, activated=activated),
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stderr
    results: list[dict[str, str]] = json.loads((told / "results").read_text(encoding="utf-8"))
    return results[1:] if page in PREPARED and not results[0]["problem"] else results


def marked(page: str, activated: bool) -> Any:
    marks = [pytest.mark.spark] if page in WITH_SPARK else []
    return pytest.param(page, activated, marks=marks, id=page if activated else f"{page} as it is")


@pytest.mark.timeout(1800)
# Who reads README has not activated the virtual environment yet.
@pytest.mark.parametrize(("page", "activated"), [marked(page, page != "README.md") for page in RUN])
def test_a_page_runs_as_it_is_pasted(page: str, activated: bool, tmp_path: Path) -> None:
    if not namespaces():
        pytest.skip("pages run in namespaces of their own, which this user cannot make")
    if page in WITH_SPARK and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17: scripts/ensure-java installs it on Debian")
    found = run_page(page, tmp_path, activated=activated)
    everything = "".join(result["printed"] for result in found)
    results = iter(found)
    printed = ""
    for step in steps(page):
        if step.kind == "prints":
            assert missing_lines(step.text, printed) == [], f"{step.name}: {printed}"
            continue
        result = next(results)
        printed = result["printed"]
        assert result["problem"] == "", f"{step.name}\n{step.text}\n{printed}"
    assert [text for text in PRINTED.get(page, ()) if text not in everything] == []


def test_readme_has_java_as_its_readers_have_it(tmp_path: Path) -> None:
    plain, quick = (environment(tmp_path, activated=activated) for activated in (False, True))
    assert not plain.keys() & set(VARIABLES)
    assert quick.keys() >= set(VARIABLES)
    assert "README.md" in WITH_SPARK


LEFT_OUT = {
    ("README.md", "takes minutes, and is what the tests are part of"): 1,
    ("docs/start.md", "installs the virtual environment in which the tests run"): 1,
    (
        "docs/guides/migrate-from-windows.md",
        "needs an address that Windows reaches",
    ): 1,
    ("docs/guides/read-a-capture.md", "needs tcpdump or tshark, and ends with Ctrl-C"): 1,
    ("docs/guides/read-a-capture.md", "needs tcpdump, and ends with Ctrl-C"): 1,
    ("docs/guides/replay-dead-letters.md", "the lookup identifier is that of a letter in doubt"): 1,
    ("docs/guides/spark-cluster.md", "needs the computers of a cluster"): 6,
    ("docs/guides/survive-the-loss-of-a-machine.md", "needs two servers of PostgreSQL"): 2,
    ("docs/guides/spark-to-database.md", "fetches packages from the network"): 1,
    (
        "docs/guides/spark-to-database.md",
        "needs a server of PostgreSQL; tests/spark/test_write_once.py has one",
    ): 3,
    ("docs/guides/spark-yarn-kubernetes.md", "needs the computers of a cluster"): 4,
    ("docs/guides/accounts.md", "needs a domain controller"): 1,
    (
        "docs/guides/multicast.md",
        "needs a network with multicast; tests/system/test_example_8_stock_ticker.py has one",
    ): 1,
    (
        "docs/guides/two-phase-commit.md",
        "needs a server of PostgreSQL; tests/xa/test_two_phase.py has one",
    ): 1,
    (
        "docs/guides/two-phase-commit.md",
        "needs the package transaction and a program around it",
    ): 1,
    ("docs/guides/who-may-do-what.md", "needs an authority and a user of a directory"): 1,
}
"""Every block that no test runs, and how many of a kind. Whoever adds one has to say so here."""


def test_what_pages_leave_to_the_reader_is_little_and_has_a_reason() -> None:
    assert (
        Counter((each.page, each.reason) for page in PAGES for each in left_out(page)) == LEFT_OUT
    )


def test_comments_before_blocks_are_those_that_the_test_knows() -> None:
    for page, path in PAGES.items():
        for note in notes(page):
            assert note == "prints" or note.startswith(("file: ", "not run: ")), (page, note)
        looks = sum(step.kind == "console" for step in steps(page))
        # No other comment does anything, so whoever misspells one is told.
        assert path.read_text(encoding="utf-8").count("<!--") == len(notes(page)) + looks, page


def test_the_first_steps_look_into_the_console_before_during_and_after_the_fault() -> None:
    looks = [step.name for step in steps("docs/start.md") if step.kind == "console"]
    assert looks == ["/queues", "/", "/outgoing", "/"]


def test_every_block_that_looks_like_commands_is_called_so() -> None:
    for page, path in PAGES.items():
        in_block = False
        language = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                in_block, language = not in_block, line.removeprefix("```")
            elif in_block and line.startswith(("openmsmq ", ".venv/bin/openmsmq ", "$ ")):
                assert language in SHELLS, (page, line)
                assert not line.startswith("$ "), (page, line, "a prompt cannot be pasted")


def test_the_pages_are_there() -> None:
    assert (ROOT / "README.md") in PAGES.values()
    assert len(RUN) >= 17

"""A process that runs tests in forks of itself, so that no run has to import pytest again.

    python -m tests.conformance.forks

It reads a line of JSON for each run, `Order`, and answers with one, `Outcome`. It never imports
anything of the project: each fork does, from the files as they are then.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import Phase, settings

SHARED: Final = (
    "asyncio",
    "cryptography.hazmat.primitives.asymmetric.rsa",
    "cryptography.hazmat.primitives.serialization.pkcs7",
    "cryptography.x509",
    "hypothesis.stateful",
    "hypothesis.strategies",
    "lmdb",
    "ssl",
    "tomllib",
    "xml.etree.ElementTree",
    "xml.sax",
)
"""What many tests import, and what starts no thread when it is imported."""

EXAMPLES: Final = 50
ENDLESS: Final = -1
SAID_MAX_LENGTH: Final = 2_000
SEEN_MAX_LENGTH: Final = 200


class Order(msgspec.Struct, frozen=True):
    """The arguments of pytest, and how long the run may take."""

    arguments: list[str]
    timeout_s: float


class Outcome(msgspec.Struct, frozen=True):
    """How pytest ended (`ENDLESS` if it did not), what it printed, and what the first test saw."""

    code: int
    said: str
    when: str = ""
    kind: str = ""
    seen: str = ""


class Witness:
    """A plugin of pytest that keeps the first failure, and lets Hypothesis look less long."""

    def __init__(self) -> None:
        self.when = self.kind = self.seen = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """The same examples each time; how small a failing one could be does not matter."""
        settings.register_profile(
            "defect",
            settings(),
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("defect")

    def pytest_exception_interact(
        self, call: pytest.CallInfo[object], report: pytest.TestReport | pytest.CollectReport
    ) -> None:
        """Keep what a test, its set-up or a module raised."""
        if self.kind or call.excinfo is None:
            return
        error: BaseException = call.excinfo.value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self.when = report.when or ""
        # The name of the nearest class that Python itself has says what kind of a failure it is.
        self.kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
        first, *_ = [line for line in str(error).splitlines() if line.strip()] or [""]
        self.seen = f"{type(error).__name__}: {first}"[:SEEN_MAX_LENGTH]


def _run(arguments: list[str], said: int, found: Path) -> None:
    # In the fork: nothing returns from here.
    code = ENDLESS
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        witness = Witness()
        code = int(pytest.main(arguments, plugins=[witness]))
        found.write_bytes(msgspec.json.encode([witness.when, witness.kind, witness.seen]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def carry_out(order: Order) -> Outcome:
    """Run pytest in a fork, and end whatever its tests have started."""
    with tempfile.TemporaryDirectory() as scratch:
        said, found = Path(scratch) / "said", Path(scratch) / "found"
        with said.open("wb") as file:
            process = os.fork()
            if process == 0:
                _run(order.arguments, file.fileno(), found)
        watched = os.pidfd_open(process)
        ended, _, _ = select.select([watched], [], [], order.timeout_s)
        os.close(watched)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        text = said.read_text(encoding="utf-8", errors="replace")[-SAID_MAX_LENGTH:]
        code = os.waitstatus_to_exitcode(status) if ended else ENDLESS
        noted = msgspec.json.decode(found.read_bytes(), type=list[str]) if found.exists() else []
        return Outcome(code, text, *noted)


def main() -> None:
    """Carry out one order after the other, until there are no more."""
    for name in SHARED:
        importlib.import_module(name)
    for line in sys.stdin.buffer:
        outcome = carry_out(msgspec.json.decode(line, type=Order))
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

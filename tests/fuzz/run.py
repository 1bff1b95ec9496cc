"""Fuzz all targets for a given time in total, or with a number of inputs, and tell what was found.

    python tests/fuzz/run.py [--seconds 600 | --executions 10000000] [--jobs 1] [TARGET...]

Time is shared out by `SHARES` of the registry, and all of it is the fuzzer's, which looks where
the code goes. Inputs are shared out by `COUNT_SHARES`: one in `GUIDED_PART` is the fuzzer's, and
the others are made without it of what it has found so far, which is far faster. An input that
takes longer than `INPUT_TIMEOUT_S`, or a process that grows beyond `MEMORY_MAX_MB`, is a finding
like any other. Everything is kept in build/fuzz: the corpus, which later runs start from; what
each target printed; and the inputs that broke something.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fuzz.plain import (  # noqa: E402 -- the path above finds it
    INPUT_BYTES_MAX,
    INPUT_TIMEOUT_S,
    MEMORY_MAX_MB,
)
from tests.fuzz.registry import COUNT_SHARES, NAMES, SHARES, seeds  # noqa: E402

BUILD: Final = ROOT / "build/fuzz"
GUIDED_PART: Final = 20
START_AND_STOP_S: Final = 120
"""How much longer than its time a target may take before it counts as hanging."""

SLOWEST_EXECUTIONS_PER_S: Final = 20
"""Whoever is slower than this over a number of inputs counts as hanging."""

_SHARE: Final = 2
_COVERAGE: Final = re.compile(r"cov: (\d+) ft: (\d+)")
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_MEMORY: Final = re.compile(r"stat::peak_rss_mb:\s*(\d+)")


class Result(NamedTuple):
    """What became of one target."""

    target: str
    executions: int
    edges: int
    features: int
    seconds: int
    memory_mb: int
    findings: list[Path]
    problem: str


class Work(NamedTuple):
    """How long a target runs, or how many inputs it gets."""

    target: str
    seconds: int = 0
    guided: int = 0
    plain: int = 0

    @property
    def option(self) -> str:
        """What libFuzzer is told."""
        return f"-runs={self.guided}" if self.guided else f"-max_total_time={self.seconds}"

    @property
    def patience_s(self) -> int:
        """When to give up waiting for one of its processes."""
        executions = max(self.guided, self.plain)
        return self.seconds + executions // SLOWEST_EXECUTIONS_PER_S + START_AND_STOP_S


def main() -> int:
    options = _options()
    chosen: list[str] = options.targets or list(NAMES)
    if options.executions:
        works = by_count(chosen, options.executions)
    else:
        works = _by_time(chosen, options.seconds * options.jobs)
    print(
        f"{'target':18} {'executions':>11} {'per s':>7} {'edges':>6} {'features':>8} "
        f"{'seconds':>7} {'MB':>5}  findings"
    )
    started = time.perf_counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(_run_and_tell, works))
    bad = [result for result in results if result.findings or result.problem]
    _tell_all(results, time.perf_counter() - started, options.jobs)
    for result in bad:
        print(f"\n{result.target}: {result.problem}")
        for finding in result.findings:
            path = finding.relative_to(ROOT)
            print(f"  {path}\n  python -m tests.fuzz.replay {result.target} {path}")
    return 1 if bad else 0


def _by_time(chosen: list[str], seconds: int) -> list[Work]:
    total = sum(SHARES.get(name, 1) for name in chosen)
    return [
        Work(name, seconds=max(1, round(seconds * SHARES.get(name, 1) / total))) for name in chosen
    ]


def by_count(chosen: list[str], executions: int) -> list[Work]:
    """Share inputs out, rounded up; those with most come first."""
    total = sum(COUNT_SHARES.get(name, _SHARE) for name in chosen)
    works = []
    for name in sorted(chosen, key=lambda name: -COUNT_SHARES.get(name, _SHARE)):
        count = -(-executions * COUNT_SHARES.get(name, _SHARE) // total)
        guided = -(-count // GUIDED_PART)
        works.append(Work(name, guided=guided, plain=count - guided))
    return works


def _tell_all(results: list[Result], spent_s: float, jobs: int) -> None:
    """Print the last line: all that a report needs."""
    executions = sum(result.executions for result in results)
    findings = sum(max(len(result.findings), bool(result.problem)) for result in results)
    memory_mb = max(result.memory_mb for result in results)
    counts = ", ".join(f"{result.target} {result.executions:,}" for result in results)
    print(
        f"all: {executions:,} executions of {len(results)} targets in {spent_s:,.0f} s with {jobs} "
        f"at a time, at most {memory_mb} MB each, {findings} findings ({counts})"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument(
        "--executions", type=int, default=0, help="inputs for all targets together, not a time"
    )
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at the same time")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    options = parser.parse_args()
    unknown = set(options.targets) - set(NAMES)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    return options


def _run_and_tell(work: Work) -> Result:
    result = _run(work)
    found = len(result.findings) or result.problem or "none"
    per_s = result.executions // max(result.seconds, 1)
    print(
        f"{result.target:18} {result.executions:>11,} {per_s:>7,} {result.edges:>6} "
        f"{result.features:>8} {result.seconds:>7} {result.memory_mb:>5}  {found}",
        flush=True,
    )
    return result


def _run(work: Work) -> Result:
    name = work.target
    corpus, start, found = (BUILD / part / name for part in ("corpus", "seeds", "findings"))
    for folder in (corpus, start, found):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(name):
        (start / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    before = set(found.iterdir())
    log = BUILD / f"{name}.log"
    commands = [_guided(work, corpus, start, found)]
    if work.plain:
        commands.append(_plain(work, corpus, start, found))
    problem = ""
    started = time.perf_counter()
    with log.open("wb") as output:
        for command in commands:
            problem = problem or _process(command, work.patience_s, output)
    spent_s = time.perf_counter() - started
    text = log.read_text(errors="replace")
    if problem:
        problem += f": {_last_error(text)}; see {log.relative_to(ROOT)}"
    edges, features = map(int, (_COVERAGE.findall(text) or [(0, 0)])[-1])
    return Result(
        name,
        sum(_statistics(_EXECUTED, text)),
        edges,
        features,
        round(spent_s),
        max(_statistics(_MEMORY, text), default=0),
        sorted(set(found.iterdir()) - before),
        problem,
    )


def _guided(work: Work, corpus: Path, start: Path, found: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "tests.fuzz.worker", work.target),
        work.option,
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MAX_MB}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        *(str(corpus), str(start)),
    ]


def _plain(work: Work, corpus: Path, start: Path, found: Path) -> list[str]:
    # Each run has other inputs; the seed is in the log, because the command is.
    seed = str(time.time_ns())
    module = (sys.executable, "-m", "tests.fuzz.plain", work.target)
    return [*module, str(work.plain), seed, str(found), str(corpus), str(start)]


def _process(command: list[str], patience_s: int, output: BinaryIO) -> str:
    """Run one process of a target; give what was wrong."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    output.write(f"{' '.join(command)}\n".encode())
    output.flush()
    try:
        code = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=patience_s,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return "it did not stop in time"
    return f"ended with status {code}" if code else ""


def _statistics(pattern: re.Pattern[str], text: str) -> list[int]:
    return [int(number) for number in pattern.findall(text)]


def _last_error(log: str) -> str:
    """The line that names the exception, which Python prints last."""
    lines = [line for line in log.splitlines() if re.match(r"[\w.]*(Error|Exception|Name)\b", line)]
    return lines[-1] if lines else "no exception named"


if __name__ == "__main__":
    sys.exit(main())

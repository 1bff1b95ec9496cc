"""Fuzz all targets for a given time in total, and tell what was found.

    python tests/fuzz/run.py [--seconds 600] [--jobs 1] [TARGET...]

Everything is kept in build/fuzz: the corpus, which later runs start from; what each target
printed; and the inputs that broke something.
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
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fuzz.seeds import seeds  # noqa: E402 -- the path above finds it
from tests.fuzz.targets import TARGETS  # noqa: E402

BUILD: Final = ROOT / "build/fuzz"
INPUT_BYTES_MAX: Final = 4096
INPUT_TIMEOUT_S: Final = 10
MEMORY_MAX_MB: Final = 1024
START_AND_STOP_S: Final = 120
"""How much longer than its time a target may take before it counts as hanging."""

# What holds most of the code has most of the time; everything else has one share.
SHARES: Final = {"packets": 4, "frames": 2, "captures": 3, "views": 3}

_COVERAGE: Final = re.compile(r"cov: (\d+) ft: (\d+)")
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


class Result(NamedTuple):
    """What became of one target."""

    target: str
    executions: int
    edges: int
    features: int
    seconds: int
    findings: list[Path]
    problem: str


def main() -> int:
    options = _options()
    chosen: list[str] = options.targets or list(TARGETS)
    total = sum(SHARES.get(name, 1) for name in chosen)
    seconds = {
        name: max(1, round(options.seconds * options.jobs * SHARES.get(name, 1) / total))
        for name in chosen
    }
    print(f"{'target':18} {'executions':>11} {'edges':>6} {'features':>8} {'seconds':>7}  findings")
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: _run_and_tell(name, seconds[name]), chosen))
    executions = sum(result.executions for result in results)
    spent = sum(result.seconds for result in results)
    bad = [result for result in results if result.findings or result.problem]
    print(f"{'all':18} {executions:>11,} {'':15} {spent:>7}  {len(bad)}")
    for result in bad:
        print(f"\n{result.target}: {result.problem}")
        for finding in result.findings:
            path = finding.relative_to(ROOT)
            print(f"  {path}\n  python -m tests.fuzz.replay {result.target} {path}")
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at the same time")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    unknown = set(options.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are: {', '.join(TARGETS)}")
    return options


def _run_and_tell(name: str, seconds: int) -> Result:
    result = _run(name, seconds)
    found = len(result.findings) or result.problem or "none"
    print(
        f"{name:18} {result.executions:>11,} {result.edges:>6} {result.features:>8} "
        f"{result.seconds:>7}  {found}",
        flush=True,
    )
    return result


def _run(name: str, seconds: int) -> Result:
    corpus, start, found = (BUILD / part / name for part in ("corpus", "seeds", "findings"))
    for folder in (corpus, start, found):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(name):
        (start / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    before = set(found.iterdir())
    command = [
        *(sys.executable, "-m", "tests.fuzz.worker", name),
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MAX_MB}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        *(str(corpus), str(start)),
    ]
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    log = BUILD / f"{name}.log"
    problem = ""
    started = time.perf_counter()
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds + START_AND_STOP_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code, problem = 0, "it did not stop in time"
    spent_s = time.perf_counter() - started
    text = log.read_text(errors="replace")
    findings = sorted(set(found.iterdir()) - before)
    if code and not problem:
        problem = f"ended with status {code}: {_last_error(text)}; see {log.relative_to(ROOT)}"
    edges, features = map(int, (_COVERAGE.findall(text) or [(0, 0)])[-1])
    executed = _EXECUTED.search(text)
    return Result(
        name,
        int(executed[1]) if executed else 0,
        edges,
        features,
        round(spent_s),
        findings,
        problem,
    )


def _last_error(log: str) -> str:
    """The line that names the exception, which Python prints last."""
    lines = [line for line in log.splitlines() if re.match(r"[\w.]*(Error|Exception|Name)\b", line)]
    return lines[-1] if lines else "no exception named"


if __name__ == "__main__":
    sys.exit(main())

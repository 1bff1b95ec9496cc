"""The command `python -m bench`: run benches, print their figures, fail if a bar is not met."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.measure import Effort, Figure
from bench.registry import BENCHES, ON_REQUEST, Bench
from openmsmq.manager import manager

DEFAULT: Final = Effort()

MISSED: Final = 1
NOT_MEASURED: Final = 3


def main(arguments: Sequence[str] | None = None, benches: Mapping[str, Bench] = BENCHES) -> int:
    """Run what the arguments ask for; 1 when a bar was missed, 3 when one was not measured."""
    options = _parser(benches).parse_args(arguments)
    if options.list:
        for name, bench in benches.items():
            note = " (only by name)" if name in ON_REQUEST else ""
            print(f"{name:12} {_summary(bench)}{note}")
        return 0
    effort = Effort(options.rounds, options.slice_ms / 1000)
    results: dict[str, list[Figure]] = {}
    for name in options.names or [name for name in benches if name not in ON_REQUEST]:
        results[name] = list(benches[name](effort))
        if not options.json:
            _print(name, _summary(benches[name]), results[name], effort)
    everything = [figure for figures in results.values() for figure in figures]
    passed = all(figure.passed for figure in everything)
    if options.json:
        print(json.dumps(_report(results, effort, passed), indent=2))
    if any(figure.missed for figure in everything):
        return MISSED
    return 0 if passed else NOT_MEASURED


def command(name: str, effort: Effort) -> str:
    """The command that repeats a bench."""
    text = f"python -m bench {name}"
    if effort.rounds != DEFAULT.rounds:
        text += f" --rounds {effort.rounds}"
    if effort.slice_s != DEFAULT.slice_s:
        text += f" --slice-ms {effort.slice_s * 1000:g}"
    return text


def _parser(benches: Mapping[str, Bench]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    # The names are checked here because argparse refuses an empty list when it has choices.
    parser.add_argument("names", nargs="*", type=_one_of(benches), help=", ".join(benches))
    parser.add_argument("--list", action="store_true", help="name the benches and stop")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--rounds", type=int, default=DEFAULT.rounds)
    parser.add_argument("--slice-ms", type=float, default=DEFAULT.slice_s * 1000)
    return parser


def _one_of(benches: Mapping[str, Bench]) -> Any:
    def bench(name: str) -> str:
        if name not in benches:
            raise argparse.ArgumentTypeError(f"no bench {name!r}; there are: {', '.join(benches)}")
        return name

    return bench


def _summary(bench: Bench) -> str:
    return (bench.__doc__ or "").partition("\n")[0]


def _print(name: str, summary: str, figures: Sequence[Figure], effort: Effort) -> None:
    print(f"{name}: {summary}")
    for figure in figures:
        print(_line(figure))
    print(
        f"  Python {platform.python_version()}, {os.cpu_count()} cores, {_core()} core. "
        f"Again: {command(name, effort)}"
    )


def _line(figure: Figure) -> str:
    value = "-" if figure.value is None else _number(figure.value)
    line = f"  {figure.name:38} {value:>9} {figure.unit:13}"
    if figure.low is not None and figure.high is not None:
        line += f" {f'{_number(figure.low)} to {_number(figure.high)}':14}"
    if figure.bar is not None:
        verdict = "pass" if figure.passed else "FAIL" if figure.missed else "not measured"
        line += f" bar {'at least ' if figure.at_least else ''}{figure.bar:g}: {verdict}"
    if figure.note:
        line += f" ({figure.note})"
    return line.rstrip()


def _core() -> str:
    """Return whether what is measured is compiled, as wheels are, or runs from its sources."""
    return "uncompiled" if str(manager.__file__).endswith(".py") else "compiled"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _report(results: Mapping[str, list[Figure]], effort: Effort, passed: bool) -> dict[str, Any]:
    return {
        "passed": passed,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "core": _core(),
        "benches": {
            name: {
                "command": command(name, effort),
                "figures": [
                    {key: getattr(figure, key) for key in (*figure.__struct_fields__, "passed")}
                    for figure in figures
                ],
            }
            for name, figures in results.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())

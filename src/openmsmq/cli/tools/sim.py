"""`openmsmq sim`: run whole queue managers in virtual time, and look at what one seed does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from openmsmq.cli.options.connecting import EXIT_FAILED
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail, say_error
from openmsmq.cli.views.output import count_text, print_json, progress

if TYPE_CHECKING:
    from openmsmq.sim.runner import Result
    from openmsmq.sim.scenarios.scenario import Options

app: Final = typer.Typer(
    help="Run whole queue managers in virtual time with faults that a seed decides.",
    no_args_is_help=True,
)

_FAILURES_SHOWN: Final = 20


@app.command()
def run(
    first_seed: Annotated[int, typer.Option(help="Where to begin.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 1,
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes that share the work; 0 for all cores.")
    ] = 0,
    managers: Annotated[
        int | None, typer.Option(min=1, max=50, help="Queue managers; else the seed decides.")
    ] = None,
    enterprise: Annotated[
        bool,
        typer.Option("--enterprise", help="With sites, links and a directory, so they route."),
    ] = False,
    administrator: Annotated[
        bool,
        typer.Option(help="Whether somebody changes the directory of an enterprise meanwhile."),
    ] = True,
    hostile: Annotated[
        bool, typer.Option("--hostile", help="With an adversary on the network.")
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            help="What protects the honest: known, plain, tls, strict, or all of them in turn."
        ),
    ] = "all",
    attacks: Annotated[
        str, typer.Option(metavar="KINDS", help="The adversary tries only these.")
    ] = "",
    remote_readers: Annotated[
        bool,
        typer.Option("--remote-readers", help="With readers on other computers."),
    ] = False,
    readings: Annotated[
        str, typer.Option(metavar="KINDS", help="Remote readers do only these.")
    ] = "",
    operations: Annotated[
        int | None, typer.Option(min=1, help="What each application does; else the seed.")
    ] = None,
    only: Annotated[
        str, typer.Option(metavar="FAULTS", help="Only these faults, with commas.")
    ] = "",
    doing: Annotated[
        str, typer.Option(metavar="OPERATIONS", help="Applications do only these.")
    ] = "",
    names: Annotated[
        str, typer.Option(metavar="KINDS", help="Destinations are written only so.")
    ] = "",
    faults: Annotated[bool, typer.Option(help="Whether anything goes wrong.")] = True,
    transfer: Annotated[bool, typer.Option(help="Whether messages leave their node.")] = True,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print everything that happens (one seed).")
    ] = False,
    trace_html: Annotated[
        str, typer.Option(metavar="FILE", help="Draw what happens (one seed).")
    ] = "",
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Do not stop at the first seed that fails.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run seeds. The same seed gives the same run, byte for byte, on one version.

    A seed that fails prints the promise that was broken, the command that shows it again, and what
    happened around it. Exit code 1 says that a seed failed.
    """
    # Other commands do not pay for loading the simulator.
    from openmsmq.sim.scenarios.hostile import ALL_MODES, ATTACKS, MODES
    from openmsmq.sim.scenarios.remote import READINGS
    from openmsmq.sim.scenarios.scenario import (
        DESTINATIONS,
        ENTERPRISE_DESTINATIONS,
        ENTERPRISE_OPERATIONS,
        FAULTS,
        HTTP,
        MANAGERS_MAX_COUNT,
        OPERATIONS,
        STREAMS,
        Options,
    )

    for is_wrong, why in (
        (
            not enterprise and managers is not None and managers > MANAGERS_MAX_COUNT,
            f"more than {MANAGERS_MAX_COUNT} queue managers are for --enterprise.",
        ),
        (not enterprise and not administrator, "only an --enterprise has an administrator."),
        (enterprise and managers == 1, "an enterprise has at least 2 queue managers."),
        (attacks and not hostile, "only with --hostile is there anybody who attacks."),
        (
            remote_readers and (enterprise or hostile),
            "--remote-readers go neither with --enterprise nor with --hostile.",
        ),
        (
            readings and not remote_readers,
            "only with --remote-readers is there anybody who reads from another computer.",
        ),
        (
            mode not in (*MODES, ALL_MODES),
            f"there is no mode {mode!r}; there are {', '.join(MODES)} and {ALL_MODES}.",
        ),
        (
            hostile and HTTP in names,
            "the adversary does not know HTTP: leave out --hostile, or http in --names.",
        ),
    ):
        if is_wrong:
            fail(why)
    known_operations = ENTERPRISE_OPERATIONS if enterprise else OPERATIONS + STREAMS
    known_names = ENTERPRISE_DESTINATIONS if enterprise else (*DESTINATIONS, HTTP)
    options = Options(
        managers=managers,
        operations=operations,
        faults=faults,
        transfer=transfer,
        only=_chosen(only, FAULTS, "fault"),
        doing=_chosen(doing, known_operations, "operation"),
        names=_chosen(names, known_names, "kind of destination"),
        enterprise=enterprise,
        administered=administrator,
        hostile=mode if hostile else "",
        attacks=_chosen(attacks, tuple(ATTACKS), "attack"),
        remote_readers=remote_readers,
        readings=_chosen(readings, READINGS, "reading"),
    )
    if trace or trace_html:
        if seeds != 1:
            fail("a trace is of one seed: leave out --seeds.")
        _show_one(first_seed, options, trace, trace_html)
        return
    _run_many(first_seed, seeds, options, jobs, keep_going=keep_going, json=json)


@app.command()
def replication(
    first_seed: Annotated[int, typer.Option(help="Where to begin.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 1,
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes that share the work; 0 for all cores.")
    ] = 0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Do not stop at the first seed that fails.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run seeds of one queue manager on several computers, whose log two databases keep.

    Computers are killed, stopped, cut off and lose their disks, databases restart, are slow and
    fail over. A seed that fails prints the promise that was broken. Exit code 1 says that a seed
    failed.
    """
    from openmsmq.sim.runner import run_replication_seeds

    totals = {"seeds": 0, "steps": 0, "acknowledged": 0, "take-overs": 0, "faults": 0, "trimmed": 0}
    failed = []
    with progress("Running seeds", seeds) as bar:
        for summary in run_replication_seeds(first_seed, seeds, jobs or os.cpu_count() or 1):
            bar.advance(1)
            totals["seeds"] += 1
            totals["steps"] += summary.steps
            totals["acknowledged"] += summary.operations
            totals["take-overs"] += summary.takeovers
            totals["faults"] += summary.faults
            totals["trimmed"] += summary.trimmed
            if summary.sentence:
                failed.append(summary)
                if not keep_going:
                    break
    if json:
        print_json({**totals, "failed": [msgspec.to_builtins(summary) for summary in failed]})
    else:
        typer.echo(_totals_text(totals))
        for summary in failed[:_FAILURES_SHOWN]:
            typer.echo(f"\nseed {summary.seed}: {summary.sentence}")
            typer.echo(f"  openmsmq sim replication --first-seed {summary.seed}")
    _exit_for(len(failed))


def _chosen(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in chosen:
        if name not in known:
            fail(f"there is no {what} {name!r}; there are {', '.join(known)}.")
    return chosen


def _run_many(
    first: int, count: int, options: Options, jobs: int, *, keep_going: bool, json: bool
) -> None:
    from openmsmq.sim.runner import run_seeds

    failed: list[Result] = []
    totals = {"seeds": 0, "steps": 0, "messages": 0, "transferred": 0, "packets": 0, "crashes": 0}
    if options.remote_readers:
        totals |= {"taken remotely": 0, "in doubt and come again": 0}
    with progress("Running seeds", count) as bar:
        for result in run_seeds(first, count, options, jobs or os.cpu_count() or 1):
            bar.advance(1)
            totals["seeds"] += 1
            totals["steps"] += result.steps
            totals["messages"] += result.message_count
            totals["transferred"] += result.remote_count
            totals["packets"] += result.packet_count
            totals["crashes"] += result.crash_count
            if options.remote_readers:
                totals["taken remotely"] += result.taken_count
                totals["in doubt and come again"] += result.again_count
            if not result.good:
                failed.append(result)
                if not keep_going:
                    break
    if json:
        failures = [msgspec.to_builtins(result) for result in failed]
        print_json({**totals, "failed": failures})
    else:
        typer.echo(_totals_text(totals))
        for result in failed[:_FAILURES_SHOWN]:
            _explain(result, options, full=not keep_going)
    _exit_for(len(failed))


def _totals_text(totals: dict[str, int]) -> str:
    facts = [count_text(totals["seeds"], "seed")]
    return ", ".join(facts + [f"{n} {name}" for name, n in totals.items() if name != "seeds"])


def _exit_for(failed_count: int) -> None:
    if failed_count:
        say_error(f"{count_text(failed_count, 'seed')} failed.")
        raise typer.Exit(EXIT_FAILED)


def _explain(result: Result, options: Options, *, full: bool) -> None:
    from openmsmq.sim.runner import run_traced

    typer.echo(f"\nseed {result.seed}: {result.sentence}")
    typer.echo(f"  openmsmq sim run --first-seed {result.seed}{_arguments(options)} --trace")
    if not full:
        return
    if result.detail:
        typer.echo(result.detail)
    _, trace = run_traced(result.seed, options)
    for line in trace.lines(trace.around(result.messages)):
        typer.echo(line)


def _show_one(seed: int, options: Options, trace: bool, trace_html: str) -> None:
    from openmsmq.sim.runner import run_traced

    result, events = run_traced(seed, options)
    if trace:
        for line in events.lines(events.events):
            typer.echo(line)
    if trace_html:
        try:
            from openmsmq.sim.trace_html import draw_trace
        except ModuleNotFoundError:
            fail("a drawing needs Jinja2: pip install 'openmsmq[drawing]'.")
        title = f"openmsmq sim run --first-seed {seed}{_arguments(options)}"
        text = draw_trace(events, title, result.sentence, result.messages)
        Path(trace_html).write_text(text, encoding="utf-8")
        say_error(f"{trace_html} is written.")
    if not result.good:
        typer.echo(f"\nseed {seed}: {result.sentence}")
        if result.detail:
            typer.echo(result.detail)
        raise typer.Exit(EXIT_FAILED)


def _arguments(options: Options) -> str:
    text = " --enterprise" if options.enterprise else ""
    text += "" if options.administered else " --no-administrator"
    text += f" --hostile --mode {options.hostile}" if options.hostile else ""
    text += " --remote-readers" if options.remote_readers else ""
    text += "" if options.managers is None else f" --managers {options.managers}"
    if options.operations is not None:
        text += f" --operations {options.operations}"
    for name, values in (
        ("only", options.only),
        ("doing", options.doing),
        ("names", options.names),
        ("attacks", options.attacks),
        ("readings", options.readings),
    ):
        if values:
            text += f' --{name} "{",".join(values)}"'
    text += "" if options.faults else " --no-faults"
    return text + ("" if options.transfer else " --no-transfer")

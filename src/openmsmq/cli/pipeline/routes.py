"""`openmsmq pipeline routes`: routing tables, the load of links, and what a change would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.running import (
    DEFAULT_MASTER,
    ConfOption,
    MasterOption,
    require_new_directory,
    spark_session,
)
from openmsmq.cli.views.console import Printer, fail
from openmsmq.cli.views.output import print_facts, print_json, print_table, progress, size_text
from openmsmq.routing.changes import Change, GateDown, LinkDown, SetCost
from openmsmq.spark.pipelines.few import are_small, for_few_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from openmsmq.spark.pipelines.routes.report import Rows, Summary

_FORMATS: Final = "A file in CSV, JSON or Parquet."


def routes(
    sites: Annotated[
        str, typer.Option(metavar="FILE", help=f"{_FORMATS} Columns: site; optional name, gates.")
    ],
    links: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help=f"{_FORMATS} Columns: site_1, site_2, cost; optional gates, capacity_bytes.",
        ),
    ],
    output: Annotated[
        str, typer.Option(metavar="DIR", help="Where the tables are written, as Parquet.")
    ],
    traffic: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help=f"{_FORMATS} Columns: from_site, to_site, messages, bytes."
        ),
    ] = None,
    set_cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SITE:SITE=COST", help="What if this link had this cost; may be repeated."
        ),
    ] = None,
    link_down: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SITE:SITE",
            help="What if this link was removed from the directory; may be repeated.",
        ),
    ] = None,
    gate_down: Annotated[
        list[str] | None,
        typer.Option(metavar="GATE", help="What if this gate was gone; may be repeated."),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many rows of each list to show.")
    ] = 10,
    master: MasterOption = DEFAULT_MASTER,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Plan routes: the routing table of every site, what links carry, and what a change would do.

    Gates are separated by semicolons in CSV. Without any gate in the files only costs count.
    """
    require_new_directory(output, "--output ")
    changes = _changes(set_cost or (), link_down or (), gate_down or ())
    few = are_small((sites, links, traffic))
    with spark_session("routes", master, conf, few=few) as spark:
        from openmsmq.spark.pipelines.routes.report import read_inputs, steps, summarise

        with progress("reading the files"), for_few_rows(spark, few):
            inputs = read_inputs(spark, sites, links, traffic, changes)
        with for_few_rows(spark, inputs.plan.is_small):
            written: dict[str, DataFrame] = {}
            for word, do in steps(spark, inputs, output, written):
                with progress(f"working on {word}"):
                    do()
            with progress("looking at the tables"):
                summary = summarise(inputs, written, top)
    if json:
        _print_objects(summary)
    else:
        _print_tables(summary, inputs.plan.names, bool(changes), traffic is not None)


def _changes(
    set_cost: Iterable[str], link_down: Iterable[str], gate_down: Iterable[str]
) -> list[Change]:
    changes: list[Change] = []
    for text in set_cost:
        ends, _, cost = text.rpartition("=")
        site1, site2 = _ends(ends, f"--set-cost {text}: write SITE:SITE=COST.")
        if not cost.isascii() or not cost.isdecimal():
            fail(f"--set-cost {text}: the cost must be a whole number.")
        changes.append(SetCost(site1, site2, int(cost)))
    changes += (
        LinkDown(*_ends(text, f"--link-down {text}: write SITE:SITE.")) for text in link_down
    )
    return [*changes, *map(GateDown, gate_down)]


def _ends(text: str, problem: str) -> tuple[str, str]:
    site1, colon, site2 = text.partition(":")
    if not (site1 and colon and site2) or ":" in site2:
        fail(problem)
    return site1, site2


def _print_objects(summary: Summary) -> None:
    print_json(
        {
            "kind": "summary",
            "site_count": summary.site_count,
            "link_count": summary.link_count,
            "closed_sites": summary.closed_sites,
            "pairs_by_state": summary.pairs_by_state,
            "pairs_by_change": summary.pairs_by_change,
        }
    )
    for kind, rows in (
        ("link", summary.loaded_links),
        ("undelivered", summary.undelivered),
        ("changed_pair", summary.changed_pairs),
        ("overloaded_link", summary.overloaded_links),
    ):
        for row in rows:
            print_json({"kind": kind, **row})


def _print_tables(
    summary: Summary, names: Mapping[str, str], with_changes: bool, with_traffic: bool
) -> None:
    facts = [
        ("sites", f"{summary.site_count:,}"),
        ("links", f"{summary.link_count:,}"),
        *(
            (f"pairs {state.replace('_', ' ')}", f"{count:,}")
            for state, count in summary.pairs_by_state.items()
        ),
    ]
    if summary.closed_sites:
        facts.append(("without a gate", _some([names[key] for key in summary.closed_sites])))
    print_facts("routes", facts)
    if with_traffic:
        _table("Most loaded links", _LINKS, summary.loaded_links, names)
        _table("Traffic that does not get through", _UNDELIVERED, summary.undelivered, names)
    if with_changes:
        changes = [(what, f"{count:,}") for what, count in summary.pairs_by_change.items()]
        Printer().line(("", ""))
        print_facts("what changes", changes or [("pairs", "none")])
        columns = _PAIRS if with_traffic else _PAIRS[:-1]
        _table("Pairs of sites that change", columns, summary.changed_pairs, names)
        if with_traffic:
            _table("Links that overload", _OVERLOADS, summary.overloaded_links, names)


_Columns = Sequence[tuple[str, str]]
_LINKS: Final[_Columns] = (
    ("Link", "site_1"),
    ("", "site_2"),
    (">Cost", "cost"),
    (">Messages", "messages"),
    (">Size", "bytes"),
    (">Share", "share"),
)
_UNDELIVERED: Final[_Columns] = (
    ("From", "from_site"),
    ("To", "to_site"),
    (">Messages", "messages"),
    (">Size", "bytes"),
    ("Why", "state"),
)
_PAIRS: Final[_Columns] = (
    ("From", "from_site"),
    ("To", "to_site"),
    ("Change", "change"),
    ("By now", "old_next_site"),
    ("Then by", "new_next_site"),
    (">Cost now", "old_cost"),
    (">Then", "new_cost"),
    ("Then it is", "new_state"),
    (">Messages", "messages"),
)
_OVERLOADS: Final[_Columns] = (
    ("Link", "site_1"),
    ("", "site_2"),
    (">Now", "old_share"),
    (">Then", "new_share"),
)


def _table(title: str, columns: _Columns, rows: Rows, names: Mapping[str, str]) -> None:
    printer = Printer()
    printer.line(("", ""))
    printer.line((title, "bold"))
    shown = (tuple(_cell(name, row[name], names) for _, name in columns) for row in rows)
    if not print_table([heading for heading, _ in columns], shown):
        printer.line(("none", "dim"))


def _cell(name: str, value: Any, names: Mapping[str, str]) -> str:
    if value is None:
        return "-"
    if name.endswith("share"):
        return f"{value:.1%}"
    if name.endswith("bytes"):
        return size_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    return names.get(value, str(value)) if "site" in name else str(value).replace("_", " ")


def _some(words: Sequence[str], limit: int = 10) -> str:
    more = len(words) - limit
    return ", ".join(words[:limit]) + (f" and {more} more" if more > 0 else "")

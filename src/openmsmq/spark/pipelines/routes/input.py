"""Sites, links, traffic and changes as people write them: read, checked, and made one plan.

Whoever plans wants to hear about a slip, so what a queue manager passes over is refused here: an
unknown site, an impossible cost, a second link between the same sites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from openmsmq.model.limits import LINK_COST_MAX_UNITS, LINK_COST_MIN_UNITS
from openmsmq.routing.changes import Change, GateDown, SetCost, joins
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot
from openmsmq.spark.errors import SparkSideError
from openmsmq.spark.pipelines.few import local

GATE_SEPARATOR: Final = ";"
"""Between gates that stand in one text, as in a CSV file."""

SITES_PER_TASK: Final = 64
TASKS_MAX_COUNT: Final = 1024
SMALL_MAX_SITES: Final = 200
"""Sites up to which a plan is small: they make 40,000 pairs."""

Pair: TypeAlias = tuple[str, str]


class RouteInputError(SparkSideError):
    """Sites, links, traffic or changes do not fit together."""


class Plan(msgspec.Struct, frozen=True):
    """The enterprise to plan for."""

    snapshot: Snapshot[str]
    labels: Mapping[str, str]
    """Which site a text means: each site by its identifier, and by its name."""
    names: Mapping[str, str]
    """What people call each site."""
    capacities: Mapping[Pair, int]
    """By the two sites of a link, as its entry has them; links without a capacity are missing."""

    @property
    def is_small(self) -> bool:
        """Whether the tables of all sites together have few rows."""
        return len(self.snapshot.sites) <= SMALL_MAX_SITES

    @property
    def task_count(self) -> int:
        """Into how many tasks the sites are divided."""
        return max(1, min(TASKS_MAX_COUNT, -(-len(self.snapshot.sites) // SITES_PER_TASK)))


def read_plan(sites: DataFrame, links: DataFrame) -> Plan:
    """Collect sites and links, check them, and make a plan of them."""
    return make_plan(
        _rows("sites", sites, ("site",), ("name", "gates")),
        _rows("links", links, ("site_1", "site_2", "cost"), ("gates", "capacity_bytes")),
    )


def make_plan(
    site_rows: Sequence[Mapping[str, Any]], link_rows: Sequence[Mapping[str, Any]]
) -> Plan:
    """Make a plan of rows that have all columns; what is not known is None."""
    if not site_rows:
        raise RouteInputError("sites: there are none; one row for each site is needed")
    entries = _site_entries(site_rows)
    labels = _labels(site_rows)
    link_entries = _link_entries(link_rows, labels, _homes(entries))
    capacities = {
        (entry.site1, entry.site2): _whole(
            row["capacity_bytes"], f"links: {_between(entry)}: capacity_bytes", 1
        )
        for entry, row in zip(link_entries, link_rows, strict=True)
        if not _is_missing(row["capacity_bytes"])
    }
    with_gates = any(entry.gates for entry in entries) or any(entry.gates for entry in link_entries)
    return Plan(
        Snapshot(tuple(entries), tuple(link_entries), with_gates),
        labels,
        {row["site"]: row["name"] or row["site"] for row in site_rows},
        capacities,
    )


def read_traffic(plan: Plan, traffic: DataFrame) -> DataFrame:
    """Check traffic and add it up by its two sites: from_site, to_site, messages, bytes.

    What goes to the same site comes into the same task.
    """
    _require("traffic", traffic, ("from_site", "to_site", "messages", "bytes"))
    spark = traffic.sparkSession
    labels = spark.createDataFrame(list(plan.labels.items()), "label string, site string")
    counted = traffic.select(
        F.col("from_site").cast("string").alias("from_label"),
        F.col("to_site").cast("string").alias("to_label"),
        F.expr("try_cast(messages as bigint)").alias("messages"),
        F.expr("try_cast(bytes as bigint)").alias("bytes"),
    )
    for end in ("from", "to"):
        known = labels.select(
            F.col("label").alias(f"{end}_label"), F.col("site").alias(f"{end}_site")
        )
        counted = counted.join(F.broadcast(known), f"{end}_label", "left")
    _check_traffic(plan, counted)
    if not plan.is_small:
        counted = counted.repartition(plan.task_count, "to_site")
    summed = counted.groupBy("from_site", "to_site").agg(
        F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )
    return local(summed) if plan.is_small else summed


def read_changes(plan: Plan, changes: Iterable[Change]) -> list[Change]:
    """Check that changes speak of what is there; give them with the identifiers of sites."""
    gates = {gate for site in plan.snapshot.sites for gate in site.gates}
    read: list[Change] = []
    for change in changes:
        if isinstance(change, GateDown):
            if change.gate not in gates:
                raise RouteInputError(f"gate {change.gate} is unknown{_near(change.gate, gates)}")
            read.append(change)
            continue
        site1 = _site(change.site1, plan.labels, "changes")
        site2 = _site(change.site2, plan.labels, "changes")
        if not any(joins(link, site1, site2) for link in plan.snapshot.links):
            raise RouteInputError(
                f"changes: there is no link between {change.site1} and {change.site2}"
            )
        if isinstance(change, SetCost):
            _cost(change.cost, f"changes: {change.site1} - {change.site2}")
        read.append(msgspec.structs.replace(change, site1=site1, site2=site2))
    return read


def _rows(
    what: str, frame: DataFrame, required: Sequence[str], optional: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Collect a small table; columns that may be missing are None then."""
    _require(what, frame, required)
    present = [name for name in (*required, *optional) if name in frame.columns]
    absent = dict.fromkeys(set(optional) - set(present))
    return [absent | row.asDict() for row in frame.select(*present).collect()]


def _require(what: str, frame: DataFrame, required: Sequence[str]) -> None:
    missing = [name for name in required if name not in frame.columns]
    if missing:
        raise RouteInputError(
            f"{what}: column {', '.join(missing)} is missing; there are: "
            f"{', '.join(frame.columns) or 'none'}"
        )


def _site_entries(rows: Sequence[Mapping[str, Any]]) -> list[SiteEntry[str]]:
    entries: dict[str, SiteEntry[str]] = {}
    for row in rows:
        key = row["site"]
        if not isinstance(key, str) or not key:
            raise RouteInputError(f"sites: {key!r} in column site is no text that names a site")
        if key in entries:
            raise RouteInputError(f"sites: {key} is there twice")
        entries[key] = SiteEntry(key, _gates(row["gates"]) or ())
    return list(entries.values())


def _labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    labels: dict[str, str] = {}
    ambiguous = set()
    for row in rows:
        if row["name"]:
            ambiguous |= {row["name"]} if row["name"] in labels else set()
            labels[row["name"]] = row["site"]
    for name in ambiguous:
        del labels[name]
    return labels | {row["site"]: row["site"] for row in rows}


def _homes(entries: Iterable[SiteEntry[str]]) -> dict[str, set[str]]:
    homes: dict[str, set[str]] = {}
    for entry in entries:
        for gate in entry.gates:
            homes.setdefault(gate, set()).add(entry.key)
    return homes


def _link_entries(
    rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str], homes: Mapping[str, set[str]]
) -> list[LinkEntry[str]]:
    entries: dict[frozenset[str], LinkEntry[str]] = {}
    for row in rows:
        site1, site2 = (_site(row[end], labels, "links") for end in ("site_1", "site_2"))
        where = f"links: {row['site_1']} - {row['site_2']}"
        if site1 == site2:
            raise RouteInputError(f"{where} leads from a site to itself")
        if frozenset((site1, site2)) in entries:
            raise RouteInputError(
                f"{where} is there twice; a link goes both ways, so keep the one that counts"
            )
        gates = _gates(row["gates"])
        for gate in gates or ():
            if not homes.get(gate, set()) & {site1, site2}:
                raise RouteInputError(
                    f"{where} names the gate {gate}, which is in neither site; add it to the gates "
                    "of its site"
                )
        cost = _cost(row["cost"], where)
        entries[frozenset((site1, site2))] = LinkEntry(site1, site2, cost, gates)
    return list(entries.values())


def _site(label: Any, labels: Mapping[str, str], what: str) -> str:
    if label not in labels:
        raise RouteInputError(f"{what}: site {label} is unknown{_near(str(label), labels)}")
    return labels[label]


def _near(text: str, known: Iterable[str]) -> str:
    close = get_close_matches(text, known, 1)
    return f"; the nearest is {close[0]}" if close else ""


def _cost(value: Any, where: str) -> int:
    return _whole(value, f"{where}: cost", LINK_COST_MIN_UNITS, LINK_COST_MAX_UNITS)


def _whole(value: Any, where: str, least: int, most: int | None = None) -> int:
    try:
        number = int(value)
        is_whole = number == (value if not isinstance(value, str) else number)
    except (TypeError, ValueError, OverflowError):
        number, is_whole = 0, False
    if not is_whole or number < least or (most is not None and number > most):
        limits = f"from {least} to {most}" if most is not None else f"of {least} or more"
        raise RouteInputError(f"{where} {value} is no whole number {limits}")
    return number


def _gates(value: Any) -> tuple[str, ...] | None:
    """Read gates: an array, or a text with semicolons between them; None if nothing is said."""
    if _is_missing(value):
        return None
    parts = value.split(GATE_SEPARATOR) if isinstance(value, str) else value
    return tuple(dict.fromkeys(part.strip() for part in parts if part and part.strip()))


def _is_missing(value: Any) -> bool:
    return value is None or value == ""


def _between(entry: LinkEntry[str]) -> str:
    return f"{entry.site1} - {entry.site2}"


def _check_traffic(plan: Plan, counted: DataFrame) -> None:
    bad: Row | None = counted.where(
        F.col("from_site").isNull()
        | F.col("to_site").isNull()
        | ~F.coalesce(F.col("messages") >= 0, F.lit(False))
        | ~F.coalesce(F.col("bytes") >= 0, F.lit(False))
    ).first()
    if bad is None:
        return
    for end in ("from", "to"):
        _site(bad[f"{end}_label"], plan.labels, "traffic")
    raise RouteInputError(
        f"traffic: {bad['from_label']} - {bad['to_label']}: messages and bytes must be whole "
        "numbers of 0 or more"
    )

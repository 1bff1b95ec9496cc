"""Routes on Spark equal what one finds by looking at every path."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from openmsmq.cli.pipeline import routes as command
from openmsmq.routing.changes import Change, GateDown, LinkDown, SetCost, changed
from openmsmq.routing.graph import Graph
from openmsmq.routing.routes import RouteState
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot
from openmsmq.spark.pipelines import routes
from openmsmq.spark.pipelines.routes import tasks as routes_tasks
from openmsmq.spark.pipelines.routes.input import (
    Plan,
    RouteInputError,
    make_plan,
    read_changes,
    read_plan,
    read_traffic,
)
from openmsmq.spark.pipelines.routes.report import read_table
from tests.unit.routing.enterprises import (
    NAMES,
    best_paths,
    changes_of,
    expected_route,
    snapshots,
)

Rows = list[dict[str, Any]]

site = st.sampled_from(NAMES)
amounts = st.lists(st.tuples(site, site, st.integers(0, 9), st.integers(0, 2**40)), max_size=20)


def number_batches(snapshot: Snapshot[str]) -> list[pa.RecordBatch]:
    numbers = list(range(len(snapshot.sites)))
    return [pa.record_batch({"id": numbers[:2]}), pa.record_batch({"id": numbers[2:]})]


def traffic_batches(rows: list[tuple[str, str, int, int]]) -> list[pa.RecordBatch]:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    types = [pa.string(), pa.string(), pa.int64(), pa.int64()]
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    return [pa.record_batch(arrays, ["from_site", "to_site", "messages", "bytes"])]


def rows_of(batches: Any) -> Rows:
    return [row for batch in batches for row in batch.to_pylist()]


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["from_site"], row["to_site"]))


def expected_table(snapshot: Snapshot[str]) -> Rows:
    sites = sorted(site.key for site in snapshot.sites)
    routes = [
        (source, expected_route(snapshot, source, goal))
        for source in sites
        for goal in sites
        if source != goal
    ]
    return [
        {
            "from_site": source,
            "to_site": route.destination,
            "state": route.state.label,
            "cost": route.cost,
            "hop_count": route.hop_count,
            "next_sites": list(route.next_sites),
        }
        for source, route in routes
    ]


def open_path(snapshot: Snapshot[str], source: str, goal: str) -> tuple[str, ...]:
    is_open = expected_route(snapshot, source, goal).state is RouteState.OPEN
    return best_paths(snapshot, source, goal)[0] if is_open else ()


@given(snapshot=snapshots())
def test_all_tables_equal_brute_force(snapshot: Snapshot[str]) -> None:
    rows = rows_of(routes_tasks.tables(Graph.of(snapshot), number_batches(snapshot)))
    assert in_order(rows) == expected_table(snapshot)


@given(snapshot=snapshots(), traffic=amounts)
def test_what_links_carry_equals_walking_every_path(
    snapshot: Snapshot[str], traffic: list[tuple[str, str, int, int]]
) -> None:
    known = {site.key for site in snapshot.sites}
    traffic = [row for row in traffic if {row[0], row[1]} <= known]
    expected: dict[tuple[str, str], list[int]] = {}
    for source, goal, messages, size in traffic:
        for hop in pairwise(open_path(snapshot, source, goal)):
            carried = expected.setdefault(hop, [0, 0])
            carried[0] += messages
            carried[1] += size
    found = {}
    graph = Graph.of(snapshot)
    for row in rows_of(routes_tasks.loads(graph, traffic_batches(traffic))):
        low, high = sorted((snapshot.links[row["link"]].site1, snapshot.links[row["link"]].site2))
        found[low, high] = [row["up_messages"], row["up_bytes"]]
        found[high, low] = [row["down_messages"], row["down_bytes"]]
    assert {hop: both for hop, both in found.items() if any(both)} == {
        hop: both for hop, both in expected.items() if any(both)
    }


@given(snapshot=snapshots(), traffic=amounts)
def test_all_traffic_between_sites_is_accounted_for(
    snapshot: Snapshot[str], traffic: list[tuple[str, str, int, int]]
) -> None:
    known = {site.key for site in snapshot.sites}
    sent = {(row[0], row[1]): row for row in traffic if {row[0], row[1]} <= known}
    batches = traffic_batches(list(sent.values()))
    rows = rows_of(routes_tasks.routed(Graph.of(snapshot), batches))
    expected = []
    for source, goal, messages, size in sent.values():
        route = expected_route(snapshot, source, goal)
        if source != goal:
            expected.append(
                {
                    "from_site": source,
                    "to_site": goal,
                    "messages": messages,
                    "bytes": size,
                    "state": route.state.label,
                    "cost": route.cost,
                    "hop_count": route.hop_count,
                }
            )
    assert in_order(rows) == in_order(expected)


@given(before=snapshots(), data=st.data())
def test_what_changes_do_equals_comparing_every_path(
    before: Snapshot[str], data: st.DataObject
) -> None:
    after = changed(before, data.draw(changes_of(before)))
    graphs = Graph.of(before), Graph.of(after)
    rows = rows_of(routes_tasks.changes(*graphs, number_batches(before)))
    expected = []
    sites = sorted(site.key for site in before.sites)
    for source, goal in ((source, goal) for source in sites for goal in sites if source != goal):
        old, new = (expected_route(snapshot, source, goal) for snapshot in (before, after))
        old_path, new_path = (open_path(snapshot, source, goal) for snapshot in (before, after))
        if bool(old_path) != bool(new_path):
            change = "lost" if old_path else "gained"
        elif old_path != new_path:
            change = "moves"
        elif old_path and old.cost != new.cost:
            change = "costs"
        else:
            continue
        expected.append(
            {
                "from_site": source,
                "to_site": goal,
                "change": change,
                "old_state": old.state.label,
                "new_state": new.state.label,
                "old_cost": old.cost,
                "new_cost": new.cost,
                "old_hop_count": old.hop_count,
                "new_hop_count": new.hop_count,
                "old_next_site": next(iter(old.next_sites), None),
                "new_next_site": next(iter(new.next_sites), None),
            }
        )
    assert in_order(rows) == expected


# Three sites in a row, and a dear way around: a - b - c and a - d - c.
SITES = [
    {"site": "a", "name": "Amsterdam", "gates": ["ga"]},
    {"site": "b", "name": "Berlin", "gates": ["gb"]},
    {"site": "c", "name": "Cairo", "gates": ["gc"]},
    {"site": "d", "name": "Dakar", "gates": ["gd"]},
]
LINKS = [
    {"site_1": "b", "site_2": "a", "cost": 1, "gates": None, "capacity_bytes": 1000},
    {"site_1": "b", "site_2": "c", "cost": 1, "gates": None, "capacity_bytes": None},
    {"site_1": "a", "site_2": "d", "cost": 5, "gates": None, "capacity_bytes": 100},
    {"site_1": "d", "site_2": "c", "cost": 5, "gates": None, "capacity_bytes": None},
]
TRAFFIC = [("a", "c", 7, 600), ("Amsterdam", "Cairo", 3, 100), ("c", "a", 1, 50), ("a", "a", 9, 9)]


def plan_of(links: Rows = LINKS, sites: Rows = SITES) -> Plan:
    return make_plan(sites, links)


def refused(*arguments: Any) -> str:
    with pytest.raises(RouteInputError) as caught:
        plan_of(*arguments)
    return str(caught.value)


def link(**values: Any) -> dict[str, Any]:
    return LINKS[0] | values


def test_a_plan_takes_sites_by_identifier_and_by_name() -> None:
    plan = plan_of([link(site_1="Berlin", cost="3", gates="gb; ga", capacity_bytes="7")])
    assert plan.snapshot.links == (LinkEntry("b", "a", 3, ("gb", "ga")),)
    assert plan.capacities == {("b", "a"): 7}
    assert plan.names["b"] == "Berlin"


def test_a_name_that_two_sites_share_means_neither() -> None:
    sites = [{"site": key, "name": "Twin", "gates": None} for key in "ab"]
    assert "site Twin is unknown" in refused([link(site_1="Twin")], sites)


def test_without_any_gate_gates_do_not_matter() -> None:
    bare = [site | {"gates": None} for site in SITES]
    assert make_plan(bare, LINKS).snapshot.with_gates is False
    assert plan_of().snapshot.sites[0] == SiteEntry("a", ("ga",))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([link(site_2="A")], "links: site A is unknown"),
        ([link(site_2="Amsterdm")], "site Amsterdm is unknown; the nearest is Amsterdam"),
        ([link(site_2=None)], "links: site None is unknown"),
        ([link(cost=0)], "links: b - a: cost 0 is no whole number from 1 to 999999"),
        ([link(cost=-3)], "cost -3 is no whole number"),
        ([link(cost="much")], "cost much is no whole number"),
        ([link(cost=1.5)], "cost 1.5 is no whole number"),
        ([link(cost=None)], "cost None is no whole number"),
        ([link(cost=float("inf"))], "cost inf is no whole number"),
        ([link(capacity_bytes=0)], "b - a: capacity_bytes 0 is no whole number of 1 or more"),
        ([link(site_2="b")], "links: b - b leads from a site to itself"),
        ([link(), link(site_1="a", site_2="Berlin")], "links: a - Berlin is there twice"),
        ([link(gates=["gc"])], "links: b - a names the gate gc, which is in neither site"),
    ],
)
def test_a_slip_in_the_links_is_named(wrong: Rows, sentence: str) -> None:
    assert sentence in refused(wrong)


def test_a_slip_in_the_sites_is_named() -> None:
    assert "sites: a is there twice" in refused([], [SITES[0], SITES[0]])
    assert "sites: None in column site" in refused([], [SITES[0] | {"site": None}])
    assert "sites: there are none" in refused([], [])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (SetCost("a", "x", 1), "changes: site x is unknown"),
        (SetCost("a", "Cairo", 1), "changes: there is no link between a and Cairo"),
        (SetCost("a", "b", 0), "changes: a - b: cost 0 is no whole number"),
        (LinkDown("b", "d"), "changes: there is no link between b and d"),
        (GateDown("gx"), "gate gx is unknown"),
    ],
)
def test_a_slip_in_a_change_is_named(change: Change, sentence: str) -> None:
    with pytest.raises(RouteInputError, match=sentence):
        read_changes(plan_of(), [change])


def frames(spark: Any) -> tuple[Any, Any, Any]:
    return (
        spark.createDataFrame(SITES, "site string, name string, gates array<string>"),
        spark.createDataFrame(
            [tuple(row.values()) for row in LINKS],
            "site_1 string, site_2 string, cost int, gates array<string>, capacity_bytes long",
        ),
        spark.createDataFrame(TRAFFIC, "from_site string, to_site string, messages int, bytes int"),
    )


def test_spark_builds_the_tables_of_all_sites(spark: Any) -> None:
    sites, links, _ = frames(spark)
    rows = [row.asDict() for row in routes.routing_tables(sites, links).collect()]
    assert in_order(rows) == expected_table(plan_of().snapshot)


def test_spark_adds_up_what_links_carry(spark: Any) -> None:
    rows = routes.link_traffic(*frames(spark)).orderBy("site_1", "site_2").collect()
    found = {(row["site_1"], row["site_2"]): row.asDict() for row in rows}
    assert list(found) == [("a", "d"), ("b", "a"), ("b", "c"), ("d", "c")]
    assert found["b", "a"] == {
        "site_1": "b",
        "site_2": "a",
        "cost": 1,
        "messages": 11,
        "bytes": 750,
        "messages_1_to_2": 1,
        "bytes_1_to_2": 50,
        "messages_2_to_1": 10,
        "bytes_2_to_1": 700,
        "capacity_bytes": 1000,
        "share": 0.75,
    }
    assert (found["b", "c"]["messages_1_to_2"], found["b", "c"]["share"]) == (10, None)
    assert (found["a", "d"]["messages"], found["a", "d"]["share"]) == (0, 0.0)


def test_spark_says_what_moves_and_what_overloads_when_a_link_is_down(spark: Any) -> None:
    sites, links, traffic = frames(spark)
    found = routes.what_if(sites, links, [LinkDown("Berlin", "c")], traffic)
    pairs = {(row["from_site"], row["to_site"]): row for row in found.pairs.collect()}
    assert {pair: row["change"] for pair, row in pairs.items()} == {
        pair: "moves" for pair in (("a", "c"), ("b", "c"), ("c", "a"), ("c", "b"))
    }
    assert pairs["a", "c"]["messages"] == 10
    assert pairs["b", "c"]["messages"] == 0
    assert (pairs["a", "c"]["old_next_site"], pairs["a", "c"]["new_next_site"]) == ("b", "d")
    assert found.links is not None
    changed_links = {(row["site_1"], row["site_2"]): row for row in found.links.collect()}
    assert {pair for pair, row in changed_links.items() if row["overloads"]} == {("a", "d")}
    assert changed_links["a", "d"]["new_share"] == 7.5
    down = changed_links["b", "c"]
    assert (down["old_cost"], down["new_cost"], down["new_messages"]) == (1, None, 0)


def test_spark_says_what_is_lost_when_the_only_gate_of_a_site_is_down(spark: Any) -> None:
    sites, links, traffic = frames(spark)
    pairs = routes.what_if(sites, links, [GateDown("gb")]).pairs.collect()
    assert {row["new_state"] for row in pairs} == {"blocked"}
    assert {row["change"] for row in pairs} == {"lost"}
    assert ("a", "c") in {(row["from_site"], row["to_site"]) for row in pairs}
    shut = sites.where("site != 'b'").unionByName(
        sites.where("site = 'b'").selectExpr("site", "name", "array() as gates")
    )
    lost = routes.routed_traffic(shut, links, traffic).collect()
    assert {(row["from_site"], row["to_site"], row["state"]) for row in lost} == {
        ("a", "c", "blocked"),
        ("c", "a", "blocked"),
    }


def test_spark_names_slips_in_columns_and_traffic(spark: Any) -> None:
    sites, links, traffic = frames(spark)
    with pytest.raises(RouteInputError, match="links: column cost is missing; there are: site_1"):
        read_plan(sites, links.drop("cost"))
    for row, sentence in (
        (("a", "x", "1", "1"), "traffic: site x is unknown"),
        (("a", "b", "many", "1"), "traffic: a - b: messages and bytes must be whole numbers"),
        (("a", "b", "1", "-1"), "traffic: a - b: messages and bytes must be whole numbers"),
    ):
        wrong = spark.createDataFrame([row], traffic.columns)
        with pytest.raises(RouteInputError, match=sentence):
            read_traffic(plan_of(), wrong)


# The command.

APP = typer.Typer()
APP.command()(command.routes)


def run_command(folder: Path, *options: str) -> Result:
    files = [f"--{name}={folder / name}.csv" for name in ("sites", "links")]
    return CliRunner().invoke(APP, [*files, f"--output={folder / 'out'}", *options])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sites.csv").write_text(
        "site,name,gates\na,Amsterdam,ga\nb,Berlin,gb;gb2\nc,Cairo,gc\nd,Dakar,gd\n"
    )
    (tmp_path / "links.csv").write_text(
        "site_1,site_2,cost,capacity_bytes\nb,a,1,1000\nb,c,1,\na,d,5,100\nd,c,5,\n"
    )
    traffic = [
        {"from_site": "a", "to_site": "Cairo", "messages": 10, "bytes": 700},
        {"from_site": "b", "to_site": "a", "messages": 2, "bytes": 4},
    ]
    (tmp_path / "traffic.json").write_text(json.dumps(traffic))
    return tmp_path


@pytest.fixture
def run(spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    @contextlib.contextmanager
    def shared(*_: object, **__: object) -> Iterator[Any]:
        # The command would stop the session, which is that of all tests here.
        yield spark

    monkeypatch.setattr(command, "spark_session", shared)
    return lambda *options: run_command(folder, *options)


def test_the_command_writes_tables_and_says_what_is_worth_knowing(
    run: Callable[..., Result], folder: Path
) -> None:
    result = run(f"--traffic={folder / 'traffic.json'}", "--link-down=Cairo:b", "--json")
    assert result.exit_code == 0, result.output
    summary, *rest = [json.loads(line) for line in result.stdout.splitlines()]
    assert summary == {
        "kind": "summary",
        "site_count": 4,
        "link_count": 4,
        "closed_sites": [],
        "pairs_by_state": {"open": 12},
        "pairs_by_change": {"moves": 4},
    }
    kinds = [row["kind"] for row in rest]
    assert kinds == ["link"] * 4 + ["changed_pair"] * 4 + ["overloaded_link"]
    assert (rest[0]["site_1"], rest[0]["share"]) == ("b", 0.704)
    assert (rest[4]["from_site"], rest[4]["messages"]) == ("a", 10)
    assert (rest[8]["site_2"], rest[8]["new_share"]) == ("d", 7.0)
    written = {path.name for path in (folder / "out").iterdir()}
    assert written == {
        "routing_tables",
        "link_traffic",
        "routed_traffic",
        "changed_pairs",
        "changed_links",
    }


def test_the_command_shows_people_what_is_lost(run: Callable[..., Result]) -> None:
    result = run("--gate-down=gb", "--gate-down=gb2", "--top=1")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["pairs", "open", "12"] in lines
    assert ["lost", "8"] in lines
    assert ["Amsterdam", "Berlin", "lost", "Berlin", "Berlin", "1", "1", "blocked"] in lines


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--set-cost=a:b", "--set-cost a:b: write SITE:SITE=COST."),
        ("--set-cost=a=3", "--set-cost a=3: write SITE:SITE=COST."),
        ("--set-cost=a:b=-3", "--set-cost a:b=-3: the cost must be a whole number."),
        ("--link-down=a", "--link-down a: write SITE:SITE."),
        ("--link-down=a:b:c", "--link-down a:b:c: write SITE:SITE."),
    ],
)
def test_the_command_says_how_to_write_a_change(folder: Path, option: str, sentence: str) -> None:
    result = run_command(folder, option)
    assert (result.exit_code, result.stderr) == (2, f"openmsmq: {sentence}\n")


def test_the_command_leaves_what_is_there(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out/precious").touch()
    result = run_command(folder)
    assert result.exit_code == 2
    assert "name a directory that is new or empty" in result.stderr


@pytest.mark.parametrize(
    ("file", "sentence"),
    [("sites.xls", "must end with one of .csv"), ("sites.csv", "does not exist")],
)
def test_a_file_that_cannot_be_read_is_named(file: str, sentence: str) -> None:
    with pytest.raises(RouteInputError, match=sentence):
        read_table(None, file)  # type: ignore[arg-type]

"""`openmsmq directory` and `openmsmq route`, on a directory in memory."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer

from openmsmq.cli import app as program
from openmsmq.cli.enterprise import directory, route
from openmsmq.cli.options.connecting import explained
from openmsmq.client.settings import Settings
from openmsmq.directory.drawing.draw import draw
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.plans.changes import changes_for
from openmsmq.directory.plans.plan import read_plan
from openmsmq.directory.rules import check
from openmsmq.model.errors import AccessDenied
from openmsmq.model.identity import Guid
from openmsmq.model.topology import UserInfo
from tests.cli.conftest import ServerProcess

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/enterprise.yaml"


class Memory:
    """A directory that is nowhere else."""

    def __init__(self, image: DirectoryImage) -> None:
        self.image = image
        self.refuses = False

    def read_directory(self) -> DirectoryImage:
        return self.image

    def write_directory(self, changes):
        if self.refuses:
            raise AccessDenied("the directory")
        check(self.image, changes)
        self.image = self.image.changed(changes)


def example_image() -> DirectoryImage:
    numbers = itertools.count(1)
    plan = read_plan(EXAMPLE.read_text(encoding="utf-8"), "enterprise.yaml")
    empty = DirectoryImage()
    changes = changes_for(plan, empty, lambda: Guid(next(numbers).to_bytes(16, "big")))
    return empty.changed(changes)


@pytest.fixture
def memory(monkeypatch):
    held = Memory(example_image())

    @contextlib.contextmanager
    def connected(_context):
        with explained(Settings()):
            yield held

    root = typer.Typer()
    root.add_typer(directory.app, name="directory")
    root.add_typer(route.app, name="route")
    monkeypatch.setattr(program, "app", root)
    monkeypatch.setattr(directory, "connected", connected)
    monkeypatch.setattr(route, "connected", connected)
    return held


@pytest.fixture
def openmsmq(memory, offline):
    assert memory.read_directory()
    return offline


# Looking.


def test_show_says_how_much_there_is(openmsmq):
    out = openmsmq("directory", "show").out
    assert out.splitlines()[0] == "Example"
    assert "queue managers      9" in out
    assert "directory servers   BRANCH-GATE1, HQ-GATE1, REGION-GATE1" in out
    shown = openmsmq("directory", "show", "--json").object
    assert (shown["enterprise"], shown["site_count"], shown["queue_count"]) == ("Example", 3, 3)


def test_an_empty_directory_is_an_invitation(openmsmq, memory):
    memory.image = DirectoryImage()
    assert "directory apply" in openmsmq("directory", "show").out
    assert openmsmq("directory", "show", "--json").object["enterprise"] is None
    assert openmsmq("directory", "list", "site").out.startswith("there are none")
    assert openmsmq("directory", "list", "site", "--json").out == ""


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [
        ("enterprise", 1, "Example"),
        ("site", 3, "Branch                     3      2  BRANCH-GATE1, BRANCH-GATE2"),
        ("link", 3, "Branch:Headquarters    50  BRANCH-GATE2, HQ-GATE2"),
        ("manager", 9, "HQ-GATE1       Headquarters  gate, primary enterprise controller  127.10"),
        ("queue", 3, "HQ1\\sales         Sales of all branches  transactional  5d1c0a3e-6f42-"),
        ("list", 1, "figures                  2  DL="),
        ("user", 0, "there are none"),
        ("network", 0, "there are none"),
    ],
)
def test_list_shows_every_object_of_a_kind(openmsmq, kind, count, words):
    assert words in openmsmq("directory", "list", kind).out
    objects = openmsmq("directory", "list", kind, "--json").objects
    assert len(objects) == count
    assert all(shown["kind"] == kind for shown in objects)


@pytest.mark.parametrize(
    ("kind", "options", "found"),
    [
        (
            "link",
            ["--sort", "cost"],
            ["Region:Headquarters", "Branch:Region", "Branch:Headquarters"],
        ),
        ("link", ["--where", "cost>=50"], ["Branch:Headquarters"]),
        ("link", ["--where", "cost < 50", "--where", "cost >= 10"], ["Branch:Region"]),
        ("queue", ["--where", "transactional = yes", "--where", "label=nothing"], []),
    ],
)
def test_list_shows_what_meets_all_conditions(openmsmq, kind, options, found):
    objects = openmsmq("directory", "list", kind, *options, "--json").objects
    assert [shown["name"] for shown in objects] == found


def test_the_highest_comes_first_if_that_is_asked_for(openmsmq):
    options = ("directory", "list", "link", "--sort", "cost", "--json")
    rising = [shown["cost"] for shown in openmsmq(*options).objects]
    falling = [shown["cost"] for shown in openmsmq(*options, "--descending").objects]
    assert rising == sorted(rising)
    assert falling == rising[::-1]


def test_a_condition_that_is_none_is_explained(openmsmq):
    assert "no property 'colour'" in openmsmq.refused(
        "directory", "list", "queue", "--where", "colour = red"
    )
    assert "is a number, not 'much'" in openmsmq.refused(
        "directory", "list", "queue", "--where", "quota_kb > much"
    )


@pytest.mark.parametrize(
    ("kind", "names", "key", "value"),
    [
        ("site", ["branch", "Branch"], "name", "Branch"),
        ("link", ["Branch:Region", "region:branch"], "cost", 10),
        ("manager", ["HQ1", "hq1"], "in_routing_servers", ["HQ-GATE1", "HQ-GATE2"]),
        ("queue", ["HQ1\\sales", "hq1\\SALES"], "transactional", True),
        ("list", ["figures"], "name", "figures"),
        ("enterprise", ["Example"], "reach_queue_default_s", 345600),
    ],
)
def test_get_finds_an_object_by_any_of_its_names(openmsmq, kind, names, key, value):
    found = [openmsmq("directory", "get", kind, name, "--json").object for name in names]
    found.append(openmsmq("directory", "get", kind, found[0]["identifier"], "--json").object)
    assert all(one == found[0] for one in found)
    assert found[0][key] == value
    text = openmsmq("directory", "get", kind, names[0]).out
    assert found[0]["identifier"] in text


def test_a_user_is_known_by_security_identifier(openmsmq, memory):
    sid = bytes.fromhex("010500000000000515000000010000000200000003000000f4010000")
    user = UserInfo(identifier=Guid(b"u" * 16), security_identifier=sid, certificates=(b"x",))
    memory.image = memory.image.changed([user])
    name = "S-1-5-21-1-2-3-500"
    assert name in openmsmq("directory", "list", "user").out
    shown = openmsmq("directory", "get", "user", name, "--json").object
    assert shown["security_identifier"] == name
    assert shown["certificates"] == ["eA=="]


def test_what_is_not_there_is_said_with_what_is(openmsmq):
    assert "no site Brunch is in the directory (did you mean 'Branch'?)" in openmsmq.refused(
        "directory", "get", "site", "Brunch"
    )
    assert "MQ_ERROR_MACHINE_NOT_FOUND" in openmsmq.refused("directory", "get", "manager", "x")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in openmsmq.refused("directory", "get", "queue", "x\\y")
    assert "'sites' is not one of" in openmsmq.refused("directory", "list", "sites", code=2)


def test_queues_are_found_by_label_and_service_type(openmsmq):
    service = "5d1c0a3e-6f42-4c8b-9a67-2f0b8e94d710"
    for options in (["--label", "sales of ALL branches"], ["--service-type", service]):
        (found,) = openmsmq("directory", "find-queues", *options, "--json").objects
        assert found["name"] == "HQ1\\sales"
    assert len(openmsmq("directory", "find-queues", "--json").objects) == 3
    assert "there are none" in openmsmq("directory", "find-queues", "--label", "x").out
    assert "is not a GUID" in openmsmq.refused(
        "directory", "find-queues", "--service-type=x", code=2
    )


# Changing.


@pytest.fixture
def plan(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("sites: {Depot: }\nlinks: [{between: [Region, Branch], cost: 11}]\n")
    return str(file)


def test_apply_shows_the_differences_asks_and_changes(openmsmq, memory, plan):
    result = openmsmq("directory", "apply", plan, stdin=b"y\n")
    assert result.out.splitlines() == [
        "+ site Depot",
        "~ link Branch:Region",
        "    cost: 10 -> 11",
        "changed: 2 objects (1 added, 1 changed)",
    ]
    assert "Change the directory?" in result.err
    assert len(memory.image.sites) == 4
    again = openmsmq("directory", "apply", plan, "--yes").out
    assert again == "nothing to change: the directory is like that already\n"


def test_apply_changes_nothing_when_told_no_or_only_to_look(openmsmq, memory, plan):
    before = memory.image
    for answer in (b"n\n", b"\n", b"", b"yellow\n"):
        assert openmsmq("directory", "apply", plan, stdin=answer, code=1).err.endswith("stopped.\n")
    assert "because of --dry-run" in openmsmq("directory", "apply", plan, "--dry-run").out
    assert memory.image is before


def test_apply_tells_programs_what_changes(openmsmq, plan):
    added, changed = openmsmq("directory", "apply", plan, "--json", "--yes").objects
    assert added == {"change": "added", "kind": "site", "name": "Depot", "fields": {}}
    assert changed["fields"] == {"cost": {"old": "10", "new": "11"}}


def test_apply_reads_a_pipe_but_then_nobody_can_be_asked(openmsmq, memory):
    text = "\ufeffsites: {Dépôt: }".encode()
    openmsmq("directory", "apply", "-", "--yes", stdin=text)
    assert "Dépôt" in {site.name for site in memory.image.sites.values()}
    assert "give --yes or --dry-run" in openmsmq.refused("directory", "apply", "-", code=2)


def test_apply_with_prune_removes_the_rest(openmsmq, memory, plan):
    Path(plan).write_text("sites: {Branch: }")
    out = openmsmq("directory", "apply", plan, "--prune", "--yes").out
    assert "- queue manager HQ1\n" in out
    assert len(memory.image) == 2


def test_mistakes_in_a_plan_are_said_with_file_and_line(openmsmq, tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("sites:\n  A: {foriegn: true}\n")
    message = openmsmq.refused("directory", "apply", str(file), code=2)
    assert message == f"{file}, line 2: sites.A has no key 'foriegn' (did you mean 'foreign'?)."
    file.write_text("links: [{between: [A, Branch], cost: 1}]")
    assert "there is no site 'A'" in openmsmq.refused("directory", "apply", str(file), code=2)
    file.write_bytes(b"\xff\xfe")
    assert "no text in UTF-8" in openmsmq.refused("directory", "apply", str(file), code=2)
    missing = str(tmp_path / "none.yaml")
    assert "cannot be read" in openmsmq.refused("directory", "apply", missing, code=2)


def test_a_plan_that_breaks_a_rule_is_shown_and_refused_even_when_dry(openmsmq, memory, tmp_path):
    before = memory.image
    file = tmp_path / "plan.yaml"
    file.write_text("links: [{between: [Branch, Region], gates: [HQ1]}]")
    for option in ("--yes", "--dry-run"):
        result = openmsmq("directory", "apply", str(file), option, code=1)
        assert "HQ1 is a gate of the link Branch:Region" in result.err
    assert memory.image is before


def test_a_refusal_of_the_directory_is_a_sentence(openmsmq, memory, plan):
    memory.refuses = True
    assert "MQ_ERROR_ACCESS_DENIED" in openmsmq("directory", "apply", plan, "--yes", code=1).err


def test_remove_takes_away_what_nobody_needs(openmsmq, memory):
    result = openmsmq("directory", "remove", "list", "figures", stdin=b"y\n")
    assert result.out.splitlines()[0] == "- distribution list figures"
    assert not memory.image.lists
    openmsmq("directory", "remove", "queue", "hq1\\sales", "--yes")
    assert len(memory.image.queues) == 2
    refused = openmsmq("directory", "remove", "site", "Branch", "--yes", code=1)
    assert "site Branch cannot be removed, because" in refused.err
    openmsmq("directory", "remove", "link", "Branch:Headquarters", "--dry-run")
    assert len(memory.image.links) == 3


def test_an_export_applied_changes_nothing(openmsmq, memory, tmp_path):
    text = openmsmq("directory", "export").out
    file = tmp_path / "all.yaml"
    assert openmsmq("directory", "export", "-o", str(file)).out == f"wrote {file}\n"
    assert file.read_text(encoding="utf-8") == text
    assert "nothing to change" in openmsmq("directory", "apply", str(file), "--prune").out
    before = memory.image
    memory.image = DirectoryImage()
    openmsmq("directory", "export", "-o", str(tmp_path / "none.yaml"))
    assert (tmp_path / "none.yaml").read_text() == ""
    memory.image = before
    openmsmq("directory", "export", "--identifiers", "-o", str(file))
    memory.image = DirectoryImage()
    openmsmq("directory", "apply", str(file), "--yes")
    assert memory.image == before


def test_draw_writes_a_picture(openmsmq, memory, tmp_path):
    out = openmsmq("directory", "draw").out
    assert ElementTree.fromstring(out).tag.endswith("svg")
    file = tmp_path / "a.svg"
    openmsmq("directory", "draw", "-o", str(file))
    assert file.read_text(encoding="utf-8") == out == draw(memory.image)
    unwritable = str(tmp_path / "no" / "a.svg")
    assert "cannot be written" in openmsmq.refused("directory", "draw", "-o", unwritable, code=2)


def test_the_picture_of_the_guide_is_that_of_the_example():
    # Places may differ a little between releases of Graphviz.
    guide = (ROOT / "docs/guides/enterprise.svg").read_text(encoding="utf-8")
    shown, drawn = (
        [(part.tag, part.get("class"), part.text) for part in ElementTree.fromstring(text).iter()]
        for text in (guide, draw(example_image()))
    )
    assert shown == drawn


# Routes.


def test_a_route_is_explained_hop_by_hop(openmsmq):
    shown = openmsmq("route", "show", "branch1", "HQ1", "--json").object
    assert (shown["from"], shown["to"], shown["cost"]) == ("BRANCH1", "HQ1", 15)
    assert shown["problem"] is None
    steps = shown["steps"]
    assert (steps[0]["site"], steps[-1]["site"]) == ("Branch", "Headquarters")
    assert steps[-1]["why"] == "destination"
    assert [step["cost"] for step in steps if step["cost"]] == [10, 5]
    text = openmsmq("route", "show", "branch1", "HQ1\\sales").out
    assert text.startswith(f"BRANCH1 to HQ1: {len(steps) - 1} hops, cost 15\n")
    assert "out-routing server of BRANCH1" in text


def test_a_route_that_does_not_exist_is_a_failure_with_its_reason(openmsmq):
    openmsmq("directory", "remove", "link", "Region:Headquarters", "--yes")
    openmsmq("directory", "remove", "link", "Branch:Headquarters", "--yes")
    result = openmsmq("route", "show", "BRANCH1", "HQ1", code=1)
    assert "messages do not arrive: " in result.err
    shown = openmsmq("route", "show", "BRANCH1", "HQ1", "--json", code=1).object
    assert shown["problem"]


def test_routes_are_between_queue_managers_that_exist(openmsmq):
    refused = openmsmq.refused("route", "show", "BRANCH2", "HQ1")
    assert "BRANCH2 is not in the directory (did you mean 'BRANCH1'?)" in refused


# A real queue manager.


def test_a_queue_manager_with_a_directory_takes_the_example(offline, tmp_path, monkeypatch):
    server = ServerProcess(tmp_path / "data", "--directory-server")
    try:
        monkeypatch.setenv("OPENMSMQ_QM", server.address)
        before = offline("directory", "show", "--json").object
        assert "changed: " in offline("directory", "apply", str(EXAMPLE), "--yes").out
        after = offline("directory", "show", "--json").object
        assert after["queue_count"] == before["queue_count"] + 3
        assert "nothing to change" in offline("directory", "apply", str(EXAMPLE)).out
        assert offline("route", "show", "BRANCH1", "HQ1\\sales", "--json").object["cost"] == 15
        assert "cannot be removed" in offline("directory", "remove", "site", "Branch", code=1).err
    finally:
        server.stop()

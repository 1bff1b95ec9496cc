"""Plans: what a file says, the changes it leads to, and how they are shown."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.directory import limits as directory_limits
from openmsmq.directory import rules
from openmsmq.directory.diff import Sign, describe
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.plans import yaml_tree
from openmsmq.directory.plans.changes import changes_for
from openmsmq.directory.plans.fields import FIELDS
from openmsmq.directory.plans.plan import read_plan
from openmsmq.directory.plans.writing import write_plan
from openmsmq.directory.plans.yaml_tree import PlanError, read_tree, write_tree
from openmsmq.directory.rules import check
from openmsmq.model import limits
from openmsmq.model.directory import ObjectKind, Removal, kind_of
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueuePrivacy
from openmsmq.model.topology import DirectoryServerKind, DistributionList, Site
from tests.strategies.enterprises import guid, images

EXAMPLE = Path(__file__).parents[4] / "examples/enterprise.yaml"
EMPTY = DirectoryImage()


def new_guids():
    numbers = itertools.count(1)
    return lambda: Guid(next(numbers).to_bytes(16, "big"))


def no_guid() -> Guid:
    raise AssertionError("nothing is new here")


def changes_of(text, image=EMPTY, *, prune=False):
    return changes_for(read_plan(text, "x.yaml"), image, new_guids(), prune=prune)


def applied(text, image=EMPTY, *, prune=False):
    changes = changes_of(text, image, prune=prune)
    check(image, changes)
    return image.changed(changes)


@pytest.fixture(scope="module")
def example() -> DirectoryImage:
    return applied(EXAMPLE.read_text(encoding="utf-8"))


# There and back.


@given(images(), st.booleans(), st.booleans())
def test_a_written_plan_read_again_changes_nothing(image, prune, with_identifiers):
    text = write_plan(image, with_identifiers=with_identifiers)
    assert changes_for(read_plan(text, "x"), image, no_guid, prune=prune) == []


@given(images())
def test_a_plan_makes_the_same_enterprise_elsewhere(image):
    plan = read_plan(write_plan(image, with_identifiers=True), "x")
    changes = changes_for(plan, EMPTY, new_guids())
    check(EMPTY, changes)
    copy = EMPTY.changed(changes)
    assert write_plan(copy, with_identifiers=True) == write_plan(image, with_identifiers=True)


@given(images(), images())
def test_a_pruned_plan_makes_any_enterprise_the_one_it_describes(image, wanted):
    changes = changes_for(read_plan(write_plan(wanted), "x"), image, new_guids(), prune=True)
    after = image.changed(changes)
    if wanted.enterprise is not None or image.enterprise is None:
        assert without_lists(write_plan(after)) == without_lists(write_plan(wanted))


def without_lists(text: str) -> object:
    """Leave out names that keep the letter case of what was there, and members by identifier."""
    sections = read_tree(text.casefold(), "x").mapping()
    return {key: shape(node) for key, node in sections.items() if key != "lists"}


def shape(node):
    if node.pairs is not None:
        return {key: shape(value) for key, value in node.pairs.items()}
    if node.items is not None:
        return sorted(map(str, map(shape, node.items)))
    return node.text


@given(images(), images())
def test_a_plan_removes_nothing_unless_it_is_pruned(image, wanted):
    try:
        changes = changes_for(read_plan(write_plan(wanted), "x"), image, new_guids())
    except PlanError:
        return
    assert not any(isinstance(change, Removal) for change in changes)


@given(images(), images())
def test_changes_follow_what_they_refer_to(image, wanted):
    order = [ObjectKind.SITE, ObjectKind.MANAGER, ObjectKind.LINK, ObjectKind.QUEUE]
    changes = changes_for(read_plan(write_plan(wanted), "x"), image, new_guids(), prune=True)
    puts = [kind_of(one) for one in changes if not isinstance(one, Removal)]
    gone = [one.kind for one in changes if isinstance(one, Removal)]
    assert [order.index(kind) for kind in puts if kind in order] == sorted(
        order.index(kind) for kind in puts if kind in order
    )
    assert [order.index(kind) for kind in gone if kind in order] == sorted(
        (order.index(kind) for kind in gone if kind in order), reverse=True
    )
    assert all(isinstance(change, Removal) for change in changes[len(puts) :])


# The example.


def test_the_example_is_the_branch_office_of_the_overview(example):
    assert len(example.sites) == 3
    assert len(example.managers) == 9
    assert {link.cost for link in example.links.values()} == {10, 5, 50}
    sales = example.queue_at("hq1", "sales")
    assert sales is not None
    assert (sales.kind, sales.transactional, sales.path_name) == (
        QueueKind.PUBLIC,
        True,
        "HQ1\\sales",
    )
    gate = example.manager_named("HQ-GATE1")
    assert gate is not None
    assert gate.directory_server is DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER
    (figures,) = example.lists.values()
    assert figures.members[0] == f"PUBLIC={sales.identifier}"


def test_the_example_applied_again_changes_nothing(example):
    text = EXAMPLE.read_text(encoding="utf-8")
    for prune in (False, True):
        assert changes_for(read_plan(text, "x"), example, no_guid, prune=prune) == []


# What is kept.


def test_what_a_plan_does_not_mention_stays(example):
    text = "sites: {Branch: {queue_managers: {branch1: {quota_kb: unlimited}}}}"
    (change,) = changes_of(text, example)
    old = example.manager_named("BRANCH1")
    assert change == msgspec.structs.replace(old, quota_kb=0xFFFFFFFF)


def test_a_pruned_plan_is_all_there_is_to_say(example):
    text = "sites: {Branch: {queue_managers: {BRANCH1: {}}}}"
    after = applied(text, example, prune=True)
    assert [site.name for site in after.sites.values()] == ["Branch"]
    (manager,) = after.managers.values()
    assert (manager.addresses, manager.out_routing_servers) == ((), ())
    assert not after.links
    assert not after.queues
    assert not after.lists
    assert after.enterprise == example.enterprise


def test_what_no_plan_can_say_stays_even_when_it_is_pruned():
    text = "sites: {A: {queue_managers: {X: {}}}}"
    image = applied(text)
    (manager,) = image.managers.values()
    told = msgspec.structs.replace(manager, security_descriptor=b"x", version="3", clustered=True)
    assert changes_of(text, image.changed([told]), prune=True) == []


@pytest.mark.parametrize(
    ("text", "sites"),
    [
        ("sites: {A: {queue_managers: {X: }}}", ["A", "B"]),
        ("sites: {B: {queue_managers: {X: }}}", ["A", "B"]),
        ("sites: {C: {queue_managers: {X: }}}", ["C"]),
        ("sites: {C: {queue_managers: {X: {other_sites: [a]}}}}", ["C", "A"]),
        ("queue_managers: {X: }", ["A", "B"]),
        ("queue_managers: {X: {other_sites: []}}", []),
    ],
)
def test_a_queue_manager_is_in_the_site_where_it_stands(text, sites):
    image = applied("sites: {A: {queue_managers: {X: {other_sites: [B]}}}, B: , C: }")
    (manager,) = applied(text, image).managers.values()
    assert [image.sites[site].name for site in manager.sites] == sites


def test_a_link_is_the_same_in_either_direction():
    image = applied("{sites: {A: , B: }, links: [{between: [A, B], cost: 3}]}")
    (link,) = applied("links: [{between: [b, a], cost: 4}]", image).links.values()
    assert (link.cost, link.site1) == (4, guid_of(image, "A"))


def guid_of(image, site):
    return next(one.identifier for one in image.sites.values() if one.name == site)


def test_queues_follow_the_qualified_name_of_their_computer():
    image = applied("queue_managers: {X: {qualified_name: x.old, queues: {a: , b: }}}")
    after = applied("queue_managers: {X: {qualified_name: x.new, queues: {a: {label: l}}}}", image)
    assert {queue.qualified_path_name for queue in after.queues.values()} == {
        "x.new\\a",
        "x.new\\b",
    }
    assert after.queue_at("x.new", "a").label == "l"


def test_every_property_can_be_said():
    text = r"""
enterprise: {name: E, reach_queue_default_s: 7}
networks: {LAN: {identifier: 00000000-0000-0000-0000-00000000000a}}
sites: {S: {foreign: true}}
queue_managers:
  R: {routing_server: true}
  "007":
    {networks: [lan], foreign: true, in_routing_servers: [R], directory_server: none}
  Q:
    queues:
      "No": {privacy: body, base_priority: -3, authenticate: true,
             multicast_address: "234.1.1.1:8001", label: "null"}
lists: {L: {members: ['DIRECT=OS:far\private$\q', Q\no, M]}, M: }
"""
    image = applied(text)
    lan = image.get(ObjectKind.NETWORK, Guid.parse("00000000-0000-0000-0000-00000000000a"))
    assert lan.name == "LAN"
    queue = image.queue_at("Q", "No")
    assert (queue.privacy, queue.base_priority, queue.label) == (QueuePrivacy.BODY, -3, "null")
    assert image.manager_named("007").in_routing_servers == (image.manager_named("r").identifier,)
    (first, _) = sorted(image.lists.values(), key=lambda one: one.name)
    assert [member.partition("=")[0] for member in first.members] == ["DIRECT", "PUBLIC", "DL"]
    assert changes_of(write_plan(image), image, prune=True) == []


# Mistakes.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sitez:", "line 1: the file has no key 'sitez' (did you mean 'sites'?)"),
        (
            "sites:\n  A:\n    queue_managers:\n      X:\n        adresses: []",
            "line 5: sites.A.queue_managers.X has no key 'adresses' (did you mean 'addresses'?)",
        ),
        ("links:\n  - between: [A, B]\n    kost: 1", "line 3: links has no key 'kost' (did you me"),
        ("sites: [A]", "line 1: sites: keys with values are needed here, not a list"),
        ("sites: A", "line 1: sites: keys with values are needed here, not the text 'A'"),
        ("links: {}", "line 1: links: a list is needed here, not keys with values"),
        ("links:\n - cost: 1", "line 2: links: a link needs its two sites"),
        ("links: [{between: [A]}]", "a link needs its two sites"),
        ("sites: {A: , B: }\nlinks: [{between: [A, B]}]", "line 2: links: a new link needs its `c"),
        (
            "sites: {A: , B: }\nlinks:\n - between: [A, B]\n   cost: 0",
            "line 4: links.cost: a number from 1 to 999999 is needed here, not '0'",
        ),
        ("sites: {A: {foreign: maybe}}", "sites.A.foreign: true or false is needed here, not 'ma"),
        ("sites: {A: {foreign: [x]}}", "sites.A.foreign: a text is needed here, not a list"),
        ("sites: {A: {identifier: x}}", "sites.A.identifier: 'x' is not a GUID"),
        (
            "queue_managers: {X: {directory_server: primary}}",
            "'primary' is not possible here (there are backup_site_controller, none, primary_",
        ),
        ("queue_managers: {X: {quota_kb: 99999999999}}", "a number from 0 to 4294967295"),
        ("queue_managers: {X: {quota_kb: ²}}", "a number from 0 to 4294967295"),
        (
            "sites: {Branch: }\nlinks:\n - between: [Branch,\n     Brunch]\n   cost: 1",
            "line 4: links.between: there is no site 'Brunch', neither in the file nor in the "
            "directory (did you mean 'Branch'?)",
        ),
        (
            "queue_managers: {X: {out_routing_servers: [Y]}}",
            "there is no queue manager 'Y', neither",
        ),
        ("sites: {A: , a: }", "sites.a: this site is described in line 1 already"),
        (
            "sites:\n A: {queue_managers: {X: }}\n B: {queue_managers: {X: }}",
            "line 3: sites.B.queue_managers.X: this queue manager is described in line 2 already",
        ),
        ("sites: {A: , A: }", "line 1: the key 'A' is there twice"),
        ("lists: {L: {members: [X\\q]}}", "there is no public queue 'X\\\\q'; a private one is wr"),
        ("lists: {L: {members: [M]}}", "there is no distribution list 'M'"),
        ("lists: {L: {members: [PUBLIC=x]}}", "line 1: lists.L.members: "),
        (f"queue_managers: {{X: {{queues: {{q: {{label: {'x' * 125}}}}}}}}}", "label of X\\q has"),
        ("a: [b", "this is no YAML"),
        ("a: b\n c: d", "line 2: this is no YAML"),
        ("a: \x07", "this is no YAML"),
        ("sites: &a {A: }\nnetworks: *a", "line 2: networks: aliases (*name) are not used"),
        ("? [a]\n: b", "line 1: a key is a text"),
        ("--- {}\n--- {}", "line 2: a second document begins here"),
        ("a: " + "[" * 20 + "]" * 20, "this is nested too deeply"),
        ("a: " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_key(text, words):
    with pytest.raises(PlanError) as refused:
        changes_of(text)
    assert str(refused.value).startswith("x.yaml")
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["", "# nothing", "{}", "sites:", "links: ~", "enterprise: {}"])
def test_little_can_be_said(text):
    plan = read_plan(text, "x")
    assert len(plan.items) == (text == "enterprise: {}")


def test_an_identifier_never_changes_and_belongs_to_one_object(example):
    mine = next(iter(example.sites.values()))
    with pytest.raises(PlanError, match="never changes"):
        changes_of(f"sites: {{{mine.name}: {{identifier: {guid('other')}}}}}", example)
    with pytest.raises(PlanError, match="another site has the identifier"):
        changes_of(f"sites: {{New: {{identifier: {mine.identifier}}}}}", example)


def test_a_file_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(yaml_tree, "PLAN_MAX_BYTES", 10)
    read_plan("#" * 10, "x")
    with pytest.raises(PlanError, match="larger than 10 bytes"):
        read_plan("#" * 9 + "é", "x")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        read_plan(text, "x")
    except PlanError as error:
        assert "x" in str(error)  # noqa: PT017 -- other errors are failures


leaves = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
trees = st.dictionaries(
    leaves,
    st.recursive(
        leaves | st.lists(leaves, max_size=3),
        lambda inner: st.dictionaries(leaves, inner, max_size=3),
        max_leaves=6,
    ),
    min_size=1,
    max_size=3,
)


@given(trees)
def test_a_written_tree_is_read_as_the_same(tree):
    def plain(node):
        if node.pairs is not None:
            return {key: plain(value) for key, value in node.pairs.items()}
        return node.text if node.items is None else [plain(item) for item in node.items]

    def bare(value):
        if isinstance(value, dict):
            return {key: bare(inner) for key, inner in value.items()} or ""
        return value

    assert plain(read_tree(write_tree(tree), "x")) == bare(tree)


# What no plan can name.


def test_objects_without_a_name_of_their_own_are_left_alone():
    nameless = DistributionList(identifier=guid("L"))
    twins = [Site(identifier=guid(name), name="Twin") for name in "AB"]
    image = DirectoryImage([nameless, *twins])
    text = write_plan(image)
    assert text.startswith("# Left out, for want of a name of their own: 2 objects.\n")
    assert changes_of(text, image, prune=True) == []


# Differences for people.


def test_differences_are_shown_by_name_and_property(example):
    text = r"""
sites:
  Region: {queue_managers: {REGION1: {other_sites: [Branch], quota_kb: unlimited}}}
  Depot: {queue_managers: {DEPOT1: {routing_server: true}}}
links:
  - {between: [Depot, Region], cost: 4, gates: [DEPOT1]}
  - {between: [Branch, Region], cost: 11, gates: [BRANCH-GATE1]}
lists: {figures: {members: [REGION1\stock]}}
"""
    changes = changes_of(text, example)
    shown = "\n".join(map(str, describe(changes, example)))
    assert shown == "\n".join(
        [
            "+ site Depot",
            "~ queue manager REGION1",
            "    quota_kb: 8388608 -> unlimited",
            "    sites: Region -> Region, Branch",
            "+ queue manager DEPOT1",
            "    sites: Depot",
            "    routing_server: yes",
            "+ link Depot:Region",
            "    cost: 4",
            "    gates: DEPOT1",
            "~ link Branch:Region",
            "    cost: 10 -> 11",
            "    gates: BRANCH-GATE1, BRANCH-GATE2, REGION-GATE1, REGION-GATE2 -> BRANCH-GATE1",
            "~ distribution list figures",
            "    members: HQ1\\sales, REGION1\\stock -> REGION1\\stock",
        ]
    )


@given(images(), images())
def test_every_change_is_shown_once(image, wanted):
    changes = changes_for(read_plan(write_plan(wanted), "x"), image, new_guids(), prune=True)
    lines = describe(changes, image)
    assert [line.kind for line in lines] == [
        one.kind if isinstance(one, Removal) else kind_of(one) for one in changes
    ]
    for line in lines:
        if line.sign is Sign.CHANGED:
            assert line.fields
    assert describe(list(image), image) == []


def test_removals_are_shown_by_the_names_of_what_goes(example):
    lines = describe(changes_of("enterprise: {name: New}", example, prune=True), example)
    assert str(lines[0]) == "~ enterprise New\n    name: Example -> New"
    shown = [str(line) for line in lines[1:]]
    assert "- link Branch:Headquarters" in shown
    assert "- public queue HQ1\\sales" in shown
    assert len(shown) == len(example) - 1


def test_all_keys_of_a_plan_are_properties_that_exist(example):
    for kind, fields in FIELDS.items():
        for value in example.of_kind(kind).values():
            assert all(hasattr(value, field.attribute) for field in fields)


# The guide.


def guide() -> str:
    return (EXAMPLE.parents[1] / "docs/guides/describe-an-enterprise.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("section", "kind", "others"),
    [
        ("enterprise", ObjectKind.ENTERPRISE, []),
        ("sites", ObjectKind.SITE, ["queue_managers"]),
        ("queue_managers", ObjectKind.MANAGER, ["queues"]),
        ("queues", ObjectKind.QUEUE, []),
        ("links", ObjectKind.LINK, ["between"]),
        ("lists", ObjectKind.LIST, []),
    ],
)
def test_the_guide_names_every_key(section, kind, others):
    part = guide().partition(f"\n### `{section}`\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", part, re.MULTILINE)
    named = {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}
    assert named | {"identifier"} == {field.key for field in FIELDS[kind]} | set(others)


def test_the_plan_of_the_guide_can_be_applied():
    (text,) = re.findall(r"^```yaml\n(.*?)^```", guide(), re.DOTALL | re.MULTILINE)
    image = applied(text)
    assert (len(image.sites), len(image.managers), len(image.queues)) == (2, 4, 1)


def test_the_limits_of_the_guide_are_those_of_the_code():
    part = guide().partition("\n## Limits\n")[2]
    numbers = [int(one.replace(",", "")) for one in re.findall(r"\b[\d,]*\d\b", part)]
    assert numbers == [
        yaml_tree.PLAN_MAX_BYTES >> 20,
        yaml_tree.PLAN_MAX_LEVELS,
        rules.GATES_MAX_COUNT,
        rules.MANAGER_SITES_MAX_COUNT,
        limits.CONNECTED_NETWORKS_MAX_COUNT,
        rules.ROUTING_SERVERS_MAX_COUNT,
        rules.ADDRESSES_MAX_COUNT,
        directory_limits.LIST_MEMBERS_MAX_COUNT,
        directory_limits.DIRECTORY_OBJECTS_MAX_COUNT,
        directory_limits.DIRECTORY_OBJECT_MAX_BYTES >> 10,
    ]

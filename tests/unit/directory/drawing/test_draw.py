"""Drawings: everything is in them, nothing lies on anything else, and they are always the same."""

from __future__ import annotations

import itertools
import random
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.directory.drawing.draw import ROWS_MAX_COUNT, draw
from openmsmq.directory.drawing.layout import CURVES_MAX_COUNT, Box, arrange
from openmsmq.directory.image import DirectoryImage
from openmsmq.model.topology import (
    DirectoryServerKind,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
)
from tests.strategies.enterprises import guid, images

SVG = "{http://www.w3.org/2000/svg}"


def site(name, **fields):
    return Site(identifier=guid(name), name=name, **fields)


def manager(name, *sites, **fields):
    places = tuple(guid(one) for one in sites)
    return QueueManagerInfo(identifier=guid(name), computer_name=name, sites=places, **fields)


def link(one, other, cost=1, gates=()):
    return RoutingLink(
        identifier=guid((one, other)),
        site1=guid(one),
        site2=guid(other),
        cost=cost,
        site_gates=tuple(map(guid, gates)),
    )


def texts(svg, kind=None):
    root = ElementTree.fromstring(svg)
    return [
        node.text for node in root.iter(f"{SVG}text") if kind is None or node.get("class") == kind
    ]


def rectangles(svg, kind):
    root = ElementTree.fromstring(svg)
    found = []
    for node in root.iter(f"{SVG}rect"):
        if (node.get("class") or "").split()[0] == kind:
            x, y, width, height = (float(node.get(key, 0)) for key in ("x", "y", "width", "height"))
            found.append(Box(width, height, x + width / 2, y + height / 2))
    return found


def overlaps(one, other, margin=0.0):
    """Say whether two boxes come nearer to each other than the margin."""
    return (
        abs(other.x - one.x) < (one.width + other.width) / 2 + margin
        and abs(other.y - one.y) < (one.height + other.height) / 2 + margin
    )


def overlapping(boxes, margin=0.0):
    return [pair for pair in itertools.combinations(boxes, 2) if overlaps(*pair, margin)]


def within_frame(svg):
    """Say whether all boxes are inside the picture."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    group, _legend = (node for node in root if node.get("transform"))
    shift_x, shift_y = map(float, re.findall(r"-?\d+", group.get("transform")))
    return all(
        box.x - box.width / 2 + shift_x >= 0
        and box.x + box.width / 2 + shift_x <= width
        and box.y - box.height / 2 + shift_y >= 0
        and box.y + box.height / 2 + shift_y <= height
        for box in [*rectangles(svg, "card"), *rectangles(svg, "cost")]
    )


def pairs_of(shape, count):
    return {
        "chain": [(i, i + 1) for i in range(count - 1)],
        "ring": [(i, (i + 1) % count) for i in range(count)],
        "star": [(0, i) for i in range(1, count)],
        "mesh": list(itertools.combinations(range(count), 2)),
        "tree": [((i - 1) // 3, i) for i in range(1, count)],
        "none": [],
        "islands": [(i, i + 1) for i in range(0, count - 1, 2)],
    }[shape]


def network(shape, count):
    pairs = pairs_of(shape, count)
    names = [f"Site {number:02}" for number in range(count)]
    managers = [
        manager(f"QM{number:02}-{extra}", names[number], routing_server=True)
        for number in range(count)
        for extra in range(number % 5)
    ]
    return DirectoryImage(
        [
            *map(site, names),
            *managers,
            *(link(names[one], names[other], 1 + one * other) for one, other in pairs),
        ]
    )


@pytest.mark.parametrize("shape", ["chain", "ring", "star", "tree", "none", "islands"])
@pytest.mark.parametrize("count", [3, 9, 30, 60])
def test_no_site_lies_on_another_and_every_cost_can_be_read(shape, count):
    image = network(shape, count)
    svg = draw(image)
    cards, costs = rectangles(svg, "card"), rectangles(svg, "cost")
    assert (len(cards), len(costs)) == (count, len(image.links))
    assert overlapping(cards, 8) == []
    assert overlapping(costs) == []
    assert [pair for pair in itertools.product(cards, costs) if overlaps(*pair)] == []
    assert within_frame(svg)


@given(st.integers(2, 30), st.integers(0, 20), st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_random_enterprises_can_be_read(count, extra_count, seed):
    rng = random.Random(seed)
    pairs = {(rng.randrange(number), number) for number in range(1, count)}
    pairs |= {tuple(sorted(rng.sample(range(count), 2))) for _ in range(extra_count)}
    boxes = [Box(rng.randint(120, 240), rng.randint(34, 190)) for _ in range(count)]
    ordered = sorted(pairs)
    labels = [Box(30, 20) for _ in ordered]
    layout = arrange(boxes, ordered, labels)
    assert overlapping([*boxes, *labels], 4) == []
    again = [Box(box.width, box.height) for box in boxes]
    assert arrange(again, ordered, [Box(30, 20) for _ in ordered]) == layout
    assert again == boxes


def points_of(line):
    """Return points along a line: its curves, each from a point over two others to a third."""
    for piece in line.split("M")[1:]:
        first, rest = piece.split("C")
        numbers = [float(number) for number in f"{first} {rest}".split(" ")]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        for at in range(0, len(points) - 1, 3):
            for step in range(21):
                t = step / 20
                shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
                four = zip(shares, points[at : at + 4], strict=True)
                x, y = zip(*((share * x, share * y) for share, (x, y) in four), strict=True)
                yield sum(x), sum(y)


def holds(box, point, margin=0.0):
    """Say whether a point lies in a box or near it."""
    return (
        abs(point[0] - box.x) < box.width / 2 + margin
        and abs(point[1] - box.y) < box.height / 2 + margin
    )


@pytest.mark.parametrize("shape", ["tree", "ring", "star"])
def test_lines_run_from_site_to_site_and_past_those_that_they_do_not_lead_to(shape):
    pairs = pairs_of(shape, 40)
    boxes = [Box(150, 100) for _ in range(40)]
    labels = [Box(30, 20) for _ in pairs]
    for pair, line in zip(pairs, arrange(boxes, pairs, labels).lines, strict=True):
        points = list(points_of(line))
        assert holds(boxes[pair[0]], points[0], 2)
        assert holds(boxes[pair[1]], points[-1], 2)
        assert not any(
            holds(box, point)
            for number, box in enumerate(boxes)
            if number not in pair
            for point in points
        )


def test_with_very_many_sites_lines_are_straight():
    pairs = pairs_of("star", CURVES_MAX_COUNT + 1)
    boxes = [Box(150, 100) for _ in range(CURVES_MAX_COUNT + 1)]
    labels = [Box(30, 20) for _ in pairs]
    assert all(line.count(" ") == 12 for line in arrange(boxes, pairs, labels).lines)
    assert overlapping([*boxes, *labels]) == []


@given(images())
def test_everything_is_in_the_picture(image):
    svg = draw(image)
    shown = texts(svg)
    assert len(texts(svg, "number")) == len(image.links)
    assert len(rectangles(svg, "card")) in (len(image.sites), len(image.sites) + 1)
    for one in image.managers.values():
        assert one.computer_name in shown
    assert draw(DirectoryImage(reversed(list(image)))) == svg
    assert within_frame(svg)


def test_roles_have_marks_and_the_legend_names_those_that_occur():
    image = DirectoryImage(
        [
            EnterpriseInfo(identifier=guid("E"), name="Acme & <Sons>"),
            site("A"),
            site("B", foreign=True),
            manager("GATE", "A", routing_server=True),
            manager("ROUTER", "A", routing_server=True),
            manager("SERVER", "A", directory_server=DirectoryServerKind.STANDALONE),
            manager("OTHER", "B", foreign=True),
            manager("HOMELESS"),
            link("A", "B", 1234, ["GATE"]),
        ]
    )
    svg = draw(image)
    assert texts(svg, "title") == ["Acme & <Sons>"]
    assert "without a site" in texts(svg, "site")
    assert "1,234" in texts(svg, "number")
    assert texts(svg, "name")[:3] == ["GATE", "ROUTER", "SERVER"]
    assert texts(svg, "note")[-7:] == [
        "gate",
        "routing server",
        "queue manager",
        "foreign queue manager",
        "directory server",
        "link and its cost",
        "link without a gate on each side: nothing passes",
    ]
    assert "prefers-color-scheme: dark" in svg


def test_a_long_list_is_cut_with_its_gates_first():
    names = [f"QM{number:02}" for number in range(20)]
    image = DirectoryImage(
        [
            site("A"),
            site("B"),
            *(manager(name, "A", routing_server=True) for name in names),
            link("A", "B", 1, ["QM19"]),
        ]
    )
    svg = draw(image)
    assert texts(svg, "name")[0] == "QM19"
    assert len(texts(svg, "name")) == ROWS_MAX_COUNT
    assert f"and {20 - ROWS_MAX_COUNT} more" in texts(svg, "note")


def test_long_and_strange_names_are_shortened_and_made_harmless():
    long, strange = "A very long name " * 20, "<script>\x07\u202e&\"'"
    image = DirectoryImage([site(long), site(strange), manager("M" * 200, long)])
    svg = draw(image)
    assert "<script>" not in svg
    assert "\x07" not in svg
    assert any(text.endswith("…") for text in texts(svg, "site"))
    assert max(map(len, texts(svg, "name"))) < 30
    assert max(box.width for box in rectangles(svg, "card")) < 300


def test_an_empty_directory_is_an_empty_picture():
    assert texts(draw(DirectoryImage()), "note") == ["0 sites, 0 queue managers, 0 routing links"]

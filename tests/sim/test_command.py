"""`openmsmq sim run`, as a person uses it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from typer.testing import CliRunner

from openmsmq.cli.app import app
from tests.sim.mutants import MUTANTS, applied

DEFECT = next(each for each in MUTANTS if each.name.startswith("a batch counts as durable"))


def run(*arguments):
    return CliRunner().invoke(app, ["sim", "run", *arguments])


def test_seeds_that_keep_every_promise_are_counted():
    result = run("--seeds", "3", "--jobs", "1", "--managers", "1")
    assert result.exit_code == 0
    assert re.match(r"3 seeds, \d+ steps, \d+ messages", result.output)


def test_two_processes_give_what_one_gives():
    one = run("--seeds", "45", "--jobs", "1", "--managers", "1", "--json")
    two = run("--seeds", "45", "--jobs", "2", "--managers", "1", "--json")
    assert json.loads(one.output) == json.loads(two.output)
    assert json.loads(one.output)["seeds"] == 45


def test_a_seed_that_fails_says_what_is_wrong_how_to_see_it_again_and_what_happened():
    with applied(DEFECT):
        result = run("--seeds", "9", "--jobs", "1", "--managers", "1", "--only", "cut")
    assert result.exit_code == 1
    assert "had it on its disk" in result.output
    assert 'openmsmq sim run --first-seed 0 --managers 1 --only "cut" --trace' in result.output
    assert re.search(r"^ +\d+\.\d{3}  ALPHA +call", result.output, re.MULTILINE)


def test_a_trace_shows_everything():
    result = run("--first-seed", "4", "--managers", "2", "--trace")
    assert result.exit_code == 0
    for what in ("start", "call", "answer", "persist", "durable", "packet"):
        assert re.search(rf"^ +\d+\.\d{{3}}  \w+ +{what} ", result.output, re.MULTILINE)


def test_a_drawing_is_one_page_with_a_lane_for_each_node_and_an_arrow_for_each_packet(tmp_path):
    page = tmp_path / "trace.html"
    result = run("--first-seed", "4", "--managers", "3", "--trace-html", str(page))
    assert result.exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    svg = ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.DOTALL)[0])
    space = "{http://www.w3.org/2000/svg}"
    heads = [each.text for each in svg.iter(f"{space}text") if each.get("class") == "head"]
    assert heads == ["ALPHA", "BRAVO", "CHARLIE"]
    arrows = [each for each in svg.iter(f"{space}path") if "arrow" in each.get("class", "")]
    assert len(arrows) > 20


def test_a_drawing_of_a_failure_marks_the_message(tmp_path):
    page = tmp_path / "trace.html"
    with applied(DEFECT):
        result = run("--managers", "1", "--trace-html", str(page))
    assert result.exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert 'class="bad"' in text
    assert 'class="mark"' in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "flood"], "there is no fault 'flood'"),
        (["--doing", "sleep"], "there is no operation 'sleep'"),
        (["--names", "smell"], "there is no kind of destination 'smell'"),
        (["--trace", "--seeds", "2"], "a trace is of one seed"),
        (["--hostile", "--mode", "friendly"], "there is no mode 'friendly'; there are known,"),
        (["--hostile", "--attacks", "bribes"], "there is no attack 'bribes'"),
        (["--attacks", "jumps"], "only with --hostile is there anybody who attacks"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence in result.output

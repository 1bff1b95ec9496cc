"""The dashboard and the rules for alerts can be loaded, and name metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from openmsmq.client.metrics import FAMILIES
from tests.unit.client.test_metrics import everything, parsed

HOME = Path(__file__).parents[1] / "examples/operations"
DASHBOARD: dict[str, Any] = json.loads((HOME / "dashboard.json").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((HOME / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
EXPRESSIONS = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(rule["expr"] for rule in RULES),
]
SERIES = {(sample.name, label) for sample in parsed(everything())[1] for label, _ in sample.labels}
NAMES = {sample.name for sample in parsed(everything())[1]}
FUNCTIONS = {"absent", "increase", "rate", "sum", "time", "topk"}
WORDS = {"and", "by", "or"}
GIVEN_BY_PROMETHEUS = {"instance", "job"}

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<span>\[\d+[smhd]\])|(?P<number>\d[\d.e]*)
    |(?P<name>[a-zA-Z_]\w*)|(?P<sign>==|=~|!~|!=|<=|>=|[-+*/<>=(){},])""",
    re.VERBOSE,
)


def tokens(expression: str) -> list[tuple[str, str]]:
    """Cut an expression into words; raise for a letter that belongs to none."""
    found, at = [], 0
    while at < len(expression):
        token = _TOKEN.match(expression, at)
        if token is None:
            raise ValueError(f"{expression!r} is not understood at {at}")
        at = token.end()
        if token.lastgroup != "space":
            found.append((str(token.lastgroup), token.group()))
    return found


def problems(expression: str) -> list[str]:
    """Return what is wrong with an expression: brackets, names of metrics, labels, functions."""
    words = tokens(expression)
    return [*unbalanced([text for _, text in words]), *unknown(words)]


def unbalanced(words: list[str]) -> list[str]:
    found: list[str] = []
    open_: list[str] = []
    pairs = {")": "(", "}": "{"}
    for text in words:
        if text in ("(", "{"):
            open_.append(text)
        elif text in pairs and (not open_ or open_.pop() != pairs[text]):
            found.append(f"{text} closes nothing")
    return found + [f"{text} is never closed" for text in open_]


def unknown(words: list[tuple[str, str]]) -> list[str]:
    """Return the names that mean nothing, where they stand: a metric, a label or a function."""
    found: list[str] = []
    metric, place = "", "outside"
    for (kind, text), (_, after) in zip(words, [*words[1:], ("", "")], strict=True):
        if text == "{":
            place = "labels"
        elif text == "by":
            place = "groups"
        elif text == "}" or (text == ")" and place == "groups"):
            place = "outside"
        elif kind == "name" and text not in WORDS:
            if place == "outside" and after not in ("(", "by"):
                metric = text
            if not is_known(metric, text, place, is_called=after in ("(", "by")):
                found.append(f"{text} in {place} of {metric} means nothing")
    return found


def is_known(metric: str, name: str, place: str, *, is_called: bool) -> bool:
    if place == "labels":
        return (metric, name) in SERIES or name in GIVEN_BY_PROMETHEUS
    if place == "groups":
        return any(label == name for _, label in SERIES)
    return name in (FUNCTIONS if is_called else NAMES)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    assert problems(expression) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "openmsmq_upp == 0",
        'openmsmq_queue_messages{colour="red"}',
        "sum by (colour) (openmsmq_sessions)",
        "sum(openmsmq_messages",
        "rat(openmsmq_resends_total[5m])",
    ],
)
def test_what_is_wrong_with_an_expression_is_noticed(wrong: str) -> None:
    assert problems(wrong)


def test_rates_are_made_of_counters_and_of_nothing_else() -> None:
    counters = {family.name for family in FAMILIES if family.kind == "counter"}
    counters |= {
        f"{family.name}_{part}"
        for family in FAMILIES
        if family.kind == "summary"
        for part in ("sum", "count")
    }
    for expression in EXPRESSIONS:
        for name in re.findall(r"(?:rate|increase)\((\w+)", expression):
            assert name in counters
        assert not set(
            re.findall(r"\w+_total\b", re.sub(r"(rate|increase)\([^)]*\)", "", expression))
        )


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 8
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "what_to_do"}
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            assert any(known == label for _, known in SERIES)


def test_the_panels_of_the_dashboard_stand_beside_each_other() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        places = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not places & taken
        assert at["x"] + at["w"] <= 24
        taken |= places
        for target in panel["targets"]:
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                known = any(found == label for _, found in SERIES)
                assert known or label in GIVEN_BY_PROMETHEUS

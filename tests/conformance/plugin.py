"""The pytest plugin behind `@pytest.mark.spec("MQMQ-2.1.2-01", ...)`.

It refuses ids that are unknown or excepted where the test is collected, and records what became
of the tests of each id. Ids travel in the reports, so that it also works under pytest-xdist.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance import catalogue

PROPERTY: Final = "spec"
IDS_MAX_COUNT: Final = 8
"""A test that shows more statements than that says of none of them what is wrong with it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; the folders change only in the tests of this plugin."""
    group = parser.getgroup("conformance")
    group.addoption("--conformance-results", type=Path, help="write what became of each spec id")
    group.addoption("--conformance-only", default="", help="run the tests of these spec ids only")
    group.addoption(
        "--conformance-folder",
        type=Path,
        default=catalogue.HERE,
        help=("folder of the catalogue and exceptions.toml"),
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the catalogue once; a mistake in it ends the run with one sentence."""
    folder: Path = config.getoption("--conformance-folder")
    try:
        known = catalogue.load_catalogue(folder / catalogue.CATALOGUE.name)
        excepted = catalogue.load_exceptions(known, folder / catalogue.EXCEPTIONS.name)
    except (catalogue.CatalogueError, OSError) as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(Marks(known, excepted), "conformance-marks")
    only: str = config.getoption("--conformance-only")
    if only:
        config.pluginmanager.register(Selection(frozenset(only.split(","))), "conformance-only")
    results: Path | None = config.getoption("--conformance-results")
    if results is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(results), "conformance-recorder")


class Marks:
    """Checks the ids of tests and lets them travel in the reports."""

    def __init__(
        self,
        known: dict[str, catalogue.Statement],
        excepted: dict[str, catalogue.Exemption],
    ) -> None:
        self._known = known
        self._excepted = excepted

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn a wrong id into an error of the module or class that holds the test."""
        report = yield
        problems = [
            f"{item.nodeid}: {problem}"
            for item in report.result or []
            if isinstance(item, pytest.Item)
            for problem in self._label(item)
        ]
        if problems:
            report.outcome = "failed"
            report.longrepr = "\n".join(problems)
            report.result = []
        return report

    def _label(self, item: pytest.Item) -> list[str]:
        problems: list[str] = []
        ids: list[str] = []
        for mark in item.iter_markers("spec"):
            if not mark.args or mark.kwargs:
                problems.append("the spec mark takes one or more ids and nothing else")
            ids += map(str, mark.args)
        for id_ in ids:
            if id_ not in self._known:
                problems.append(f"{id_} is not in the conformance catalogue")
            elif id_ in self._excepted:
                pattern = self._excepted[id_].pattern
                problems.append(
                    f"{id_} is excepted by {pattern} in exceptions.toml; "
                    "a test that shows it makes the exception stale, so remove one of them"
                )
        if len(set(ids)) > IDS_MAX_COUNT:
            problems.append(
                f"it carries {len(set(ids))} ids, at most {IDS_MAX_COUNT} are allowed; "
                "split it, so that each part fails for the statements that it is about"
            )
        if ids:
            item.user_properties.append((PROPERTY, ids))
        return problems


class Selection:
    """Leaves the tests that carry one of the ids."""

    def __init__(self, ids: frozenset[str]) -> None:
        self._ids = ids

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect the others."""
        others = [item for item in items if self._ids.isdisjoint(_ids(item))]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not self._ids.isdisjoint(_ids(item))]


class Recorder:
    """Keeps, for each id, whether its tests passed; runs where all reports arrive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: defaultdict[str, set[str]] = defaultdict(set)
        self._failed: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a report; a failing set-up or tear-down counts as a failure of the test."""
        for id_ in _ids(report):
            if report.failed:
                self._failed[id_].add(report.nodeid)
            elif report.passed and report.when == "call":
                self._passed[id_].add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted."""
        results = {
            id_: {"passed": sorted(self._passed[id_]), "failed": sorted(self._failed[id_])}
            for id_ in sorted(self._passed.keys() | self._failed.keys())
        }
        self._path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _ids(labelled: pytest.TestReport | pytest.Item) -> set[str]:
    return {
        id_
        for name, value in labelled.user_properties
        if name == PROPERTY and isinstance(value, list)
        for id_ in value
    }

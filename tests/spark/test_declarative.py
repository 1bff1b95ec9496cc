"""The declarative pipeline: what it defines, the project that is written, and a run of it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from openmsmq.cli.app import app
from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines.declarative_project import (
    CATALOG,
    DEFINITIONS,
    SPEC,
    project_files,
)
from openmsmq.spark.session import worker_python
from tests.runtime.computers import SOURCE, neighbours, running

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/declarative"
QUEUES = r"private$\orders,system$;journal,system$;deadletter,system$;deadxact"


# The project.


def test_the_example_is_what_init_writes():
    options = {"qm": "127.0.0.2", "queue": QUEUES, "mode": "browse"}
    files = project_files("msmq", "/var/lib/openmsmq-pipeline", "alpha", options)
    found = {
        str(path.relative_to(EXAMPLE)): path.read_text(encoding="utf-8")
        for path in EXAMPLE.rglob("*.*")
        if "__pycache__" not in path.parts
    }
    assert found == files


@given(st.text(), st.text(), st.dictionaries(st.sampled_from(["qm", "queue", "ca"]), st.text()))
def test_whatever_the_names_are_the_files_can_be_read(name, directory, options):
    yaml = pytest.importorskip("yaml")
    files = project_files(name, f"/{directory}", "queues", options)
    spec = yaml.safe_load(files[SPEC])
    assert spec["name"] == name
    assert spec["storage"] == "file://" + f"/{directory}".rstrip("/") + "/storage"
    assert all(isinstance(value, str) for value in spec["configuration"].values())
    assert sources_in(files[DEFINITIONS]) == {"queues": options}
    assert len(files[CATALOG].splitlines()) == 5 or not directory.isprintable()


def sources_in(definitions: str) -> Mapping[str, Mapping[str, str]]:
    """Return what a definitions file hands over."""
    (call,) = (node for node in ast.walk(ast.parse(definitions)) if isinstance(node, ast.Call))
    found: Mapping[str, Mapping[str, str]] = ast.literal_eval(call.args[0])
    return found


def test_init_writes_a_project_and_says_how_to_run_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["--qm", "alpha:1802", "--token-file", "token", "--ca", "ca.pem"]
    arguments += ["pipeline", "init", "flow", "--queue", r"private$\orders"]
    arguments += ["--queue", "system$;journal"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"wrote {tmp_path}/flow/spark-pipeline.yml",
        f"wrote {tmp_path}/flow/catalog.conf",
        f"wrote {tmp_path}/flow/definitions/queues.py",
        f"Run it with: cd {tmp_path}/flow && spark-pipelines --properties-file catalog.conf run",
    ]
    assert sources_in((tmp_path / "flow" / DEFINITIONS).read_text(encoding="utf-8")) == {
        "queues": {
            "qm": "alpha:1802",
            "tokenFile": str(tmp_path / "token"),
            "ca": str(tmp_path / "ca.pem"),
            "queue": r"private$\orders,system$;journal",
            "mode": "browse",
        }
    }
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert again.stderr == (
        "openmsmq: flow is there already: name a directory that is new or empty.\n"
    )


def test_init_tells_programs_which_files_it_wrote(tmp_path):
    arguments = ["--qm", "127.0.0.2", "--tls", "pipeline", "init", str(tmp_path / "flow")]
    result = CliRunner().invoke(app, [*arguments, "--queue", "*", "--consume", "--json"])
    files = [json.loads(line)["file"] for line in result.stdout.splitlines()]
    assert files == [str(tmp_path / "flow" / name) for name in (SPEC, CATALOG, DEFINITIONS)]
    assert sources_in(Path(files[2]).read_text(encoding="utf-8")) == {
        "queues": {"qm": "127.0.0.2", "tls": "true", "queue": "*", "mode": "consume"}
    }


# What is defined.


class Listing:
    """Takes what a definitions file defines, and only lists it."""

    def __init__(self) -> None:
        self.outputs: dict[str, str] = {}
        self.flows: list[tuple[str, str]] = []

    def register_output(self, output: Any) -> None:
        self.outputs[output.name] = type(output).__name__

    def register_flow(self, flow: Any) -> None:
        self.flows.append((flow.name, flow.target))


def defined(sources: Mapping[str, Mapping[str, str]]) -> Listing:
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context

    from openmsmq.spark.pipelines.declarative import define

    listing = Listing()
    with graph_element_registration_context(listing):
        define(sources)
    return listing


def test_each_source_flows_into_the_messages_from_which_the_views_are_made():
    found = defined({"alpha": {"queue": "a"}, "beta": {"qm": "127.0.0.3", "queue": "b"}})
    assert found.outputs == {
        "messages": "StreamingTable",
        "messages_of_this_run": "TemporaryView",
        "delivery": "MaterializedView",
        "delivery_of_this_run": "TemporaryView",
        "by_queue": "MaterializedView",
        "by_hour": "MaterializedView",
        "by_link": "MaterializedView",
    }
    assert found.flows == [
        ("alpha", "messages"),
        ("beta", "messages"),
        ("messages_of_this_run", "messages_of_this_run"),
        ("delivery", "delivery"),
        ("delivery_of_this_run", "delivery_of_this_run"),
        *((name, name) for name in ("by_queue", "by_hour", "by_link")),
    ]


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ({}, "option queue: is missing"),
        ({"alpha": {}}, "option queue: is missing"),
        ({"alpha": {"queue": "a", "kueue": "b"}}, "option kueue: is not known"),
        ({"alpha": {"queue": "a", "columns": "body"}}, "option columns: must be left out"),
        ({"alpha 1": {"queue": "a"}}, "option alpha 1: is no name of a source"),
        ({"delivery": {"queue": "a"}}, "option delivery: is the name of a table"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_before_a_run(sources, problem):
    with pytest.raises(BadOption, match=f"^{problem}"):
        defined(sources)


# Runs.


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_each_run_adds_what_is_new_and_spark_connect_reads_writes_and_streams(tmp_path):
    for module in ("grpc", "yaml"):
        pytest.importorskip(module, reason="pip install 'pyspark[pipelines]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17: scripts/ensure-java installs it on Debian")
    (alpha,) = neighbours(tmp_path, "ALPHA")
    project = tmp_path / "flow"
    options = {"qm": alpha.qm, "queue": r"private$\orders", "mode": "browse"}
    for name, text in project_files("flow", str(project), "alpha", options).items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    with running(alpha):
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.declarative_runs", project, alpha.qm],
            cwd=tmp_path,
            env={
                **os.environ,
                **worker_python(Path(pyspark.__file__).parent),
                "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}",
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=580,
        )
    assert done.returncode == 0, (done.stderr + done.stdout)[-6_000:]
    *counts, table = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    assert counts == [
        {"messages": ["order 0", "order 1"], "outcomes": ["waiting"] * 2, "by_queue": [2]},
        {
            "messages": ["order 0", "order 1", "order 2"],
            "outcomes": ["waiting"] * 3,
            "by_queue": [3],
        },
        {
            "read": ["a", "b"],
            "written": ["a", "b"],
            "streamed": ["a", "b"],
            "each batch": ["c"],
        },
    ]
    # What `ingest` does on Spark Connect.
    assert table["texts"] == ["one", "two"]
    assert table["reported"] == [2]
    assert table["waiting"] == 0
    assert table["refused"].endswith("is partitioned by queue, date: partition by that")

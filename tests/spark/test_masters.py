"""What the page about Kubernetes and YARN has typed is taken by `spark-submit`, up to the cluster.

A server stands in for the API of Kubernetes: it makes nothing, and keeps what it is asked to make.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, left_out
from tests.runtime.scripted_engine import free_port

PAGE = "docs/guides/spark-yarn-kubernetes.md"
EXAMPLES = ROOT / "examples/kubernetes"
BIN = Path(sys.executable).parent
PYTHON = "/opt/openmsmq/bin/openmsmq-python"

submits = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")


class KubernetesStandIn(ThreadingHTTPServer):
    """Answers every wish to make something with the thing itself, and keeps it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.asked: list[dict[str, Any]] = []

    @property
    def master(self) -> str:
        return f"k8s://http://127.0.0.1:{self.server_address[1]}"

    def made(self, kind: str) -> list[dict[str, Any]]:
        return [thing for thing in self.asked if thing.get("kind") == kind]


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KubernetesStandIn

    def do_GET(self) -> None:
        self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def do_POST(self) -> None:
        self._make()

    def do_PUT(self) -> None:
        self._make()

    def do_PATCH(self) -> None:
        self._make()

    def _make(self) -> None:
        thing = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(json.loads(json.dumps(thing)))
        thing.setdefault("metadata", {})["uid"] = f"{len(self.server.asked)}"
        self._answer(201, thing)

    def _answer(self, code: int, thing: dict[str, Any]) -> None:
        body = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def kubernetes() -> Iterator[KubernetesStandIn]:
    with KubernetesStandIn() as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def submitted(word: str, place: Path, changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command of the page that has this word in it, with this environment's programs."""
    (text,) = (block.text for block in left_out(PAGE) if f"--master {word}" in block.text)
    for old, new in (
        {"/opt/openmsmq/bin/spark-submit": f"{BIN}/spark-submit --verbose"} | changes
    ).items():
        assert old in text
        text = text.replace(old, new)
    (place / "examples").symlink_to(ROOT / "examples")
    text = text.replace(f"PYSPARK_PYTHON={PYTHON}\n", f"PYSPARK_PYTHON={BIN}/openmsmq-python\n")
    kept = {key: value for key, value in os.environ.items() if "SPARK" not in key}
    return subprocess.run(
        ["bash", "-c", text],
        cwd=place,
        env={**kept, "HOME": str(place), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@submits
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kubernetes_is_asked_for_a_driver_with_our_python_and_the_secret(
    kubernetes: KubernetesStandIn, tmp_path: Path
) -> None:
    done = submitted("k8s", tmp_path, {"k8s://https://10.0.0.20:6443": kubernetes.master})
    assert done.returncode == 0, done.stderr[-3000:]
    (pod,) = kubernetes.made("Pod")
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"]["job"] == "orders-to-parquet"
    assert pod["spec"]["serviceAccountName"] == "spark"
    assert container["image"] == "registry.example/openmsmq-spark:1"
    assert {"name": "PYSPARK_PYTHON", "value": PYTHON} in container["env"]
    assert "/etc/openmsmq" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert container["args"][-5:] == [
        "local:///opt/jobs/orders_to_parquet.py",
        "10.0.0.7",
        "/etc/openmsmq",
        "s3a://lake/orders",
        "s3a://lake/checkpoints/orders",
    ]
    (settings,) = (
        thing["data"]["spark.properties"]
        for thing in kubernetes.made("ConfigMap")
        if "spark.properties" in thing["data"]
    )
    assert f"spark.executorEnv.PYSPARK_PYTHON={PYTHON}" in settings.replace("\\:", ":")
    validate = pytest.importorskip("kubernetes_validate", reason="scripts/setup dev,manifests")
    validate.validate(pod, validate.latest_version(), strict=False)


@submits
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_yarn_is_asked_for_a_driver_with_the_python_of_the_archive(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    waits = {
        "yarn.resourcemanager.address": f"127.0.0.1:{port}",
        "yarn.resourcemanager.connect.max-wait.ms": "1000",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in waits.items()
    )
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{properties}</configuration>")
    for name in ("token", "ca.pem", "openmsmq.tar.gz"):
        (tmp_path / name).touch()
    changes = {
        "/etc/hadoop/conf": str(tmp_path),
        "/etc/openmsmq/token,/etc/openmsmq/ca.pem": f"{tmp_path}/token,{tmp_path}/ca.pem",
    }
    done = submitted("yarn", tmp_path, changes)
    said = done.stdout + done.stderr
    settings = dict(
        re.findall(r"^\((spark[^,]+),(.*)\)$", said.partition("Spark config:")[2], re.M)
    )
    python = "./environment/bin/python"
    assert settings["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] == python, said[-3000:]
    assert settings["spark.executorEnv.PYSPARK_PYTHON"] == python
    assert settings["spark.yarn.dist.archives"].endswith(f"{tmp_path}/openmsmq.tar.gz#environment")
    # Spark does not show a setting in which the word token stands.
    assert re.findall(r"^  files +(\S+)$", said, re.MULTILINE) == [
        f"file:{tmp_path}/token,file:{tmp_path}/ca.pem"
    ]
    assert settings["spark.yarn.isPython"] == "true"
    # Everything was fine until the cluster was asked, which is not there.
    assert f"127.0.0.1:{port}" in said
    assert "Connection refused" in said


def test_the_pod_is_one_by_the_schema_of_kubernetes() -> None:
    yaml = pytest.importorskip("yaml")
    validate = pytest.importorskip("kubernetes_validate", reason="scripts/setup dev,manifests")
    pod = yaml.safe_load((EXAMPLES / "pod.yaml").read_text(encoding="utf-8"))
    validate.validate(pod, validate.latest_version(), strict=True)
    pod["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] = "yes"
    with pytest.raises(validate.ValidationError):
        validate.validate(pod, validate.latest_version(), strict=True)


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="scripts/setup dev,manifests")
def test_the_dockerfile_has_nothing_that_its_linter_complains_of(tmp_path: Path) -> None:
    text = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")

    def complaints(content: str) -> str:
        (tmp_path / "Dockerfile").write_text(content, encoding="utf-8")
        command = [str(BIN / "hadolint"), str(tmp_path / "Dockerfile")]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    assert complaints(text) == ""
    assert "DL3008" in complaints(text.replace("# hadolint ignore=DL3008\n", ""))


def test_the_image_has_the_spark_with_which_the_rest_is_tested() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"^pyspark==(\S+)$", constraints, re.MULTILINE)
    text = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"apache/spark:(\S+)|pyspark==(\S+)", text) == [(version, ""), ("", version)]

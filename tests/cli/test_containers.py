"""The container and the manifests for Kubernetes fit each other, the product, and the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from openmsmq.client.settings import API_PORT
from openmsmq.model.limits import MSMQ_PORT, PING_PORT
from openmsmq.runtime.config.checking import check
from openmsmq.runtime.config.file import DEFAULTS, default_name, variable
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from tests.cli.conftest import CommandLine
from tests.server_thread import start_server

EXAMPLES = Path(__file__).parents[2] / "examples"
CONTAINER = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
THINGS: dict[str, dict[str, Any]] = {
    thing["kind"]: thing
    for thing in yaml.safe_load_all(
        (EXAMPLES / "kubernetes/queue-manager.yaml").read_text(encoding="utf-8")
    )
}
SET = THINGS["StatefulSet"]["spec"]
POD = SET["template"]["spec"]
(QUEUE_MANAGER,) = POD["containers"]
ENVIRONMENT = {each["name"]: each.get("value", "") for each in QUEUE_MANAGER["env"]}
PORTS = {
    "sessions": (MSMQ_PORT, "TCP"),
    "applications": (API_PORT, "TCP"),
    "sessions-tls": (SessionTlsTable().port, "TCP"),
    "ping": (PING_PORT, "UDP"),
}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def health_command() -> list[str]:
    (found,) = re.findall(r"^HEALTHCHECK .*\\\n\s*CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    return list(json.loads(found))


def image_environment() -> dict[str, str]:
    return dict(re.findall(r"(OPENMSMQ_\w+)=(\S+)", CONTAINER))


def test_the_ports_are_those_of_a_queue_manager() -> None:
    served = {each["name"]: each for each in THINGS["Service"]["spec"]["ports"]}
    opened = {each["name"]: each for each in QUEUE_MANAGER["ports"]}
    assert {name: (each["port"], each["protocol"]) for name, each in served.items()} == PORTS
    assert {name: (each["containerPort"], each["protocol"]) for name, each in opened.items()} == (
        PORTS
    )
    (exposed,) = re.findall(r"^EXPOSE (.*)$", CONTAINER, re.MULTILINE)
    for number, protocol in PORTS.values():
        assert f"{number}/{protocol.lower()}" in exposed.split()


def test_a_pod_keeps_its_name_and_is_found_under_it() -> None:
    service = THINGS["Service"]
    assert service["spec"]["clusterIP"] == "None"
    assert SET["serviceName"] == service["metadata"]["name"]
    labels = SET["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == SET["selector"]["matchLabels"] == labels
    assert default_name(f"{THINGS['StatefulSet']['metadata']['name']}-0") == "OPENMSMQ-0"
    names = ENVIRONMENT[variable("also_known_as")].split(",")
    assert f"$(POD_NAME).{SET['serviceName']}" in names
    # Neither the image nor the manifests give all of them one name.
    assert variable("name") not in {**image_environment(), **ENVIRONMENT}


def test_messages_are_on_a_volume_of_their_own_that_stays() -> None:
    (claim,) = SET["volumeClaimTemplates"]
    mounts = {
        each["name"]: PurePosixPath(each["mountPath"]) for each in QUEUE_MANAGER["volumeMounts"]
    }
    data = PurePosixPath(ENVIRONMENT[variable("data")])
    # Below the volume, whose own directory belongs to its group, too.
    assert data.parent == mounts[claim["metadata"]["name"]]
    (volume,) = re.findall(r"^VOLUME (.*)$", CONTAINER, re.MULTILINE)
    assert image_environment()[variable("data")] == volume == str(data.parent)
    given = {each["name"] for each in POD["volumes"]} | {claim["metadata"]["name"]}
    assert given == set(mounts)
    assert PurePosixPath(ENVIRONMENT[variable("token_file")]).parent == mounts["token"]


def test_nobody_is_root_and_all_are_the_same_user() -> None:
    (user,) = re.findall(r"^USER (\d+)$", CONTAINER, re.MULTILINE)
    assert re.findall(r"--uid (\d+)", CONTAINER) == [user]
    security = POD["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == security["fsGroup"] == int(user) != 0


def test_a_stop_has_more_time_than_the_server_takes() -> None:
    assert POD["terminationGracePeriodSeconds"] * 1000 > 2 * DEFAULTS["stop_timeout_ms"]


def test_the_configuration_is_one_and_the_server_reads_it(tmp_path: Path) -> None:
    ((name, text),) = THINGS["ConfigMap"]["data"].items()
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert check(str(file), {}, data="d") == []
    mounts = {each["name"]: each["mountPath"] for each in QUEUE_MANAGER["volumeMounts"]}
    assert QUEUE_MANAGER["args"] == ["serve", "--config", f"{mounts['configuration']}/{name}"]


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_server(str(tmp_path_factory.mktemp("probed"))) as thread:
        yield str(thread.server.socket_path)


@pytest.mark.parametrize("probe", ["HEALTHCHECK", *PROBES])
def test_a_probe_is_a_command_that_a_queue_manager_answers(
    probe: str, socket: str, offline: CommandLine
) -> None:
    if probe == "HEALTHCHECK":
        command, data = health_command(), image_environment()[variable("data")]
    else:
        command, data = QUEUE_MANAGER[probe]["exec"]["command"], ENVIRONMENT[variable("data")]
    place = command.index("--qm") + 1
    assert command[0] == "openmsmq"
    assert command[place] == f"{data}/{DEFAULTS['api_socket']}"
    offline(*command[1:place], socket, *command[place + 1 :])
    offline(*command[1:place], f"{socket}-absent", *command[place + 1 :], code=4)
    # A full disk makes it unready, and is no reason to start it again.
    assert ("--ready" in command) is (probe in ("HEALTHCHECK", "readinessProbe"))


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "StatefulSet"])
def test_the_manifests_are_such_by_the_schema_of_kubernetes(kind: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="scripts/setup dev,manifests")
    validate.validate(THINGS[kind], validate.latest_version(), strict=True)
    with pytest.raises(validate.ValidationError):
        validate.validate({**THINGS[kind], "metadata": 3}, validate.latest_version(), strict=True)

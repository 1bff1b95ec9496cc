"""Commands about the configuration and the log of a queue manager that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, ServerProcess

FILE = """
quota_kb = 500000
[alarms.disk]
disk_percent = 99
webhook = "http://127.0.0.1:9/SECRET"
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("configuration") / "openmsmq.toml"
    found.write_text(FILE, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("configured"), f"--config={file}")
    yield process
    process.stop()


@pytest.fixture
def operator(
    configured: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(monkeypatch, capsys, configured.address)


def test_a_file_is_checked_without_starting(offline: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text('name = "ALPHA"\n[alarms.full]\nquota_percent = 80\n', encoding="utf-8")
    assert offline("config", "check", str(file)).out == f"{file} is in order\n"
    assert offline("config", "check", str(file), "--json").out == ""
    file.write_text('nmae = "ALPHA"\n[alarms.full]\nquota_precent = 80\n', encoding="utf-8")
    wrong = offline("config", "check", str(file), code=2)
    first, second = wrong.err.splitlines()
    assert first == f"openmsmq: line 1: {file}: there is no option 'nmae'; did you mean 'name'?"
    assert "line 3" in second
    assert "did you mean 'quota_percent'?" in second
    found = offline("config", "check", str(file), "--json", code=2).objects
    assert [(each["line"], each["key"]) for each in found] == [
        (1, "nmae"),
        (3, "alarms.full.quota_precent"),
    ]
    absent = offline("config", "check", str(tmp_path / "absent.toml"), code=2)
    assert "cannot read the configuration file" in absent.err


def test_what_is_in_force_is_shown_with_its_sources_and_without_secrets(
    operator: CommandLine, configured: ServerProcess, file: Path
) -> None:
    found = {each["key"]: each for each in operator("config", "show", "--json").objects}
    assert (found["quota_kb"]["value"], found["quota_kb"]["source"]) == ("500000", "file")
    assert found["address"]["value"] == json.dumps(configured.address)
    assert found["address"]["source"] == "flag"
    assert found["site"]["source"] == "default"
    assert found["alarms.disk.webhook"]["value"] == '"http://127.0.0.1:9/…"'
    table = operator("config", "show", "--changed").out
    assert table.startswith(f"file: {file}\n")
    assert "quota_kb" in table
    assert "site" not in table
    assert "SECRET" not in table


def test_a_reload_changes_what_can_change_and_names_what_needs_a_restart(
    operator: CommandLine, configured: ServerProcess, file: Path
) -> None:
    file.write_text(FILE.replace("99", "98").replace("500000", "600000"), encoding="utf-8")
    told = operator("config", "reload")
    assert "read again: configuration\n" in told.out
    assert "read again: certificates and tokens of applications\n" in told.out
    assert "changed: alarms.disk.disk_percent\n" in told.out
    assert "needs a restart: quota_kb\n" in told.out
    table = operator("config", "show", "--changed").out.splitlines()
    (line,) = [line.split() for line in table if line.startswith("quota_kb")]
    assert line == ["quota_kb", "500000", "file", "600000"]
    file.write_text("quota = 1\n", encoding="utf-8")
    failed = operator("config", "reload", "--json", code=1).object
    assert "did you mean 'quota_kb'" in failed["failed"]["configuration"]
    assert (failed["changed"], failed["need_restart"]) == ([], [])
    said = operator("config", "reload", code=1)
    assert "what was there before counts" in said.err
    assert operator("status", "--json").object["quota_kb"] == 500000
    audit = (configured.data / "audit.log").read_text(encoding="utf-8")
    assert '"action": "reload"' in audit


def test_another_level_is_logged_for_a_while_and_the_audit_log_tells_who_wanted_it(
    operator: CommandLine, configured: ServerProcess
) -> None:
    told = operator("log", "level", "warning", "--for", "3600", "--json").object
    assert (told["level"], told["configured"]) == ("warning", "error")
    assert told["until"]
    found = {each["key"]: each for each in operator("config", "show", "--json").objects}
    assert (found["log_level"]["value"], found["log_level"]["source"]) == ('"warning"', "request")
    assert operator("log", "level", "error").out == "logs error\n"
    assert "'loud' is not one of" in operator.refused("log", "level", "loud", code=2)
    audit = (configured.data / "audit.log").read_text(encoding="utf-8").splitlines()
    entry = next(found for found in map(json.loads, audit) if found["action"] == "set-log-level")
    assert entry["with"] == {"level": "warning", "for_s": 3600}

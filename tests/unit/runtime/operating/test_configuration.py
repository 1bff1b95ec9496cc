"""What is in force of a configuration, and what a reload makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.api.messages import Setting
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.loading import load
from openmsmq.runtime.operating.configuration import RunningConfiguration

BEFORE = """
quota_kb = 5
log_level = "warning"
[hosts]
BETA = "10.0.0.7"
[alarms.disk]
disk_percent = 90
"""
AFTER = """
quota_kb = 6
log_level = "error"
[hosts]
GAMMA = "10.0.0.8"
[alarms.disk]
disk_percent = 95
[alarms.full]
quota_percent = 80
"""


def shown(running: RunningConfiguration, level: str = "") -> dict[str, Setting]:
    found = running.show(level or running.config.log_level)
    return {each.key: each for each in found.settings}


def test_a_reload_takes_what_can_change_and_names_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text(BEFORE, encoding="utf-8")
    running = RunningConfiguration(load({"data": "d"}, {}, str(file)))
    assert running.read_again() == ([], [])
    file.write_text(AFTER, encoding="utf-8")
    changed, waiting = running.read_again()
    assert sorted(changed) == [
        "alarms.disk.disk_percent",
        "alarms.full.quota_percent",
        "log_level",
    ]
    assert sorted(waiting) == ["hosts.BETA", "hosts.GAMMA", "quota_kb"]
    assert running.config.log_level == "error"
    assert [rule.name for rule in running.config.alarms.rules] == ["disk", "full"]
    assert (running.config.quota_kb, dict(running.config.parameters.hosts)) == (
        5,
        {"beta": ("10.0.0.7",)},
    )
    found = shown(running)
    assert (found["quota_kb"].value, found["quota_kb"].waiting) == ("5", "6")
    assert (found["hosts.BETA"].value, found["hosts.BETA"].waiting) == ('"10.0.0.7"', "null")
    assert (found["hosts.GAMMA"].value, found["hosts.GAMMA"].waiting) == ("null", '"10.0.0.8"')
    assert (found["log_level"].value, found["log_level"].waiting) == ('"error"', "")
    # What waits, waits until the restart, however often somebody asks.
    assert sorted(running.read_again()[1]) == ["hosts.BETA", "hosts.GAMMA", "quota_kb"]


def test_a_file_that_is_wrong_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text(BEFORE, encoding="utf-8")
    running = RunningConfiguration(load({"data": "d"}, {}, str(file)))
    before = shown(running)
    file.write_text(AFTER + "[alarms.wrong]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no threshold"):
        running.read_again()
    assert shown(running) == before
    assert running.config.log_level == "warning"


def test_a_flag_of_the_start_wins_over_the_file_that_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text("", encoding="utf-8")
    running = RunningConfiguration(load({"data": "d", "log_level": "info"}, {}, str(file)))
    file.write_text('log_level = "error"\n', encoding="utf-8")
    assert running.read_again() == ([], [])
    assert shown(running)["log_level"].source == "flag"


def test_a_secret_that_changes_is_a_change_and_stays_hidden(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    text = "[alarms]\nwebhook = 'https://hooks.example.org/{}'\n"
    file.write_text(text.format("FIRST"), encoding="utf-8")
    running = RunningConfiguration(load({"data": "d"}, {}, str(file)))
    file.write_text(text.format("SECOND"), encoding="utf-8")
    assert running.read_again() == (["alarms.webhook"], [])
    assert "SECOND" not in str(shown(running))


def test_a_level_that_somebody_asked_for_is_told_as_such() -> None:
    running = RunningConfiguration(load({"data": "d"}, {}))
    assert shown(running, "debug")["log_level"].source == "request"
    assert shown(running)["log_level"].source == "default"

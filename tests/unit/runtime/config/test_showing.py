"""A configuration as people read it."""

from __future__ import annotations

from pathlib import Path

from openmsmq.runtime.config.loading import load
from openmsmq.runtime.config.showing import HIDDEN, settings, shown

FILE = """
data = "d"
also_known_as = ["alpha.example.org"]

[parameters]
TryConnectInterval = 2000
MsmqIpPort = 1999

[hosts]
"gamma.example.org" = "10.0.1.7"

[security]
key_bits = 4096

[alarms]
webhook = "https://hooks.example.org/services/T0/SECRET?key=SECRET"

[alarms.disk]
disk_percent = 90
webhook = "http://10.0.0.9:8080/SECRET"

[telemetry]
endpoint = "https://traces.example.org/SECRET/v1/traces"
sample_ratio = 0.5
"""


def test_every_key_has_its_value_and_its_source_and_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text(FILE, encoding="utf-8")
    loaded = load({"name": "ALPHA"}, {"OPENMSMQ_SITE": "north"}, str(file))
    found = {each.key: (each.value, each.source) for each in settings(loaded)}
    assert found["name"] == ('"ALPHA"', "flag")
    assert found["site"] == ('"north"', "environment")
    assert found["also_known_as"] == ('["alpha.example.org"]', "file")
    assert found["api_port"] == ("1802", "default")
    assert found["parameters.TryConnectInterval"] == ("2000", "file")
    assert found["parameters.MsmqIpPort"] == ("1999", "file")
    assert found["parameters.CleanupInterval"] == ("300000", "default")
    assert found['hosts."gamma.example.org"'] == ('"10.0.1.7"', "file")
    assert found["security.key_bits"] == ("4096", "file")
    assert found["security.key_retention_days"] == ("90", "default")
    assert found["alarms.webhook"] == ('"https://hooks.example.org/…"', "file")
    assert found["alarms.disk.webhook"] == ('"http://10.0.0.9:8080/…"', "file")
    assert found["telemetry.endpoint"] == ('"https://traces.example.org/…"', "file")
    assert found["telemetry.sample_ratio"] == ("0.5", "file")
    assert found["telemetry.service_name"] == ('"openmsmq"', "default")
    assert "SECRET" not in str(found)
    assert "SECRET" in str(settings(loaded, with_secrets=True))


def test_what_a_reload_changes_needs_no_restart(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text(FILE, encoding="utf-8")
    reloaded = {each.key for each in settings(load({}, {}, str(file))) if not each.needs_restart}
    assert reloaded == {
        "log_level",
        "alarms.webhook",
        "alarms.disk.disk_percent",
        "alarms.disk.webhook",
    }


def test_a_password_would_be_hidden_and_the_name_of_its_file_is_not() -> None:
    assert shown("password", "x") == HIDDEN
    assert shown("api_token", "x") == HIDDEN
    assert shown("password_file", "/etc/x") == "/etc/x"
    assert shown("tokens_file", "tokens.json") == "tokens.json"
    assert shown("webhook", "") == ""

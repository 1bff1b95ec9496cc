"""Where spans go, as an operator writes it down."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.telemetry_table import TelemetryTable, read_telemetry
from scripts.configuration_tables import reference_rows


def test_nothing_is_traced_unless_somebody_says_where_to() -> None:
    assert read_telemetry({}, "f.toml") == TelemetryTable()
    assert TelemetryTable().endpoint == ""


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://c.example.org/", "https://c.example.org/v1/traces"),
        ("https://c.example.org/otlp/v1/traces", "https://c.example.org/otlp/v1/traces"),
        ("http://[::1]:4318?key=1", "http://[::1]:4318/v1/traces?key=1"),
    ],
)
def test_an_address_without_a_path_gets_the_usual_one(endpoint: str, url: str) -> None:
    assert read_telemetry({"endpoint": endpoint}, "f.toml").traces_url == url


@pytest.mark.parametrize(
    ("table", "at", "sentence"),
    [
        ({"service_name": "x"}, ("telemetry",), "has no endpoint: give the address"),
        ({"endpoint": "127.0.0.1:4318"}, ("telemetry", "endpoint"), "begins with https:// or"),
        ({"endpoint": "http://me:SECRET@c"}, ("telemetry", "endpoint"), "user or a password"),
        ({"endpoint": "http://c", "sample_ratio": 1.5}, ("telemetry", "sample_ratio"), "<= 1"),
        ({"endpoint": "http://c", "sample_ratio": -1}, ("telemetry", "sample_ratio"), ">= 0"),
        ({"endpoint": "http://c", "service_name": ""}, ("telemetry", "service_name"), "length"),
        ({"endpiont": "http://c"}, ("telemetry", "endpiont"), "did you mean 'endpoint'"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    table: dict[str, object], at: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        read_telemetry(table, "f.toml")
    assert caught.value.at == at
    assert "SECRET" not in str(caught.value)


def test_the_page_has_its_keys() -> None:
    page = Path(__file__).parents[4] / "docs/reference/configuration.md"
    assert reference_rows(TelemetryTable) in page.read_text(encoding="utf-8")

"""The table `[session_tls]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from scripts.configuration_tables import reference_rows
from tests.unit.runtime.config.loaded import load_config


def read(folder: Path, text: str) -> SessionTlsTable:
    file = folder / "openmsmq.toml"
    file.write_text(text, encoding="utf-8")
    return load_config({"data": str(folder)}, {}, str(file)).session_tls


def test_without_the_table_there_is_no_tls(tmp_path):
    assert read(tmp_path, "") == SessionTlsTable()
    assert not SessionTlsTable().certificate


def test_every_key_can_be_set(tmp_path):
    text = (
        '[session_tls]\ncertificate = "a.pem"\nkey = "a.key"\npeer_certificates = "peers"\n'
        'authorities = "ca.pem"\nport = 2801\nports = { shop = 443 }\nrequired = true\n'
    )
    assert read(tmp_path, text) == SessionTlsTable(
        certificate="a.pem",
        key="a.key",
        peer_certificates="peers",
        authorities="ca.pem",
        port=2801,
        ports={"shop": 443},
        required=True,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("session_tls = 1", "begin it with a line"),
        ("[session_tls]\nrequired = true", "has no certificate: make one with openmsmq peer"),
        ('[session_tls]\ncertificate = "a"\nport = 0', r"\[session_tls\] is wrong.*port"),
        ('[session_tls]\ncertificate = "a"\nports = { shop = 70000 }', "65535"),
        ('[session_tls]\ncertificate = "a"\ncertificat = "b"', "certificat"),
    ],
)
def test_a_mistake_is_said_with_its_place(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, text)


def test_the_reference_page_has_every_key():
    page = Path(__file__).parents[4] / "docs" / "reference" / "configuration.md"
    assert reference_rows(SessionTlsTable) in page.read_text(encoding="utf-8")
    assert "| `port` | `1803` |" in reference_rows(SessionTlsTable)

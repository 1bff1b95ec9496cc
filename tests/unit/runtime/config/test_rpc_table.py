"""The table of remote procedure calls: what it means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.config.tables import read_table
from openmsmq.security.authentication.ports import Level
from scripts.configuration_tables import reference_rows


def test_without_the_table_there_is_no_door() -> None:
    assert read_table({}, RpcTable, "f.toml", "rpc") == RpcTable()
    assert not RpcTable().enabled
    assert RpcTable().level is Level.PRIVACY


@pytest.mark.parametrize(
    ("name", "level"), [("connect", Level.CONNECT), ("integrity", Level.INTEGRITY)]
)
def test_a_level_has_a_name(name: str, level: Level) -> None:
    assert read_table({"minimum_level": name}, RpcTable, "f.toml", "rpc").level is level


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"minimum_level": "none"}, "minimum_level"),
        ({"endpoint_mapper": "theirs"}, "endpoint_mapper"),
        ({"port": 0}, "port"),
        ({"prot": 2103}, "did you mean 'port'"),
        ({"administrators": ["Domain Admins"]}, "is no SID"),
        ({"kerberos_principals": {"alice@EXAMPLE.COM": "alice"}}, "is no SID"),
    ],
)
def test_a_mistake_is_told_with_its_place(table: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        read_table(table, RpcTable, "f.toml", "rpc")
    assert caught.value.at[0] == "rpc"


def test_the_page_has_its_keys() -> None:
    page = Path(__file__).parents[4] / "docs/reference/configuration.md"
    assert reference_rows(RpcTable) in page.read_text(encoding="utf-8")

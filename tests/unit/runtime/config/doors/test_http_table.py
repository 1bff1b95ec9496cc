"""The table `[http]`: closed by default, and what makes no sense is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table
from scripts.configuration_tables import reference_rows


def test_nothing_is_open_by_default() -> None:
    table = read_table({}, HttpTable, "f.toml", "http")
    assert table == HttpTable()
    assert (table.enabled, table.sends, bool(table.url_map())) == (False, False, False)
    assert not table.config.enabled


@pytest.mark.parametrize(
    ("table", "is_on"),
    [
        ({"enabled": True}, False),
        ({"enabled": True, "queues": ["*"]}, True),
        ({"enabled": True, "urls": {"/shop": "private$\\orders"}}, True),
        ({"queues": ["*"]}, False),
        ({"sends": True}, True),
    ],
)
def test_srmp_is_on_where_something_can_come_or_leave(table: dict[str, Any], is_on: bool) -> None:
    assert read_table(table, HttpTable, "f.toml", "http").config.enabled is is_on


def test_the_queue_manager_knows_which_queues_have_urls() -> None:
    table = {"enabled": True, "queues": ["private$\\orders*"]}
    config = read_table(table, HttpTable, "f.toml", "http").config
    assert config.queues == ("private$\\orders*",)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"tls_key": "k"}, "tls_cert is not"),
        ({"tls_client_ca": "k"}, "tls_cert is not"),
        ({"send_key": "k"}, "send_cert is not"),
        ({"urls": {"shop": "private$\\orders"}}, "no path of a URL"),
        ({"urls": {"/shop?x": "private$\\orders"}}, "no path of a URL"),
        ({"urls": {"/shop": "a=b\\c"}}, "urls:"),
        ({"url": "https://a/b"}, "no path"),
        ({"url": "ftp://a"}, "no path"),
        ({"trusted_proxies": ["nginx"]}, "give addresses or networks such as 127.0.0.1"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "host bits"),
        ({"port": 70_000}, "<= 65535"),
        ({"send_pipelined_max": 0}, ">= 1"),
        ({"quueues": ["*"]}, "did you mean 'queues'"),
    ],
)
def test_what_makes_no_sense_is_refused(table: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.toml: \[http\]") as caught:
        read_table(table, HttpTable, "f.toml", "http")
    assert word in str(caught.value)


def test_the_reference_has_every_key() -> None:
    page = (Path(__file__).parents[5] / "docs/reference/configuration.md").read_text("utf-8")
    assert reference_rows(HttpTable) in page

"""The table `[multicast]`: what is taken, and what is refused."""

from __future__ import annotations

import pytest

from openmsmq.runtime.config.doors.multicast_table import MulticastTable
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table


def test_what_an_operator_writes_is_read() -> None:
    table = {"interface": "eth0", "rate_kb_s": 0, "accept_from": ["10.0.0.0/8"]}
    expected = MulticastTable(interface="eth0", rate_kb_s=0, accept_from=("10.0.0.0/8",))
    assert read_table(table, MulticastTable, "file", "multicast") == expected


@pytest.mark.parametrize(
    "table", [{"rate_kb_s": -1}, {"hops": 0}, {"accept_from": ["everywhere"]}, {"speed": 1}]
)
def test_what_cannot_be_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"\[multicast\]"):
        read_table(table, MulticastTable, "file", "multicast")

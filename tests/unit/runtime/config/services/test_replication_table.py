"""The table `[replication]`."""

from __future__ import annotations

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.services.replication_table import read_replication


def test_a_primary_renews_in_time_and_stops_before_its_lease_ends() -> None:
    times = read_replication({"database": "host=db", "lease_ms": 6000}, "f").times
    assert times.lease_ms == 6000
    assert 0 < times.look_ms < times.renew_ms
    assert 2 * times.renew_ms < times.lease_ms - times.margin_ms


@pytest.mark.parametrize(
    "database",
    ["host=db password=secret", "postgresql://me:secret@db/x", "host=db sslpassword = secret"],
)
def test_a_password_is_refused_where_everybody_could_read_it(database: str) -> None:
    with pytest.raises(ConfigError, match="passfile"):
        read_replication({"database": database}, "f")


@pytest.mark.parametrize("member", ["al\x00pha", "alpha\n", " alpha"])
def test_a_name_that_the_database_would_cut_or_hide_is_refused(member: str) -> None:
    with pytest.raises(ConfigError, match="is no name"):
        read_replication({"database": "host=db", "member": member}, "f")


def test_without_a_database_the_rest_means_nothing() -> None:
    with pytest.raises(ConfigError, match="no database"):
        read_replication({"member": "alpha"}, "f")

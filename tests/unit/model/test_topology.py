from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.topology import (
    DirectoryServerKind,
    OperatingSystem,
    QueueManagerInfo,
    RoutingLink,
    UserInfo,
)


@pytest.mark.spec("MQDMPR-3.1.1.1-03", "MQDMPR-3.1.1.1-04")
def test_a_queue_manager_that_says_nothing_stands_alone():
    info = QueueManagerInfo(identifier=NIL_GUID, computer_name="ALPHA")
    assert info.sites == info.connected_networks == ()
    assert info.out_routing_servers == info.in_routing_servers == ()
    assert info.directory_server is None
    assert not info.supporting_server
    assert not info.remote_access_server
    assert not info.foreign
    assert not info.hardened
    assert info.directory_servers == ()
    assert info.journal_quota_kb == 0xFFFFFFFF
    assert info.initialization_retry_s == 120


@pytest.mark.spec("MQDMPR-3.1.1.8-01", "MQMQ-2.3.7.12-01")
@given(st.one_of(st.integers(-2, 3), st.integers(999_997, 1_000_002), st.integers()))
def test_a_link_is_usable_if_its_cost_is_from_1_to_999999(cost):
    link = RoutingLink(identifier=NIL_GUID, site1=NIL_GUID, site2=NIL_GUID, cost=cost)
    assert link.usable == (cost in range(1, 1_000_000))


@pytest.mark.spec("MQDMPR-3.1.1.15-01", "MQMQ-2.3.6.5-01")
@given(st.lists(st.binary(max_size=20) | st.binary(min_size=16, max_size=16), max_size=3))
def test_each_digest_of_a_certificate_has_16_bytes(digests):
    if all(len(digest) == 16 for digest in digests):
        user = UserInfo(
            identifier=NIL_GUID, security_identifier=b"", certificate_digests=tuple(digests)
        )
        assert user.certificate_digests == tuple(digests)
    else:
        with pytest.raises(IllegalPropertyValue, match="16"):
            UserInfo(
                identifier=NIL_GUID, security_identifier=b"", certificate_digests=tuple(digests)
            )


@pytest.mark.spec("MQDMPR-3.1.1.1-01", "MQMQ-2.3.2.19-01")
def test_the_operating_systems_have_the_published_values():
    assert {system.name: system.value for system in OperatingSystem} == {
        "OTHER": 0x000,
        "FOREIGN": 0x100,
        "WINDOWS_95": 0x200,
        "WINDOWS_CLIENT": 0x300,
        "WINDOWS_SERVER": 0x400,
        "WINDOWS_ENTERPRISE": 0x500,
    }


@pytest.mark.spec("MQDMPR-3.1.1.1-06")
def test_a_directory_server_has_one_of_four_places_in_the_enterprise():
    assert {kind.name for kind in DirectoryServerKind} == {
        "STANDALONE",
        "BACKUP_SITE_CONTROLLER",
        "PRIMARY_SITE_CONTROLLER",
        "PRIMARY_ENTERPRISE_CONTROLLER",
    }

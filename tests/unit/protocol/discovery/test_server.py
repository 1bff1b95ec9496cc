"""What a directory server answers to those who search for one, and to whom it does not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.topology import (
    DirectoryServerKind,
    EnterpriseInfo,
    QueueManagerInfo,
    Site,
)
from openmsmq.protocol.discovery.client import ANSWER_MAX_BYTES
from openmsmq.protocol.discovery.server import (
    DiscoveryFacts,
    DiscoveryServer,
    answer_query,
    facts_from,
)
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, ServerEntry
from tests.golden import golden
from tests.strategies.wire_parts import directory_queries
from tests.unit.wire.codec_checks import damaged

ENTERPRISE = Guid.parse("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
HOME = Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128")
AWAY = Guid.parse("e6eaba60-d1c6-11db-baac-0003ff4e2d22")
CABLE = Guid.parse("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
REQUEST = Guid(b"R" * 16)
FACTS = DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,), ("PSC", "BSC"))
guids = st.binary(min_size=16, max_size=16).map(Guid)


def query(site: Guid = HOME, enterprise: Guid = ENTERPRISE) -> bytes:
    return DirectoryQuery(enterprise, REQUEST, site).encode()


def answered(data: bytes, facts: DiscoveryFacts = FACTS) -> DirectoryAnswer:
    found = answer_query(data, facts)
    assert found is not None
    return DirectoryAnswer.decode(found)


@pytest.mark.spec("MQSD-3.2.5.1-01", "MQSD-3.2.5.1-03")
def test_the_printed_query_gets_the_printed_answers() -> None:
    asked = golden("mqsd-4-request")
    same = DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,), ("nt4pec",))
    assert answer_query(asked, same) == golden("mqsd-4-answer-same-site")
    away = DiscoveryFacts(ENTERPRISE, (AWAY,), (CABLE,), ("nt4pec",))
    assert answer_query(asked, away) == golden("mqsd-4-answer-other-site")


@pytest.mark.spec("MQSD-2.2.2-04", "MQSD-2.2.3-02", "MQSD-3.2.5.1-04", "MQSD-3.2.5.1-06")
@given(directory_queries(), st.lists(guids, max_size=2))
def test_every_query_gets_its_own_identifier_back_and_no_mask(
    asked: DirectoryQuery, sites: list[Guid]
) -> None:
    facts = DiscoveryFacts(ENTERPRISE, (HOME, *sites), (CABLE,), ("PSC",))
    found = answered(asked.encode(), facts)
    assert found.request_id == asked.request_id
    assert (found.network_mask, found.version, found.reserved) == (0, 0, 0)
    assert found.same_site == (asked.site in facts.sites)


@pytest.mark.spec("MQSD-2.2.3-07", "MQSD-3.2.5.1-09", "MQSD-3.2.5.1-10")
def test_an_asker_of_the_own_site_is_told_neither_site_nor_servers() -> None:
    found = answer_query(query(), FACTS)
    assert found == struct.pack("<BBH16sIII16s", 0, 2, 0, REQUEST, 1, 0, 0, CABLE)


@pytest.mark.spec("MQSD-3.2.5.1-11")
def test_an_asker_of_another_site_is_told_both() -> None:
    text = "10PSC,10BSC\0".encode("utf-16-le")
    fixed = struct.pack("<BBH16sIII16s16s", 0, 2, 0, REQUEST, 1, 0, len(text), CABLE, HOME)
    assert answer_query(query(AWAY), FACTS) == fixed + text


def test_an_asker_of_any_site_of_the_server_is_of_its_own() -> None:
    facts = DiscoveryFacts(ENTERPRISE, (HOME, AWAY), (CABLE,), ("PSC",))
    assert answered(query(AWAY), facts).same_site
    assert answered(query(NIL_GUID), facts).site == HOME


@pytest.mark.spec("MQSD-3.2.5.1-05")
@given(st.lists(guids, min_size=1, max_size=32))
def test_all_connected_networks_are_named_in_order(networks: list[Guid]) -> None:
    for site in (HOME, AWAY):
        found = answered(query(site), DiscoveryFacts(ENTERPRISE, (HOME,), tuple(networks), ("P",)))
        assert found.networks == tuple(networks)


def test_of_more_than_32_networks_the_first_are_named_and_without_one_nobody_answers() -> None:
    many = tuple(Guid(bytes([number]) * 16) for number in range(40))
    assert answered(query(), DiscoveryFacts(ENTERPRISE, (HOME,), many, ())).networks == many[:32]
    assert answer_query(query(), DiscoveryFacts(ENTERPRISE, (HOME,), (), ("PSC",))) is None


@pytest.mark.parametrize("site", [HOME, AWAY])
def test_askers_of_other_enterprises_are_answered_unless_that_is_refused(site: Guid) -> None:
    foreign = query(site, enterprise=CABLE)
    assert answer_query(foreign, FACTS) == answer_query(query(site), FACTS)
    strict = DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,), ("PSC", "BSC"), True)
    assert answer_query(foreign, strict) is None
    assert answer_query(query(site), strict) == answer_query(query(site), FACTS)


@pytest.mark.spec("MQSD-3.2.5.1-02")
@given(st.binary(max_size=7))
def test_a_tail_too_short_for_an_ipx_network_is_ignored(tail: bytes) -> None:
    for site in (HOME, AWAY):
        assert answer_query(query(site) + tail, FACTS) == answer_query(query(site), FACTS)


@given(damaged(directory_queries().map(DirectoryQuery.encode)))
def test_any_bytes_get_an_answer_that_can_be_read_or_none(data: bytes) -> None:
    found = answer_query(data, FACTS)
    assert found is None or DirectoryAnswer.decode(found).request_id == data[20:36]


@pytest.mark.parametrize(
    "data", [b"", query()[:-1], golden("mqsd-4-answer-same-site"), bytes(52), b"\0\3" + bytes(50)]
)
def test_what_is_no_query_gets_no_answer(data: bytes) -> None:
    assert answer_query(data, FACTS) is None


def test_a_query_beyond_the_longest_one_is_not_read() -> None:
    longest = query() + struct.pack("<I", 32) + bytes(4 * 32)
    assert len(longest) == 184
    assert answer_query(longest, FACTS) is not None
    assert answer_query(longest + bytes(1), FACTS) is None


def test_a_site_that_names_no_server_does_not_pass_for_the_askers_own() -> None:
    assert answer_query(query(AWAY), DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,), ())) is None
    assert answer_query(query(AWAY), DiscoveryFacts(ENTERPRISE, (), (CABLE,), ("PSC",))) is None


@pytest.mark.parametrize("name", ["", "a,b", "a\0", "\ud800", "x" * 257])
def test_a_name_that_cannot_be_told_is_left_out(name: str) -> None:
    facts = DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,), (name, "PSC"))
    assert answered(query(AWAY), facts).servers == (ServerEntry("PSC"),)


@given(st.lists(st.integers(1, 256), max_size=60), st.integers(1, 32))
@example([256] * 60, 1)
@example([256] * 60, 32)
def test_an_answer_stays_within_its_limit_and_names_the_first_servers(
    sizes: list[int], count: int
) -> None:
    names = tuple(
        f"{number:x}".ljust(size, "\U0001f600")[:size] for number, size in enumerate([10, *sizes])
    )
    facts = DiscoveryFacts(ENTERPRISE, (HOME,), (CABLE,) * count, names)
    found = answer_query(query(AWAY), facts)
    assert found is not None
    assert len(found) <= ANSWER_MAX_BYTES
    told = tuple(server.name for server in DirectoryAnswer.decode(found).servers)
    assert told == names[: len(told)]
    if sum(4 * len(name) + 6 for name in names) < ANSWER_MAX_BYTES - 600:
        assert told == names


# What a directory says of its servers.


def manager(number: int, name: str, *sites: Guid, server: bool = True) -> QueueManagerInfo:
    kind = DirectoryServerKind.BACKUP_SITE_CONTROLLER if server else None
    return QueueManagerInfo(
        identifier=Guid(bytes([number]) * 16),
        computer_name=name,
        sites=sites,
        directory_server=kind,
    )


SERVER = manager(1, "MIDDLE", HOME)
IMAGE = DirectoryImage(
    [
        EnterpriseInfo(identifier=ENTERPRISE),
        Site(identifier=HOME, name="home"),
        Site(identifier=AWAY, name="away"),
        SERVER,
        manager(2, "zebra", HOME),
        manager(3, "ANT", AWAY, HOME),
        manager(4, "ELSEWHERE", AWAY),
        manager(5, "CLIENT", HOME, server=False),
    ]
)


def test_a_server_tells_of_itself_first_and_of_the_others_of_its_site() -> None:
    assert facts_from(IMAGE, SERVER.identifier) == DiscoveryFacts(
        ENTERPRISE, (HOME,), (ENTERPRISE,), ("MIDDLE", "ANT", "zebra")
    )


def test_a_server_tells_its_connected_networks_if_it_has_any() -> None:
    placed = QueueManagerInfo(
        identifier=SERVER.identifier,
        computer_name="MIDDLE",
        sites=(HOME,),
        connected_networks=(CABLE,),
        directory_server=DirectoryServerKind.PRIMARY_SITE_CONTROLLER,
    )
    facts = facts_from(IMAGE.changed([placed]), SERVER.identifier, strict_enterprise=True)
    assert facts is not None
    assert facts.networks == (CABLE,)
    assert facts.strict_enterprise


@pytest.mark.parametrize(
    "who",
    [manager(9, "UNKNOWN"), manager(5, "CLIENT", HOME, server=False), manager(1, "NO SITE")],
    ids=lambda who: who.computer_name,
)
def test_who_is_no_server_of_a_site_has_nothing_to_tell(who: QueueManagerInfo) -> None:
    image = IMAGE.changed([who]) if who.computer_name != "UNKNOWN" else IMAGE
    assert facts_from(image, who.identifier) is None


def test_a_server_answers_by_what_the_directory_says_now() -> None:
    images = [DirectoryImage()]
    server = DiscoveryServer(SERVER.identifier, lambda: images[-1])
    assert server.answer(query()) is None
    images.append(IMAGE)
    first = server.answer(query(AWAY))
    assert first is not None
    names = [entry.name for entry in DirectoryAnswer.decode(first).servers]
    assert names == ["MIDDLE", "ANT", "zebra"]
    assert server.answer(query(AWAY)) == first
    images.append(
        IMAGE.changed([Removal(kind=ObjectKind.MANAGER, identifier=Guid(bytes([2]) * 16))])
    )
    second = server.answer(query(AWAY))
    assert second is not None
    assert [entry.name for entry in DirectoryAnswer.decode(second).servers] == ["MIDDLE", "ANT"]


def test_a_strict_server_ignores_other_enterprises() -> None:
    server = DiscoveryServer(SERVER.identifier, lambda: IMAGE, strict_enterprise=True)
    assert server.answer(query(enterprise=CABLE)) is None
    assert server.answer(query()) is not None

"""Pings and the search for the directory."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.datagrams import (
    NOT_SERVER_CLASS,
    REFUSED,
    DirectoryAnswer,
    DirectoryQuery,
    PingPacket,
    ServerEntry,
)
from openmsmq.wire.errors import DecodeError, EncodeError
from tests.golden import golden
from tests.strategies.wire_parts import directory_answers, directory_queries, ping_packets
from tests.unit.wire.codec_checks import (
    assert_decodes_to_same_or_refused,
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    damaged,
)

REQUEST_ID = Guid.parse("f291a103-e33c-ab4f-a930-be3a33e432dd")
NETWORK = Guid.parse("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
OTHER_SITE = Guid.parse("e6eaba60-d1c6-11db-baac-0003ff4e2d22")


@given(ping_packets())
def test_a_ping_survives_the_wire(ping: PingPacket) -> None:
    assert PingPacket.decode(ping.encode()) == ping
    assert_fields_cover(ping.fields(), 24)


@given(directory_queries())
def test_a_query_survives_the_wire(query: DirectoryQuery) -> None:
    assert DirectoryQuery.decode(query.encode()) == query
    assert_fields_cover(query.fields(), len(query.encode()))


@given(directory_answers())
def test_an_answer_survives_the_wire(answer: DirectoryAnswer) -> None:
    assert DirectoryAnswer.decode(answer.encode()) == answer
    assert_fields_cover(answer.fields(), len(answer.encode()))


@given(damaged(ping_packets().map(PingPacket.encode)))
def test_any_bytes_are_a_ping_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(PingPacket.decode, data)


@given(damaged(directory_queries().map(DirectoryQuery.encode)))
def test_any_bytes_are_a_query_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(DirectoryQuery.decode, data)


@given(damaged(directory_answers().map(DirectoryAnswer.encode)))
def test_any_bytes_are_an_answer_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(DirectoryAnswer.decode, data)


@given(ping_packets(), directory_answers())
def test_truncated_datagrams_are_refused(ping: PingPacket, answer: DirectoryAnswer) -> None:
    assert_no_prefix_decodes(PingPacket.decode, ping.encode())
    assert_no_prefix_decodes(DirectoryAnswer.decode, answer.encode())


@given(directory_queries())
def test_a_query_cut_inside_its_fixed_part_is_refused(query: DirectoryQuery) -> None:
    assert_no_prefix_decodes(DirectoryQuery.decode, query.encode()[:52])


@pytest.mark.parametrize(
    ("frame", "flags", "source"),
    [
        ("1-ping-request", 0x7D01, "557358d1-9150-9595-4997-b6e611ea26c6"),
        ("2-ping-response", 0xB295, "43cd8907-394c-8f11-4445-9078909ea0fc"),
    ],
)
def test_the_printed_pings_are_read_and_written(frame: str, flags: int, source: str) -> None:
    raw = golden(f"mqqb-4.1-frame-{frame}")
    ping = PingPacket.decode(raw)
    assert ping == PingPacket(Guid.parse(source), 4, flags)
    assert (ping.flags & NOT_SERVER_CLASS, ping.refused) == (NOT_SERVER_CLASS, False)
    assert ping.encode() == raw


@pytest.mark.spec("MQQB-2.2.7-20")
@given(ping_packets(), st.integers(0, 0xFFFF))
def test_a_ping_is_known_by_its_signature(ping: PingPacket, signature: int) -> None:
    raw = ping.encode()
    assert raw[2:4] == b"\x48\x55"
    changed = raw[:2] + signature.to_bytes(2, "little") + raw[4:]
    if signature == 0x5548:
        assert PingPacket.decode(changed) == ping
    else:
        with pytest.raises(DecodeError, match="signature"):
            PingPacket.decode(changed)


@pytest.mark.spec("MQQB-2.2.7-01", "MQQB-2.2.7-03", "MQQB-2.2.7-22")
@given(ping_packets(), st.booleans())
def test_an_answer_repeats_cookie_and_class_and_says_whether_it_refuses(
    ping: PingPacket, refuse: bool
) -> None:
    answer = ping.answer(NETWORK, refuse=refuse)
    assert answer.cookie == ping.cookie
    assert answer.flags & NOT_SERVER_CLASS == ping.flags & NOT_SERVER_CLASS
    assert answer.refused == refuse
    assert answer.source == NETWORK


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQQB-2.2.7-{bit + 4:02}"), id=f"bit {bit}")
        for bit in range(2, 16)
    ],
)
@given(ping=ping_packets(), refuse=st.booleans())
def test_an_unused_bit_of_a_ping_changes_nothing_in_its_answer(
    bit: int, ping: PingPacket, refuse: bool
) -> None:
    clear = PingPacket(ping.source, ping.cookie, ping.flags & ~(1 << bit))
    noisy = PingPacket(ping.source, ping.cookie, ping.flags | 1 << bit)
    assert noisy.refused == clear.refused
    assert noisy.answer(NETWORK, refuse=refuse) == clear.answer(NETWORK, refuse=refuse)


def test_flags_of_a_ping_stand_for_their_bits() -> None:
    assert (NOT_SERVER_CLASS, REFUSED) == (1, 2)


@pytest.mark.spec(
    "MQSD-2.2.1-01",
    "MQSD-2.2.1-04",
    "MQSD-2.2.1-06",
    "MQSD-2.2.2-01",
    "MQSD-2.2.2-07",
    "MQSD-2.2.2-09",
)
def test_the_printed_query_is_read_and_written() -> None:
    raw = golden("mqsd-4-request")
    query = DirectoryQuery.decode(raw)
    assert query == DirectoryQuery(
        Guid.parse("e6eaba61-d1c6-11db-baac-0003ff4e2d22"),
        REQUEST_ID,
        Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128"),
    )
    assert len(raw) == 52
    assert query.encode() == raw


@pytest.mark.spec("MQSD-2.2.1-05", "MQSD-2.2.3-01", "MQSD-2.2.3-08")
def test_the_printed_answer_of_the_same_site_is_read_and_written() -> None:
    raw = golden("mqsd-4-answer-same-site")
    answer = DirectoryAnswer.decode(raw)
    assert answer == DirectoryAnswer(REQUEST_ID, (NETWORK,))
    assert answer.same_site
    assert len(raw) == 48
    assert answer.encode() == raw


@pytest.mark.spec("MQSD-2.2.3-06", "MQSD-2.2.3-09", "MQSD-2.2.3-11", "MQSD-2.2.3-12")
def test_the_printed_answer_of_another_site_is_read_and_written() -> None:
    raw = golden("mqsd-4-answer-other-site")
    answer = DirectoryAnswer.decode(raw)
    assert answer == DirectoryAnswer(
        REQUEST_ID, (NETWORK,), OTHER_SITE, (ServerEntry("nt4pec", ip=True, ipx=False),)
    )
    assert not answer.same_site
    assert len(raw) == 82
    assert answer.encode() == raw


@pytest.mark.spec("MQSD-2.2.1-02", "MQSD-2.2.1-06")
@given(directory_queries(), st.integers(0, 255), st.integers(0, 0xFFFF))
def test_version_and_reserved_bytes_of_a_query_are_ignored(
    query: DirectoryQuery, version: int, reserved: int
) -> None:
    raw = query.encode()
    changed = bytes([version]) + raw[1:2] + reserved.to_bytes(2, "little") + raw[4:]
    found = DirectoryQuery.decode(changed)
    assert (found.enterprise, found.request_id, found.site, found.tail) == (
        query.enterprise,
        query.request_id,
        query.site,
        query.tail,
    )


@pytest.mark.spec("MQSD-2.2.1-03")
@given(st.integers(0, 255))
def test_a_packet_is_known_by_its_type(kind: int) -> None:
    query = bytearray(golden("mqsd-4-request"))
    answer = bytearray(golden("mqsd-4-answer-same-site"))
    query[1] = answer[1] = kind
    for decode, data, right in (
        (DirectoryQuery.decode, query, 1),
        (DirectoryAnswer.decode, answer, 2),
    ):
        if kind == right:
            assert decode(bytes(data)).encode() == data
        else:
            with pytest.raises(DecodeError, match="packet type"):
                decode(bytes(data))


@pytest.mark.spec("MQSD-2.2.2-06")
def test_ipx_networks_of_a_query_are_counted() -> None:
    raw = golden("mqsd-4-request") + struct.pack("<III", 2, 7, 9)
    assert DirectoryQuery.decode(raw).ipx_networks == (7, 9)
    assert DirectoryQuery.decode(raw).encode() == raw
    assert DirectoryQuery.decode(raw[:59]).ipx_networks == ()
    with pytest.raises(DecodeError, match="bytes for 2 IPX networks"):
        DirectoryQuery.decode(raw[:60])


@pytest.mark.spec("MQSD-2.2.2-08")
@pytest.mark.parametrize("count", [0, 33, 0xFFFF_FFFF])
def test_a_query_names_1_to_32_ipx_networks(count: int) -> None:
    tail = struct.pack("<I", count) + bytes(4 * min(count, 33) or 4)
    assert_refused_cheaply(DirectoryQuery.decode, golden("mqsd-4-request") + tail)
    with pytest.raises(EncodeError, match="IPX networks"):
        DirectoryQuery(NIL_GUID, NIL_GUID, NIL_GUID, tail=tail).encode()


@pytest.mark.spec("MQSD-2.2.3-03")
@pytest.mark.parametrize("count", [0, 33])
def test_an_answer_names_1_to_32_networks(count: int) -> None:
    networks = (NETWORK,) * count
    with pytest.raises(EncodeError, match="networks"):
        DirectoryAnswer(REQUEST_ID, networks).encode()
    fixed = struct.pack("<BBH16sIII", 0, 2, 0, REQUEST_ID, count, 0, 0)
    with pytest.raises(DecodeError, match="networks"):
        DirectoryAnswer.decode(fixed + b"".join(networks))


@pytest.mark.parametrize("name", ["answer-same-site", "answer-other-site"])
def test_an_answer_with_more_than_its_sizes_say_is_refused(name: str) -> None:
    with pytest.raises(DecodeError, match="the sizes say"):
        DirectoryAnswer.decode(golden(f"mqsd-4-{name}") + bytes(2))


@pytest.mark.parametrize(("offset", "value"), [(20, 2), (20, 32), (28, 0xFFFF_FFFF), (28, 20)])
def test_a_size_that_lies_is_refused_cheaply(offset: int, value: int) -> None:
    raw = bytearray(golden("mqsd-4-answer-other-site"))
    struct.pack_into("<I", raw, offset, value)
    assert_refused_cheaply(DirectoryAnswer.decode, bytes(raw))


@pytest.mark.parametrize(
    "text",
    ["", "10", "1", "10a,", "10a,11", ",10a", "20a", "1xa", "10a\0"],
)
@pytest.mark.spec("MQSD-2.2.3-14")
def test_a_list_that_is_no_list_of_servers_is_refused(text: str) -> None:
    servers = text.encode("utf-16-le") + b"\0\0"
    fixed = struct.pack("<BBH16sIII", 0, 2, 0, REQUEST_ID, 1, 0, len(servers))
    with pytest.raises(DecodeError):
        DirectoryAnswer.decode(fixed + NETWORK + OTHER_SITE + servers)


@pytest.mark.spec("MQSD-2.2.3-10")
def test_servers_are_separated_by_commas() -> None:
    servers = (ServerEntry("ONE"), ServerEntry("TWO", ip=False, ipx=True))
    raw = DirectoryAnswer(REQUEST_ID, (NETWORK,), OTHER_SITE, servers).encode()
    assert raw[64:] == "10ONE,01TWO\0".encode("utf-16-le")


@pytest.mark.spec("MQSD-2.2.3-13")
@pytest.mark.parametrize("name", ["", "a,b", "a\0b"])
def test_a_server_name_without_comma_or_nul_is_needed(name: str) -> None:
    with pytest.raises(EncodeError):
        DirectoryAnswer(REQUEST_ID, (NETWORK,), OTHER_SITE, (ServerEntry(name),)).encode()


@pytest.mark.parametrize(
    ("site", "servers"), [(OTHER_SITE, ()), (None, (ServerEntry("a"),))], ids=["site", "servers"]
)
def test_a_site_comes_with_its_servers(site: Guid | None, servers: tuple[ServerEntry, ...]) -> None:
    with pytest.raises(EncodeError, match="together"):
        DirectoryAnswer(REQUEST_ID, (NETWORK,), site, servers).encode()

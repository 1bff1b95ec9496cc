"""Messages as remote readers get them: byte for byte, whole and in parts."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.limits import INFINITE_S, PACKET_MAX_BYTES, REMOTE_HEADERS_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.extensions import dead_letter_path_of, without_extensions
from openmsmq.wire.headers.base import SESSION
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.headers.user import OVER_HTTP, UserHeader
from openmsmq.wire.message_bytes import for_remote_reader, user_flags
from openmsmq.wire.packets import UserMessage, decode, encode
from openmsmq.wire.rpc.message_packets import joined, read, received, sections, write
from openmsmq.wire.rpc.remote_read import RECEIVED, Received, Section, Standing
from tests.strategies.messages import Draft

MANAGER = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")


def packet(body: bytes = b"body", **wishes: object) -> bytes:
    return Draft(body=body, **wishes).packet()


def user_message(data: bytes) -> UserMessage:
    found = decode(data)
    assert isinstance(found, UserMessage)
    return found


@pytest.mark.spec(
    "MQRR-2.2.5.2-01",
    "MQRR-2.2.5.2-03",
    "MQRR-2.2.5.2-04",
    "MQRR-2.2.5.2-07",
    "MQRR-2.2.5.2-09",
)
def test_headers_stand_behind_the_message() -> None:
    data = packet()
    whole = write(data, Standing(3, 2, 1_000_000, "later"))
    tail = whole[len(data) :]
    name = "later".encode("utf-16-le")
    assert tail == b"".join(
        (
            struct.pack("<IIB3x", 12, 148 + 28, 0x12),
            struct.pack("<IIIII", 148, 0, 3, 2, 1_000_000),
            name.ljust(64, b"\0"),
            bytes(64),
            struct.pack("<IHHI16x", 28, 0, 0, 0),
        )
    )
    assert struct.unpack_from("<I", whole, 8)[0] == len(whole)


@pytest.mark.spec(
    "MQRR-2.2.5.3-02",
    "MQRR-2.2.5.3-06",
    "MQRR-2.2.5.3-10",
    "MQRR-2.2.5.5-02",
    "MQRR-2.2.5.5-03",
    "MQRR-2.2.5.5-05",
)
@pytest.mark.parametrize("name", ["", "x", "later", "x" * 31])
def test_the_last_headers_say_the_subqueue_and_no_address(name: str) -> None:
    whole = write(packet(), Standing(3, 2, 1_000_000, name))
    subqueue, address = whole[-28 - 148 : -28], whole[-28:]
    assert not subqueue[4] & 1
    assert subqueue[20:84] == name.encode("utf-16-le").ljust(64, b"\0")
    assert subqueue[84:] == bytes(64)
    assert address == struct.pack("<IHHI16x", 28, 0, 0, 0)


@pytest.mark.spec(
    "MQRR-2.2.5.2-02", "MQRR-2.2.5.3-07", "MQRR-2.2.5.4-01", "MQRR-2.2.5.4-02", "MQRR-2.2.5.4-03"
)
def test_the_dead_letter_queue_of_the_sender_stands_between_them() -> None:
    data = packet(dead_letter_queue=r"a\q")
    whole = write(data, Standing())
    name = "a\\q\0".encode("utf-16-le")
    tail = whole[len(without_extensions(data)) :]
    assert tail[:12] == struct.pack("<IIB3x", 12, 148 + 12 + 28, 0x13)
    assert tail[12 + 148 : 12 + 148 + 12] == struct.pack("<I", 12) + name
    assert dead_letter_path_of(whole) == r"a\q"
    assert len(whole) - len(data) < REMOTE_HEADERS_MAX_BYTES


@pytest.mark.parametrize(
    ("lifetime_s", "sent_s", "expected"),
    [
        (100, 1_000_000, 1_000_100),
        (0, 1_000_000, 1_000_000),
        (INFINITE_S, 1_000_000, INFINITE_S),
        (INFINITE_S - 1, 1_000_000, INFINITE_S - 1),
        (INFINITE_S - 5, 4, INFINITE_S - 1),
        (INFINITE_S - 5, 5, INFINITE_S - 1),
    ],
)
def test_a_lifetime_becomes_a_moment(lifetime_s: int, sent_s: int, expected: int) -> None:
    data = bytearray(packet(time_to_reach_queue_s=lifetime_s))
    struct.pack_into("<I", data, 52, sent_s)
    changed = for_remote_reader(bytes(data))
    assert struct.unpack_from("<I", changed, 12)[0] == expected
    assert changed[:12] == data[:12]
    assert changed[16:32] == data[16:32]
    assert changed[48:] == data[48:]


@pytest.mark.spec("MQRR-2.2.5.1-01", "MQRR-2.2.5.1-02", "MQRR-2.2.5.1-03")
def test_a_direct_destination_gives_its_place_to_an_address() -> None:
    data = packet()
    assert isinstance(user_message(data).user.destination, DirectName)
    assert for_remote_reader(data)[32:48] == struct.pack("<HHI8x", 4, 1, 0)


def test_another_destination_keeps_its_queue_manager() -> None:
    header = UserHeader(MANAGER, destination_manager=MANAGER, destination=PrivateOnDestination(5))
    data = encode(UserMessage(header, user_message(packet()).properties))
    assert for_remote_reader(data)[32:48] == MANAGER


@pytest.mark.spec("MQRR-2.2.6-01", "MQRR-2.2.6-02", "MQRR-2.2.6-03", "MQRR-2.2.6-04")
@given(st.binary(max_size=30), st.integers(0, 40), st.sampled_from(["", "later"]))
def test_parts_are_the_whole_but_for_what_was_not_wanted(
    body: bytes, wanted: int, subqueue: str
) -> None:
    data, standing = packet(body), Standing(1, 2, 3, subqueue)
    whole = write(data, standing)
    parts = sections(data, standing, wanted)
    if wanted >= len(body):
        assert parts == (Section(0, len(whole), whole),)
    else:
        first, second = parts
        assert (first.kind, second.kind) == (1, 2)
        assert first.size_alloc == len(first.data) + len(body) - wanted
        assert second.size_alloc == len(second.data)
        assert first.data + body[wanted:] + second.data == whole
    again, found = read(joined(parts))
    assert found == standing
    expected = body[:wanted] + bytes(max(len(body) - wanted, 0))
    assert user_message(again).properties.body == expected


def test_a_long_name_of_a_subqueue_is_cut() -> None:
    _, found = read(write(packet(), Standing(subqueue="x" * 32)))
    assert found.subqueue == "x" * 31


def test_a_count_that_does_not_fit_cannot_be_written() -> None:
    with pytest.raises(EncodeError, match="does not fit"):
        write(packet(), Standing(abort_count=1 << 32))


def test_a_message_without_headers_behind_it_stands_for_itself() -> None:
    assert read(packet()) == (packet(), Standing())


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [Section(1, 4, b"12345")],
        [Section(1, PACKET_MAX_BYTES + 9, b"12345")],
        [Section(2, 5, b"12345")],
        [Section(0, 5, b"12345"), Section(2, 5, b"12345")],
        [Section(3, 5, b"12345")],
    ],
)
def test_parts_that_are_no_message_are_refused(parts: list[Section]) -> None:
    with pytest.raises(DecodeError):
        joined(parts)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_message_or_a_decode_error(data: bytes) -> None:
    for tail in (data, write(packet(), Standing())[:-40] + data):
        try:
            read(tail)
        except DecodeError:
            continue


@pytest.mark.parametrize(
    ("place", "ignored"),
    [
        # X2, DI, X5, X6 and X7, then the reserved bytes.
        pytest.param(
            8,
            b"\xec",
            marks=pytest.mark.spec(*(f"MQRR-2.2.5.2-{n:02d}" for n in (5, 8, 10, 11, 12))),
        ),
        pytest.param(9, b"\xff\xff\xff", marks=pytest.mark.spec("MQRR-2.2.5.2-13")),
        pytest.param(12 + 7, b"\xfe", marks=pytest.mark.spec("MQRR-2.2.5.3-04")),
        # An address without a type.
        pytest.param(
            12 + 148 + 12,
            b"\xff" * 16,
            marks=pytest.mark.spec("MQRR-2.2.5.5-01", "MQRR-2.2.5.5-04"),
        ),
    ],
)
def test_what_is_to_be_ignored_behind_a_message_is_ignored(place: int, ignored: bytes) -> None:
    data, standing = packet(), Standing(1, 2, 3, "later")
    whole = bytearray(write(data, standing))
    expected = read(bytes(whole))
    for at, more in enumerate(ignored, len(data) + place):
        assert whole[at] | more != whole[at]
        whole[at] |= more
    assert read(bytes(whole)) == expected


@pytest.mark.spec("MQRR-2.2.5.1.1-01", "MQRR-2.2.5.1-06")
def test_a_message_does_not_claim_to_have_come_by_http() -> None:
    whole = write(packet(), Standing())
    assert not user_flags(whole) & OVER_HTTP


@pytest.mark.spec("MQRR-2.2.5.1-07")
def test_there_is_no_header_of_a_session_and_the_first_header_says_so() -> None:
    whole, _ = read(write(packet(), Standing()))
    assert not int.from_bytes(whole[2:4], "little") & SESSION
    message = user_message(whole)
    assert message.session is None
    assert encode(message) == whole


SECTIONS = st.lists(
    st.builds(
        Section,
        st.sampled_from([0, 1, 2, 0xFFFF, 0x1_0000]),
        st.sampled_from([0, 7, 0xFFFF_FFFF, 0x1_0000_0000]),
        st.binary(max_size=9),
    ),
    max_size=3,
)


@given(
    st.sampled_from([0, 1_000, 0xFFFF_FFFF, 0x1_0000_0000, -1]),
    st.sampled_from([0, 5, 0xFFFF_FFFF_FFFF_FFFF, 1 << 64]),
    SECTIONS,
)
def test_the_short_way_to_write_a_message_writes_what_the_table_does(
    arrived_unix_s: int, sequence_id: int, parts: list[Section]
) -> None:
    expected: bytes | None
    try:
        expected = RECEIVED.encode(Received(arrived_unix_s, sequence_id, tuple(parts), 0))
    except EncodeError:
        expected = None
    if expected is None:
        with pytest.raises(EncodeError):
            received(arrived_unix_s, sequence_id, tuple(parts))
    else:
        assert received(arrived_unix_s, sequence_id, tuple(parts)) == expected


def test_the_short_way_has_the_limit_of_the_table() -> None:
    longest = PACKET_MAX_BYTES + REMOTE_HEADERS_MAX_BYTES
    received(0, 0, (Section(0, longest, bytes(longest)),))
    with pytest.raises(EncodeError):
        received(0, 0, (Section(0, longest + 1, bytes(longest + 1)),))

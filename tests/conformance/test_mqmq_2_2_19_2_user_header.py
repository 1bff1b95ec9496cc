"""UserHeader. [MQMQ 2.2.19.2]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.message_bytes import hop_counted
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

NUMBER = struct.pack("<I", 0x1234)
FORMS: dict[int, tuple[QueueName, bytes]] = {
    0: (None, b""),
    1: (SameAsAdmin(), b""),
    2: (PrivateOnSource(0x1234), NUMBER),
    3: (PrivateOnDestination(0x1234), NUMBER),
    4: (PrivateOnAdminHost(0x1234), NUMBER),
    5: (PublicName(ours.QUEUE), peer.QUEUE),
    6: (PrivateName(ours.QUEUE, 0x1234), peer.QUEUE + NUMBER),
    7: (DirectName("TCP:1.2.3.4\\q"), peer.direct_name("TCP:1.2.3.4\\q")),
}
PLACES = {"destination": peer.DQ, "admin_queue": peer.AQ, "response_queue": peer.RQ}


def sent(header: UserHeader) -> bytes:
    """What we send with this header, by itself a plain message."""
    return encode(UserMessage(header, ours.PLAIN.properties))


def received(flags: int, names: bytes) -> bytes:
    return peer.user_message(
        peer.user_header(peer.PROPERTIES | flags, names), peer.properties_header()
    )


def named(place: str, name: QueueName) -> UserHeader:
    changed: UserHeader = replace(ours.PLAIN.user, **{"destination": None, place: name})
    return changed


def refuse(data: bytes) -> None:
    """It is refused wherever it is looked at."""
    with pytest.raises(DecodeError):
        decode_user_message(data)
    with pytest.raises(DecodeError):
        outline(data)
    laden = data[:2] + struct.pack("<H", 3 | peer.SH) + data[4:] + peer.session_header()
    with pytest.raises(DecodeError):
        next(take_packets(bytearray(laden)))


@pytest.mark.spec("MQMQ-2.2.19.2-01", "MQMQ-2.2.19.2-02")
def test_source_and_destination_manager_stand_first_and_stay_when_forwarded() -> None:
    header = replace(
        ours.PLAIN.user,
        destination_manager=ours.TARGET,
        destination=PrivateOnDestination(0x1234),
    )
    flags = peer.PROPERTIES | 3 << peer.DQ
    expected = peer.user_message(
        peer.user_header(flags, NUMBER, manager=peer.TARGET), peer.properties_header()
    )
    assert sent(header) == expected
    forwarded = hop_counted(expected)
    assert forwarded[16:48] == peer.SOURCE + peer.TARGET
    assert decode_user_message(forwarded).user.source == ours.SOURCE
    assert decode_user_message(forwarded).user.destination_manager == ours.TARGET


@pytest.mark.spec("MQMQ-2.2.19.2-08")
def test_hops_are_counted_from_zero_to_twenty_nine() -> None:
    data = encode(ours.PLAIN)
    assert struct.unpack_from("<I", data, 60)[0] & 0x1F == 0
    for hops in range(1, 0x1E):
        data = hop_counted(data)
        assert struct.unpack_from("<I", data, 60)[0] & 0x1F == hops
        assert decode_user_message(data).user.hop_count == hops
    with pytest.raises(EncodeError, match="no further"):
        hop_counted(data)


@pytest.mark.spec("MQMQ-2.2.19.2-09")
@pytest.mark.parametrize("mode", range(4))
def test_the_delivery_mode_is_express_or_recoverable(mode: int) -> None:
    data = received(7 << peer.DQ | mode << 5, peer.direct_name())
    header = replace(ours.PLAIN.user, flags=mode << 5)
    if mode > 1:
        refuse(data)
        with pytest.raises(EncodeError, match="delivery mode"):
            sent(header)
        return
    assert sent(header) == data
    assert decode_user_message(data).user.recoverable == (mode == 1)


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(0x0000_0080, marks=pytest.mark.spec("MQMQ-2.2.19.2-12"), id="X1"),
        pytest.param(0x0100_0000, marks=pytest.mark.spec("MQMQ-2.2.19.2-24"), id="X2"),
        pytest.param(0x0C00_0000, marks=pytest.mark.spec("MQMQ-2.2.19.2-26"), id="X3"),
        pytest.param(0xE000_0000, marks=pytest.mark.spec("MQMQ-2.2.19.2-28"), id="X4"),
    ],
)
def test_reserved_bits_are_clear_when_sent_and_ignored_when_set(mask: int) -> None:
    for packet in ours.USER.values():
        assert struct.unpack_from("<I", encode(packet), 60)[0] & mask == 0
    plain = decode_user_message(received(7 << peer.DQ, peer.direct_name()))
    for bit in (1 << place for place in range(32) if mask >> place & 1):
        data = received(7 << peer.DQ | bit, peer.direct_name())
        packet = decode_user_message(data)
        assert replace(packet, user=plain.user) == plain
        assert replace(packet.user, flags=plain.user.flags) == plain.user
        assert packet.user.flags & ~mask == plain.user.flags
        assert encode(packet) == data
        found = outline(data)
        assert replace(found, flags=found.flags & ~mask) == outline(encode(plain))


@pytest.mark.spec("MQMQ-2.2.19.2-25")
def test_nothing_we_make_says_that_it_came_over_http() -> None:
    for packet in ours.USER.values():
        assert struct.unpack_from("<I", encode(packet), 60)[0] & 0x0200_0000 == 0


@pytest.mark.parametrize(
    ("place", "legal"),
    [
        pytest.param(
            "destination", {0, 3, 5, 7}, marks=pytest.mark.spec("MQMQ-2.2.19.2-15"), id="DQ"
        ),
        pytest.param(
            "admin_queue",
            {0, 2, 3, 5, 6, 7},
            marks=pytest.mark.spec("MQMQ-2.2.19.2-16"),
            id="AQ",
        ),
        pytest.param(
            "response_queue", set(range(8)), marks=pytest.mark.spec("MQMQ-2.2.19.2-17"), id="RQ"
        ),
    ],
)
def test_each_queue_has_its_legal_forms_and_no_other(place: str, legal: set[int]) -> None:
    for code, (name, raw) in FORMS.items():
        data = received(code << PLACES[place], raw)
        if code not in legal:
            refuse(data)
            with pytest.raises(EncodeError, match="queue form"):
                sent(named(place, name))
            continue
        assert sent(named(place, name)) == data
        assert getattr(decode_user_message(data).user, place) == name


@pytest.mark.parametrize(
    ("place", "present", "absent"),
    [
        pytest.param(
            "admin_queue",
            {2, 3, 5, 6, 7},
            set(),
            marks=pytest.mark.spec("MQMQ-2.2.19.2-32"),
            id="administration queue is there",
        ),
        pytest.param(
            "admin_queue",
            set(),
            {0},
            marks=pytest.mark.spec("MQMQ-2.2.19.2-33"),
            id="administration queue is not there",
        ),
        pytest.param(
            "response_queue",
            set(),
            {0, 1},
            marks=pytest.mark.spec("MQMQ-2.2.19.2-36"),
            id="response queue is not there",
        ),
        pytest.param("response_queue", {2, 3, 4, 5, 6, 7}, set(), id="response queue is there"),
    ],
)
def test_a_name_takes_bytes_exactly_when_its_form_has_some(
    place: str, present: set[int], absent: set[int]
) -> None:
    """The last case is the half of the rule for the response queue that C-9 leaves."""
    empty = len(sent(named("destination", None)))
    for code in absent:
        data = sent(named(place, FORMS[code][0]))
        assert data[64 : 64 + 56] == ours.PLAIN.properties.write()[:56]
        assert len(data) == empty
    for code in present:
        name, raw = FORMS[code]
        data = sent(named(place, name))
        assert data[64 : 64 + len(raw)] == raw
        assert len(data) == empty + len(raw)
        cut = peer.user_message(peer.user_header(peer.PROPERTIES | code << PLACES[place], b""))
        refuse(cut)


@given(st.sampled_from([2, 3, 5, 6, 7]), st.sampled_from(sorted(FORMS)), st.booleans())
def test_names_follow_each_other_in_order(admin: int, response: int, connector: bool) -> None:
    header = replace(
        ours.PLAIN.user,
        admin_queue=FORMS[admin][0],
        response_queue=FORMS[response][0],
        connector_type=ours.TARGET if connector else None,
    )
    flags = 7 << peer.DQ | admin << peer.AQ | response << peer.RQ
    names = peer.direct_name() + FORMS[admin][1] + FORMS[response][1]
    if connector:
        flags, names = flags | peer.CONNECTOR, names + peer.TARGET
    data = received(flags, names)
    assert sent(header) == data
    assert decode_user_message(data).user == header


@pytest.mark.spec("MQMQ-2.2.19.2-37")
def test_form_4_is_a_private_queue_where_the_administration_queue_is() -> None:
    names = peer.direct_name() + peer.QUEUE + NUMBER + struct.pack("<I", 0x99)
    data = received(7 << peer.DQ | 6 << peer.AQ | 4 << peer.RQ, names)
    header = decode_user_message(data).user
    assert header.admin_queue == PrivateName(ours.QUEUE, 0x1234)
    assert header.response_queue == PrivateOnAdminHost(0x99)


@pytest.mark.spec("MQMQ-2.2.19.2-20")
def test_a_transactional_message_is_recoverable() -> None:
    transaction = TransactionHeader(ours.SEQUENCE, 3, 2)
    express = replace(ours.PLAIN, transaction=transaction)
    with pytest.raises(EncodeError, match="not recoverable"):
        encode(express)
    recoverable = replace(express, user=replace(express.user, flags=user.RECOVERABLE))
    flags = peer.PLAIN_USER_FLAGS | peer.TRANSACTION
    inside = (peer.transaction_header(), peer.properties_header())
    assert encode(recoverable) == peer.user_message(
        peer.user_header(flags | peer.RECOVERABLE), *inside
    )
    refuse(peer.user_message(peer.user_header(flags), *inside))


@pytest.mark.spec("MQMQ-2.2.19.2-21")
def test_a_message_properties_header_is_always_announced() -> None:
    for packet in ours.USER.values():
        data = encode(packet)
        (flags,) = struct.unpack_from("<I", data, 60)
        assert flags & peer.PROPERTIES
    refuse(peer.user_message(peer.user_header(7 << peer.DQ), peer.properties_header()))


@pytest.mark.spec("MQMQ-2.2.19.2-22", "MQMQ-2.2.19.2-38")
def test_a_connector_type_is_there_exactly_when_it_is_announced() -> None:
    plain = received(7 << peer.DQ, peer.direct_name())
    announced = received(7 << peer.DQ | peer.CONNECTOR, peer.direct_name() + peer.QUEUE)
    assert sent(ours.PLAIN.user) == plain
    assert sent(replace(ours.PLAIN.user, connector_type=ours.QUEUE)) == announced
    assert decode_user_message(plain).user.connector_type is None
    assert decode_user_message(announced).user.connector_type == ours.QUEUE
    with pytest.raises(EncodeError):
        sent(replace(ours.PLAIN.user, flags=peer.CONNECTOR))
    flags = peer.PLAIN_USER_FLAGS | peer.CONNECTOR
    refuse(peer.user_message(peer.user_header(flags), b"only 12 byte"))


@pytest.mark.spec("MQMQ-2.2.19.2-39")
@given(st.binary(min_size=16, max_size=16))
def test_a_connector_type_is_passed_on_as_it_is(connector_type: bytes) -> None:
    data = received(7 << peer.DQ | peer.CONNECTOR, peer.direct_name() + connector_type)
    packet = decode_user_message(data)
    assert packet.user.connector_type == connector_type
    assert replace(packet.user, connector_type=None) == ours.PLAIN.user
    assert encode(packet) == data
    assert outline(data).destination == struct.pack("<H", 14) + peer.text("OS:h\\q")


@given(st.binary(min_size=2, max_size=2))
def test_padding_behind_a_direct_name_is_any_bytes_and_we_send_zeros(fill: bytes) -> None:
    name = peer.direct_name("OS:h\\qu")
    assert len(name) % 4 == 0
    assert name[:2] == struct.pack("<H", len(name) - 4)
    assert sent(named("destination", DirectName("OS:h\\qu"))) == received(7 << peer.DQ, name)
    data = received(7 << peer.DQ, name[:-2] + fill)
    packet = decode_user_message(data)
    assert packet.user.destination == DirectName("OS:h\\qu")
    assert encode(packet) == data


def test_the_source_is_a_guid_in_wire_order() -> None:
    guid = Guid.parse("00112233-4455-6677-8899-aabbccddeeff")
    data = sent(replace(ours.PLAIN.user, source=guid))
    assert data[16:32].hex() == "33221100554477668899aabbccddeeff"

"""The structures inside which queues are named. [MQMQ 2.2.18.1.4, 2.2.18.1.5, 2.2.18.1.7]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.model.identity import Guid
from openmsmq.model.names import DirectFormatName
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.packets import UserMessage, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message
from tests.strategies.names import direct_format_names

numbers = st.integers(0, 0xFFFFFFFF)
identifiers = st.binary(min_size=16, max_size=16)
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30
)


def with_name(shift: int, code: int, raw: bytes) -> bytes:
    flags = peer.PROPERTIES | code << shift
    return peer.user_message(peer.user_header(flags, raw), peer.properties_header())


def assert_named(place: str, shift: int, code: int, name: QueueName, raw: bytes) -> None:
    """The name is written as these bytes and read from them."""
    data = with_name(shift, code, raw)
    header = replace(ours.PLAIN.user, **{"destination": None, place: name})
    assert encode(UserMessage(header, ours.PLAIN.properties)) == data
    assert decode_user_message(data).user == header


def assert_listed(
    element: PublicName | PrivateName | DirectName | DistributionListName, raw: bytes
) -> None:
    """A list of destinations with this one element is these bytes."""
    first = struct.pack("<IHHI", 12 + len(raw), 0x64, 0, 1) + raw
    flags = peer.PLAIN_USER_FLAGS | peer.MULTI_QUEUE
    data = peer.user_message(
        peer.user_header(flags), peer.properties_header(), first, peer.multi_queue_header()[12:]
    )
    header = MultiQueueFormatHeader(AddressList((element,)))
    assert encode(replace(ours.PLAIN, multi_queue=header)) == data
    assert decode_user_message(data).multi_queue == header


@pytest.mark.spec("MQMQ-2.2.18.1.5.1-01")
@given(numbers)
def test_a_private_queue_of_a_known_host_is_its_number(number: int) -> None:
    raw = struct.pack("<I", number)
    assert_named("destination", peer.DQ, 3, PrivateOnDestination(number), raw)


@pytest.mark.spec("MQMQ-2.2.18.1.5.2-01")
@given(names)
def test_a_direct_name_is_its_size_in_bytes_and_its_terminated_text(name: str) -> None:
    raw = name.encode("utf-16-le") + b"\0\0"
    padded = struct.pack("<H", len(raw)) + raw + bytes(-(2 + len(raw)) % 4)
    assert_named("destination", peer.DQ, 7, DirectName(name), padded)


@pytest.mark.spec("MQMQ-2.2.18.1.5.2-01")
@pytest.mark.parametrize(
    "raw",
    [b"\0\0", b"\1\0a", b"\3\0a\0\0", b"\4\0a\0b\0", b"\6\0\0\0a\0\0\0"],
    ids=["no bytes", "one byte", "odd", "no terminator", "NUL inside"],
)
def test_a_direct_name_of_another_shape_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="direct name"):
        decode_user_message(with_name(peer.DQ, 7, peer.align(raw)))


@pytest.mark.spec("MQMQ-2.2.18.1.7.1-02")
@given(identifiers)
def test_a_public_queue_is_named_by_its_identifier(queue: bytes) -> None:
    for place, shift in (("destination", peer.DQ), ("admin_queue", peer.AQ)):
        assert_named(place, shift, 5, PublicName(Guid(queue)), queue)
    assert_listed(PublicName(Guid(queue)), b"\1\0\0\0" + queue)


@pytest.mark.spec("MQMQ-2.2.18.1.7.2-02", "MQMQ-2.2.18.1.7.2-03")
@given(identifiers, numbers)
def test_a_private_queue_is_named_by_its_host_and_its_number_there(
    manager: bytes, number: int
) -> None:
    raw = manager + struct.pack("<I", number)
    for place, shift in (("admin_queue", peer.AQ), ("response_queue", peer.RQ)):
        assert_named(place, shift, 6, PrivateName(Guid(manager), number), raw)
    assert_listed(PrivateName(Guid(manager), number), b"\2\0\0\0" + raw)


@pytest.mark.spec("MQMQ-2.2.18.1.4.2-02")
@given(identifiers)
def test_a_distribution_list_is_named_by_its_identifier(distribution_list: bytes) -> None:
    element = DistributionListName(Guid(distribution_list))
    assert_listed(element, b"\6\0\0\0" + distribution_list)


@pytest.mark.spec("MQMQ-2.2.18.1.4.1-01", "MQMQ-2.2.18.1.4.1-02")
@given(direct_format_names())
def test_a_direct_name_in_a_list_is_its_terminated_text_and_names_a_queue(
    name: DirectFormatName,
) -> None:
    text = name.wire_text
    raw = b"\3\0" + text.encode("utf-16-le") + b"\0\0"
    assert_listed(DirectName(text), peer.align(raw))
    assert DirectFormatName.from_wire_text(text) == name

"""Every byte of every packet has its place in the tree, and showing never fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.text.tree import Kind, Node, guess_kind, view
from tests.golden import golden
from tests.strategies import wire_parts
from tests.strategies.packets import packets as any_packet
from tests.unit.wire.pgm import pgm_values
from tests.unit.wire.tree_checks import assert_tiled, find, message

DATAGRAMS_AND_BODIES = {
    Kind.PING: wire_parts.ping_packets(),
    Kind.DISCOVERY: wire_parts.directory_queries() | wire_parts.directory_answers(),
    Kind.NOTIFICATION: wire_parts.directory_notifications() | wire_parts.manager_notifications(),
    Kind.ORDER_ACK: wire_parts.order_acks(),
    Kind.FINAL_ACK: wire_parts.final_acks(),
    Kind.PUBLIC_KEY: wire_parts.rsa_public_keys(),
    Kind.SESSION_KEY: wire_parts.session_key_blobs(),
    Kind.PUBLISHED_KEYS: wire_parts.published_keys(),
    Kind.CERTIFICATES: wire_parts.user_certificates(),
    Kind.PGM: pgm_values.PACKETS,
}


@given(any_packet)
def test_the_tree_of_a_packet_tiles_its_bytes(packet):
    data = packets.encode(packet)
    shown = view(data)
    assert shown.problem == ""
    assert shown.summary
    assert_tiled(shown.nodes, 0, len(data))
    assert guess_kind(data) is Kind.SESSION


@pytest.mark.parametrize("kind", list(DATAGRAMS_AND_BODIES))
@given(data=st.data())
def test_the_tree_of_anything_else_tiles_its_bytes(kind, data):
    encoded = data.draw(DATAGRAMS_AND_BODIES[kind]).encode()
    shown = view(encoded, kind)
    assert shown.problem == ""
    assert_tiled(shown.nodes, 0, len(encoded))


@given(st.binary(max_size=100), st.sampled_from(Kind))
def test_any_bytes_can_be_shown_as_anything(data, kind):
    shown = view(data, kind)
    assert_tiled(shown.nodes, 0, len(data))


@given(any_packet.map(packets.encode), st.data())
def test_a_damaged_packet_is_shown_as_far_as_it_goes(data, draw):
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        damaged[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    del damaged[draw.draw(st.integers(0, len(data))) :]
    shown = view(bytes(damaged))
    assert_tiled(shown.nodes, 0, len(damaged))
    assert (shown.name == "malformed") == bool(shown.problem)


def test_the_header_that_cannot_be_read_is_named_and_the_rest_kept():
    data = bytearray(message(MessageProperties.of(b"body")))
    data[64 + 1] = 255
    shown = view(bytes(data))
    assert (
        shown.problem == "MessagePropertiesHeader at offset 65: a label of 255 units; at most 250"
    )
    assert [node.name for node in shown.nodes] == ["BaseHeader", "UserHeader", "not decoded"]
    assert shown.nodes[-1].value == bytes(data[64:]).hex()


def test_a_packet_that_is_cut_short_says_so_and_shows_its_headers():
    shown = view(golden("mqqb-4.1-frame-7-user-message"))
    assert shown.problem.startswith("BaseHeader at offset 8: packet size 2224, but 1650 bytes; ")
    assert "MessagePropertiesHeader at offset 136" in shown.problem
    sender = find(shown, "SecurityHeader", "SecurityID")
    assert sender.meaning == "S-1-5-21-3181267629-1039849782-3663111779-1000"


@pytest.mark.parametrize("name", ["3-establish-request", "5-parameters-request", "8-session-ack"])
def test_an_internal_packet_with_bytes_too_many_shows_its_headers(name):
    shown = view(golden(f"mqqb-4.1-frame-{name}") + b"more")
    assert "bytes" in shown.problem
    assert [node.size for node in shown.nodes][:2] == [16, 4]
    assert shown.nodes[-1] == Node("not decoded", shown.nodes[-1].offset, 4, b"more".hex())


def test_bits_belong_to_their_flags():
    shown = view(golden("mqqb-4.1-frame-8-session-ack"))
    flags = find(shown, "BaseHeader", "Flags")
    assert flags.value == 0x1B
    assert {bit.name: bit.value for bit in flags.children} == {
        "PR priority": 3,
        "IN internal packet": 1,
        "SH session header": 1,
        "DH debug header": 0,
        "TR traced": 0,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mqqb-4.1-frame-1-ping-request", Kind.PING),
        ("mqqb-4.1-frame-3-establish-request", Kind.SESSION),
        ("mqsd-4-request", Kind.DISCOVERY),
        ("mqsd-4-answer-same-site", Kind.DISCOVERY),
    ],
)
def test_packets_are_known_by_their_looks(name, kind):
    assert guess_kind(golden(name)) is kind


@pytest.mark.parametrize("data", [b"", bytes(24), bytes(60), b"\0\1" + bytes(20), b"\0\2"])
def test_other_bytes_are_not_guessed_at(data):
    assert guess_kind(data) is None


def test_a_message_with_bytes_too_many_shows_all_its_headers():
    data = message(MessageProperties.of(b"body"))
    shown = view(data + b"more")
    assert (
        shown.problem
        == f"BaseHeader at offset 8: packet size {len(data)}, but {len(data) + 4} bytes"
    )
    assert shown.nodes[-1] == Node("not decoded", len(data), 4, b"more".hex())
    assert shown.nodes[-2].name == "MessagePropertiesHeader"

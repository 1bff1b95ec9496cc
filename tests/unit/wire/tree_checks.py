"""What the tests of the text view share."""

from __future__ import annotations

from openmsmq.model.identity import Guid
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.text.tree import Node, View

SOURCE = Guid.parse("11111111-2222-3333-4444-555555555555")


def assert_tiled(nodes: tuple[Node, ...], start: int, end: int) -> None:
    """Each node starts where the one before ends, on every level."""
    at = start
    for node in nodes:
        if node.size == 0:
            assert start <= node.offset < end
            continue
        assert node.offset == at
        if any(child.size for child in node.children):
            assert_tiled(node.children, node.offset, node.offset + node.size)
        at += node.size
    assert at == end


def find(shown: View, *names: str) -> Node:
    nodes = shown.nodes
    for name in names[:-1]:
        nodes = next(node for node in nodes if node.name == name).children
    return next(node for node in nodes if node.name == names[-1])


def body_of(shown: View) -> Node:
    return find(shown, "MessagePropertiesHeader", "MessageBody")


def message(properties: MessageProperties, destination=None, security=None) -> bytes:
    header = UserHeader(SOURCE, destination=destination)
    return packets.encode(UserMessage(header, properties, security=security))

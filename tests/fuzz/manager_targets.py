"""What must hold for whatever applications and peers say to a queue manager.

The queue manager is the real one, in memory, and a new one for each input. It may refuse and it
may hang up. It may not raise, not run in circles, not answer twice, and not stop serving others.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.api.framing import ApiError, FrameReader, encode_frame
from openmsmq.directory.codec import decode_object, encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.rules import check
from openmsmq.manager.outputs import Disconnect
from openmsmq.model.clock import Instant
from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.protocol.discovery.client import Broadcast, DiscoveryClient, Network
from openmsmq.protocol.discovery.server import DiscoveryFacts, answer_query
from openmsmq.wire.packets import encode
from tests.fuzz.desk import HERE, OPENING, ORDERS, STRANGE, STRANGER, Desk, new_desk
from tests.transfer.letters import direct, letter

CALLS_MAX_COUNT: Final = 32
CHUNKS: Final = (4096, 1500, 97, 16)
_HONEST: Final = "10.0.0.7"
_APPLICATION: Final = 1
_CALL_MS: Final = 1_000
_ANSWER_MAX_COUNT: Final = 100
_LONG_MS: Final = 700_000
"""Longer than any wait of a session."""


def calls(data: bytes) -> None:
    """Whatever an application calls, each call has one answer at most, and all can be written."""
    desk = new_desk()
    desk.manager.connected(_APPLICATION)
    reader: FrameReader[api.Call] = FrameReader(api.Call)
    reader.feed(data)
    seen: set[int] = set()
    try:
        for call in islice(reader.items(), CALLS_MAX_COUNT):
            if call.id in seen:
                continue
            seen.add(call.id)
            request = _bounded(call.request)
            desk.manager.request(_APPLICATION, call.id, request, desk.now)
            desk.work(passed_ms=_CALL_MS)
    except ApiError:
        pass
    desk.manager.connection_lost(_APPLICATION, desk.now)
    desk.work(passed_ms=_LONG_MS)
    for (_, call_id), reply in desk.answers.items():
        encode_frame(api.Answer(call_id, reply))


def sessions(data: bytes) -> None:
    """Whatever a peer says, only its session ends, and the next peer is heard."""
    if len(data) < 2:
        return
    choice, stream = data[0], data[2:]
    desk = new_desk()
    desk.manager.session_accepted(2, STRANGE, desk.now)
    if choice & 1:
        stream = OPENING + stream
    chunk = CHUNKS[choice >> 1 & 3]
    for at in range(0, len(stream), chunk):
        desk.manager.session_data(2, stream[at : at + chunk], desk.now)
        desk.work()
        if Disconnect(2) in desk.outputs:
            break
    if choice & 8:
        desk.work(passed_ms=_LONG_MS)
    desk.manager.session_lost(2, desk.now)
    desk.work()
    if choice & 0x70 == 0:
        _is_heard(desk)


def directory_objects(data: bytes) -> None:
    """Objects of a directory: each can be written again, and the rules can judge it."""
    for kind in ObjectKind:
        try:
            value = decode_object(kind, data)
        except ValueError:
            continue
        assert decode_object(kind, encode_object(value)) == value
        try:
            check(DirectoryImage(), [value])
        except MsmqError:
            continue


def discovery(data: bytes) -> None:
    """A directory server answers a query or not; one who searches takes an answer or not."""
    answer_query(data, _FACTS)
    client = DiscoveryClient(STRANGER, _SITE)
    start = Instant(0, 0)
    client.start([Network("10.0.0.1", "10.0.0.255")], STRANGER, start)
    assert [type(output) for output in client.take_outputs()] == [Broadcast]
    client.received(0, STRANGE, data, start)
    client.received(0, HERE, data, start)
    for _ in range(8):
        if not client.is_searching:
            break
        due_ms = client.next_wake_ms
        assert due_ms is not None
        client.wake(Instant(due_ms, 0))
        client.take_outputs()
    assert not client.is_searching


def _is_heard(desk: Desk) -> None:
    """See that an honest peer still gets a message through."""
    packet = encode(letter(Guid(b"an honest manage"), 1, direct(HERE, ORDERS), b"honest"))
    desk.outputs = []
    desk.manager.session_accepted(4, _HONEST, desk.now)
    desk.manager.session_data(4, OPENING.replace(STRANGER, b"an honest manage") + packet, desk.now)
    desk.work()
    assert Disconnect(4) not in desk.outputs
    assert any(packet[-6:] in value for _, value in desk.store.scan(b"", b"\xff" * 40, 1_000))


def _bounded(request: api.AnyRequest) -> api.AnyRequest:
    """Ask for no more than the connection lets through."""
    if isinstance(request, api.Receive | api.FetchRange | api.FetchPackets):
        return msgspec.structs.replace(request, count=min(request.count, _ANSWER_MAX_COUNT))
    return request


_SITE: Final = Guid(b"a site of theirs")
_FACTS: Final = DiscoveryFacts(STRANGER, (_SITE,), (STRANGER,), ("ALPHA", "BETA"))

TARGETS: Final = {
    "calls": calls,
    "sessions": sessions,
    "directory": directory_objects,
    "discovery": discovery,
}

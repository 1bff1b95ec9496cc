"""Where the targets of the queue manager start: every request there is, and sessions of peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.api.framing import encode_frames
from openmsmq.directory.codec import encode_object
from openmsmq.directory.rows import row_of
from openmsmq.model.directory import DirectoryObject
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.model.topology import QueueManagerInfo, Site
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, ServerEntry
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import Packet, SessionAck, encode
from tests.fuzz.desk import HERE, LEDGER, OPENING, ORDERS, STRANGER
from tests.fuzz.seeds import messages, system_messages
from tests.strategies.messages import Draft
from tests.transfer.letters import SEQUENCE, direct, letter

_SITE: Final = Guid(b"a site of theirs")
_SAMPLES: Final[tuple[object, ...]] = (
    1,
    ORDERS,
    bytes(16),
    True,
    [],
    [Draft().packet()],
    {},
    None,
    "receive",
    0.5,
)
"""Of these, the first that fits is what a request of the seeds has in a field."""


def requests() -> list[api.AnyRequest]:
    """One of each kind, with something in every field that must have something."""
    return [_sample(kind) for kind in api.REQUESTS]


def _sample(kind: type[Any]) -> Any:
    fields = [field for field in msgspec.structs.fields(kind) if field.required]
    return kind(**{field.name: _fitting(field.type) for field in fields})


def _fitting(kind: Any) -> Any:
    for sample in _SAMPLES:
        try:
            return msgspec.convert(sample, kind)
        except msgspec.ValidationError:
            continue
    raise AssertionError(f"the seeds need a sample of {kind}")


def calls() -> list[bytes]:
    """Each request alone, and some that belong together."""
    opened = [
        api.OpenQueue(path, access, ShareMode.DENY_NONE)
        for path in (ORDERS, LEDGER)
        for access in (AccessMode.RECEIVE, AccessMode.SEND)
    ]
    plain, inside = Draft().packet(), Draft(transactional=True).packet()
    conversations: list[list[api.AnyRequest]] = [
        [opened[0], request] for request in requests() if not isinstance(request, api.Hello)
    ]
    conversations += [
        [opened[0], opened[1], api.Send(2, [plain]), api.Receive(1, 10, 0), api.Receive(1, 1, 5)],
        [opened[2], opened[3], api.Begin(), api.Send(2, [inside], 1), api.Commit(1)],
        [opened[2], api.Begin(), api.Receive(1, 2, 0, transaction=1), api.Abort(1)],
        [opened[0], api.CreateCursor(1), api.Receive(1, 1, 0, peek=True, cursor=1)],
        [opened[0], api.Reserve(1, "reader", 0), api.Complete(1, "reader", 9), api.Purge(1)],
        [api.ChangeDirectory([row_of(value) for value in objects()])],
        [opened[0], api.Receive(1, 1, 100_000), api.Cancel(2), api.CloseQueue(1)],
    ]
    return [
        encode_frames(api.Call(number, request) for number, request in enumerate(said, 1))
        for said in conversations
    ]


def objects() -> list[DirectoryObject]:
    """Objects of a directory that name each other."""
    site = Site(identifier=_SITE, name="Berlin")
    manager = QueueManagerInfo(identifier=STRANGER, computer_name="GAMMA", sites=(_SITE,))
    return [site, manager]


def directory_objects() -> list[bytes]:
    return [encode_object(value) for value in objects()]


def sessions() -> list[bytes]:
    """Two bytes that say how to go on, then what a peer says once its session is open."""
    place = direct(HERE, ORDERS)
    told: list[list[Packet]] = [
        [letter(STRANGER, 1, place), letter(STRANGER, 2, place, recoverable=False)],
        [letter(STRANGER, 1, direct(HERE, LEDGER), place=(SEQUENCE, 1, 0), final_ack=True)],
        [letter(STRANGER, 1, place, acknowledge=0x0F, admin_queue=direct("10.0.0.9", "x"))],
        [letter(STRANGER, 1, direct("10.0.0.77", ORDERS), hops=3)],
        [letter(STRANGER, 1, place, session=SessionHeader(sent_count=1))],
        [letter(STRANGER, 1, PrivateOnDestination(4)), SessionAck(SessionHeader(sent_count=1))],
        [letter(STRANGER, 1, place, time_to_be_received_s=1, journal_on_failure=True)],
    ]
    told += [[message] for message in (*messages()[-12:], *system_messages())]
    said = [b"".join(map(encode, packets)) for packets in told]
    found = [
        bytes((1 | (number % 4) << 1 | (number % 2) << 3, 0)) + stream
        for number, stream in enumerate(said)
    ]
    return [*found, b"\0\0" + OPENING, b"\0\0" + OPENING + said[0]]


def discovery() -> list[bytes]:
    servers = (ServerEntry("ALPHA"), ServerEntry("BETA", ipx=True))
    return [
        DirectoryQuery(STRANGER, STRANGER, _SITE).encode(),
        DirectoryQuery(STRANGER, _SITE, STRANGER).encode(),
        DirectoryAnswer(STRANGER, (STRANGER,)).encode(),
        DirectoryAnswer(STRANGER, (STRANGER, _SITE), _SITE, servers).encode(),
    ]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "calls": calls,
    "sessions": sessions,
    "directory": directory_objects,
    "discovery": discovery,
}

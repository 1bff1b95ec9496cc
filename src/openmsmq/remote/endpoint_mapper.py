"""The endpoint mapper: where the interfaces of this computer are that a queue manager offers.

It remembers nothing of those who ask: a handle says how far somebody has come, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.remote.ports import AsksNobody, Output, Return, Throw
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.endpoint_mapper import (
    ENTRIES_MAX_COUNT,
    FOUND,
    FREE_HANDLE,
    FREED,
    LOOKUP,
    MAP,
    MAPPED,
    NO_HANDLE,
    NOT_REGISTERED,
    OK,
    Entry,
    Found,
    Freed,
    Inquiry,
    Lookup,
    Mapped,
    Operation,
    Varying,
    VersionOption,
)
from openmsmq.wire.rpc.pdus import Status
from openmsmq.wire.rpc.syntaxes import Syntax
from openmsmq.wire.rpc.towers import Tower

_HANDLE_PREFIX: Final = b"\0\0\0\0openmsmq epm"


class Endpoint(msgspec.Struct, frozen=True):
    """Where an interface can be called."""

    interface: Syntax
    address: str
    port: int
    annotation: str

    @property
    def tower(self) -> bytes:
        """How the mapper says it."""
        return Tower.over_tcp(self.interface, self.address, self.port).encode()


class EndpointMapper(AsksNobody):
    """Answers where interfaces are; the same for everybody."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._answers: dict[int, Callable[[bytes], bytes]] = {
            Operation.LOOKUP: self._lookup,
            Operation.MAP: self._map,
            Operation.FREE_HANDLE: self._free,
        }

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        """Answer a call."""
        del now
        answer = self._answers.get(operation)
        if answer is None:
            return [Throw(call, Status.ACCESS_DENIED)]
        try:
            return [Return(call, answer(stub))]
        except DecodeError:
            return [Throw(call, Status.BAD_STUB)]
        except _UnknownHandle:
            return [Throw(call, Status.CONTEXT_MISMATCH)]

    def _map(self, stub: bytes) -> bytes:
        asked = MAP.decode(stub)
        wanted = Tower.decode(asked.tower or b"")
        towers: tuple[bytes, ...] = ()
        if wanted.is_over_tcp and wanted.interface is not None:
            sought = wanted.interface
            towers = tuple(
                each.tower for each in self._endpoints if _serves(each.interface, sought)
            )
        room = min(asked.towers_max, ENTRIES_MAX_COUNT)
        towers = towers[:room]
        status = OK if towers else NOT_REGISTERED
        return MAPPED.encode(Mapped(NO_HANDLE, len(towers), Varying(room, towers), status))

    def _lookup(self, stub: bytes) -> bytes:
        asked = LOOKUP.decode(stub)
        fitting = [each for each in self._endpoints if _fits(each, asked)]
        start = _position(asked.handle)
        room = min(asked.entries_max, ENTRIES_MAX_COUNT)
        here = fitting[start : start + room]
        behind = start + len(here)
        handle = _handle(behind) if here and behind < len(fitting) else NO_HANDLE
        entries = tuple(Entry(each.tower, each.annotation.encode()) for each in here)
        status = OK if entries else NOT_REGISTERED
        return FOUND.encode(Found(handle, len(entries), Varying(room, entries), status))

    def _free(self, stub: bytes) -> bytes:
        _position(FREE_HANDLE.decode(stub).handle)
        return FREED.encode(Freed(NO_HANDLE, OK))


class _UnknownHandle(Exception):
    """A handle that is none of ours."""


def _serves(ours: Syntax, wanted: Syntax) -> bool:
    return (ours.uuid, ours.major) == (wanted.uuid, wanted.major) and wanted.minor <= ours.minor


def _fits(endpoint: Endpoint, asked: Lookup) -> bool:
    if asked.inquiry in (Inquiry.BY_OBJECT, Inquiry.BY_BOTH):
        # No interface of ours is about one object only.
        return False
    if asked.inquiry != Inquiry.BY_INTERFACE:
        return True
    wanted = asked.interface
    if wanted is None or wanted.uuid != endpoint.interface.uuid:
        return False
    ours, theirs = endpoint.interface, wanted
    match asked.versions:
        case VersionOption.EXACT:
            return (ours.major, ours.minor) == (theirs.major, theirs.minor)
        case VersionOption.COMPATIBLE:
            return ours.major == theirs.major and ours.minor >= theirs.minor
        case VersionOption.MAJOR_ONLY:
            return ours.major == theirs.major
        case VersionOption.UP_TO:
            return (ours.major, ours.minor) <= (theirs.major, theirs.minor)
        case _:
            return True


def _handle(position: int) -> bytes:
    return _HANDLE_PREFIX + position.to_bytes(4, "little")


def _position(handle: bytes) -> int:
    if handle == NO_HANDLE:
        return 0
    if not handle.startswith(_HANDLE_PREFIX):
        raise _UnknownHandle
    return int.from_bytes(handle[len(_HANDLE_PREFIX) :], "little")

"""Slates: memory that we share with a client of this computer, for long answers.

What a client fetches by the megabyte is put on a slate and not sent. So the kernel copies it
neither in nor out, and wakes nobody for each piece of it. A client asks for slates with `Hello`;
their descriptors leave with its welcome, by the Unix socket. Each of its calls then names the slate
whose content it has done with.

A slate is made for one connection, so it has only zeroes at first and then answers to this client,
and it ends with the connection. Seals of the kernel see to it that nobody changes its length and
nobody but us writes there; we never read it. So neither side can make the other fail, or see what
it should not.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import socket
from typing import Final

import msgspec

from openmsmq.api.messages import Answer, FetchPackets, Packets
from openmsmq.runtime.limits import (
    SLATE_BYTES,
    SLATES_MAX_COUNT,
    SLATES_OF_CONNECTION_MAX_COUNT,
)

_F_SEAL_FUTURE_WRITE: Final = 0x0010
"""Of Linux 5.1 and later: what is mapped already can be written, and nothing else can."""
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | _F_SEAL_FUTURE_WRITE


class SlateRoom:
    """How many slates there may still be, for all connections together."""

    def __init__(self) -> None:
        self.left_count = SLATES_MAX_COUNT


class Slates:
    """The slates of one connection."""

    def __init__(self, wanted_count: int, room: SlateRoom) -> None:
        """Make as many as are wanted, or none; `OSError` says that the kernel refused."""
        self._room = room
        self._maps: list[mmap.mmap] = []
        self._named: dict[int, int] = {}
        """On which slate the answers to calls go that are under way."""
        self._descriptors: list[int] = []
        if not 0 < wanted_count <= min(room.left_count, SLATES_OF_CONNECTION_MAX_COUNT):
            return
        try:
            for _ in range(wanted_count):
                self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        descriptor = os.memfd_create("slate", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._descriptors.append(descriptor)
        os.ftruncate(descriptor, SLATE_BYTES)
        self._maps.append(mmap.mmap(descriptor, SLATE_BYTES))
        self._room.left_count -= 1
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)

    def __len__(self) -> int:
        return len(self._maps)

    def send(self, descriptor: int, data: bytes) -> int:
        """Send bytes by a socket and with them all slates, once; give how many bytes have left.

        Nothing else may wait to leave there.
        """
        try:
            with socket.socket(fileno=os.dup(descriptor)) as way:
                return socket.send_fds(way, [data], self._descriptors)
        finally:
            self._close_descriptors()

    def name(self, call: int, request: FetchPackets) -> None:
        """Take note on which slate a client wants the answer to a call."""
        if 0 < request.slate <= len(self._maps):
            self._named[call] = request.slate

    def put(self, answers: list[Answer]) -> tuple[list[Answer], int]:
        """Put on slates what belongs there and fits; give what is to be sent.

        The number is how many bytes are on slates now, of all answers together.
        """
        named = self._named
        if not named:
            return answers, 0
        put_bytes = 0
        answers = list(answers)
        for place, answer in enumerate(answers):
            number = named.pop(answer.id, 0)
            reply = answer.reply
            if number and isinstance(reply, Packets) and len(reply.entries) <= SLATE_BYTES:
                length = len(reply.entries)
                self._maps[number - 1][:length] = reply.entries
                short = msgspec.structs.replace(
                    reply, entries=b"", slate=number, slate_bytes=length
                )
                answers[place] = Answer(answer.id, short)
                put_bytes += length
        return answers, put_bytes

    def close(self) -> None:
        """Give the memory back; the client keeps what it has mapped for as long as it wants."""
        self._close_descriptors()
        self._room.left_count += len(self._maps)
        while self._maps:
            self._maps.pop().close()

    def _close_descriptors(self) -> None:
        while self._descriptors:
            with contextlib.suppress(OSError):
                os.close(self._descriptors.pop())

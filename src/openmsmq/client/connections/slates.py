"""Slates: memory of a queue manager on this computer, where it puts long answers for us.

They come with its welcome, by the Unix socket. We can only look at them. The calls of a connection
take them in turns, so what an answer shows there is good until as many further calls were made.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
from typing import Final

import msgspec

from openmsmq.api.messages import FetchPackets, Packets

SLATES_MAX_COUNT: Final = 8
"""Descriptors that one read takes; what comes beyond it, the kernel closes."""


class Slates:
    """The slates of one connection; none where there are none to be had."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []
        self._maps: list[mmap.mmap] = []
        self._next = 0

    def receive(self, way: socket.socket, most_bytes: int) -> bytes:
        """Read from a socket, and keep the descriptors that come along."""
        data, descriptors, _, _ = socket.recv_fds(
            way, most_bytes, SLATES_MAX_COUNT, socket.MSG_CMSG_CLOEXEC
        )
        self._descriptors += descriptors
        return data

    def open(self, size_bytes: int) -> None:
        """Look at the slates that came, each so long; 0 if none should have come."""
        try:
            if size_bytes:
                self._maps = [_looked_at(each, size_bytes) for each in self._descriptors]
        finally:
            self._close_descriptors()

    def close(self) -> None:
        """Let the slates go; what an answer shows stays for as long as somebody has it."""
        self._close_descriptors()
        self._maps = []

    def _close_descriptors(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def named(self, request: FetchPackets) -> FetchPackets:
        """Let an answer come on the next slate."""
        if not self._maps:
            return request
        self._next = self._next % len(self._maps) + 1
        return msgspec.structs.replace(request, slate=self._next)

    def shown(self, reply: Packets) -> Packets:
        """Return an answer with the entries that stand on a slate; `ValueError` if none do."""
        if not reply.slate:
            return reply
        length = reply.slate_bytes
        if not (0 < reply.slate <= len(self._maps) and 0 <= length <= len(self._maps[0])):
            raise ValueError(f"{length} bytes on slate {reply.slate}, which is not there")
        entries = memoryview(self._maps[reply.slate - 1])[:length]
        return msgspec.structs.replace(reply, entries=entries)


def _looked_at(descriptor: int, size_bytes: int) -> mmap.mmap:
    # What could become shorter would end this process when it looks behind the end.
    is_fixed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    if not is_fixed or os.fstat(descriptor).st_size < size_bytes:
        raise OSError("the memory that came with the welcome is or can become too short")
    return mmap.mmap(descriptor, size_bytes, prot=mmap.PROT_READ)

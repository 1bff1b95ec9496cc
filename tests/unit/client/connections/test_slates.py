"""Slates of a queue manager as a client takes them: in turns, and never on trust."""

from __future__ import annotations

import fcntl
import os
import socket

import pytest

from openmsmq.api.messages import FetchPackets, Packets
from openmsmq.client.connections.slates import Slates

SIZE = 8192
SHRINK_AND_GROW = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def memory(content: bytes, seals: int = SHRINK_AND_GROW) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, SIZE)
    os.pwrite(descriptor, content, 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def received(*descriptors: int) -> Slates:
    """Let these come over a socket."""
    ours, theirs = socket.socketpair()
    slates = Slates()
    with ours, theirs:
        socket.send_fds(ours, [b"welcome"], descriptors)
        assert slates.receive(theirs, 100) == b"welcome"
    for each in descriptors:
        os.close(each)
    return slates


def on_slate(number: int, length: int) -> Packets:
    return Packets(b"", b"", b"", 3, number, length)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_answers_take_slates_in_turns_and_show_what_is_there() -> None:
    slates = received(memory(b"first"), memory(b"second"))
    slates.open(SIZE)
    request = FetchPackets(1, 0, 9)
    assert [slates.named(request).slate for _ in range(5)] == [1, 2, 1, 2, 1]
    assert bytes(slates.shown(on_slate(2, 6)).entries) == b"second"
    shown = slates.shown(on_slate(1, 5))
    assert bytes(shown.entries) == b"first"
    assert shown.next_start == 3


def test_what_is_shown_cannot_be_written() -> None:
    slates = received(memory(b"first"))
    slates.open(SIZE)
    entries = slates.shown(on_slate(1, 5)).entries
    assert isinstance(entries, memoryview)
    assert entries.readonly


def test_without_slates_everything_stays_in_the_answers() -> None:
    slates = Slates()
    slates.open(0)
    request, reply = FetchPackets(1, 0, 9), Packets(b"", b"", b"entries", 3)
    assert slates.named(request) is request
    assert slates.shown(reply) is reply


@pytest.mark.parametrize(("number", "length"), [(2, 1), (-1, 1), (1, SIZE + 1), (1, -1)])
def test_an_answer_on_no_slate_or_beyond_its_end_is_refused(number: int, length: int) -> None:
    slates = received(memory(b"first"))
    slates.open(SIZE)
    with pytest.raises(ValueError, match="not there"):
        slates.shown(on_slate(number, length))


def test_memory_that_could_become_shorter_is_not_looked_at() -> None:
    slates = received(memory(b"first", fcntl.F_SEAL_GROW))
    with pytest.raises(OSError, match="too short"):
        slates.open(SIZE)


def test_memory_that_is_too_short_is_not_looked_at() -> None:
    slates = received(memory(b"first"))
    with pytest.raises(OSError, match="too short"):
        slates.open(SIZE + 4096)


def test_what_is_no_memory_is_not_looked_at() -> None:
    slates = received(os.open("/dev/zero", os.O_RDONLY))
    with pytest.raises(OSError, match="Invalid argument"):
        slates.open(SIZE)


def test_no_descriptor_stays_open() -> None:
    before = open_descriptors()
    received(memory(b"first"), memory(b"second")).open(0)
    received(memory(b"first")).close()
    refused = received(memory(b"first", fcntl.F_SEAL_GROW))
    with pytest.raises(OSError, match="too short"):
        refused.open(SIZE)
    looked_at = received(memory(b"first"))
    looked_at.open(SIZE)
    # What is mapped has a descriptor of its own.
    assert open_descriptors() == before + 1
    looked_at.close()
    assert open_descriptors() == before

"""Slates: what is put there is seen by one client, and nobody can take the ground from under it."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
from collections.abc import Iterator

import pytest

from openmsmq.api.messages import Answer, Failed, FetchPackets, Packets
from openmsmq.runtime.api.slates import SlateRoom, Slates
from openmsmq.runtime.limits import (
    SLATE_BYTES,
    SLATES_MAX_COUNT,
    SLATES_OF_CONNECTION_MAX_COUNT,
)


@pytest.fixture
def room() -> SlateRoom:
    return SlateRoom()


@pytest.fixture
def slates(room: SlateRoom) -> Iterator[Slates]:
    made = Slates(2, room)
    yield made
    made.close()


@pytest.fixture
def descriptors(slates: Slates) -> Iterator[list[int]]:
    """What a client gets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert slates.send(ours.fileno(), b"welcome") == len(b"welcome")
        data, found, _, _ = socket.recv_fds(theirs, 100, 10)
        assert data == b"welcome"
    yield found
    for each in found:
        os.close(each)


def asked(slate: int) -> FetchPackets:
    return FetchPackets(1, 0, 9, slate=slate)


def packets(entries: bytes) -> Packets:
    return Packets(b"12345678", b"1234", entries, 7)


def seen(descriptor: int, length: int) -> bytes:
    with mmap.mmap(descriptor, SLATE_BYTES, prot=mmap.PROT_READ) as view:
        return view[:length]


def test_entries_stand_on_the_slate_that_the_call_named(
    slates: Slates, descriptors: list[int]
) -> None:
    for call, number in ((1, 2), (2, 1)):
        slates.name(call, asked(number))
    other = Answer(3, Failed(1, ""))
    sent, put_bytes = slates.put([Answer(2, packets(b"one")), other, Answer(1, packets(b"second"))])
    assert sent == [
        Answer(2, Packets(b"12345678", b"1234", b"", 7, 1, 3)),
        other,
        Answer(1, Packets(b"12345678", b"1234", b"", 7, 2, 6)),
    ]
    assert put_bytes == 9
    assert [seen(each, 7) for each in descriptors] == [b"one\0\0\0\0", b"second\0"]


def test_a_call_has_a_slate_once(slates: Slates) -> None:
    slates.name(1, asked(1))
    slates.put([Answer(1, packets(b"one"))])
    later = [Answer(1, packets(b"another call of this number"))]
    assert slates.put(later) == (later, 0)


@pytest.mark.parametrize("number", [-1, 0, 3])
def test_a_slate_that_is_not_there_gets_nothing(slates: Slates, number: int) -> None:
    slates.name(1, asked(number))
    answers = [Answer(1, packets(b"entries"))]
    assert slates.put(answers) == (answers, 0)


def test_what_is_longer_than_a_slate_is_sent(slates: Slates) -> None:
    slates.name(1, asked(1))
    slates.name(2, asked(1))
    fits, too_long = packets(bytes(SLATE_BYTES)), packets(bytes(SLATE_BYTES + 1))
    sent, put_bytes = slates.put([Answer(1, too_long), Answer(2, fits)])
    assert sent[0].reply == too_long
    assert sent[1].reply == Packets(b"12345678", b"1234", b"", 7, 1, SLATE_BYTES)
    assert put_bytes == SLATE_BYTES


def test_a_new_slate_has_nothing_of_another_client(room: SlateRoom) -> None:
    first = Slates(1, room)
    first.name(1, asked(1))
    first.put([Answer(1, packets(b"x" * SLATE_BYTES))])
    first.close()
    second = Slates(1, room)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        second.send(ours.fileno(), b"welcome")
        _, (descriptor,), _, _ = socket.recv_fds(theirs, 100, 10)
    assert seen(descriptor, SLATE_BYTES) == bytes(SLATE_BYTES)
    os.close(descriptor)
    second.close()


def test_a_client_can_neither_write_nor_change_the_length(descriptors: list[int]) -> None:
    for each in descriptors:
        with pytest.raises(PermissionError):
            os.pwrite(each, b"x", 0)
        with pytest.raises(PermissionError):
            mmap.mmap(each, SLATE_BYTES)
        for length in (0, 2 * SLATE_BYTES):
            with pytest.raises(PermissionError):
                os.ftruncate(each, length)
        with pytest.raises(PermissionError):
            fcntl.fcntl(each, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


def test_a_client_keeps_what_it_looks_at_when_the_connection_is_over(
    slates: Slates, descriptors: list[int]
) -> None:
    slates.name(1, asked(1))
    slates.put([Answer(1, packets(b"entries"))])
    slates.close()
    assert seen(descriptors[0], 7) == b"entries"


def test_there_are_so_many_slates_and_those_that_end_make_room(room: SlateRoom) -> None:
    made: list[Slates] = []
    while made_now := Slates(min(2, room.left_count), room):
        made.append(made_now)
    assert sum(map(len, made)) == SLATES_MAX_COUNT
    assert len(Slates(1, room)) == 0
    made[0].close()
    made[0].close()
    assert room.left_count == 2
    again = Slates(2, room)
    assert len(again) == 2
    for each in (*made, again):
        each.close()
    assert room.left_count == SLATES_MAX_COUNT


@pytest.mark.parametrize("wanted", [-1, 0, SLATES_OF_CONNECTION_MAX_COUNT + 1, 1 << 62])
def test_who_wants_more_than_a_connection_may_have_gets_none(room: SlateRoom, wanted: int) -> None:
    assert len(Slates(wanted, room)) == 0
    assert room.left_count == SLATES_MAX_COUNT


def test_none_is_left_open_if_the_kernel_refuses_one(
    room: SlateRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, *_: int) -> int:
        opened.append(descriptor)
        raise OSError("no seals here")

    opened: list[int] = []
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(OSError, match="no seals"):
        Slates(2, room)
    assert room.left_count == SLATES_MAX_COUNT
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])

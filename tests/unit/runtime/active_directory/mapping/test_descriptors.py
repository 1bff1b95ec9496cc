"""Rights of MSMQ and rights of Active Directory say the same."""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import reduce
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.access import ManagerAccess, QueueAccess, SiteAccess
from openmsmq.model.identity import Guid
from openmsmq.runtime.active_directory.mapping.descriptors import (
    EVERYBODY,
    MANAGER_RIGHTS,
    QUEUE_RIGHTS,
    SITE_RIGHTS,
    AccessEntry,
    Descriptor,
    Rights,
    decode,
    encode,
    new_manager,
    new_queue,
    translate_from_directory,
    translate_to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import Malformed
from openmsmq.security.access.sids import ADMINISTRATORS, unix_user

ALICE = bytes.fromhex("01050000000000051500000001000000020000000300000050040000")
COMPUTER = bytes.fromhex("01050000000000051500000001000000020000000300000051040000")
SEND = Guid.parse("06bd3202-df3e-11d1-9c86-006008764d0e")

users = st.sampled_from([ALICE, COMPUTER, EVERYBODY])


def directory_descriptor(*aces: bytes) -> bytes:
    body = b"".join(aces)
    acl = struct.pack("<BBHHH", 4, 0, 8 + len(body), len(aces), 0) + body
    return struct.pack("<BBHIIII", 1, 0, 0x8004, 0, 0, 0, 20) + acl


def ace(kind: int, mask: int, user: bytes, about: Guid | None = None, flags: int = 0) -> bytes:
    body = user if about is None else struct.pack("<I", 1) + about + user
    return struct.pack("<BBHI", kind, flags, 8 + len(body), mask) + body


def read(descriptor: bytes, rights: Rights) -> tuple[AccessEntry, ...] | None:
    return decode(translate_from_directory(descriptor, rights)).entries


@st.composite
def descriptors(draw: st.DrawFn, masks: st.SearchStrategy[int]) -> Descriptor:
    entries: list[AccessEntry] = []
    for entry in draw(st.lists(st.builds(AccessEntry, users, masks, st.booleans()), max_size=6)):
        # Two entries of one user side by side become one.
        if not entries or (entries[-1].user, entries[-1].is_denied) != (
            entry.user,
            entry.is_denied,
        ):
            entries.append(entry)
    owner, group = draw(st.sampled_from([b"", ALICE])), draw(st.sampled_from([b"", COMPUTER]))
    return Descriptor(owner, group, draw(st.sampled_from([None, tuple(entries)])))


# A right to take messages away without one to look at them has no counterpart there.
queue_masks = st.sets(
    st.sampled_from(
        [
            QueueAccess.RECEIVE_MESSAGE,
            QueueAccess.PEEK_MESSAGE,
            QueueAccess.WRITE_MESSAGE,
            QueueAccess.RECEIVE_JOURNAL_MESSAGE,
            QueueAccess.GET_PROPERTIES,
            QueueAccess.SET_PROPERTIES,
            QueueAccess.DELETE_QUEUE,
            QueueAccess.GENERIC_ALL,
        ]
    ),
    min_size=1,
).map(lambda chosen: int(reduce(or_, chosen)))
manager_masks = st.sampled_from(
    [
        ManagerAccess.GENERIC_ALL,
        ManagerAccess.GENERIC_READ,
        ManagerAccess.GENERIC_WRITE,
        ManagerAccess.CREATE_QUEUE,
    ]
).map(int)
site_masks = st.sampled_from([SiteAccess.GENERIC_ALL, SiteAccess.GENERIC_READ]).map(int)


@given(descriptors(queue_masks))
def test_the_rights_on_a_queue_survive_the_directory(descriptor: Descriptor) -> None:
    (there,) = translate_to_directory(encode(descriptor), QUEUE_RIGHTS)
    assert decode(translate_from_directory(there, QUEUE_RIGHTS)) == descriptor


@given(descriptors(manager_masks))
def test_the_rights_on_a_queue_manager_survive_the_directory(descriptor: Descriptor) -> None:
    (there,) = translate_to_directory(encode(descriptor), MANAGER_RIGHTS)
    assert decode(translate_from_directory(there, MANAGER_RIGHTS)) == descriptor


@given(descriptors(site_masks))
def test_the_rights_on_a_site_survive_the_directory(descriptor: Descriptor) -> None:
    (there,) = translate_to_directory(encode(descriptor), SITE_RIGHTS)
    assert decode(translate_from_directory(there, SITE_RIGHTS)) == descriptor


def test_to_send_is_a_control_access_right() -> None:
    there = directory_descriptor(ace(5, 0x100, ALICE, SEND))
    assert read(there, QUEUE_RIGHTS) == (AccessEntry(ALICE, QueueAccess.WRITE_MESSAGE),)


def test_all_control_access_rights_are_all_that_can_be_done_with_messages() -> None:
    there = directory_descriptor(ace(0, 0x100, ALICE))
    (entry,) = read(there, QUEUE_RIGHTS) or ()
    assert entry.rights == (
        QueueAccess.RECEIVE_MESSAGE
        | QueueAccess.RECEIVE_JOURNAL_MESSAGE
        | QueueAccess.WRITE_MESSAGE
    )


def test_full_control_is_everything() -> None:
    there = directory_descriptor(ace(0, 0x10000000, ALICE))
    assert read(there, QUEUE_RIGHTS) == (AccessEntry(ALICE, QueueAccess.GENERIC_ALL),)


def test_who_may_read_the_entry_may_not_send() -> None:
    there = directory_descriptor(ace(0, 0x20094, ALICE))
    assert read(there, QUEUE_RIGHTS) == (
        AccessEntry(ALICE, QueueAccess.GET_PROPERTIES | QueueAccess.GET_PERMISSIONS),
    )


def test_what_is_only_for_others_below_does_not_count() -> None:
    there = directory_descriptor(ace(0, 0x10000000, ALICE, flags=0x08))
    assert read(there, QUEUE_RIGHTS) == ()


def test_what_is_inherited_is_read_and_not_written_again() -> None:
    there = directory_descriptor(ace(0, 0x20, ALICE), ace(0, 0x10000000, COMPUTER, flags=0x10))
    here = translate_from_directory(there, QUEUE_RIGHTS)
    own = AccessEntry(ALICE, QueueAccess.SET_PROPERTIES)
    above = AccessEntry(COMPUTER, QueueAccess.GENERIC_ALL, is_inherited=True)
    assert decode(here).entries == (own, above)
    assert read(*translate_to_directory(here, QUEUE_RIGHTS), QUEUE_RIGHTS) == (own,)


@pytest.mark.parametrize(
    ("mask", "rights"),
    [
        (0x80000000, QueueAccess.GET_PROPERTIES | QueueAccess.GET_PERMISSIONS),
        (0x40000000, QueueAccess.SET_PROPERTIES | QueueAccess.GET_PERMISSIONS),
    ],
)
def test_generic_rights_stand_for_others(mask: int, rights: QueueAccess) -> None:
    assert read(directory_descriptor(ace(0, mask, ALICE)), QUEUE_RIGHTS) == (
        AccessEntry(ALICE, rights),
    )


def test_what_is_denied_stays_denied() -> None:
    there = directory_descriptor(ace(6, 0x100, ALICE, SEND))
    assert read(there, QUEUE_RIGHTS) == (
        AccessEntry(ALICE, QueueAccess.WRITE_MESSAGE, is_denied=True),
    )


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.8-01",
    "MQDSSM-3.1.6.1.1.8-05",
    "MQDSSM-3.1.6.1.1.8-08",
    "MQDSSM-3.1.6.1.1.8-14",
)
def test_a_computer_may_do_everything_with_its_queue_manager_and_others_may_look() -> None:
    assert read(new_manager(COMPUTER, b"", foreign=False), MANAGER_RIGHTS) == (
        AccessEntry(EVERYBODY, ManagerAccess.WORLD_RIGHTS),
        AccessEntry(COMPUTER, ManagerAccess.GENERIC_ALL),
    )


@pytest.mark.spec("MQDSSM-3.1.6.1.1.8-06")
def test_so_may_the_owner_of_a_given_descriptor() -> None:
    entries = read(new_manager(COMPUTER, ALICE, foreign=False), MANAGER_RIGHTS) or ()
    assert entries[-1] == AccessEntry(ALICE, ManagerAccess.GENERIC_ALL)


@pytest.mark.spec("MQDSSM-3.1.6.1.1.8-09")
def test_everybody_may_create_queues_of_a_foreign_system() -> None:
    entries = read(new_manager(COMPUTER, b"", foreign=True), MANAGER_RIGHTS) or ()
    assert entries[0] == AccessEntry(EVERYBODY, ManagerAccess.GENERIC_WRITE)


@pytest.mark.spec("MQDSSM-3.1.6.1.1.8-04")
def test_a_computer_that_cannot_be_read_gets_no_rights() -> None:
    entries = read(new_manager(b"", b"", foreign=False), MANAGER_RIGHTS)
    assert entries == (AccessEntry(EVERYBODY, ManagerAccess.WORLD_RIGHTS),)


def test_everybody_may_send_to_a_new_queue_and_its_computer_keeps_it() -> None:
    entries = read(new_queue(COMPUTER, b""), QUEUE_RIGHTS) or ()
    assert entries[0] == AccessEntry(EVERYBODY, QueueAccess.GENERIC_WRITE)
    assert entries[1] == AccessEntry(ADMINISTRATORS, QueueAccess.GENERIC_ALL)
    assert entries[2].user == COMPUTER
    assert entries[2].rights & QueueAccess.SET_PROPERTIES
    assert not entries[2].rights & QueueAccess.RECEIVE_MESSAGE


def test_a_user_of_this_computer_is_no_owner_to_the_domain() -> None:
    wanted = encode(Descriptor(unix_user(1000), b"", (AccessEntry(ALICE, 4),)))
    assert decode(new_queue(COMPUTER, wanted)).owner == b""
    wanted = encode(Descriptor(ALICE, b"", (AccessEntry(ALICE, 4),)))
    assert decode(new_queue(COMPUTER, wanted)).owner == ALICE


def test_what_the_creator_of_a_queue_wants_is_kept() -> None:
    only = (AccessEntry(ALICE, QueueAccess.RECEIVE_MESSAGE),)
    entries = read(new_queue(COMPUTER, encode(Descriptor(entries=only))), QUEUE_RIGHTS) or ()
    assert entries[:1] == only
    assert [entry.user for entry in entries[1:]] == [COMPUTER]
    named = (AccessEntry(COMPUTER, QueueAccess.GET_PROPERTIES),)
    assert read(new_queue(COMPUTER, encode(Descriptor(entries=named))), QUEUE_RIGHTS) == named


@given(st.binary(max_size=120))
def test_any_bytes_are_a_descriptor_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        translate_from_directory(data, QUEUE_RIGHTS)


@given(st.integers(0, 200), descriptors(st.just(int(QueueAccess.GENERIC_ALL))))
def test_a_descriptor_that_is_cut_short_is_malformed_or_less(
    size: int, descriptor: Descriptor
) -> None:
    with suppress(Malformed):
        decode(encode(descriptor)[:size])

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.security.access.access import (
    LOCKED,
    MANAGER,
    MANAGER_DEFAULT,
    OWNERS_MAY,
    QUEUE,
    QUEUE_DEFAULT,
    Kind,
    deny,
    grant,
    granted,
    manager_descriptor,
    plain,
    queue_descriptor,
    revoke,
)
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, decode, encode
from openmsmq.security.access.sids import (
    ADMINISTRATORS,
    ANONYMOUS,
    ANONYMOUS_IDENTITIES,
    EVERYONE,
    OWNER_RIGHTS,
    Sid,
    identities,
    unix_group,
    unix_user,
)
from tests.strategies.descriptors import RIGHTS, descriptors, masks, people

ALICE, BOB = unix_user(1), unix_user(2)
kinds = st.sampled_from([QUEUE, MANAGER])
somebody = st.builds(
    lambda user, groups: identities(user, tuple(groups)),
    st.sampled_from([ALICE, BOB, ANONYMOUS]),
    st.sets(st.sampled_from([ADMINISTRATORS, unix_group(3)])),
)


def oracle(descriptor: Descriptor, sids: frozenset[Sid], kind: Kind) -> int:
    """Ask for one right after the other, as the published algorithm does."""
    generic = {1 << 28: kind.everything, 1 << 31: kind.read, 1 << 30: kind.write, 1 << 29: 0}
    found = 0
    for bit in [1 << number for number in range(28)]:
        if not bit & kind.everything:
            continue
        if decides(descriptor, sids, bit, generic):
            found |= bit
    return found


def decides(
    descriptor: Descriptor, sids: frozenset[Sid], bit: int, generic: dict[int, int]
) -> bool:
    if descriptor.entries is None:
        return True
    owner = descriptor.owner in sids
    if owner and bit & 0x60000 and all(each.user != OWNER_RIGHTS for each in descriptor.entries):
        return True
    for entry in descriptor.entries:
        if not (owner if entry.user == OWNER_RIGHTS else entry.user in sids):
            continue
        mask = entry.rights
        for general, meant in generic.items():
            if mask & general:
                mask |= meant
        if mask & bit:
            return not entry.is_denied
    return False


@given(descriptors, somebody, kinds)
def test_the_check_finds_what_asking_for_each_right_finds(
    descriptor: Descriptor, sids: frozenset[Sid], kind: Kind
) -> None:
    assert granted(descriptor, sids, kind) == oracle(descriptor, sids, kind)


@given(descriptors, somebody, kinds)
def test_without_generic_rights_a_descriptor_means_the_same(
    descriptor: Descriptor, sids: frozenset[Sid], kind: Kind
) -> None:
    said = plain(descriptor, kind)
    assert granted(said, sids, kind) == granted(descriptor, sids, kind) or said.owner in sids
    assert said.entries is not None
    assert all(not entry.rights & 0xF0000000 for entry in said.entries)


plain_masks = st.sets(st.sampled_from([right for right in RIGHTS if right < 1 << 28])).map(sum)


@given(descriptors, people, plain_masks)
def test_what_was_just_granted_is_had_unless_another_entry_denies_it(
    descriptor: Descriptor, user: Sid, rights: int
) -> None:
    after = grant(plain(descriptor, QUEUE), user, rights)
    others = [each for each in after.entries or () if each.user != user]
    alone = granted(after, frozenset({user}), QUEUE)
    denied = any(each.is_denied for each in others if each.user == OWNER_RIGHTS)
    inherited = any(each.is_inherited and each.is_denied for each in after.entries or ())
    if user != OWNER_RIGHTS and not denied and not inherited:
        assert rights & QUEUE.everything & ~alone == 0


@given(descriptors, somebody, people, masks)
def test_what_was_just_denied_nobody_has_who_is_that_user(
    descriptor: Descriptor, sids: frozenset[Sid], user: Sid, rights: int
) -> None:
    before = plain(descriptor, QUEUE)
    after = deny(before, user, QUEUE.specific(rights))
    if user in sids and after.owner not in sids:
        assert granted(after, sids, QUEUE) & QUEUE.specific(rights) == 0


@given(descriptors, people)
def test_who_has_nothing_by_name_is_not_named(descriptor: Descriptor, user: Sid) -> None:
    after = revoke(plain(descriptor, QUEUE), user, 0xFFFFFFFF)
    assert all(entry.user != user for entry in after.entries or ())


@given(descriptors, people, masks)
def test_after_a_change_the_entries_that_deny_come_first(
    descriptor: Descriptor, user: Sid, rights: int
) -> None:
    for change in (grant, deny, revoke):
        changed = change(plain(descriptor, QUEUE), user, rights).entries or ()
        own = [entry.is_denied for entry in changed if not entry.is_inherited]
        assert own == sorted(own, reverse=True)


def test_an_owner_reads_and_sets_permissions_whatever_the_list_says() -> None:
    nothing = Descriptor(ALICE, b"", (AccessEntry(ALICE, QUEUE.everything, is_denied=True),))
    assert granted(nothing, identities(ALICE), QUEUE) == OWNERS_MAY
    assert granted(nothing, identities(BOB), QUEUE) == 0
    bound = Descriptor(ALICE, b"", (AccessEntry(OWNER_RIGHTS, 4),))
    assert granted(bound, identities(ALICE), QUEUE) == 4


def test_without_a_list_everybody_may_do_everything_and_with_an_empty_one_nobody() -> None:
    assert granted(Descriptor(), ANONYMOUS_IDENTITIES, QUEUE) == QUEUE.everything
    assert granted(Descriptor(entries=()), ANONYMOUS_IDENTITIES, QUEUE) == 0


# What new objects have.


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.3.1-14",
    "MQDMPR-3.1.7.1.3.1-15",
    "MQDMPR-3.1.7.1.3.1-17",
    "MQDMPR-3.1.7.1.3.1-11",
    "MQDMPR-3.1.7.1.3.1-13",
)
def test_to_a_new_queue_everybody_sends_and_its_owner_does_everything() -> None:
    new = queue_descriptor(ALICE)
    assert granted(new, identities(ALICE), QUEUE) == QueueAccess.GENERIC_ALL
    world = QueueAccess.GET_PROPERTIES | QueueAccess.GET_PERMISSIONS | QueueAccess.WRITE_MESSAGE
    assert granted(new, identities(BOB), QUEUE) == world
    assert granted(new, ANONYMOUS_IDENTITIES, QUEUE) == world
    admins = identities(BOB, (ADMINISTRATORS,))
    assert granted(new, admins, QUEUE) == QueueAccess.GENERIC_ALL


def test_of_a_new_queue_manager_others_see_only_its_properties() -> None:
    new = manager_descriptor()
    assert granted(new, identities(BOB), MANAGER) == ManagerAccess.WORLD_RIGHTS
    admins = identities(BOB, (ADMINISTRATORS,))
    assert granted(new, admins, MANAGER) == ManagerAccess.GENERIC_ALL


@pytest.mark.spec("MQDMPR-3.1.7.1.3.1-18")
def test_the_defaults_are_kept_as_bytes() -> None:
    assert decode(QUEUE_DEFAULT) == queue_descriptor()
    assert decode(MANAGER_DEFAULT) == manager_descriptor()
    assert encode(manager_descriptor()) == MANAGER_DEFAULT


@pytest.mark.parametrize("kind", [QUEUE, MANAGER])
def test_what_nobody_understands_is_open_to_administrators_only(kind: Kind) -> None:
    assert granted(LOCKED, identities(BOB, (ADMINISTRATORS,)), kind) == kind.everything
    assert granted(LOCKED, identities(BOB), kind) == 0
    assert granted(LOCKED, frozenset({EVERYONE}), kind) == 0

"""All objects are made of all entries; lists are found among groups; changes are differences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.topology import DistributionList, Site
from openmsmq.runtime.active_directory.mapping.entries import Entry, Malformed
from openmsmq.runtime.active_directory.mapping.image import Entries, changes_between, read_all
from openmsmq.runtime.active_directory.mapping.lists import (
    alias_attributes,
    group_attributes,
    is_alias,
    lists_among,
    read_alias,
    read_group,
)
from tests.unit.runtime.active_directory.as_served import (
    MANAGER_NAME,
    ROOT,
    SELF,
    computer,
    manager_entry,
    served,
    without,
)

QUEUE = Guid(b"Q" * 16)
ALIAS = Guid(b"A" * 16)
PERSON = Guid(b"P" * 16)


def identifier(number: int) -> Guid:
    return Guid(number.to_bytes(16, "little"))


def group(number: int, *members: Guid) -> Entry:
    values = tuple(f"<GUID={member}>".encode() for member in members)
    name = f"CN=g{number},CN=Users,{ROOT}"
    return served(name, "group", {"member": values}, identifier(number))


def found_lists(*groups: Entry) -> set[Guid]:
    return set(lists_among({entry.identifier: entry for entry in groups}, {QUEUE}, {ALIAS}))


def test_a_group_of_queues_aliases_and_lists_is_a_list() -> None:
    inner, outer = group(1, QUEUE, ALIAS), group(2, identifier(1), QUEUE)
    assert found_lists(inner, outer) == {inner.identifier, outer.identifier}


@pytest.mark.spec("MQDSSM-3.1.6.9-07", "MQDSSM-3.1.6.9-08")
def test_a_group_with_somebody_in_it_is_no_list_nor_is_what_contains_it() -> None:
    assert found_lists(group(1, QUEUE, PERSON), group(2, identifier(1), QUEUE)) == set()


def test_an_empty_group_is_no_list() -> None:
    assert found_lists(group(1)) == set()


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=5))
def test_lists_that_contain_each_other_end(members: list[list[int]]) -> None:
    # 0 is a queue, the others are groups, some of which are not there.
    groups = [
        group(number, *(QUEUE if member == 0 else identifier(member) for member in inside))
        for number, inside in enumerate(members, 1)
    ]
    lists = found_lists(*groups)
    for entry in groups:
        is_list = bool(entry.references("member")) and all(
            member == QUEUE or member in lists for member in entry.references("member")
        )
        assert (entry.identifier in lists) == is_list


def test_an_alias_is_a_list_of_one() -> None:
    alias = DistributionList(
        identifier=SELF,
        name="orders",
        members=("DIRECT=OS:qm1\\private$\\orders",),
        directory_name=f"CN=orders,CN=Users,{ROOT}",
    )
    entry = served(alias.directory_name, "msMQ-Custom-Recipient", alias_attributes(alias))
    assert is_alias(alias)
    assert read_alias(entry) == alias


def test_a_list_names_queues_and_lists_by_their_format_names() -> None:
    value = DistributionList(
        identifier=identifier(1), name="g1", members=(f"PUBLIC={QUEUE}", f"DL={ALIAS}"),
        directory_name=f"CN=g1,CN=Users,{ROOT}",
    )  # fmt: skip
    assert not is_alias(value)
    entry = served(value.directory_name, "group", group_attributes(value), value.identifier)
    assert read_group(entry, {QUEUE}) == value


def test_an_alias_stands_for_one_queue_only() -> None:
    with pytest.raises(Malformed, match="one queue, not 2"):
        alias_attributes(DistributionList(identifier=SELF, name="a", members=("DL=x", "DL=y")))


def test_a_name_that_is_nearly_one_of_a_queue_is_that_of_an_alias() -> None:
    assert is_alias(DistributionList(identifier=SELF, name="a", members=("PUBLIC=rubbish",)))


def test_a_direct_name_is_no_member_of_a_group() -> None:
    value = DistributionList(
        identifier=SELF, name="l", members=(f"PUBLIC={QUEUE}", "DIRECT=OS:x\\private$\\y")
    )
    with pytest.raises(Malformed, match="make an alias"):
        group_attributes(value)


def test_a_bad_entry_costs_only_itself() -> None:
    good = served(f"CN=good,{MANAGER_NAME}", "mSMQQueue", {}, identifier(1))
    bad = served(f"CN=bad,{MANAGER_NAME}", "mSMQQueue", {}, identifier(2), mSMQPrivacyLevel=b"9")
    reading = read_all(Entries([manager_entry(), computer(), good, bad]), ROOT)
    assert (ObjectKind.QUEUE, good.identifier) in reading.objects
    assert (ObjectKind.QUEUE, bad.identifier) not in reading.objects
    assert len(reading.problems) == 1
    assert "CN=bad" in reading.problems[0]


@pytest.mark.spec("MQDSSM-3.1.6.11.1-08", "MQDSSM-3.1.6.11.2-07")
def test_without_its_computer_nothing_is_made_of_a_queue_manager() -> None:
    queue = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, identifier(1))
    reading = read_all(Entries([manager_entry(), queue]), ROOT)
    assert reading.objects == {}
    assert len(reading.problems) == 2


def test_an_account_without_certificates_is_no_user_of_ours() -> None:
    alice = served(f"CN=alice,CN=Users,{ROOT}", "user", {}, objectSid=b"\1" * 12)
    assert read_all(Entries([alice]), ROOT).objects == {}
    assert read_all(Entries([without(alice, "objectSid")]), ROOT).problems == ()


def test_what_is_gone_comes_first() -> None:
    def site(number: int, name: str) -> Site:
        return Site(identifier=identifier(number), name=name)

    old = {(ObjectKind.SITE, identifier(n)): site(n, "old") for n in (1, 2, 3)}
    new = {(ObjectKind.SITE, identifier(n)): site(n, "old") for n in (2,)}
    new |= {(ObjectKind.SITE, identifier(n)): site(n, "new") for n in (3, 4)}
    assert changes_between(old, new) == (
        Removal(ObjectKind.SITE, identifier(1)),
        site(3, "new"),
        site(4, "new"),
    )

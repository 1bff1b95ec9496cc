"""Copies of a directory: what they number, what they tell others, and what they cost."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api.directory import ObjectRow
from openmsmq.directory.codec import decode_object, encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.limits import DIRECTORY_REMOVED_MAX_COUNT
from openmsmq.directory.rows import changes_in
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.directory import (
    NOWHERE,
    Change,
    DirectoryChanges,
    ObjectKind,
    Position,
    Removal,
)
from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import DistributionList, QueueManagerInfo, Site
from openmsmq.storage.memory import MemoryStore


class Place:
    """A copy with its disk."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.start()

    def start(self) -> None:
        self.ledger = Ledger()
        self.copy = DirectoryCopy(self.ledger, self.store)

    def settle(self, *, has_room: bool = True) -> int:
        """Let the disk have what there is; gives how many records that were."""
        persist = self.ledger.seal()
        if persist is None:
            return 0
        if has_room:
            self.store.commit(persist.batch)
            self.ledger.settle(persist.ticket)
        else:
            self.ledger.revoke(persist.ticket, InsufficientResources("full"))
        return len(persist.batch.changes)

    def write(self, *changes: Change) -> None:
        self.copy.write(changes)
        self.settle()

    def look_at(self, other: Place) -> list[Change]:
        real = self.copy.take(other.copy.since(self.copy.position))
        self.settle()
        return real


@pytest.fixture
def original() -> Place:
    place = Place()
    place.copy.found(guid(100), [named(1, "first"), named(2, "second")])
    place.settle()
    return place


def guid(number: int) -> Guid:
    return Guid(bytes([number]) * 16)


def named(number: int, name: str) -> DistributionList:
    return DistributionList(identifier=guid(number), name=name)


def gone(number: int) -> Removal:
    return Removal(ObjectKind.LIST, guid(number))


def copied(original: Place) -> Place:
    place = Place()
    place.look_at(original)
    return place


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([named(1, "other")], [named(1, "first")], id="to and fro"),
        pytest.param([named(3, "third")], [gone(3)], id="come and gone"),
        pytest.param([gone(1)], [named(1, "first")], id="gone and come"),
    ],
)
def test_who_slept_meanwhile_tells_others_what_he_did_not_notice_himself(
    original: Place, before: list[Change], after: list[Change]
) -> None:
    sleeper, watcher = copied(original), copied(original)
    original.write(*before)
    watcher.look_at(original)
    original.write(*after)
    assert sleeper.look_at(original) == []
    watcher.look_at(sleeper)
    assert watcher.copy.image == original.copy.image
    sleeper.start()
    assert watcher.copy.position == sleeper.copy.position == original.copy.position


def test_who_read_everything_again_lets_others_do_so_too(original: Place) -> None:
    sleeper, watcher = copied(original), copied(original)
    original.write(named(3, "third"))
    watcher.look_at(original)
    original.copy.removed_max = 0
    original.write(gone(3))
    original.copy.removed_max = DIRECTORY_REMOVED_MAX_COUNT
    assert original.copy.since(sleeper.copy.position).is_complete
    sleeper.look_at(original)
    watcher.look_at(sleeper)
    assert watcher.copy.image == original.copy.image


def test_a_server_that_is_behind_changes_nothing(original: Place) -> None:
    late, early = copied(original), copied(original)
    original.write(gone(1), named(2, "new"))
    early.look_at(original)
    assert early.look_at(late) == []
    assert early.copy.position == original.copy.position
    assert early.copy.image == original.copy.image


def test_a_server_that_has_nothing_is_not_believed(original: Place) -> None:
    place = copied(original)
    assert place.copy.take(DirectoryChanges(NOWHERE, (), is_complete=True)) == []
    assert place.copy.image == original.copy.image


def test_an_original_that_went_back_is_followed(original: Place) -> None:
    backup = original.store.crash()
    original.write(named(3, "third"), gone(1))
    place = copied(original)
    original.store = backup
    original.start()
    place.look_at(original)
    assert place.copy.image == original.copy.image
    original.write(named(4, "fourth"))
    place.look_at(original)
    assert place.copy.image == original.copy.image


def test_another_directory_takes_the_place_of_the_first(original: Place) -> None:
    for name in ("other", "second"):
        original.write(named(2, name))
    place, watcher = copied(original), copied(original)
    original.write(gone(1))
    watcher.look_at(original)
    anew = Place()
    anew.copy.found(guid(101), [named(2, "second"), named(9, "ninth")])
    anew.settle()
    place.look_at(anew)
    place.start()
    assert place.copy.image == anew.copy.image
    # Nothing of the old numbers is left, so a look that brings nothing costs nothing.
    assert place.copy.since(anew.copy.position).changes == ()
    watcher.look_at(place)
    assert watcher.copy.image == anew.copy.image


def test_a_refused_batch_leaves_no_trace(original: Place) -> None:
    before, position = original.copy.image, original.copy.position
    original.write(gone(2))
    for undone in range(2):
        original.copy.write([gone(1), named(3, "third")])
        original.copy.write([named(1, "again"), named(2, "again")])
        assert len(original.copy.since(NOWHERE).changes) == 3
        original.settle(has_room=False)
        told = original.copy.since(position)
        assert told.changes == (gone(2),), undone
        assert original.copy.image == before.changed([gone(2)])
        everything = original.copy.since(NOWHERE)
        assert DirectoryImage(everything.changes) == original.copy.image  # type: ignore[arg-type]
    again = DirectoryCopy(Ledger(), original.store)
    assert (again.image, again.position) == (original.copy.image, original.copy.position)


def test_what_a_refused_batch_forgot_is_known_again(original: Place) -> None:
    position = original.copy.position
    original.write(gone(1))
    original.copy.removed_max = 1
    original.copy.write([gone(2)])
    original.copy.removed_max = DIRECTORY_REMOVED_MAX_COUNT
    assert original.copy.since(position).is_complete
    original.settle(has_room=False)
    assert original.copy.since(position).changes == (gone(1),)


def test_a_look_that_brings_nothing_writes_nothing(original: Place) -> None:
    place = copied(original)
    told = original.copy.since(place.copy.position)
    assert told == DirectoryChanges(original.copy.position)
    place.copy.take(told)
    assert place.settle() == 0
    # Active Directory may tell everything again.
    place.copy.take(original.copy.since(NOWHERE))
    assert place.settle() == 0


def test_a_change_stores_only_what_changed(original: Place) -> None:
    place = copied(original)
    original.copy.write([named(number, f"{number}") for number in range(3, 200)])
    assert original.settle() == 198
    place.look_at(original)
    original.copy.write([named(3, "3 new"), named(4, "4")])
    assert original.settle() == 2
    place.copy.take(original.copy.since(place.copy.position))
    assert place.settle() == 2


def test_removals_are_remembered_up_to_a_limit(original: Place) -> None:
    count = DIRECTORY_REMOVED_MAX_COUNT + 1
    lists = [
        DistributionList(identifier=Guid(number.to_bytes(16, "big")), name=f"{number}")
        for number in range(1, count + 1)
    ]
    original.write(*lists)
    position = original.copy.position
    original.write(*(Removal(ObjectKind.LIST, each.identifier) for each in lists[1:]))
    assert not original.copy.since(position).is_complete
    original.write(Removal(ObjectKind.LIST, lists[0].identifier))
    assert original.copy.since(position).is_complete
    original.start()
    assert original.copy.since(position).is_complete


def test_answers_have_one_order(original: Place) -> None:
    original.write(*(named(number, f"{number}") for number in (9, 5, 7)))
    original.write(named(5, "five"), gone(1))
    for position in (NOWHERE, Position(guid(100), 1)):
        first = original.copy.since(position)
        again = DirectoryCopy(Ledger(), original.store).since(position)
        assert first == again
        assert [each.identifier for each in first.changes] == sorted(
            each.identifier for each in first.changes
        )


def test_the_store_numbers_kinds_as_ever(original: Place) -> None:
    """Whoever changes this order makes all stores unreadable."""
    original.write(Site(identifier=guid(7), name="site"))
    assert original.store.get(b"G\x01" + guid(7)) is not None
    assert original.store.get(b"G\x07" + guid(1)) is not None


def test_of_two_with_one_name_all_copies_find_the_same() -> None:
    managers = [QueueManagerInfo(identifier=guid(each), computer_name="TWIN") for each in (2, 1)]
    queues = [
        QueueProperties(
            identifier=guid(each), path_name=r"TWIN\q", kind=QueueKind.PUBLIC, manager=guid(1)
        )
        for each in (4, 3)
    ]
    for order in (1, -1):
        image = DirectoryImage([*managers[::order], *queues[::order]])
        manager, queue = image.manager_named("twin"), image.queue_at("TWIN", "Q")
        assert manager is not None
        assert queue is not None
        assert (manager.identifier, queue.identifier) == (guid(1), guid(3))


def test_images_share_what_does_not_change() -> None:
    before = DirectoryImage([named(1, "one"), Site(identifier=guid(2), name="site")])
    after = before.changed([named(3, "three"), gone(1)])
    assert after.routes_like(before)
    assert not before.changed([Site(identifier=guid(4), name="other")]).routes_like(before)
    assert (len(before.lists), len(after.lists)) == (1, 1)
    assert guid(1) in before.lists
    assert guid(3) not in before.lists


def test_an_object_that_was_cut_or_goes_on_is_refused() -> None:
    whole = encode_object(Site(identifier=guid(2), name="site"))
    assert decode_object(ObjectKind.SITE, whole)
    for data in (*(whole[:size] for size in range(len(whole))), whole + b"\0", whole * 2):
        with pytest.raises(ValueError, match="not a site of a directory"):
            decode_object(ObjectKind.SITE, data)


@given(kind=st.sampled_from(ObjectKind), data=st.binary(min_size=1, max_size=200))
def test_bytes_that_are_no_object_are_refused(kind: ObjectKind, data: bytes) -> None:
    try:
        value = decode_object(kind, data)
    except ValueError:
        return
    # Few bytes are an object by chance; then they are the whole of it.
    assert encode_object(value)
    assert decode_object(kind, encode_object(value)) == value


@given(
    kind=st.one_of(st.sampled_from([kind.value for kind in ObjectKind]), st.text(max_size=8)),
    identifier=st.binary(max_size=20),
    fields=st.dictionaries(
        st.sampled_from(["identifier", "name", "members", "sites", "cost", "quota_kb", "label"]),
        st.one_of(
            st.none(),
            st.integers(-(2**63), 2**64 - 1),
            st.binary(max_size=20),
            st.text(max_size=5),
            st.lists(st.integers(0, 5), max_size=3),
        ),
    ),
)
def test_rows_that_are_no_change_are_refused(
    kind: str, identifier: bytes, fields: dict[str, object]
) -> None:
    row = ObjectRow(kind, identifier, msgspec.msgpack.encode(fields))
    try:
        (found,) = changes_in([row])
    except MsmqError:
        return
    assert found.identifier == identifier

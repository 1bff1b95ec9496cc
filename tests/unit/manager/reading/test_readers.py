"""Readers by arrival number: which query reads under a name, how far, and whether it lives."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.limits import (
    EPOCHS_MAX_COUNT,
    READER_NAME_MAX_BYTES,
    READER_QUIET_S,
    READERS_MAX_COUNT,
)
from openmsmq.storage import records
from tests.unit.manager.office import ORDERS, Office

READER = "stream"
EVERYTHING = 1 << 56
SHARING = "MQ_ERROR_SHARING_VIOLATION"


@pytest.fixture
def office() -> Office:
    found = Office()
    found.send(b"one", b"two", b"three")
    return found


def reserve(
    office: Office, checkpoint: str, start: int = 0, app: int | None = None, **wishes: Any
) -> api.Reserved:
    wishes = {"reader": READER, "holder": checkpoint} | wishes
    handle = office.open(app=app)
    reply = office.ok(api.Reserve(handle, start=start, checkpoint=checkpoint, **wishes), app)
    assert isinstance(reply, api.Reserved)
    return reply


def fetch(office: Office, checkpoint: str, start: int = 0, stop: int = EVERYTHING) -> Any:
    request = api.FetchPackets(office.open(), start, stop, reader=READER, checkpoint=checkpoint)
    return office.ask(request)


def stop_of(office: Office) -> int:
    """Where what is reserved ends."""
    return int(office.ok(api.GetQueue(ORDERS)).queues[0].reserved_stop)


def complete(office: Office, checkpoint: str, stop: int = EVERYTHING, **wishes: Any) -> Any:
    return office.ask(api.Complete(office.open(), READER, stop, checkpoint, **wishes))


def kept(office: Office) -> records.ReservationRecord:
    """What of the reservation is on the disk."""
    rows = office.driver.node.store.scan(*records.kind_range(b"R"), 9)
    return records.decode_record(rows[0][1], records.ReservationRecord)


def known(office: Office) -> dict[str, records.ReaderRecord]:
    """What of the readers is on the disk."""
    rows = office.driver.node.store.scan(*records.kind_range(b"L"), 9)
    return records.decode_readers(rows[0][1]) if rows else {}


# Read or not.


@pytest.mark.parametrize("restart", [False, True])
def test_what_nobody_has_fetched_for_the_checkpoint_is_not_completed(
    office: Office, restart: bool
) -> None:
    stop = reserve(office, "T").stop
    office.ok(api.FetchRange(office.open(), 0, stop))
    office.ok(api.FetchPackets(office.open(), 0, stop))
    if restart:
        office.restart()
    assert complete(office, "T", stop) == api.Completed(0, False, unread=True)
    assert isinstance(fetch(office, "T", 0, stop), api.Packets)
    assert kept(office).is_read
    if restart:
        office.restart()
    assert complete(office, "T", stop) == api.Completed(3, False)


@pytest.mark.parametrize("restart", [False, True])
def test_a_batch_that_was_read_is_not_planned_once_more_with_others_in_it(
    office: Office, restart: bool
) -> None:
    """The checkpoint is older by this one batch: its output may have the number already."""
    stop = reserve(office, "T").stop
    # Nothing was read: the plan was lost with the driver, and is made again, with more in it.
    office.send(b"four")
    stop = reserve(office, "T").stop
    fetch(office, "T", 0, stop)
    office.send(b"five")
    if restart:
        office.restart()
    for start in (0, stop - 1):
        again = api.Reserve(office.open(), READER, start, checkpoint="T", holder="T")
        assert "Put the newer checkpoint back" in office.ask(again).detail
    assert stop_of(office) == stop
    assert complete(office, "T", stop).count == 4
    assert complete(office, "T").count == 0
    assert reserve(office, "T", stop).stop > stop


def test_messages_are_handed_out_when_it_is_on_the_disk_that_they_are(office: Office) -> None:
    stop = reserve(office, "T").stop
    handle, node = office.open(), office.driver.node
    request = api.FetchPackets(handle, 0, stop, reader=READER, checkpoint="T")
    calls = [office.driver.request(office.app, request)]
    [persist] = node.take()
    # Another task comes while the first one waits for the disk.
    calls.append(office.driver.request(office.app, request))
    node.take()
    assert not any((office.app, call) in node.answers for call in calls)
    node.commit(persist, office.driver.now)
    office.driver.pump()
    answers = office.driver.take_answers()
    assert all(isinstance(answers[office.app, call], api.Packets) for call in calls)


def test_a_disk_that_refuses_leaves_messages_unread(office: Office) -> None:
    stop = reserve(office, "T").stop
    request = api.FetchPackets(office.open(), 0, stop, reader=READER, checkpoint="T")
    assert office.fail(request) == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert complete(office, "T", stop).unread
    assert isinstance(office.ask(request), api.Packets)
    assert complete(office, "T", stop).count == 3


def test_unread_messages_are_completed_for_who_wants_that(office: Office) -> None:
    reserve(office, "T")
    assert complete(office, "T", unread_too=True) == api.Completed(3, False)


def test_what_is_behind_a_completed_batch_is_unread(office: Office) -> None:
    stop = reserve(office, "T", count=1).stop
    reserve(office, "T")
    fetch(office, "T", 0, stop)
    assert complete(office, "T", stop) == api.Completed(1, False)
    assert complete(office, "T").unread
    fetch(office, "T", stop, stop_of(office))
    assert complete(office, "T") == api.Completed(2, False)


def test_a_range_without_messages_needs_no_reader(office: Office) -> None:
    stop = reserve(office, "T", count=1).stop
    fetch(office, "T", 0, stop)
    assert complete(office, "T", stop).count == 1
    assert complete(office, "T", stop) == api.Completed(0, False)


def test_a_batch_whose_messages_were_lost_needs_no_reader() -> None:
    """Express messages do not survive a restart, and those behind them belong to a later batch."""
    office = Office()
    office.send(b"express", recoverable=False)
    office.send(b"recoverable")
    stop = reserve(office, "T", count=1).stop
    reserve(office, "T")
    office.restart()
    assert complete(office, "T", stop) == api.Completed(0, False)
    assert complete(office, "T").unread


def test_readers_without_a_checkpoint_complete_as_ever(office: Office) -> None:
    handle = office.open()
    stop = office.ok(api.Reserve(handle, READER, 0)).stop
    assert office.ok(api.Complete(handle, READER, stop)) == api.Completed(3, False)
    assert known(office) == {}


def test_a_reservation_of_an_older_version_counts_as_read(office: Office) -> None:
    stop = office.ok(api.Reserve(office.open(), READER, 0)).stop
    office.restart()
    assert reserve(office, "T", stop).stop == stop
    assert complete(office, "T", stop) == api.Completed(3, False)


# Which query.


def test_a_new_query_takes_over_what_nobody_has_read(office: Office) -> None:
    [first, *_] = sorted(lookup & records.ARRIVAL_MASK for lookup in office.lookup_ids())
    reserve(office, "T", first + 1)
    office.restart()
    office.send(b"four")
    assert reserve(office, "U", 0, is_new=True, count=1).stop == first + 1
    assert kept(office).checkpoint == known(office)[READER].checkpoint == "U"
    assert len(office.bodies()) == 3, "what the new query did not want is not free"
    assert office.error(api.Complete(office.open(), READER, EVERYTHING, "T")) == SHARING
    again = api.Reserve(office.open(), READER, 0, checkpoint="T", holder="U")
    assert office.error(again) == SHARING


def test_a_new_query_does_not_get_what_another_has_read(office: Office) -> None:
    fetch_stop = reserve(office, "T").stop
    fetch(office, "T", 0, stop_of(office))
    office.restart()
    request = api.Reserve(office.open(), READER, 0, checkpoint="U", is_new=True)
    assert office.error(request) == SHARING
    assert complete(office, "T", fetch_stop).count == 3
    assert office.ok(request).stop == 0


def test_a_query_that_has_read_before_does_not_take_over(office: Office) -> None:
    reserve(office, "T")
    office.restart()
    assert office.error(api.Reserve(office.open(), READER, 0, checkpoint="U")) == SHARING


def test_tasks_do_not_get_what_is_reserved_for_others(office: Office) -> None:
    stop = reserve(office, "T").stop
    for reader, checkpoint in (("other", "T"), (READER, "U")):
        request = api.FetchPackets(office.open(), 0, stop, reader=reader, checkpoint=checkpoint)
        assert office.error(request) == SHARING


def test_a_task_that_comes_late_gets_nothing(office: Office) -> None:
    """The numbers may be those of other messages by now, in a store that was put back."""
    stop = reserve(office, "T", count=1).stop
    assert isinstance(fetch(office, "T", 0, stop), api.Packets)
    for start, end in ((0, stop + 1), (stop, stop + 1)):
        assert isinstance(fetch(office, "T", start, end), api.Failed)
    complete(office, "T", stop)
    assert isinstance(fetch(office, "T", 0, stop), api.Failed)


def test_one_query_at_a_time_lives_under_a_name(office: Office) -> None:
    second = office.driver.connect()
    reserve(office, "T", is_new=True)
    refused = reserve(office, "U", app=second, is_new=True)
    assert (refused.stop, "another query that runs" in refused.held) == (0, True)
    same = reserve(office, "T", app=second, holder="another process")
    assert "from the same checkpoint" in same.held
    # The same process, on a new connection: the queue manager has not noticed the end of the old.
    assert reserve(office, "T", app=second).held == ""
    office.driver.lose(office.app)
    office.app = second
    assert reserve(office, "T", app=office.driver.connect(), holder="another").held
    office.driver.lose(second)
    office.app = office.driver.connect()
    assert reserve(office, "U", is_new=True).held == ""


@pytest.mark.parametrize("sign", ["none", "fetch", "complete", "reserve"])
def test_a_query_of_which_nothing_is_heard_for_long_may_be_followed(
    office: Office, sign: str
) -> None:
    """Its computer may have lost power: then nobody ends its connection."""
    second = office.driver.connect()
    reserve(office, "T", is_new=True)
    office.pass_time(READER_QUIET_S)
    assert reserve(office, "U", app=second, is_new=True).held
    if sign == "fetch":
        fetch(office, "T", 0, stop_of(office))
    elif sign == "complete":
        complete(office, "T")
    elif sign == "reserve":
        reserve(office, "T")
    office.pass_time(1)
    refused = reserve(office, "T", app=second, holder="on another computer").held
    assert bool(refused) == (sign != "none")


def test_releasing_a_queue_lets_another_query_follow_at_once(office: Office) -> None:
    second = office.driver.connect()
    reserve(office, "T", is_new=True)
    office.ok(api.Release(ORDERS))
    assert reserve(office, "U", app=second).held == ""


def test_a_query_that_begins_below_what_it_has_completed_is_told_so(office: Office) -> None:
    stop = reserve(office, "T", count=2).stop
    fetch(office, "T", 0, stop)
    assert complete(office, "T", stop).count == 2
    office.restart()
    assert reserve(office, "T") == api.Reserved(0, stop)
    assert office.bodies() == [b"three"], "it has reserved something"
    assert reserve(office, "T", stop).stop == stop + 1


def test_releasing_a_queue_forgets_its_reader(office: Office) -> None:
    reserve(office, "T")
    fetch(office, "T", 0, stop_of(office))
    office.ok(api.Release(ORDERS))
    assert known(office) == {}
    assert reserve(office, "U", holder="T").stop > 0
    complete(office, "U", unread_too=True)
    assert known(office)[READER].checkpoint == "U"
    office.ok(api.Release(ORDERS))
    assert known(office) == {}


def test_a_deleted_queue_takes_its_readers_with_it(office: Office) -> None:
    reserve(office, "T")
    office.ok(api.DeleteQueue(ORDERS))
    assert known(office) == {}


def test_a_disk_that_refuses_changes_nothing_about_readers(office: Office) -> None:
    request = api.Reserve(office.open(), READER, 0, checkpoint="T", holder="T")
    office.fail(request)
    assert known(office) == {}
    assert reserve(office, "U", holder="T").stop > 0, "another checkpoint is remembered"


def test_readers_that_were_not_used_for_longest_are_forgotten(office: Office) -> None:
    for number in range(READERS_MAX_COUNT + 1):
        office.pass_time(1)
        name = f"reader {number}"
        assert reserve(office, "T", reader=name, holder=name).stop
        office.ok(api.Complete(office.open(), name, EVERYTHING, "T", unread_too=True))
        office.send(b"more")
    assert set(known(office)) == {f"reader {number}" for number in range(1, READERS_MAX_COUNT + 1)}


@pytest.mark.parametrize("name", ["x" * (READER_NAME_MAX_BYTES + 1), "a\nb"])
def test_a_checkpoint_has_a_name_that_can_be_printed(office: Office, name: str) -> None:
    request = api.Reserve(office.open(), READER, 0, checkpoint=name)
    assert office.error(request) == "MQ_ERROR_INVALID_PARAMETER"


# Lives.


def lives(office: Office) -> list[api.Epoch]:
    found = office.ok(api.GetEpochs()).epochs
    assert isinstance(found, list)
    return found


def test_each_start_is_a_life_that_begins_where_the_numbers_go_on(office: Office) -> None:
    [first] = lives(office)
    given = office.ok(api.GetQueue(ORDERS)).queues[0].last_arrival_number
    office.restart()
    assert lives(office)[0] == first
    assert lives(office)[1].identifier != first.identifier
    assert lives(office)[1].first > given
    assert lives(office) == lives(office)


def test_a_place_of_a_life_that_the_store_does_not_know_is_refused(office: Office) -> None:
    [life] = lives(office)
    place = life.first + 1
    for request in (api.Reserve(1, READER, place), api.Measure(1, place)):
        for epoch, is_good in ((life.identifier, True), ("", True), ("lost", False)):
            office.driver.crash(committed=True)
            office.app = office.driver.connect()
            assert office.open() == 1
            reply = office.ask(msgspec.structs.replace(request, epoch=epoch))
            assert isinstance(reply, api.Failed) != is_good, (request, epoch)


def test_a_bounded_number_of_lives_is_remembered(office: Office) -> None:
    for _ in range(EPOCHS_MAX_COUNT + 2):
        office.restart()
    found = lives(office)
    assert len(found) == EPOCHS_MAX_COUNT
    assert len({life.identifier for life in found}) == EPOCHS_MAX_COUNT

"""Pages of queues: which fit, in which order, what they hold, and who may see them."""

from __future__ import annotations

import fnmatch
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.model.limits import QUEUE_FILTER_MAX_CHARACTERS, QUEUE_PAGE_MAX_COUNT
from openmsmq.model.queue import AccessMode, QueueOrder, QueueRole
from openmsmq.security.access.callers import Scope, token_caller
from openmsmq.security.access.sids import ADMINISTRATORS
from tests.strategies.messages import Draft
from tests.unit.manager.access_cases import ALICE, only
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

NAMES = ["alpha", "Beta", "gamma-1", "gamma-2", "delta"]


@pytest.fixture
def office() -> Office:
    found = Office()
    for name in NAMES:
        found.ok(api.CreateQueue(rf"private$\{name}"))
    return found


def names(office: Office, app: int | None = None, **wishes: Any) -> list[str]:
    page = office.ok(api.PageQueues(**wishes), app)
    return [found.path_name.removeprefix("private$\\") for found in page.queues]


def the(office: Office, name: str = ORDERS) -> api.QueueStatus:
    (found,) = office.ok(api.GetQueue(name)).queues
    assert isinstance(found, api.QueueStatus)
    return found


def test_queues_of_applications_stand_by_name_whatever_their_case(office: Office) -> None:
    assert names(office) == ["alpha", "Beta", "delta", "gamma-1", "gamma-2", "ledger", "orders"]
    assert names(office, descending=True) == names(office)[::-1]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("gamma", ["gamma-1", "gamma-2"]),
        ("GAMMA-2", ["gamma-2"]),
        (r"private$\beta", ["Beta"]),
        (r"private$\*-?", ["gamma-1", "gamma-2"]),
        ("*-[!1]", ["gamma-2"]),
        ("gamma*", []),
        ("nothing", []),
    ],
)
def test_a_part_of_a_name_or_a_pattern_for_all_of_it_fits(
    office: Office, filter: str, found: list[str]
) -> None:
    assert names(office, filter=filter) == found


@given(st.text("ab*?[]!-\\", max_size=6), st.lists(st.text("ab-", min_size=1, max_size=4)))
def test_patterns_mean_what_they_mean_for_files(pattern: str, given_: list[str]) -> None:
    office = Office()
    for name in set(given_):
        office.ok(api.CreateQueue(rf"private$\{name}"))
    there = {ORDERS, LEDGER, *(rf"private$\{name}" for name in given_)}
    if set(pattern) & set("*?["):
        fitting = {name for name in there if fnmatch.fnmatchcase(name, pattern)}
    else:
        fitting = {name for name in there if pattern in name}
    page = office.ok(api.PageQueues(pattern))
    assert [found.path_name for found in page.queues] == sorted(fitting)
    assert page.total_count == len(fitting)


def test_pages_follow_each_other_and_say_how_many_fit(office: Office) -> None:
    pages = [office.ok(api.PageQueues(offset=at, limit=3)) for at in (0, 3, 6, 9)]
    assert [len(page.queues) for page in pages] == [3, 3, 1, 0]
    assert {page.total_count for page in pages} == {7}
    together = [found.path_name for page in pages for found in page.queues]
    assert together == [found.path_name for found in office.ok(api.PageQueues()).queues]


def test_other_kinds_of_queues_come_when_they_are_asked_for(office: Office) -> None:
    office.open(rf"{ORDERS};later", AccessMode.MOVE)
    office.open(r"DIRECT=TCP:127.0.0.99\private$\far", AccessMode.SEND)
    assert names(office, kinds=["subqueue", "outgoing"]) == [
        r"DIRECT=TCP:127.0.0.99\PRIVATE$\far",
        "orders;later",
    ]
    assert len(names(office, kinds=["journal"])) == 7
    assert len(names(office, kinds=["system"])) == 3
    everything = [role.value for role in QueueRole if role is not QueueRole.AWAITING]
    shown = office.ok(api.PageQueues(kinds=everything)).queues
    assert {found.kind for found in shown} == set(everything)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sort": "colour"},
        {"kinds": ["awaiting"]},
        {"limit": QUEUE_PAGE_MAX_COUNT + 1},
        {"filter": "x" * (QUEUE_FILTER_MAX_CHARACTERS + 1)},
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(office: Office, wrong: dict[str, Any]) -> None:
    assert office.error(api.PageQueues(**wrong)) == "MQ_ERROR_INVALID_PARAMETER"


def test_a_page_is_sorted_by_messages_bytes_or_age_and_then_by_name(office: Office) -> None:
    office.send(b"1", name=r"private$\delta")
    office.pass_time(60)
    office.send(b"1", b"2", name=r"private$\alpha")
    office.pass_time(60)
    office.send(b"1" * 9_999, name=r"private$\Beta")
    few = {"limit": 4, "descending": True}
    assert names(office, sort="messages", **few) == ["alpha", "Beta", "delta", "gamma-1"]
    assert names(office, sort="bytes", **few) == ["Beta", "alpha", "delta", "gamma-1"]
    assert names(office, sort="age", **few) == ["delta", "alpha", "Beta", "gamma-1"]
    assert names(office, sort="age")[-1] == "delta"
    office.ok(api.ChangeQueue(r"private$\alpha", quota_kb=1))
    office.ok(api.ChangeQueue(r"private$\delta", quota_kb=0xFFFFFFFF))
    assert names(office, sort="quota", limit=2, descending=True) == ["alpha", "Beta"]


def test_what_moves_now_comes_before_what_moved_once(office: Office) -> None:
    office.send(*[b"old"] * 5, name=r"private$\alpha")
    assert names(office, sort="in", descending=True)[0] == "alpha"
    office.pass_time(10)
    names(office, sort="in")
    office.send(b"new", name=r"private$\Beta")
    office.pass_time(10)
    assert names(office, sort="in", descending=True)[:2] == ["Beta", "alpha"]
    handle = office.open(r"private$\alpha")
    office.ok(api.Receive(handle))
    assert names(office, sort="out", descending=True)[0] == "alpha"


def test_every_order_that_there_is_can_be_asked_for(office: Office) -> None:
    for order in QueueOrder:
        assert len(names(office, sort=order.value)) == 7


def test_the_totals_are_those_of_all_that_fit_and_not_of_the_page(office: Office) -> None:
    office.send(b"one", b"two")
    office.send(b"three", name=LEDGER)
    office.ok(api.Receive(office.open()))
    page = office.ok(api.PageQueues(limit=1, with_totals=True))
    sizes = [the(office, name) for name in (ORDERS, LEDGER)]
    assert page.totals.message_count == 2
    assert page.totals.message_bytes == sum(found.message_bytes for found in sizes)
    assert (page.totals.in_count, page.totals.out_count) == (3, 1)
    assert page.totals.in_bytes == sum(found.in_bytes for found in sizes)


def test_a_caller_sees_and_counts_only_what_it_may_see(office: Office) -> None:
    office.ok(api.SetSecurity(r"private$\alpha", only(ALICE, 0)))
    office.send(b"secret", name=r"private$\alpha")
    token = token_caller("reader", ADMINISTRATORS, frozenset({Scope.RECEIVE}), ("private$\\g*",))
    stranger = token_caller("stranger", ALICE, None)
    assert names(office, office.driver.connect(token)) == ["gamma-1", "gamma-2"]
    page = office.ok(api.PageQueues(with_totals=True), office.driver.connect(stranger))
    assert page.total_count == 6
    assert page.totals == api.QueueTotals()


# What is told of each queue.


def test_what_came_and_what_went_is_counted_since_the_start(office: Office) -> None:
    office.send(b"a", b"b", b"c")
    before = the(office)
    assert (before.in_count, before.out_count) == (3, 0)
    assert before.in_bytes == before.message_bytes
    office.ok(api.Receive(office.open(), 2))
    after = the(office)
    assert (after.in_count, after.out_count, after.message_count) == (3, 2, 1)
    assert after.out_bytes == before.message_bytes - after.message_bytes
    office.restart()
    again = the(office)
    assert (again.in_count, again.out_count, again.message_count) == (0, 0, 1)


def test_a_message_that_goes_straight_to_a_reader_came_and_went(office: Office) -> None:
    reader, sender = office.open(), office.open(access=AccessMode.SEND)
    call = office.driver.request(office.app, api.Receive(reader, 1, 60_000))
    office.driver.request(office.app, api.Send(sender, [_packet(b"at once")]))
    office.driver.pump()
    assert isinstance(office.driver.take_answers()[office.app, call], api.Entries)
    found = the(office)
    assert (found.in_count, found.out_count, found.message_count) == (1, 1, 0)
    assert found.in_bytes == found.out_bytes > 0


def test_what_the_disk_refuses_never_came_and_never_went(office: Office) -> None:
    office.send(b"stays")
    before = the(office)
    sender, reader = office.open(access=AccessMode.SEND), office.open()
    office.fail(api.Send(sender, [_packet(b"refused")]))
    office.fail(api.Receive(reader))
    assert the(office) == _with_handles(before, 2)


def test_purged_expired_and_moved_messages_are_counted_apart(office: Office) -> None:
    later = rf"{ORDERS};later"
    office.send(b"moved", b"purged", b"purged too")
    source, target = office.open(), office.open(later, AccessMode.MOVE)
    first = office.lookup_ids()[0]
    office.ok(api.Move(source, first, target))
    office.ok(api.Purge(source))
    office.send(b"short", time_to_be_received_s=5)
    office.pass_time(10)
    found = the(office)
    assert (found.moved_count, found.purged_count, found.expired_count) == (1, 2, 1)
    assert (found.in_count, found.out_count, found.refused_count) == (4, 0, 0)
    assert the(office, later).in_count == 1


def test_a_transaction_counts_when_it_commits(office: Office) -> None:
    transaction = office.begin()
    handle = office.open(LEDGER, AccessMode.SEND)
    packet = _packet(b"x", transactional=True)
    office.ok(api.Send(handle, [packet], transaction))
    assert the(office, LEDGER).in_count == 0
    office.ok(api.Commit(transaction))
    assert the(office, LEDGER).in_count == 1
    transaction = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=transaction))
    assert the(office, LEDGER).out_count == 0
    office.ok(api.Abort(transaction))
    assert the(office, LEDGER).out_count == 0


def test_what_a_reader_completes_as_a_range_has_gone() -> None:
    office = Office(range_removal_min=1)
    office.send(b"1", b"2", b"3")
    handle = office.open()
    stop = office.ok(api.Reserve(handle, "reader", 0)).stop
    office.ok(api.FetchPackets(handle, 0, stop))
    office.ok(api.Complete(handle, "reader", stop))
    found = the(office)
    assert (found.out_count, found.message_count, found.oldest_time_s) == (3, 0, 0)
    assert found.out_bytes == found.in_bytes


def test_the_oldest_message_is_found_in_whichever_priority_it_is(office: Office) -> None:
    assert the(office).oldest_time_s == 0
    office.send(b"low", priority=1)
    office.pass_time(30)
    office.send(b"high", priority=7)
    office.send(b"middle", priority=3)
    assert the(office).oldest_time_s == START_S
    handle = office.open()
    lowest = office.lookup_ids()[-1]
    office.ok(api.Seek(handle, "current", lowest))
    assert the(office).oldest_time_s == START_S + 30
    office.ok(api.Purge(handle))
    assert the(office).oldest_time_s == 0


def test_the_oldest_message_survives_a_restart_and_a_move(office: Office) -> None:
    office.send(b"old")
    office.pass_time(100)
    office.restart()
    assert the(office).oldest_time_s == START_S
    later = rf"{ORDERS};later"
    target = office.open(later, AccessMode.MOVE)
    assert the(office, later).oldest_time_s == 0
    office.ok(api.Move(office.open(), office.lookup_ids()[0], target))
    assert the(office, later).oldest_time_s == START_S
    assert the(office).oldest_time_s == 0


def test_an_older_message_that_is_moved_in_is_the_oldest_from_then_on(office: Office) -> None:
    later = rf"{ORDERS};later"
    source, target = office.open(), office.open(later, AccessMode.MOVE)
    office.send(b"old")
    office.pass_time(60)
    office.send(b"new")
    old, new = office.lookup_ids()
    office.ok(api.Move(source, new, target))
    assert the(office, later).oldest_time_s == START_S + 60
    office.ok(api.Move(source, old, target))
    assert the(office, later).oldest_time_s == START_S


def _packet(body: bytes, **wishes: Any) -> bytes:
    return Draft(body=body, **wishes).packet()


def _with_handles(status: api.QueueStatus, count: int) -> api.QueueStatus:
    return msgspec.structs.replace(
        status, open_count=count, last_arrival_number=status.last_arrival_number + 1
    )

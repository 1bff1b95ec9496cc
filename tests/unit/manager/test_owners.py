"""What outlives its connection belongs to who made it: transactions, queries and readers."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.manager.config import DirectoryConfig
from openmsmq.manager.queues import guests
from openmsmq.model.directory import DirectoryRole, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.limits import QUERIES_OVER_MAX_COUNT, QUERY_IDLE_S
from openmsmq.model.queue import AccessMode
from openmsmq.model.topology import UserInfo
from openmsmq.security.access.callers import Caller, Scope, anonymous, token_caller, unix_caller
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, unix_user
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from tests.strategies.messages import Draft
from tests.unit.manager.access_cases import only
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

QUERY = "orders by hour"
REFUSED = "MQ_ERROR_ACCESS_DENIED"
SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
BOTH = frozenset({Scope.SEND, Scope.RECEIVE})


def token(name: str, user: Sid = ADMINISTRATORS) -> Caller:
    return token_caller(name, user, BOTH)


WEB, WORKER = token("web"), token("worker")
ALICE = unix_caller("alice", 70_001, frozenset(), administrator=False)
BOB = unix_caller("bob", 70_002, frozenset(), administrator=False)
ROOT = unix_caller("root", 0, frozenset({0}), administrator=True)


class House(Office):
    """An office whose callers come back as who they were."""

    def come(self, caller: Caller) -> int:
        return self.driver.connect(caller)

    def part(self, app: int, *sent: bytes, query: str = "", batch: int = 0) -> bytes:
        begun = self.ok(api.Begin(), app)
        packets = [Draft(body=body, transactional=True).packet() for body in sent]
        handle = self.open(LEDGER, AccessMode.SEND, app=app)
        self.ok(api.Send(handle, packets, begun.transaction), app)
        self.ok(api.Prepare(begun.transaction, query, batch), app)
        unit = begun.unit_of_work
        assert isinstance(unit, bytes)
        return unit

    def doubts(self, app: int) -> list[bytes]:
        return [work.unit_of_work for work in self.ok(api.ListTransactions(), app).transactions]

    def put(self, key: bytes, **record: object) -> None:
        """Write into the store what an older version did, and start anew."""
        self.driver.node.store.commit(Batch([(key, msgspec.msgpack.encode(record))]))
        self.restart()


@pytest.fixture
def house() -> House:
    return House()


# Transactions.


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("owner", [WEB, ALICE], ids=["token", "user"])
def test_a_prepared_transaction_is_its_makers_on_every_connection_and_nobody_elses(
    house: House, owner: Caller, restart: bool
) -> None:
    unit = house.part(house.come(owner), b"one")
    if restart:
        house.restart()
    thief, again = house.come(WORKER), house.come(owner)
    assert house.doubts(thief) == []
    for commit in (True, False):
        assert house.error(api.Resolve(unit, commit), thief) == SEQUENCE
    assert house.doubts(again) == [unit]
    house.ok(api.Resolve(unit, True), again)
    assert house.bodies(LEDGER) == [b"one"]


def test_who_guesses_a_name_hears_the_same_as_for_one_that_is_not_there(house: House) -> None:
    unit, thief = house.part(house.come(WEB), b"one"), house.come(WORKER)
    there, not_there = (house.ask(api.Resolve(each, True), thief) for each in (unit, bytes(16)))
    assert there == not_there


def test_numbers_are_good_for_the_connection_that_began_and_for_no_other(house: House) -> None:
    first, second = house.come(WEB), house.come(WEB)
    active = house.ok(api.Begin(), first).transaction
    waiting = house.ok(api.Begin(), first).transaction
    house.ok(api.Prepare(waiting), first)
    for number in range(20):
        for request in (api.Commit(number), api.Abort(number), api.Prepare(number)):
            assert house.error(request, second) == SEQUENCE
    house.ok(api.Commit(active), first)
    house.ok(api.Commit(waiting), first)


def test_administrators_end_what_others_have_prepared(house: House) -> None:
    units = [house.part(house.come(caller), b"x") for caller in (WEB, ALICE)]
    root = house.come(ROOT)
    assert sorted(house.doubts(root)) == sorted(units)
    shown = {work.owner for work in house.ok(api.ListTransactions(), root).transactions}
    assert shown == {"token:web", "S-1-22-1-70001"}
    for unit in units:
        house.ok(api.Resolve(unit, False), root)
    assert house.doubts(root) == []


def test_who_has_no_name_prepares_nothing(house: House) -> None:
    nobody = house.come(anonymous("192.0.2.1"))
    begun = house.ok(api.Begin(), nobody)
    assert house.error(api.Prepare(begun.transaction), nobody) == REFUSED
    house.ok(api.Commit(begun.transaction), nobody)


def test_a_transaction_of_an_older_version_belongs_to_administrators(house: House) -> None:
    unit = b"u" * 16
    house.put(records.transaction_key(unit), sends=[], held=[], prepared_time_s=START_S)
    web, root = house.come(WEB), house.come(ROOT)
    assert (house.doubts(web), house.doubts(root)) == ([], [unit])
    assert house.error(api.Resolve(unit, True), web) == SEQUENCE
    house.ok(api.Resolve(unit, True), root)


def test_names_of_transactions_are_long_and_random(house: House) -> None:
    app = house.come(WEB)
    names = {house.ok(api.Begin(), app).unit_of_work for _ in range(50)}
    assert len(names) == 50
    assert {len(name) for name in names} == {16}
    # Nothing that counts: no part of the names goes up with them.
    assert all(len({name[index] for name in names}) > 25 for index in range(16))


# One caller does not use everything up.


def test_one_caller_leaves_transactions_for_others(house: House) -> None:
    house = House(transactions_max=16)
    greedy, other, root = house.come(WEB), house.come(WORKER), house.come(ROOT)
    for _ in range(8):
        house.part(greedy)
    assert house.error(api.Begin(), greedy) == FULL
    assert house.error(api.Begin(), house.come(WEB)) == FULL, "another connection is no other"
    for _ in range(4):
        house.part(other)
    assert house.error(api.Begin(), other) == FULL
    house.ok(api.Begin(), house.come(ALICE))
    for _ in range(3):
        house.ok(api.Begin(), root)
    assert house.error(api.Begin(), root) == FULL
    # What ends makes room again, over a restart too.
    house.restart()
    greedy = house.come(WEB)
    assert house.error(api.Begin(), greedy) == FULL
    for unit in house.doubts(greedy)[:3]:
        house.ok(api.Resolve(unit, False), greedy)
    house.ok(api.Begin(), greedy)
    assert house.error(api.Begin(), greedy) == FULL, "others have four of sixteen: six are left"


@pytest.mark.skipif(
    not guests.__file__.endswith(".py"), reason="the compiled core has this limit built in"
)
def test_one_caller_leaves_outgoing_queues_for_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is kept for half an hour, and longer while something waits in it."""
    monkeypatch.setattr(guests, "OUTGOING_QUEUES_MAX_COUNT", 16)
    greedy, other, root = house.come(ALICE), house.come(BOB), house.come(ROOT)

    def elsewhere(number: int) -> api.OpenQueue:
        return api.OpenQueue(rf"DIRECT=TCP:192.0.2.{number}\{ORDERS}", AccessMode.SEND)

    for number in range(8):
        house.ok(elsewhere(number), greedy)
    assert house.error(elsewhere(8), greedy) == FULL
    assert house.error(elsewhere(8), house.come(ALICE)) == FULL, "another connection is no other"
    several = rf"DIRECT=TCP:192.0.2.8\{ORDERS},DIRECT=TCP:192.0.2.9\{ORDERS}"
    assert house.error(api.OpenQueue(several, AccessMode.SEND), greedy) == FULL
    house.ok(elsewhere(7), greedy)
    for number in range(8, 12):
        house.ok(elsewhere(number), other)
    assert house.error(elsewhere(12), other) == FULL
    house.ok(elsewhere(12), house.come(token("carol", unix_user(70_003))))
    for number in range(13, 16):
        house.ok(elsewhere(number), root)
    assert house.error(elsewhere(16), root) == FULL


def test_callers_without_a_name_share_one_part(house: House) -> None:
    house = House(transactions_max=8)
    for number in range(4):
        house.ok(api.Begin(), house.come(anonymous(f"192.0.2.{number}")))
    assert house.error(api.Begin(), house.come(anonymous("192.0.2.9"))) == FULL
    house.ok(api.Begin(), house.come(WEB))


def test_one_caller_leaves_room_for_what_others_wait_to_send(house: House) -> None:
    size = len(Draft(body=b"x" * 100, transactional=True).packet())
    house = House(staged_bytes_max=4 * size)
    greedy, other = house.come(WEB), house.come(WORKER)
    for _ in range(2):
        house.part(greedy, b"x" * 100, query="greedy")
    begun = house.ok(api.Begin(), greedy)
    packets = [Draft(body=b"x" * 100, transactional=True).packet()]
    handle = house.open(LEDGER, AccessMode.SEND, app=greedy)
    assert house.error(api.Send(handle, packets, begun.transaction), greedy) == FULL
    house.part(other, b"x" * 100, query="other")


def test_one_caller_leaves_names_for_the_queries_of_others(house: House) -> None:
    house = House(queries_max=8)
    greedy, other = house.come(WEB), house.come(WORKER)
    house.ok(api.CommitBatch("other", 0, []), other)
    house.pass_time(1)
    for number in range(3):
        house.ok(api.CommitBatch(f"greedy {number}", 0, []), greedy)
    assert house.error(api.CommitBatch("greedy 3", 0, []), greedy) == FULL
    house.ok(api.CommitBatch("another", 0, []), other)
    house.pass_time(QUERY_IDLE_S)
    house.ok(api.CommitBatch("greedy 3", 0, []), greedy)
    assert house.ok(api.GetBatch("other"), other).batch == 0, "it made room for itself only"
    assert house.ok(api.GetBatch("greedy 0"), greedy).batch == -1


# Queries.


def test_a_query_is_its_first_writers(house: House) -> None:
    web, thief = house.come(WEB), house.come(WORKER)
    unit = house.part(web, b"one", query=QUERY)
    for _ in range(2):
        for request in (
            api.GetBatch(QUERY),
            api.CommitBatch(QUERY, 0, []),
            api.CommitBatch(QUERY, 9, [unit]),
            api.AbortBatch(QUERY, 9),
            api.ForgetQuery(QUERY, is_over=True),
        ):
            assert house.error(request, thief) == REFUSED
        house.ok(api.CommitBatch(QUERY, 0, [unit]), web)
        # The name stays its own with the first batch, also over a restart.
        house.restart()
        web, thief = house.come(WEB), house.come(WORKER)
    assert house.bodies(LEDGER) == [b"one"]
    assert house.ok(api.GetBatch(QUERY), web).batch == 0


def test_a_refusal_says_whose_the_query_is(house: House) -> None:
    house.ok(api.CommitBatch(QUERY, 0, []), house.come(WEB))
    reply = house.ask(api.GetBatch(QUERY), house.come(WORKER))
    assert isinstance(reply, api.Failed)
    assert "the query 'orders by hour' belongs to token:web" in reply.detail


def test_what_an_administrator_does_for_a_query_leaves_it_to_its_owner(house: House) -> None:
    web, root = house.come(WEB), house.come(ROOT)
    house.ok(api.CommitBatch(QUERY, 0, []), web)
    unit = house.part(root, b"one", query=QUERY, batch=1)
    assert house.doubts(web) == [unit]
    house.ok(api.CommitBatch(QUERY, 1, [unit]), root)
    assert house.ok(api.GetBatch(QUERY), web).batch == 1
    assert house.error(api.GetBatch(QUERY), house.come(WORKER)) == REFUSED


def test_who_says_that_an_unknown_query_is_over_says_it_for_himself(house: House) -> None:
    house.ok(api.ForgetQuery(QUERY, is_over=True), house.come(WORKER))
    house.part(house.come(WEB), b"one", query=QUERY)


def test_queries_are_listed_for_their_owners_and_administrators() -> None:
    house = House()
    web, worker = house.come(WEB), house.come(WORKER)
    house.ok(api.CommitBatch("of web", 0, []), web)
    house.ok(api.CommitBatch("of worker", 0, []), worker)

    def listed(app: int) -> list[str]:
        return [query.query for query in house.ok(api.ListQueries(), app).queries]

    assert (listed(web), listed(worker)) == (["of web"], ["of worker"])
    assert listed(house.come(ROOT)) == ["of web", "of worker"]


def test_who_ends_very_many_queries_makes_others_forget_none(house: House) -> None:
    web, flooding = house.come(WEB), house.come(WORKER)
    house.ok(api.ForgetQuery("over", is_over=True), web)
    for number in range(QUERIES_OVER_MAX_COUNT + 1):
        house.driver.request(flooding, api.ForgetQuery(f"q{number}", is_over=True))
    house.driver.pump()
    house.driver.take_answers()
    begun = house.ok(api.Begin(), web)
    assert house.error(api.Prepare(begun.transaction, "over", 0), web) == SEQUENCE
    begun = house.ok(api.Begin(), flooding)
    house.ok(api.Prepare(begun.transaction, "q0", 0), flooding)


def test_a_query_of_an_older_version_belongs_to_administrators(house: House) -> None:
    house.put(records.batch_key(QUERY), batch=7, committed_time_s=START_S)
    reply = house.ask(api.GetBatch(QUERY), house.come(WEB))
    assert isinstance(reply, api.Failed)
    assert "belongs to administrators, because an older version began it" in reply.detail
    assert house.ok(api.GetBatch(QUERY), house.come(ROOT)).batch == 7


# Readers.


def test_a_reader_is_who_first_used_its_name_while_it_has_messages(house: House) -> None:
    house.send(b"one", b"two")
    web, thief = house.come(WEB), house.come(WORKER)
    stop = house.ok(api.Reserve(house.open(app=web), "r", 0), web).stop
    house.restart()
    web, thief = house.come(WEB), house.come(WORKER)
    taking = house.open(app=thief)
    assert house.error(api.Reserve(taking, "r", 0), thief) == REFUSED
    assert house.error(api.Complete(taking, "r", stop), thief) == REFUSED
    assert house.error(api.Release(ORDERS), thief) == REFUSED
    assert house.ok(api.Complete(house.open(app=web), "r", stop), web).count == 2
    # Nothing is left of it: the name is free.
    house.send(b"three")
    house.ok(api.Reserve(taking, "r", 0), thief)


def test_nobody_else_follows_a_query_under_the_name_of_its_reader(house: House) -> None:
    house.send(b"one")
    web = house.come(WEB)
    handle = house.open(app=web)
    stop = house.ok(api.Reserve(handle, "r", 0, checkpoint="T", holder="T"), web).stop
    house.ok(api.Complete(handle, "r", stop, "T", unread_too=True), web)
    house.restart()
    thief = house.come(WORKER)
    following = api.Reserve(house.open(app=thief), "r", 0, checkpoint="U", is_new=True)
    assert house.error(following, thief) == REFUSED
    assert house.error(api.Release(ORDERS), thief) == REFUSED
    web = house.come(WEB)
    house.ok(api.Reserve(house.open(app=web), "r", stop, checkpoint="T"), web)


def test_who_may_change_a_queue_releases_what_others_have_reserved_there(house: House) -> None:
    house.send(b"one")
    web, alice = house.come(WEB), house.come(ALICE)
    house.ok(api.Reserve(house.open(app=web), "r", 0), web)
    # To receive, and then to change it: receiving alone is not enough.
    for rights, error in ((0x0B, REFUSED), (0x1B, "")):
        house.ok(api.SetSecurity(ORDERS, only(unix_user(70_001), rights)))
        reply = house.ask(api.Release(ORDERS), alice)
        assert isinstance(reply, api.Failed) == bool(error), reply
    assert house.ok(api.GetQueue(ORDERS)).queues[0].reserved_for == ""


def test_a_reservation_of_an_older_version_belongs_to_administrators(house: House) -> None:
    house.send(b"one", recoverable=True)
    rows = house.driver.node.store.scan(*records.kind_range(b"Q"), 99)
    numbers = {
        records.decode_record(value, records.QueueRecord).properties.path_name: records.queue_of(
            key
        )
        for key, value in rows
    }
    house.put(records.reservation_key(numbers[ORDERS]), reader="r", start=0, stop=1 << 40)
    web, root = house.come(WEB), house.come(ROOT)
    assert house.error(api.Reserve(house.open(app=web), "r", 0), web) == REFUSED
    house.ok(api.Reserve(house.open(app=root), "r", 0), root)


# Users in the directory.


def test_who_may_change_the_queue_manager_makes_nobody_an_administrator() -> None:
    house = House(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    house.ok(api.SetSecurity("", only(unix_user(70_001), 0x50)))
    alice, root = house.come(ALICE), house.come(ROOT)
    forged = UserInfo(
        identifier=Guid(b"u" * 16),
        security_identifier=bytes(ADMINISTRATORS),
        certificates=(b"alice's own",),
        certificate_digests=(bytes(16),),
    )
    gone = Removal(ObjectKind.USER, forged.identifier)
    house.ok(api.ChangeDirectory([]), alice)
    for change in (forged, gone):
        assert house.error(api.ChangeDirectory([row_of(change)]), alice) == REFUSED
    bounded = house.come(
        token_caller("q", ADMINISTRATORS, frozenset({Scope.ADMIN}), (r"private$\*",))
    )
    assert house.error(api.ChangeDirectory([row_of(forged)]), bounded) == REFUSED
    house.ok(api.ChangeDirectory([row_of(forged)]), root)


@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (WEB, False),
        (token_caller("w", unix_user(70_001), frozenset({Scope.ADMIN})), False),
        (token_caller("q", ADMINISTRATORS, frozenset({Scope.ADMIN}), ("a*",)), False),
        (token_caller("a", ADMINISTRATORS, frozenset({Scope.ADMIN})), True),
        (ALICE, True),
        (ROOT, True),
        (anonymous("192.0.2.1"), False),
    ],
    ids=["scoped", "for a user", "for queues", "administrators", "user", "root", "nobody"],
)
def test_certificates_are_registered_by_who_has_proved_to_be_the_user(
    caller: Caller, may: bool
) -> None:
    house = House(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    app = house.come(caller)
    for request in (api.RegisterCertificate(b"none"), api.RemoveCertificate(bytes(16))):
        assert house.error(request, app) == ("MQ_ERROR_INVALID_PARAMETER" if may else REFUSED)

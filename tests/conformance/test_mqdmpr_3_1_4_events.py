"""What operators, coordinators and other protocols bring about. [MQDMPR 3.1.4, 3.1.7.2]

With transactions and sending: [MQDMPR 3.1.7.1.8, 3.1.7.1.9, 3.1.7.1.27].
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.transfer.neighbour import Neighbour, numbered
from tests.transfer.network import ALPHA, PEER, Computer, Network
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies, error_name, message

SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
ADMIN = r"private$\admin"
WISHES: Final[dict[str, Any]] = {"admin_queue": rf"OS:ALPHA\{ADMIN}", "acknowledge": 0xE}
TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
SUB = LEDGER + ";sub"


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    return office


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def alpha(network: Network) -> Computer:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ORDERS)
    return alpha


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def send_in(office: Office, work: int, *sent: bytes) -> None:
    handle = office.open(LEDGER, AccessMode.SEND)
    packets = [Draft(body=body, transactional=True).packet() for body in sent]
    office.ok(api.Send(handle, packets, work))


class Work:
    """A transaction that sends, receives and moves one message each."""

    def __init__(self, office: Office) -> None:
        office.send(b"received", b"moved", b"untouched", name=LEDGER, **WISHES)
        self.office = office
        begun = office.ok(api.Begin())
        self.number: int = begun.transaction
        self.name: bytes = begun.unit_of_work
        handle, target = office.open(LEDGER), office.open(SUB, AccessMode.MOVE)
        office.ok(api.Receive(handle, transaction=self.number))
        office.ok(api.Move(handle, office.lookup_ids(LEDGER)[1], target, self.number))
        send_in(office, self.number, b"sent")

    def state(self) -> tuple[list[bytes], list[bytes], list[int]]:
        """What is in the queue, in its subqueue, and of what the senders have been told."""
        office = self.office
        return office.bodies(LEDGER), office.bodies(SUB), office.classes(ADMIN)


UNDER_WAY: tuple[list[bytes], list[bytes], list[int]] = ([b"untouched"], [], [])
COMMITTED = ([b"untouched", b"sent"], [b"moved"], [0x4000])
ABORTED: tuple[list[bytes], list[bytes], list[int]] = (
    [b"received", b"moved", b"untouched"],
    [],
    [],
)


# Create Transaction, Transaction Prepare, Commit, Abort.


@pytest.mark.spec("MQDMPR-3.1.7.1.8-01", "MQDMPR-3.1.7.1.8-02")
def test_a_new_transaction_has_an_identifier_of_its_own_and_does_nothing_yet(
    office: Office,
) -> None:
    first, second = office.ok(api.Begin()), office.ok(api.Begin())
    assert first.unit_of_work != second.unit_of_work
    assert first.transaction != second.transaction
    assert office.ok(api.GetStatus()).transaction_count == 2
    send_in(office, first.transaction, b"one")
    office.ok(api.Abort(second.transaction))
    office.ok(api.Commit(first.transaction))
    assert office.bodies(LEDGER) == [b"one"], "each is a unit of its own"
    assert office.ok(api.GetStatus()).transaction_count == 0


@pytest.mark.spec("MQDMPR-3.1.4.3-01", "MQDMPR-3.1.4.3-02", "MQDMPR-3.1.1.13-01")
def test_a_prepared_transaction_waits_whatever_happens_with_its_first_and_last_message_marked(
    office: Office,
) -> None:
    """First and last count among what it sends (C-127)."""
    assert office.error(api.Prepare(99)) == SEQUENCE
    work = Work(office)
    send_in(office, work.number, b"middle", b"last")
    office.ok(api.Prepare(work.number))
    assert work.state() == UNDER_WAY
    office.restart()
    assert work.state() == UNDER_WAY, "its operations are durable"
    office.ok(api.Resolve(work.name, commit=True))
    assert work.state() == ([b"untouched", b"sent", b"middle", b"last"], [b"moved"], [0x4000])
    entries = office.ok(api.Receive(office.open(LEDGER), 4)).entries[1:]
    headers = [message(entry).transaction for entry in entries]
    marks = [(h.first_in_transaction, h.last_in_transaction) for h in headers if h is not None]
    assert marks == [(True, False), (False, False), (False, True)]


@pytest.mark.spec("MQDMPR-3.1.4.4-01", "MQDMPR-3.1.4.4-02", "MQDMPR-3.1.4.4-03")
def test_a_commit_lets_all_its_operations_take_effect_and_ends_the_transaction(
    office: Office,
) -> None:
    work = Work(office)
    assert work.state() == UNDER_WAY
    handle = office.open(SUB)
    waiting = office.driver.request(office.app, api.Receive(handle, peek=True, timeout_ms=None))
    office.driver.pump()
    office.driver.request(office.app, api.Commit(work.number))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, waiting]) == [b"moved"]
    assert work.state() == COMMITTED
    assert office.error(api.Commit(work.number)) == SEQUENCE
    office.restart()
    assert work.state() == COMMITTED


@pytest.mark.spec("MQDMPR-3.1.4.5-01", "MQDMPR-3.1.4.5-02")
@pytest.mark.parametrize("purged", [False, True])
def test_an_abort_undoes_all_its_operations_and_ends_the_transaction(
    office: Office, purged: bool
) -> None:
    """What was purged meanwhile ends as purged (C-126)."""
    work = Work(office)
    if purged:
        office.ok(api.Purge(office.open(LEDGER)))
    office.ok(api.Abort(work.number))
    if purged:
        assert work.state() == ([], [], [0xC001] * 3)
    else:
        assert work.state() == ABORTED
    assert office.error(api.Abort(work.number)) == SEQUENCE
    assert office.ok(api.GetStatus()).transaction_count == 0


# Enqueue Message, Enqueue Message To An Open Queue.


@pytest.mark.spec("MQDMPR-3.1.7.1.9-01", "MQDMPR-3.1.7.1.9-02")
def test_an_enqueued_message_is_at_its_place_under_a_number_that_only_grows(
    office: Office,
) -> None:
    for priority in (3, 0, 7, 3):
        office.send(b"%d" % priority, priority=priority)
    lookup_ids = office.lookup_ids()
    assert [lookup_id >> 56 for lookup_id in lookup_ids] == [0, 4, 4, 7], "7 less the priority"
    arrived = sorted(lookup_ids, key=lambda each: each & (1 << 56) - 1)
    handle = office.open()
    found = [bodies(office.ok(api.Seek(handle, "current", each, peek=True))) for each in arrived]
    assert found == [[b"3"], [b"0"], [b"7"], [b"3"]], "in the order of their numbers they came"
    assert office.bodies() == [b"7", b"3", b"3", b"0"]


@pytest.mark.spec("MQDMPR-3.1.7.1.9-02")
def test_a_message_that_would_exceed_a_quota_is_not_enqueued() -> None:
    office = Office(quota_kb=4)
    office.ok(api.CreateQueue(r"private$\small", quota_kb=1))
    small, orders = (office.open(name, AccessMode.SEND) for name in (r"private$\small", ORDERS))
    big = Draft(body=bytes(700)).packet()
    office.ok(api.Send(small, [big]))
    assert office.error(api.Send(small, [big])) == FULL, "that of the queue"
    for _ in range(3):
        office.ok(api.Send(orders, [big]))
    assert office.error(api.Send(orders, [big])) == FULL, "that of the queue manager"
    assert len(office.bodies()) == 3


@pytest.mark.spec("MQDMPR-3.1.7.1.9-01", "MQDMPR-3.1.7.1.9-02", "MQDMPR-3.1.1.13-02")
def test_what_is_enqueued_in_a_transaction_is_locked_until_that_commits(office: Office) -> None:
    handle, work = office.open(LEDGER), office.begin()
    waiting = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    send_in(office, work, b"one")
    assert (office.app, waiting) not in office.driver.take_answers()
    office.driver.request(office.app, api.Commit(work))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, waiting]) == [b"one"]


@pytest.mark.spec("MQDMPR-3.1.7.1.27-01", "MQDMPR-3.1.7.1.27-02")
@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_to_several_queues_is_copied_to_each_under_its_own_name(
    office: Office, transactional: bool
) -> None:
    names = [r"private$\first", r"private$\second"]
    for name in names:
        office.ok(api.CreateQueue(name, transactional=transactional))
    handle = office.open(",".join(rf"DIRECT=OS:.\{name}" for name in names), AccessMode.SEND)
    work = office.begin() if transactional else 0
    draft = Draft(body=b"to both", transactional=transactional)
    office.ok(api.Send(handle, [draft.packet()], work))
    if transactional:
        assert [office.bodies(name) for name in names] == [[], []]
        office.ok(api.Commit(work))
    for name in names:
        [entry] = office.ok(api.Receive(office.open(name))).entries
        found = message(entry)
        assert found.properties.body == b"to both"
        assert found.user.destination.text.lower().endswith(name)  # type: ignore[union-attr]
        assert found.multi_queue is not None
    one = office.open(r"private$\first", AccessMode.SEND)
    own = api.OWN_TRANSACTION if transactional else 0
    office.ok(api.Send(one, [draft.packet()], own))
    [entry] = office.ok(api.Receive(office.open(r"private$\first"))).entries
    assert message(entry).multi_queue is None
    assert office.bodies(r"private$\second") == []


@pytest.mark.spec("MQDMPR-3.1.7.1.27-02")
def test_if_one_of_several_queues_is_full_none_gets_a_copy(office: Office) -> None:
    """All copies enter with one write, or none (C-131)."""
    office.ok(api.CreateQueue(r"private$\small", quota_kb=1))
    handle = office.open(rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\private$\small", AccessMode.SEND)
    big = Draft(body=bytes(600)).packet()
    office.ok(api.Send(handle, [big]))
    assert office.error(api.Send(handle, [big])) == FULL
    assert [len(office.bodies(name)) for name in (ORDERS, r"private$\small")] == [1, 1]


# Message Position Deleted, Time To Be Received.


@pytest.mark.spec("MQDMPR-3.1.7.2.1-01", "MQDMPR-3.1.7.2.1-02", "MQDMPR-3.1.7.2-01")
@pytest.mark.parametrize(
    ("end", "reason"), [("receive", 0x4000), ("purge", 0xC001), ("expire", 0xC002)]
)
def test_a_message_that_ends_leaves_its_queue_its_bytes_and_a_reason(
    office: Office, end: str, reason: int
) -> None:
    office.send(b"stays")
    before = office.ok(api.GetQueue(ORDERS)).queues[0]
    office.send(bytes(500), priority=7, time_to_be_received_s=60, **WISHES)
    between = office.ok(api.GetQueue(ORDERS)).queues[0]
    assert between.message_bytes > before.message_bytes + 500
    if end == "receive":
        office.ok(api.Receive(office.open()))
    elif end == "purge":
        office.ok(api.Purge(office.open()))
        office.send(b"stays")
    else:
        office.pass_time(60)
    after = office.ok(api.GetQueue(ORDERS)).queues[0]
    assert (after.message_count, after.message_bytes) == (1, before.message_bytes)
    assert office.bodies() == [b"stays"]
    assert office.classes(ADMIN) == [reason]


@pytest.mark.spec("MQDMPR-3.1.2.4-01", "MQDMPR-3.1.7.2.7-01")
def test_a_message_that_is_still_there_when_its_time_is_up_goes(office: Office) -> None:
    office.send(b"short", time_to_be_received_s=5, **WISHES)
    office.send(b"for ever", **WISHES)
    office.send(b"received", time_to_be_received_s=5)
    office.ok(api.Seek(office.open(), "last"))
    office.send(b"at once", time_to_be_received_s=0)
    office.pass_time(4)
    assert office.bodies() == [b"short", b"for ever"]
    office.pass_time(1)
    assert office.bodies() == [b"for ever"]
    assert office.classes(ADMIN) == [0xC002]
    office.pass_time(10_000_000)
    assert office.bodies() == [b"for ever"]


# Take Offline, Bring Online, Pause Queue, Resume Queue.


@pytest.mark.spec(
    "MQDMPR-3.1.4.12-01", "MQDMPR-3.1.4.12-02", "MQDMPR-3.1.4.13-01", "MQDMPR-3.1.4.13-02"
)
def test_a_queue_manager_is_taken_offline_and_brought_online(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    assert alpha.ok(api.GetStatus()).online
    alpha.ok(api.SetOnline(False))
    assert not alpha.ok(api.GetStatus()).online
    alpha.send(TO_PEER, b"held")
    peer.open(ALPHA)
    network.run(60_000)
    assert (peer.bodies, peer.is_open) == ([], False)
    alpha.ok(api.SetOnline(True))
    assert alpha.ok(api.GetStatus()).online
    network.run(60_000)
    assert peer.bodies == [b"held"]


@pytest.mark.spec(
    "MQDMPR-3.1.4.14-01", "MQDMPR-3.1.4.14-02", "MQDMPR-3.1.7.2.3-01", "MQDMPR-3.1.7.2.3-02"
)
def test_a_paused_queue_is_on_hold_and_no_other(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    other = TO_PEER + "2"
    alpha.send(TO_PEER, b"before")
    network.run()
    alpha.ok(api.ControlOutgoing(TO_PEER, "pause"))
    alpha.send(TO_PEER, b"held")
    alpha.send(other, b"not held")
    network.run(60_000)
    assert [alpha.outgoing(name)[0].state for name in (TO_PEER, other)] == ["ONHOLD", "CONNECTED"]
    assert peer.bodies == [b"before", b"not held"]
    unknown = alpha.ask(api.ControlOutgoing(rf"DIRECT=TCP:{PEER}\private$\none", "pause"))
    assert error_name(unknown) == "MQ_ERROR_QUEUE_NOT_ACTIVE"


@pytest.mark.spec(
    "MQDMPR-3.1.4.15-01", "MQDMPR-3.1.4.15-02", "MQDMPR-3.1.7.2.4-01", "MQDMPR-3.1.7.2.4-02"
)
def test_a_resumed_queue_is_on_hold_no_more(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    """What waits in it leaves at once (C-39)."""
    alpha.ok(api.OpenQueue(TO_PEER, AccessMode.SEND))
    states = []
    for action in ("pause", "resume", "pause"):
        alpha.ok(api.ControlOutgoing(TO_PEER, action))
        network.run(1_000)
        states.append(alpha.outgoing(TO_PEER)[0].state)
    assert states == ["ONHOLD", "INACTIVE", "ONHOLD"]
    alpha.send(TO_PEER, *numbered(2))
    network.run(60_000)
    assert peer.bodies == []
    alpha.ok(api.ControlOutgoing(TO_PEER, "resume"))
    network.run()
    assert peer.bodies == numbered(2)


# Queue Manager Started, Queue Manager Stopped.


@pytest.mark.spec("MQDMPR-3.1.4.1-01", "MQDMPR-3.1.4.1-02", "MQDMPR-3.1.4.2-01")
def test_a_queue_manager_that_starts_again_goes_on_from_what_it_was(office: Office) -> None:
    office.send(b"kept", name=LEDGER)
    work = office.begin()
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    identifier = office.driver.manager.identifier
    office.pass_time(60)
    office.restart()
    status = office.ok(api.GetStatus())
    assert status.manager == bytes(identifier)
    assert (status.started_time_s, status.transaction_count) == (START_S + 60, 0)
    assert office.bodies(LEDGER) == [b"kept"], "the transaction was aborted"

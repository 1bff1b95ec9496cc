"""Floods: what strangers may make a queue manager hold, send and say, and what they may not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.queues import guests
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.headers import base
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.queue_names import DirectName, PublicName
from openmsmq.wire.packets import UserMessage
from tests.strategies.messages import Draft
from tests.transfer.letters import (
    ARRIVAL_ACK,
    ARRIVAL_NACK,
    SEQUENCE,
    by_number,
    direct,
    letter,
)
from tests.transfer.neighbour import Gateway, Neighbour
from tests.transfer.network import (
    ALPHA,
    BETA,
    GAMMA,
    PEER,
    ROUTING_PEER,
    Computer,
    Network,
    Peer,
    addressed,
)

ORDERS = r"private$\orders"
TINY = r"private$\tiny"
LEDGER = r"private$\ledger"
FRIEND = "127.0.0.8"
NOWHERE = "127.0.0.77"
QUOTA_KB = 1024
PART = QUOTA_KB * 1024 // 64
DAY_MS = 24 * 3_600_000
REFUSED: dict[str, Any] = {"acknowledge": ARRIVAL_NACK}


def started(network: Network, **config: Any) -> Computer:
    """Start a queue manager with little room; one queue of it is always full."""
    beta = network.manager("BETA", BETA, hosts={"FRIEND": (FRIEND,)}, **config)
    return restarted(beta.with_queues(ORDERS, LEDGER), quota_kb=QUOTA_KB)


def restarted(computer: Computer, **config: Any) -> Computer:
    computer.config = msgspec.structs.replace(computer.config, **config)
    computer.crash()
    if TINY not in [queue.path_name for queue in computer.ok(api.ListQueues()).queues]:
        computer.create(TINY, quota_kb=0)
    return computer


@pytest.fixture
def beta(network: Network) -> Computer:
    return started(network)


@pytest.fixture
def stranger(network: Network, beta: Computer) -> Peer:
    return visitor(network, beta, PEER)


@pytest.fixture
def friend(network: Network, beta: Computer) -> Peer:
    return visitor(network, beta, FRIEND)


def visitor(network: Network, computer: Computer, address: str) -> Peer:
    peer = network.peer(address)
    peer.identifier = Guid(bytes([int(address.rpartition(".")[2])]) * 16)
    peer.open_session(computer.address, window=512)
    return peer


def listening(network: Network, computer: Computer) -> tuple[Peer, Neighbour]:
    """Be a stranger with a listener: gives the end that talks, and the one that is called."""
    gateway = Gateway(network, PEER)
    talker, listener = (gateway.add(b"stranger" * 2, window=512) for _ in range(2))
    gateway.listener = listener
    talker.open(computer.address)
    return talker, listener


class Flood:
    """Writes messages with new numbers, and reads what comes back."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.number = 0

    def pour(self, count: int, queue: str, body: bytes = b"body", **wishes: Any) -> None:
        """Write messages; `admin` may be a text with a place for their number."""
        admin = wishes.pop("admin", None)
        for _ in range(count):
            self.number += 1
            if admin is not None:
                wishes["admin_queue"] = DirectName(admin.format(self.number))
            self.peer.write(
                letter(self.peer.identifier, self.number, direct(BETA, queue), body, **wishes)
            )
            if not self.peer.is_open:
                return


def waiting_bytes(computer: Computer) -> int:
    return sum(queue.message_bytes for queue in computer.outgoing())


def dropped(computer: Computer, kind: str = "message-dropped") -> dict[str, int]:
    """Return what `status` says of things that were dropped."""
    notices = computer.ok(api.GetStatus()).notices
    return {told.reason: told.count for told in notices if told.event == kind}


def can_open_outgoing(computer: Computer) -> bool:
    name = rf"DIRECT=TCP:127.0.0.99\{ORDERS}"
    return isinstance(computer.ask(api.OpenQueue(name, AccessMode.SEND)), api.Opened)


# Reports.


def test_reports_to_hosts_that_cannot_be_reached_stay_within_their_part_of_the_quota(
    beta: Computer, friend: Peer
) -> None:
    flood = Flood(friend)
    flood.pour(300, TINY, b"n" * 2_000, admin=rf"TCP:{NOWHERE}\private$\admin", **REFUSED)
    assert 0 < waiting_bytes(beta) <= PART
    flood.pour(300, TINY, b"n" * 2_000, admin=rf"TCP:{NOWHERE}\private$\a{{0}}", **REFUSED)
    assert PART < waiting_bytes(beta) <= 8 * PART
    assert dropped(beta, "report-dropped")["quota"] > 100
    assert beta.ok(api.GetStatus()).message_bytes <= 8 * PART


def test_reports_that_survived_a_restart_still_count(
    network: Network, beta: Computer, friend: Peer
) -> None:
    Flood(friend).pour(300, TINY, b"n" * 2_000, admin=r"TCP:127.0.1.{0}\private$\a", **REFUSED)
    before = waiting_bytes(beta)
    assert before > 6 * PART
    beta.crash()
    flood = Flood(visitor(network, beta, FRIEND))
    flood.number = 5_000
    flood.pour(50, TINY, b"n" * 2_000, admin=rf"TCP:{NOWHERE}\private$\b{{0}}", **REFUSED)
    assert before <= waiting_bytes(beta) <= 8 * PART


@pytest.mark.parametrize("recoverable", [True, False], ids=["recoverable", "express"])
def test_a_report_that_finds_no_way_is_given_up_after_four_days(
    network: Network, beta: Computer, stranger: Peer, recoverable: bool
) -> None:
    Flood(stranger).pour(
        3, TINY, admin=rf"TCP:{NOWHERE}\private$\admin", recoverable=recoverable, **REFUSED
    )
    beta.ok(api.SetOnline(False))
    network.run(3 * DAY_MS)
    assert [queue.message_count for queue in beta.outgoing()] == [3]
    network.run(DAY_MS + 3_600_000)
    assert [queue.message_count for queue in beta.outgoing()] in ([], [0])


def test_a_final_acknowledgment_that_finds_no_way_is_given_up_after_a_month(
    network: Network, beta: Computer, stranger: Peer
) -> None:
    wish: dict[str, Any] = {"place": (SEQUENCE, 1, 0), "final_ack": True}
    Flood(stranger).pour(1, r"private$\missing", **wish)
    beta.ok(api.SetOnline(False))
    stranger.close()
    network.run(29 * DAY_MS)
    assert sum(queue.message_count for queue in beta.outgoing()) == 1
    network.run(2 * DAY_MS)
    assert sum(queue.message_count for queue in beta.outgoing()) == 0


def test_a_stranger_has_others_sent_so_many_reports_and_no_more(
    network: Network,
) -> None:
    beta = restarted(started(network), quota_kb=64 * QUOTA_KB)
    stranger = visitor(network, beta, PEER)
    flood = Flood(stranger)
    elsewhere: dict[str, Any] = {"admin": rf"TCP:{NOWHERE}\private$\admin", **REFUSED}
    flood.pour(1_100, TINY, b"", recoverable=False, **elsewhere)
    assert dropped(beta, "report-dropped") == {"rate": 1, "pause": 99}
    network.run(2_000)
    flood.pour(300, TINY, b"", recoverable=False, **elsewhere)
    assert dropped(beta, "report-dropped") == {"rate": 2, "pause": 198}, "a hundred in a second"
    assert beta.outgoing()[0].message_count == 1_200


def test_reports_that_go_back_to_who_asked_for_them_have_no_rate(
    network: Network, beta: Computer
) -> None:
    stranger, listener = listening(network, beta)
    flood = Flood(stranger)
    flood.pour(1_200, ORDERS, b"", acknowledge=ARRIVAL_ACK, admin=rf"TCP:{PEER}\private$\admin")
    assert len(beta.bodies(ORDERS)) == 1_200
    assert dropped(beta, "report-dropped") == {}
    assert len(listener.messages) == 1_200


def test_a_known_peer_has_no_rate(beta: Computer, friend: Peer) -> None:
    Flood(friend).pour(
        1_200, ORDERS, b"", acknowledge=ARRIVAL_ACK, admin=rf"TCP:{NOWHERE}\private$\admin"
    )
    assert "rate" not in dropped(beta, "report-dropped")


def test_a_stranger_has_no_long_bodies_sent_to_others(network: Network, beta: Computer) -> None:
    third = Neighbour(network, GAMMA)
    stranger, listener = listening(network, beta)
    flood = Flood(stranger)
    for body in (b"s" * 4_096, b"l" * 4_100):
        flood.pour(1, TINY, body, admin=rf"TCP:{GAMMA}\private$\admin", **REFUSED)
    assert third.bodies == [b"s" * 4_096, b""]
    flood.pour(1, TINY, b"l" * 4_100, admin=rf"TCP:{PEER}\private$\admin", **REFUSED)
    assert listener.bodies == [b"l" * 4_100], "its own body comes back to it"


# Outgoing queues.


def test_names_of_strangers_do_not_use_up_the_outgoing_queues(
    network: Network, beta: Computer, stranger: Peer
) -> None:
    admin = rf"TCP:{NOWHERE}\private$\a{{0}}"
    Flood(stranger).pour(300, TINY, b"", admin=admin, **REFUSED)
    assert len(beta.outgoing()) == 100
    assert dropped(beta, "report-dropped") == {"outgoing queues": 1, "pause": 199}
    network.run(250)
    later = Flood(stranger)
    later.number = 1_000
    later.pour(1, TINY, b"", admin=rf"TCP:{NOWHERE}\private$\a1", **REFUSED)
    assert sum(queue.message_count for queue in beta.outgoing()) == 101, "queues that are there"
    other = visitor(network, beta, GAMMA)
    Flood(other).pour(5, TINY, b"", admin=rf"TCP:{NOWHERE}\private$\b{{0}}", **REFUSED)
    assert len(beta.outgoing()) == 105, "another stranger has a share of its own"
    assert can_open_outgoing(beta)


@pytest.mark.skipif(
    not guests.__file__.endswith(".py"), reason="the compiled core has this limit built in"
)
def test_strangers_together_leave_outgoing_queues_to_known_peers_and_applications(
    network: Network, beta: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "openmsmq.manager.queues.guests.OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT", 20
    )
    monkeypatch.setattr("openmsmq.manager.queues.guests.OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT", 30)
    for address in (PEER, GAMMA, ALPHA):
        peer = visitor(network, beta, address)
        Flood(peer).pour(15, TINY, b"", admin=r"TCP:127.0.2.{0}\private$\a" + address, **REFUSED)
    assert len(beta.outgoing()) == 20
    friend = visitor(network, beta, FRIEND)
    Flood(friend).pour(15, TINY, b"", admin=r"TCP:127.0.3.{0}\private$\a", **REFUSED)
    assert len(beta.outgoing()) == 30
    assert can_open_outgoing(beta)


def test_empty_outgoing_queues_of_others_are_forgotten_within_two_minutes(
    network: Network, beta: Computer
) -> None:
    stranger, listener = listening(network, beta)
    admin = rf"TCP:{PEER}\private$\a{{0}}"
    Flood(stranger).pour(20, TINY, b"", admin=admin, recoverable=False, **REFUSED)
    assert len(beta.outgoing()) == 20
    assert len(listener.messages) == 20
    assert waiting_bytes(beta) == 0
    stranger.close()
    listener.close()
    network.run(120_000)
    assert beta.outgoing() == []


def test_a_queue_that_an_application_opens_is_its_own_from_then_on(
    network: Network, beta: Computer, stranger: Peer
) -> None:
    Flood(stranger).pour(100, TINY, b"", admin=rf"TCP:{NOWHERE}\private$\a{{0}}", **REFUSED)
    for _ in range(2):
        beta.send(rf"DIRECT=TCP:{NOWHERE}\private$\a7", b"ours" * 1_000)
    other = Flood(stranger)
    other.number = 1_000
    other.pour(3, TINY, b"", admin=rf"TCP:{NOWHERE}\private$\a{{0}}", **REFUSED)
    assert len(beta.outgoing()) == 101, "one place of the stranger's hundred is free again"
    assert network.now.ticks_ms == 0


# Messages.


def test_a_stranger_leaves_room_to_others_known_peers_and_applications(
    network: Network, beta: Computer, stranger: Peer
) -> None:
    Flood(stranger).pour(600, ORDERS, b"b" * 4_000)
    assert not stranger.is_open
    held = beta.ok(api.GetStatus()).message_bytes
    assert 20 * PART < held <= 24 * PART
    other = visitor(network, beta, GAMMA)
    assert other.is_open, "only the stranger itself has to wait"
    Flood(other).pour(600, ORDERS, b"b" * 4_000)
    held = beta.ok(api.GetStatus()).message_bytes
    assert 40 * PART < held <= 48 * PART
    friend = visitor(network, beta, FRIEND)
    for number in range(1, 11):
        place = (SEQUENCE, number, number - 1)
        friend.write(letter(friend.identifier, number, direct(BETA, LEDGER), place=place))
    assert len(beta.bodies(LEDGER)) == 10
    beta.send(ORDERS, b"ours" * 1_000)
    assert friend.is_open


@pytest.mark.parametrize("when", ["on arrival", "in the queue"])
def test_dead_letters_of_a_stranger_are_part_of_his_share(
    network: Network, beta: Computer, stranger: Peer, when: str
) -> None:
    """They are here until somebody takes them out, and leave as little room as messages do."""
    sent_s = network.now.unix_s
    wishes: dict[str, Any] = {"time_to_be_received_s": 1}
    if when == "on arrival":
        sent_s -= 3_600
        wishes = {"time_to_reach_queue_s": 1}
    flood = Flood(stranger)
    for _ in range(12):
        if stranger.is_open:
            flood.pour(
                50, ORDERS, b"b" * 4_000, journal_on_failure=True, sent_time_s=sent_s, **wishes
            )
            network.run(2_000)
            sent_s += 2
    assert beta.bodies(ORDERS) == []
    held = beta.ok(api.GetStatus()).message_bytes
    assert 20 * PART < held <= 24 * PART
    other = visitor(network, beta, GAMMA)
    Flood(other).pour(10, ORDERS, b"b" * 4_000, sent_time_s=sent_s)
    assert len(beta.bodies(ORDERS)) == 10


def test_what_readers_take_is_no_longer_the_strangers(beta: Computer, stranger: Peer) -> None:
    beta.create(r"private$\stock")
    beta.send(r"private$\stock", bytes(28 * PART))
    flood = Flood(stranger)
    for _ in range(6):
        flood.pour(60, ORDERS, b"b" * 4_000)
        assert len(beta.bodies(ORDERS, take=True)) == 60
    assert stranger.is_open
    assert flood.number == 360, "four times its share has passed through"


def test_express_messages_of_strangers_are_dropped_before_memory_is_full(
    network: Network,
) -> None:
    beta = restarted(started(network), express_memory_kb=256)
    stranger = visitor(network, beta, PEER)
    Flood(stranger).pour(1_000, ORDERS, b"e" * 100, recoverable=False)
    assert stranger.is_open, "express messages may get lost; the session goes on"
    status = beta.ok(api.GetStatus())
    assert 150 * 1024 < status.express_memory_bytes <= 192 * 1024
    assert dropped(beta)["express memory"] > 500
    friend = visitor(network, beta, FRIEND)
    Flood(friend).pour(10, ORDERS, b"of a friend", recoverable=False)
    beta.send(ORDERS, b"ours", recoverable=False)
    assert beta.bodies(ORDERS).count(b"of a friend") == 10
    assert b"ours" in beta.bodies(ORDERS)
    beta.bodies(ORDERS, take=True)
    assert beta.ok(api.GetStatus()).express_memory_bytes == 0


def test_an_application_hears_that_there_is_no_memory_for_express_messages(
    network: Network,
) -> None:
    beta = restarted(started(network), express_memory_kb=16)
    opened = beta.ok(api.OpenQueue(ORDERS, AccessMode.SEND))

    def packets(*, recoverable: bool) -> list[bytes]:
        draft = Draft(body=b"e" * 1_000, recoverable=recoverable).packet()
        return [addressed(draft, opened)] * 20

    refused = beta.ask(api.Send(opened.handle, packets(recoverable=False)))
    assert isinstance(refused, api.Failed)
    assert refused.code == InsufficientResources.code
    assert "16 KB of memory" in refused.detail
    assert isinstance(beta.ask(api.Send(opened.handle, packets(recoverable=True))), api.Sent)


# What nobody gets is counted.


def test_messages_that_vanish_are_counted_by_reason_and_told(
    beta: Computer, stranger: Peer
) -> None:
    flood = Flood(stranger)
    flood.pour(3, r"private$\missing")
    flood.pour(2, LEDGER)
    flood.pour(1, TINY)
    flood.pour(4, ORDERS, sent_time_s=1_600_000_000, time_to_reach_queue_s=10)
    beta.create(r"private$\closed", authentication_required=True)
    flood.pour(1, r"private$\closed")
    assert dropped(beta) == {
        "no such queue": 3,
        "queue is transactional": 2,
        "queue quota": 1,
        "expired": 4,
        "not authenticated": 1,
    }
    first = dict(beta.notices[0].facts)
    assert first == {
        "reason": "no such queue",
        "peer": PEER,
        "queue": rf"DIRECT=TCP:{BETA}\private$\missing",
    }


def test_a_message_that_expires_in_its_queue_is_counted_unless_it_is_a_dead_letter(
    network: Network, beta: Computer, stranger: Peer
) -> None:
    flood = Flood(stranger)
    now_s = network.now.unix_s
    flood.pour(2, ORDERS, time_to_be_received_s=5, sent_time_s=now_s)
    flood.pour(1, ORDERS, time_to_be_received_s=5, sent_time_s=now_s, journal_on_failure=True)
    network.run(6_000)
    assert dropped(beta) == {"expired": 2}
    assert len(beta.bodies("system$;deadletter")) == 1


# Closed queues.


def forged_dead_letter(beta: Computer, queue: str, number: int, **wishes: Any) -> UserMessage:
    """Make a message that says it is beta's own and names its dead-letter queue."""
    message = letter(
        beta.identifier, number, direct(BETA, ORDERS), b"forged", journal_on_failure=True, **wishes
    )
    return msgspec.structs.replace(message, tail=dead_letter_extension(queue))


@pytest.mark.parametrize("routes", [False, True], ids=["stranger", "router"])
def test_no_stranger_gets_into_a_queue_by_naming_it_as_dead_letter_queue(
    network: Network, routes: bool
) -> None:
    # A stranger cannot say that a message is ours. A router may bring one back, but that is all.
    beta = started(network, **({"peers": ROUTING_PEER} if routes else {}))
    peer = network.peer()
    closed = r"private$\closed"
    beta.create(closed, authentication_required=True)
    beta.create(r"private$\open")
    now_s = network.now.unix_s
    for number, queue in enumerate((closed, r"private$\open"), 1):
        for forged in (
            forged_dead_letter(beta, queue, number, time_to_be_received_s=1, sent_time_s=now_s),
            forged_dead_letter(
                beta, queue, number + 10, time_to_reach_queue_s=1, sent_time_s=now_s - 9_000
            ),
        ):
            peer.open_session(BETA)
            peer.write(forged)
    network.run(2_000)
    assert beta.bodies(closed) == beta.bodies(r"private$\open") == []
    assert beta.bodies("system$;deadletter") == [b"forged"] * (4 if routes else 0)


@pytest.mark.parametrize("routes", [False, True], ids=["stranger", "router"])
def test_no_stranger_gets_into_the_journal_by_passing_through(
    network: Network, routes: bool
) -> None:
    target = network.manager("GAMMA", GAMMA)
    target.create(ORDERS)
    next_hops = {str(target.identifier): (GAMMA,)}
    policy = {"peers": ROUTING_PEER} if routes else {}
    beta = network.manager("BETA", BETA, next_hops=next_hops, **policy)
    number, manager = by_number(target, ORDERS)
    peer = network.peer()
    peer.open_session(BETA)
    peer.write(
        letter(beta.identifier, 1, number, b"forged", manager=manager, journal_on_success=True)
    )
    network.run(2_000)
    assert target.bodies(ORDERS) == [b"forged"] * routes
    assert beta.bodies("system$;journal") == []


# Public queues.


@pytest.mark.parametrize("traced", [False, True], ids=["acknowledgment", "trace report"])
def test_a_report_to_a_public_queue_says_whose_it_is(
    network: Network, office: Computer, shop: Computer, traced: bool
) -> None:
    office.create(ORDERS)
    network.run(60_000)
    shop.ok_soon(api.CreateQueue(r".\reports"))
    network.run(60_000)
    queue = office.ok(api.GetNames(r"SHOP\reports")).format_name
    traces = msgspec.structs.replace(office.config.transfer, trace_reports=True)
    office.config = msgspec.structs.replace(office.config, transfer=traces)
    office.crash()
    peer = visitor(network, office, PEER)
    public = PublicName(Guid.parse(queue.removeprefix("PUBLIC=")))
    message = letter(
        peer.identifier,
        1,
        direct(ALPHA, ORDERS),
        acknowledge=0 if traced else ARRIVAL_ACK,
        admin_queue=None if traced else public,
    )
    if traced:
        flags = msgspec.structs.replace(message.base, flags=message.base.flags | base.TRACE)
        message = msgspec.structs.replace(message, base=flags, debug=DebugHeader(public.queue))
    peer.write(message)
    network.run(2_000)
    (report,) = shop.messages(r".\reports")
    wanted = MessageClass.REPORT if traced else MessageClass.ACK_REACH_QUEUE
    assert report.properties.message_class == wanted
    assert report.user.destination_manager == shop.identifier

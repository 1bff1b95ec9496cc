"""A packet that looks like the one before is still judged by its own bytes."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.limits import (
    FORMAT_NAME_MAX_COUNT,
    NAMES_PER_SEND_MAX_COUNT,
    PROTECTED_PER_SEND_MAX_COUNT,
    SEND_MAX_COUNT,
)
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.packets import UserMessage, check, decode, encode
from tests.effort import steps_of
from tests.strategies.messages import Draft
from tests.unit.manager.office import ORDERS, Office

SECOND = r"private$\second"


@pytest.fixture
def office() -> Office:
    return Office()


def test_messages_alike_but_for_their_bodies_keep_their_own_bodies(office: Office) -> None:
    bodies = [b"%04d" % number for number in range(20)]
    office.send(*bodies)
    assert office.bodies() == bodies


def test_a_packet_that_is_not_whole_is_refused_though_others_like_it_were_good(
    office: Office,
) -> None:
    good = Draft(body=b"1234").packet()
    sending = office.open(ORDERS, AccessMode.SEND)
    error = office.error(api.Send(sending, [good, good, good + b"5678"]))
    assert error == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies() == []


def test_priorities_of_messages_sent_together_are_kept_apart(office: Office) -> None:
    drafts = [Draft(body=b"low1", priority=1), Draft(body=b"high", priority=7)]
    sending = office.open(ORDERS, AccessMode.SEND)
    office.ok(api.Send(sending, [drafts[0].packet(), drafts[1].packet(), drafts[0].packet()]))
    assert office.bodies() == [b"high", b"low1", b"low1"]


def test_a_packet_with_broken_headers_is_refused_though_it_is_as_long_as_a_good_one(
    office: Office,
) -> None:
    good = Draft(body=b"1234").packet()
    broken = good[:4] + b"LIAR" + good[8:]
    sending = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.Send(sending, [good, broken])) == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies() == []


def test_what_would_be_too_much_for_all_queues_of_a_list_is_refused_before_it_is_copied() -> None:
    office = Office(transaction_bytes_max=10_000)
    office.ok(api.CreateQueue(SECOND))
    names = [rf"DIRECT=OS:ALPHA\{queue}" for queue in (ORDERS, SECOND)]
    sending = office.open(",".join(names), AccessMode.SEND)
    few, many = Draft(body=b"x" * 4_000).packet(), Draft(body=b"x").packet()
    assert len(few) * 2 < 10_000 > len(many) * 2 * 20
    office.ok(api.Send(sending, [few]))
    # Each copy names all queues: that is more than the messages themselves.
    for packets in ([few, few], [many] * 20, [many] * 100_000):
        assert office.error(api.Send(sending, packets)) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    for queue in (ORDERS, SECOND):
        assert office.bodies(queue) == [b"x" * 4_000]


def test_a_list_can_be_sent_to_and_nothing_else(office: Office) -> None:
    """It holds no messages: it is a target and no queue."""
    office.ok(api.CreateQueue(SECOND))
    name = ",".join(rf"DIRECT=OS:ALPHA\{queue}" for queue in (ORDERS, SECOND))
    denied = api.OpenQueue(name, AccessMode.SEND, ShareMode.DENY_RECEIVE)
    assert office.error(denied) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    opened = office.ok(api.OpenQueue(name, AccessMode.SEND, ShareMode.DENY_NONE))
    assert opened.path_name == opened.format_name == name.replace("private", "PRIVATE")
    assert not opened.transactional
    for request in (
        api.Receive(opened.handle),
        api.CreateCursor(opened.handle),
        api.Seek(opened.handle, "first"),
        api.Purge(opened.handle),
    ):
        assert office.error(request) == "MQ_ERROR_ACCESS_DENIED"
    office.ok(api.CloseQueue(opened.handle))
    assert office.error(api.CloseQueue(opened.handle)) == "MQ_ERROR_INVALID_HANDLE"


# Messages that list queues.


def listing(body: bytes, lists: MultiQueueFormatHeader) -> bytes:
    """Write a message that lists queues."""
    message = decode(Draft(body=body).packet())
    assert isinstance(message, UserMessage)
    return encode(msgspec.structs.replace(message, multi_queue=lists))


def names(count: int, at: str = "elsewhere") -> AddressList:
    return AddressList((DirectName(rf"OS:{at}\q"),) * count)


FULL = names(FORMAT_NAME_MAX_COUNT)


def test_messages_that_are_sent_at_once_list_so_many_queues_and_no_more(office: Office) -> None:
    sending = office.open(ORDERS, AccessMode.SEND)
    lists, most = MultiQueueFormatHeader(FULL), NAMES_PER_SEND_MAX_COUNT // FORMAT_NAME_MAX_COUNT
    packets = [listing(b"%d" % number, lists) for number in range(most + 1)]
    refused = office.ask(api.Send(sending, packets))
    assert isinstance(refused, api.Failed)
    assert (
        "32768 may be sent at once: send fewer messages at once, or to fewer queues"
        in refused.detail
    )
    assert office.bodies() == []
    office.ok(api.Send(sending, packets[:most]))
    assert office.bodies() == [b"%d" % number for number in range(most)]


def test_messages_to_a_list_name_so_many_queues_of_their_own_and_no_more(office: Office) -> None:
    name = rf"DIRECT=OS:ALPHA\{ORDERS},DIRECT=OS:ALPHA\{ORDERS}"
    sending = office.open(name, AccessMode.SEND)
    queue = DirectName(name.partition(",")[0].removeprefix("DIRECT=").replace("private", "PRIVATE"))
    lists = MultiQueueFormatHeader(AddressList((queue, queue)), FULL, FULL)
    packet = listing(b"listed", lists)
    refused = office.ask(api.Send(sending, [packet] * 16))
    assert isinstance(refused, api.Failed)
    assert (
        "32768 may be sent at once: send fewer messages at once, or to fewer queues"
        in refused.detail
    )
    office.ok(api.Send(sending, [packet] * 15))
    assert office.bodies() == [b"listed"] * 15


def test_the_names_of_a_list_are_written_once_for_all_copies(office: Office) -> None:
    def effort(count: int) -> int:
        """Send a hundred messages to one queue that is named so often."""
        name = ",".join([rf"DIRECT=OS:ALPHA\{ORDERS}"] * count)
        sending = office.open(name, AccessMode.SEND)
        packets = [Draft(body=b"%02d" % number).packet() for number in range(100)]
        return steps_of(lambda: office.ok(api.Send(sending, packets)))

    assert effort(1_000) < 2 * effort(10)
    entries = office.ok(api.Receive(office.open(ORDERS), count=200, bytes_max=1 << 24)).entries
    assert len(entries) == 200
    for number, entry in enumerate(entries):
        message = decode(entry.packet)
        assert isinstance(message, UserMessage)
        assert message.multi_queue is not None
        assert len(message.multi_queue.destinations.elements) == (1_000 if number < 100 else 10)


def test_of_messages_that_list_queues_no_name_is_looked_at_twice(office: Office) -> None:
    sending = office.open(ORDERS, AccessMode.SEND)
    lists = MultiQueueFormatHeader(FULL, FULL, FULL)
    packets = [listing(b"%d" % number, lists) for number in range(5)]
    once = 5 * steps_of(lambda: check(packets[0]))
    assert steps_of(lambda: office.ok(api.Send(sending, packets))) < 1.2 * once


# How much at once.


def naming_its_sender(body: bytes) -> bytes:
    """Write a message that has to be examined: it says who has sent it."""
    message = decode(Draft(body=body).packet())
    assert isinstance(message, UserMessage)
    sender = SecurityHeader(sender_id=b"somebody", flags=1)
    return encode(msgspec.structs.replace(message, security=sender))


def test_so_many_messages_are_sent_at_once_and_no_more(office: Office) -> None:
    sending = office.open(ORDERS, AccessMode.SEND)
    packets = [Draft(body=b"x").packet()] * (SEND_MAX_COUNT + 1)
    refused = office.ask(api.Send(sending, packets))
    assert isinstance(refused, api.Failed)
    assert refused.detail == "32769 messages at once; at most 32768: send fewer"
    assert office.bodies() == []
    sent = office.ok(api.Send(sending, packets[1:]))
    assert len(sent.numbers) == SEND_MAX_COUNT


def test_so_many_messages_are_examined_at_once_and_no_more(office: Office) -> None:
    sending = office.open(ORDERS, AccessMode.SEND)
    packets = [naming_its_sender(b"x")] * (PROTECTED_PER_SEND_MAX_COUNT + 1)
    refused = office.ask(api.Send(sending, packets))
    assert isinstance(refused, api.Failed)
    assert "1025 signed or encrypted messages and more; 1024 may be sent" in refused.detail
    assert office.bodies() == []
    sent = office.ok(api.Send(sending, packets[1:]))
    assert len(sent.numbers) == PROTECTED_PER_SEND_MAX_COUNT


def test_each_copy_that_is_examined_counts_with_its_names() -> None:
    """A hundred queues of this computer: each copy of a message names them all."""
    office = Office()
    paths = [rf"private$\q{number}" for number in range(100)]
    for path in paths:
        office.ok(api.CreateQueue(path))
    here = office.open(",".join(rf"DIRECT=OS:ALPHA\{path}" for path in paths), AccessMode.SEND)
    packets = [naming_its_sender(b"%d" % number) for number in range(4)]
    refused = office.ask(api.Send(here, packets))
    assert isinstance(refused, api.Failed)
    assert "40000 names and more" in refused.detail
    office.ok(api.Send(here, packets[:3]))
    assert office.bodies(paths[-1]) == [b"0", b"1", b"2"]

"""The outcome of a message: what follows from everything that is known about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypedDict

from openmsmq.model.message import AckRequest, MessageClass, is_about_receiving, is_negative
from openmsmq.spark.pipelines.delivery.evidence import Evidence
from openmsmq.spark.pipelines.delivery.facts import SECOND, Facts, Proof, facts_of, first, known
from openmsmq.spark.pipelines.delivery.names import destination_of
from openmsmq.spark.pipelines.delivery.paths import Hop, merged, own_hops


class Outcome(StrEnum):
    """What became of a message. The first that fits is taken, in this order.

    | Value | Meaning |
    |---|---|
    | `received` | somebody took it from its queue |
    | `waiting` | it is in its queue |
    | `dead_letter` | it failed, and its copy is in a dead-letter queue |
    | `failed` | it failed, as a negative acknowledgment says; no copy of it was found |
    | `reached` | it reached its queue; nothing says whether somebody took it |
    | `in_transit` | it was sent, and has time left to reach its queue |
    | `lost` | the positive acknowledgment that it asked for is overdue, and no failure was told |
    | `unknown` | its time is over, and it asked for nothing that would tell more |
    """

    RECEIVED = "received"
    WAITING = "waiting"
    DEAD_LETTER = "dead_letter"
    FAILED = "failed"
    REACHED = "reached"
    IN_TRANSIT = "in_transit"
    LOST = "lost"
    UNKNOWN = "unknown"


DELIVERED: Final = (Outcome.RECEIVED, Outcome.WAITING, Outcome.REACHED)
"""Outcomes of messages that reached their queue, and did not fail there."""

UNDELIVERED: Final = (Outcome.DEAD_LETTER, Outcome.FAILED, Outcome.LOST)
"""Outcomes of messages that nobody will receive any more: the loss."""

OPEN: Final = (Outcome.IN_TRANSIT, Outcome.UNKNOWN)
"""Outcomes of messages of which neither is known."""


def asked_to_be_told(acknowledge: int | None) -> bool:
    """Whether a message asked to be told when it arrives or is received."""
    return bool((acknowledge or 0) & (AckRequest.POSITIVE_ARRIVAL | AckRequest.POSITIVE_RECEIVE))


class Step(TypedDict):
    """A queue manager that had a message, and since when."""

    queue_manager: str | None
    time: int | None


class Delivery(NamedTuple):
    """What became of a message: a row of the result. Times are in microseconds since 1970."""

    message_id: str
    label: str | None
    source_qm: str | None
    source_queue_manager: str | None
    destination: str | None
    destination_queue_manager: str | None
    destination_queue: str | None
    sent_time: int | None
    priority: int | None
    transactional: bool | None
    size_bytes: int | None
    outcome: str
    reason: str | None
    arrived: bool
    in_doubt: bool
    acknowledge: int | None
    reached_time: int | None
    received_time: int | None
    latency_reach_s: float | None
    latency_receive_s: float | None
    path: list[Step]
    dead_letter_reason: str | None
    found_in: list[str]


class Judge(NamedTuple):
    """Decides what became of messages."""

    names: Mapping[str, str]
    """Names for identities of queue managers that the user gave, by identity in small letters."""
    lost_after_s: int | None

    def judged(self, proofs: Sequence[Proof]) -> Iterator[Delivery]:
        """Yield what became of the messages that share a short name, from all rows about them."""
        hops = merged(
            Hop(
                row.hop or 0,
                0 if row.departed else 1,
                row.sent_time,
                row.source,
                first(self.names.get(row.source or ""), row.source_name),
                row.destination,
            )
            for row in proofs
            if row.kind == Evidence.TRACE
        )
        by_message: dict[str, list[Proof]] = defaultdict(list)
        for row in proofs:
            if row.about is not None:
                by_message[row.about].append(row)
        found = [facts_of(message_id, rows) for message_id, rows in by_message.items()]
        own = own_hops(hops, [facts.destination for facts in found])
        for facts, way in zip(found, own, strict=True):
            yield self._judge(facts, way, proofs[0].as_of)

    def _judge(self, facts: Facts, hops: Sequence[Hop], as_of: int | None) -> Delivery:
        to = destination_of(facts.destination)
        given = self.names.get(to.identity or "")
        surely_to = first(
            facts.place.queue_manager, facts.learned.queue_manager, given, facts.owner_name
        )
        surely_from = first(self.names.get(facts.source or ""), facts.source_name)
        # The destination reports a message when it has taken it.
        came = None
        if hops and hops[-1].rank == 1 and hops[-1].name is not None and hops[-1].name == surely_to:
            came = hops[-1].time
        if to.identity is not None and facts.source is not None:
            elsewhere = to.identity != facts.source
        else:
            elsewhere = None not in (surely_from, surely_to) and surely_from != surely_to
        ended_there = any(
            one is not None and _is_end_in_queue(one.message_class or 0)
            for one in (facts.nack, facts.dead)
        )
        # The source keeps its copy of a transactional message to another queue manager only when it
        # has heard that the message was received.
        received = (
            facts.receive_told
            or facts.was_taken
            or (facts.sender_has_copy and bool(facts.transactional) and elsewhere)
        )
        reached = received or facts.reach_told or facts.was_there or ended_there or came is not None
        waiting = facts.was_there and not ended_there and not received
        sent_time = first(facts.sent_time, facts.left_time)
        reached_time = known(min, (facts.reached_time, came))
        if received:
            outcome = Outcome.RECEIVED
        elif waiting:
            outcome = Outcome.WAITING
        elif facts.dead:
            outcome = Outcome.DEAD_LETTER
        elif facts.nack:
            outcome = Outcome.FAILED
        elif reached:
            outcome = Outcome.REACHED
        else:
            outcome = self._open(facts, sent_time, as_of)
        failures = [one.name for one in (facts.dead, facts.nack) if one is not None]
        source_name = first(surely_from, facts.source)
        target_name = first(surely_to, to.owner)
        between = [hop for hop in hops if None not in (hop.reporter, facts.source)]
        between = [hop for hop in between if hop.reporter != facts.source]
        return Delivery(
            facts.message_id,
            facts.label,
            facts.source,
            source_name,
            facts.destination,
            target_name,
            first(facts.place.queue, facts.learned.queue, to.queue),
            sent_time,
            facts.priority,
            facts.transactional,
            facts.size_bytes,
            outcome.value,
            _reason(outcome, facts, first(*failures)),
            reached,
            bool(failures) and (received or waiting or (reached and not ended_there)),
            facts.acknowledge,
            reached_time,
            facts.received_time,
            _seconds(sent_time, reached_time),
            _seconds(sent_time, facts.received_time),
            _path(
                Step(queue_manager=source_name, time=sent_time),
                between,
                Step(queue_manager=target_name, time=reached_time) if reached else None,
            ),
            first(*failures) if facts.dead else None,
            facts.found_in,
        )

    def _open(self, facts: Facts, sent_time: int | None, as_of: int | None) -> Outcome:
        """Decide about a message of which nothing was heard, by its time and what it asked for."""
        if sent_time is None:
            return Outcome.IN_TRANSIT
        sent_s = sent_time // SECOND
        receive_s = known(min, (facts.time_to_be_received_s, self.lost_after_s))
        reach_s = known(min, (facts.time_to_reach_queue_s, receive_s))
        age_s = None if as_of is None else as_of // SECOND - sent_s
        if reach_s is None or (age_s is not None and age_s <= reach_s):
            return Outcome.IN_TRANSIT
        due_s, asked = None, facts.acknowledge or 0
        if asked & AckRequest.POSITIVE_ARRIVAL:
            due_s = reach_s
        elif asked & AckRequest.POSITIVE_RECEIVE:
            due_s = receive_s
        is_overdue = age_s is not None and due_s is not None and age_s > due_s
        return Outcome.LOST if is_overdue else Outcome.UNKNOWN


def _is_end_in_queue(message_class: int) -> bool:
    """Whether a class tells of a failure after the message had reached its queue.

    One of them comes from the sender, who only waited too long and does not know.
    """
    return (
        is_negative(message_class)
        and is_about_receiving(message_class)
        and message_class != MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER
    )


def _reason(outcome: Outcome, facts: Facts, failure: str | None) -> str | None:
    if outcome is Outcome.RECEIVED:
        return MessageClass.ACK_RECEIVE.name if facts.receive_told else None
    if outcome in (Outcome.WAITING, Outcome.REACHED):
        return MessageClass.ACK_REACH_QUEUE.name if facts.reach_told else None
    return failure if outcome in (Outcome.DEAD_LETTER, Outcome.FAILED) else None


def _seconds(sent_time: int | None, time: int | None) -> float | None:
    return None if sent_time is None or time is None else (time - sent_time) / SECOND


def _path(start: Step, between: Sequence[Hop], end: Step | None) -> list[Step]:
    """Return the source, the hops between, and the destination if it was reached."""
    path = [start]
    for hop in between:
        # Reports know identities only. The last is of the destination, if that was reached.
        is_end = end is not None and hop is between[-1] and hop.rank == 1
        name = first(hop.name, end["queue_manager"] if end and is_end else None, hop.reporter)
        path.append(Step(queue_manager=name, time=hop.time))
    last = path[-1]["queue_manager"]
    if (
        end is not None
        and None not in (end["queue_manager"], last)
        and last != end["queue_manager"]
    ):
        path.append(end)
    return path

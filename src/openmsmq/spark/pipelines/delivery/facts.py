"""Everything that the rows say about each message, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.pipelines.delivery.evidence import COPIES, Evidence, Seen, evidence_of
from openmsmq.spark.pipelines.delivery.names import Place, destination_of, identity_key, place_of
from openmsmq.spark.pipelines.delivery.paths import departed_message, identifier_of, report_of

Value = TypeVar("Value")

SECOND: Final = 1_000_000
"""Microseconds."""


class Proof(NamedTuple):
    """What one row tells of a message, with the names that were learned; times in microseconds."""

    kind: str
    short: str | None
    about: str | None
    """The message; None for a report that does not say it whole."""
    source: str | None
    """The identity of the queue manager that sent the message, or that reports."""
    source_key: str | None
    destination: str | None
    owner_key: str | None
    queue_manager: str | None
    queue: str | None
    queue_base: str | None
    arrived_time: int | None
    sent_time: int | None
    label: str | None
    message_class: int | None
    message_class_name: str | None
    priority: int | None
    transactional: bool | None
    acknowledge: int | None
    time_to_reach_queue_s: int | None
    time_to_be_received_s: int | None
    size_bytes: int | None
    hop: int | None = None
    departed: bool | None = None
    source_name: str | None = None
    owner_name: str | None = None
    destination_manager: str | None = None
    destination_queue: str | None = None
    as_of: int | None = None
    """When everything is judged."""


LEARNED: Final = Proof._fields[Proof._fields.index("source_name") :]
"""What is not in the row itself, but follows from all rows."""


def proof_of(row: Seen) -> Proof | None:
    """Read what a row tells; None if it tells nothing of any message."""
    kind = evidence_of(row)
    hop: int | None = None
    departed: bool | None = None
    short: str | None
    destination = row.destination
    if kind is Evidence.TRACE:
        report = report_of(row)
        if report is None:
            return None
        _, hop, departed, source, destination = report
        short, about = report.short, departed_message(report)
    else:
        about = row.correlation_id if kind is Evidence.ACKNOWLEDGMENT else row.message_id
        if kind is Evidence.NOTHING or about is None:
            return None
        source, short = identifier_of(about)
        if kind is Evidence.ACKNOWLEDGMENT:
            destination = row.response_queue
    return Proof(
        kind,
        short,
        about,
        source,
        None if source is None else identity_key(source),
        destination,
        destination_of(destination).key,
        row.queue_manager,
        row.queue,
        place_of(row).queue,
        row.arrived_time,
        row.sent_time,
        None if kind is Evidence.TRACE else row.label,
        row.message_class,
        row.message_class_name,
        row.priority,
        row.transactional,
        row.acknowledge,
        row.time_to_reach_queue_s,
        row.time_to_be_received_s,
        row.size_bytes,
        hop,
        departed,
    )


def with_names(proof: Proof, known: Mapping[str, Place], as_of: int | None) -> Proof:
    """Add the names that were learned, and the moment."""
    nobody = Place(None)
    there = known.get(proof.destination or "", nobody)
    return proof._replace(
        source_name=known.get(proof.source_key or "", nobody).queue_manager,
        owner_name=known.get(proof.owner_key or "", nobody).queue_manager,
        destination_manager=there.queue_manager,
        destination_queue=there.queue,
        as_of=as_of,
    )


class Failure(NamedTuple):
    """A failure that was told: when, which, and its name; the last one counts."""

    time: int | None
    message_class: int | None
    name: str | None


class Facts(NamedTuple):
    """What is known about a message."""

    message_id: str
    source: str | None
    source_name: str | None
    destination: str | None
    owner_name: str | None
    label: str | None
    sent_time: int | None
    priority: int | None
    transactional: bool | None
    acknowledge: int | None
    size_bytes: int | None
    time_to_reach_queue_s: int | None
    time_to_be_received_s: int | None
    place: Place
    """Where it was found."""
    learned: Place
    """Where others to its destination were found."""
    found_in: list[str]
    left_time: int | None
    reach_told: bool
    receive_told: bool
    was_taken: bool
    was_there: bool
    sender_has_copy: bool
    dead: Failure | None
    nack: Failure | None
    reached_time: int | None
    received_time: int | None


def facts_of(message_id: str, rows: Sequence[Proof]) -> Facts:
    """Put together what all rows say about a message."""
    by_kind: dict[str, list[Proof]] = {kind: [] for kind in Evidence}
    for row in rows:
        by_kind[row.kind].append(row)
    waiting, taken, journal, sent, dead = (
        by_kind[kind]
        for kind in (
            *(Evidence.WAITING, Evidence.TAKEN, Evidence.JOURNAL),
            *(Evidence.SENT, Evidence.DEAD_LETTER),
        )
    )
    copies = [row for row in rows if row.kind in COPIES]
    acknowledgments, traces = by_kind[Evidence.ACKNOWLEDGMENT], by_kind[Evidence.TRACE]
    told = acknowledgments + traces
    reach, receive = (
        [row.sent_time for row in acknowledgments if row.message_class == one]
        for one in (MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE)
    )

    def most(name: str) -> Any:
        return known(max, map(attrgetter(name), copies))

    # From its copies, else from acknowledgments and reports, which repeat some.
    destination, label = (
        first(known(max, map(get, copies)), known(max, map(get, told)))
        for get in (attrgetter("destination"), attrgetter("label"))
    )
    named = next(row for row in rows if row.destination == destination)
    places = [Place(row.queue_manager, row.queue_base) for row in (*waiting, *taken, *journal)]
    return Facts(
        message_id,
        rows[0].source,
        rows[0].source_name,
        destination,
        named.owner_name,
        label,
        most("sent_time"),
        most("priority"),
        most("transactional"),
        most("acknowledge"),
        most("size_bytes"),
        most("time_to_reach_queue_s"),
        most("time_to_be_received_s"),
        min(places, key=_in_order, default=Place(None)),
        Place(named.destination_manager, named.destination_queue),
        sorted({"\\".join(filter(None, (row.queue_manager, row.queue))) for row in copies}),
        known(min, (row.sent_time for row in traces)),
        bool(reach),
        bool(receive),
        bool(taken or journal),
        bool(waiting or taken),
        bool(sent),
        max((_failure(row, row.arrived_time) for row in dead), key=_in_order, default=None),
        max(
            (
                _failure(row, row.arrived_time if row.sent_time is None else row.sent_time)
                for row in acknowledgments
                if is_negative(row.message_class or 0)
            ),
            key=_in_order,
            default=None,
        ),
        known(min, (*reach, *(row.arrived_time for row in (*waiting, *taken)))),
        known(min, (*receive, *(row.arrived_time for row in journal))),
    )


def known(choose: Callable[..., Any], values: Iterable[Value | None]) -> Value | None:
    """Choose from the values that are known; None if none is."""
    found: Value | None = choose((value for value in values if value is not None), default=None)
    return found


def first(*values: Value | None) -> Value | None:
    """Return the first value that is known."""
    return next((value for value in values if value is not None), None)


def _in_order(values: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in values]


def _failure(row: Proof, time: int | None) -> Failure:
    if is_negative(row.message_class or 0):
        return Failure(time, row.message_class, row.message_class_name)
    # A dead letter that was older than it might become: other systems do not give a class.
    late = MessageClass.NACK_RECEIVE_TIMEOUT
    arrived, sent, limit_s = row.arrived_time, row.sent_time, row.time_to_be_received_s
    if (
        arrived is not None and sent is not None and limit_s is not None
    ) and arrived // SECOND - sent // SECOND >= limit_s:
        return Failure(time, late, late.name)
    return Failure(time, None, None)

"""What becomes of messages that cannot be decoded, other than a row that says so."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from openmsmq.api.messages import ARRIVAL_MASK
from openmsmq.client.blocking import QueueManager
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.model.errors import TransactionSequence
from openmsmq.model.limits import LABEL_MAX_CHARACTERS
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.source.options import Mode, OnError, SourceOptions
from openmsmq.spark.source.queue_range import QueueRange

if TYPE_CHECKING:
    from openmsmq.spark.decode.record_batches import Failure


def dispose(
    options: SourceOptions,
    manager: QueueManager,
    part: QueueRange,
    failures: tuple[Failure, ...],
) -> None:
    """Do what `onError` says with messages that cannot be decoded."""
    if options.on_error is OnError.FAIL:
        first = failures[0]
        raise QueueProblem(
            f"{len(failures)} messages of {part.queue} at {part.address} cannot be decoded, the "
            f"first with lookup id {first.lookup_id} ({first.error}): look at it with `openmsmq "
            "peek --lookup-id`, or set the option onError to row, skip or queue"
        )
    if options.on_error is OnError.QUEUE:
        _send_poison(options, manager, part, failures)


def _send_poison(
    options: SourceOptions,
    manager: QueueManager,
    part: QueueRange,
    failures: tuple[Failure, ...],
) -> None:
    """Send undecodable packets to the poison queue, once, however often and however split the
    range is read: each message has a name of its own, by which the queue manager knows it.
    """
    place = f"{options.reader}\n{manager.names(part.queue).private_name}\n{options.poison_queue}"
    prefix = f"poison {hashlib.sha256(place.encode()).hexdigest()[:32]} "
    known = {each.query for each in manager.queries(prefix=prefix)}
    for failure in failures:
        query = f"{prefix}{failure.lookup_id}"
        if query not in known:
            label = f"{part.queue} {failure.lookup_id}: {failure.error}"[:LABEL_MAX_CHARACTERS]
            message = OutgoingMessage(body=failure.packet, label=label)
            _send_once(manager, query, options.poison_queue, message)
    status = manager.queue(part.queue).properties()
    if options.mode is Mode.CONSUME and status.reserved_for == options.reader:
        _forget_completed(manager, status.reserved_start, prefix, known)


def _send_once(
    manager: QueueManager, query: str, poison_queue: str, message: OutgoingMessage
) -> None:
    transaction = manager.begin()
    try:
        manager.queue(poison_queue).send(message, transaction=transaction)
        transaction.prepare(query=query, batch=0)
    except TransactionSequence:
        # Another attempt of this task may have been quicker.
        if not manager.has_batch(query, 0):
            raise
        transaction.abort()
    else:
        manager.commit_batch(query, 0, [bytes(transaction.unit_of_work)])


def _forget_completed(
    manager: QueueManager, reserved_start: int, prefix: str, known: set[str]
) -> None:
    """Forget messages that earlier batches have taken out: they do not come again.

    A task that was given up may still have one of them in hand, so their names are over for good.
    """
    for query in known:
        if int(query.removeprefix(prefix)) & ARRIVAL_MASK < reserved_start:
            manager.forget_query(query, is_over=True)

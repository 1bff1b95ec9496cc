"""What becomes of messages that cannot be decoded, other than a row that says so."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from openmsmq.client.blocking import QueueManager
from openmsmq.client.outgoing import OutgoingMessage
from openmsmq.model.limits import LABEL_MAX_CHARACTERS
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.source.options import OnError, SourceOptions
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
    """Send undecodable packets to the poison queue, once, however often the range is read."""
    place = f"{options.reader}\n{part.manager}\n{part.queue}\n{options.poison_queue}"
    digest = hashlib.sha256(place.encode()).hexdigest()[:32]
    query = f"poison {digest} {failures[0].lookup_id}-{failures[-1].lookup_id}"
    if manager.last_batch(query) >= 0:
        return
    messages = [
        OutgoingMessage(
            body=failure.packet,
            label=f"{part.queue} {failure.lookup_id}: {failure.error}"[:LABEL_MAX_CHARACTERS],
        )
        for failure in failures
    ]
    transaction = manager.begin()
    manager.queue(options.poison_queue).send_many(messages, transaction=transaction)
    transaction.prepare(query=query, batch=0)
    manager.commit_batch(query, 0, [bytes(transaction.unit_of_work)])

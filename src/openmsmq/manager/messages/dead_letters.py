"""Where the copy of a message that nobody received is kept. [MQDMPR 3.1.1.12]"""

from __future__ import annotations

from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.model.errors import MsmqError
from openmsmq.model.names import SystemQueue
from openmsmq.model.queue import QueuePrivacy
from openmsmq.wire.extensions import dead_letter_path_of
from openmsmq.wire.message_bytes import is_transactional


def dead_letter_queue(table: QueueTable, packet: bytes, *, sent_here: bool) -> LocalQueue:
    """Find the dead-letter queue of a message: its application's own, or the system's.

    Only an application of this computer may name one, and `sent_here` says that it was one: what a
    packet says of its source is a claim, and would be a way into every queue.
    """
    transactional = is_transactional(packet)
    path = dead_letter_path_of(packet) if sent_here else ""
    if path:
        try:
            queue = table.find(path)
        except MsmqError:
            queue = None
        if queue is not None and not problem_with(queue, transactional=transactional):
            return queue
    return table.system(
        SystemQueue.TRANSACTIONAL_DEAD_LETTER if transactional else SystemQueue.DEAD_LETTER
    )


def problem_with(queue: LocalQueue, *, transactional: bool) -> str:
    """Return why a queue takes no dead letters of a kind; empty if it does."""
    properties = queue.properties
    if not queue.can.take_messages or queue.is_connector:
        return "it is no queue of applications"
    if properties.transactional != transactional:
        return f"it is {'' if properties.transactional else 'not '}transactional"
    return closed_because(queue)


def closed_because(queue: LocalQueue) -> str:
    """Return what a queue wants that no dead letter has; empty if it wants nothing."""
    properties = queue.properties
    if properties.authentication_required:
        return "it takes only authenticated messages, and dead letters are not"
    if properties.privacy is QueuePrivacy.BODY:
        return "it takes only encrypted messages, and dead letters are not"
    return ""

"""Where the copy of a message that nobody received is kept. [MQDMPR 3.1.1.12]"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.queue_table import QueueTable
from openmsmq.manager.queues import LocalQueue
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import SystemQueue
from openmsmq.wire.extensions import dead_letter_path_of
from openmsmq.wire.headers import user

_SOURCE: Final = 16
_FLAGS: Final = 60


def dead_letter_queue(table: QueueTable, packet: bytes, local: Guid) -> LocalQueue:
    """Find the dead-letter queue of a message: its application's own, or the system's.

    Its own must be a queue here that takes what the message is, transactional or not. Only who
    sent it here may name one: others would get a way into every queue.
    """
    transactional = bool(int.from_bytes(packet[_FLAGS : _FLAGS + 4], "little") & user.TRANSACTION)
    path = dead_letter_path_of(packet) if packet[_SOURCE : _SOURCE + 16] == local else ""
    if path:
        try:
            queue = table.find(path)
        except MsmqError:
            queue = None
        if (
            queue is not None
            and queue.role == "queue"
            and queue.properties.transactional == transactional
        ):
            return queue
    return table.system(
        SystemQueue.TRANSACTIONAL_DEAD_LETTER if transactional else SystemQueue.DEAD_LETTER
    )

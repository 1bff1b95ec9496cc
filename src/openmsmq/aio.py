"""The client for asyncio: `from openmsmq import aio`, then `async with aio.connect(...)`."""

from __future__ import annotations

from openmsmq.client.aio import Cursor, Queue, QueueManager, Transaction, connect
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.settings import Settings
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE

__all__ = [
    "SINGLE_MESSAGE",
    "ConnectionLost",
    "Cursor",
    "OutcomeUnknown",
    "OutgoingMessage",
    "Queue",
    "QueueManager",
    "ReceivedMessage",
    "Settings",
    "Transaction",
    "connect",
]

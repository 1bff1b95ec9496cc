r"""OpenMSMQ: Microsoft Message Queuing on Linux and anywhere Python runs.

    import openmsmq as mq

    with mq.connect("127.0.0.2") as manager:
        manager.queue(r"private$\orders").send("order 1")

The names of the client are loaded when they are first used, so that importing a part of the
package brings no more than that part.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openmsmq.client.blocking import Cursor as Cursor
    from openmsmq.client.blocking import Queue as Queue
    from openmsmq.client.blocking import QueueManager as QueueManager
    from openmsmq.client.blocking import Transaction as Transaction
    from openmsmq.client.blocking import connect as connect
    from openmsmq.client.errors import ConnectionLost as ConnectionLost
    from openmsmq.client.errors import OutcomeUnknown as OutcomeUnknown
    from openmsmq.client.formatters import Formatter as Formatter
    from openmsmq.client.formatters import FormatterError as FormatterError
    from openmsmq.client.formatters import register_formatter as register_formatter
    from openmsmq.client.messages.certificates import Certificate as Certificate
    from openmsmq.client.messages.outgoing import OutgoingMessage as OutgoingMessage
    from openmsmq.client.messages.received import ReceivedMessage as ReceivedMessage
    from openmsmq.client.settings import Settings as Settings
    from openmsmq.client.verbs.transactions import SINGLE_MESSAGE as SINGLE_MESSAGE
    from openmsmq.model.errors import MsmqError as MsmqError
    from openmsmq.model.errors import QueueNotFound as QueueNotFound
    from openmsmq.model.errors import ReceiveTimeout as ReceiveTimeout
    from openmsmq.model.identity import MessageId as MessageId
    from openmsmq.model.message import AckRequest as AckRequest
    from openmsmq.model.message import MessageClass as MessageClass
    from openmsmq.model.queue import AccessMode as AccessMode
    from openmsmq.model.queue import SeekAction as SeekAction
    from openmsmq.model.queue import ShareMode as ShareMode

__all__ = [
    "SINGLE_MESSAGE",
    "AccessMode",
    "AckRequest",
    "Certificate",
    "ConnectionLost",
    "Cursor",
    "Formatter",
    "FormatterError",
    "MessageClass",
    "MessageId",
    "MsmqError",
    "OutcomeUnknown",
    "OutgoingMessage",
    "Queue",
    "QueueManager",
    "QueueNotFound",
    "ReceiveTimeout",
    "ReceivedMessage",
    "SeekAction",
    "Settings",
    "ShareMode",
    "Transaction",
    "connect",
    "register_formatter",
]

__version__ = "0.1.0"

_HOMES: Final = {
    "client.blocking": ("Cursor", "Queue", "QueueManager", "Transaction", "connect"),
    "client.messages.certificates": ("Certificate",),
    "client.errors": ("ConnectionLost", "OutcomeUnknown"),
    "client.formatters": ("Formatter", "FormatterError", "register_formatter"),
    "client.messages.outgoing": ("OutgoingMessage",),
    "client.messages.received": ("ReceivedMessage",),
    "client.settings": ("Settings",),
    "client.verbs.transactions": ("SINGLE_MESSAGE",),
    "model.errors": ("MsmqError", "QueueNotFound", "ReceiveTimeout"),
    "model.identity": ("MessageId",),
    "model.message": ("AckRequest", "MessageClass"),
    "model.queue": ("AccessMode", "SeekAction", "ShareMode"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'openmsmq' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"openmsmq.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])

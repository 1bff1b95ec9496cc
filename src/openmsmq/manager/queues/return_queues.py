r"""The names under which acknowledgments wait for senders that named our queue by address.

Several senders may be behind one address, and only one of them can be its listener. So the name has
both: `DIRECT=TCP:10.0.0.7\private$\order_queue$.8f3c...` is for that queue manager at that address,
and leaves through a session with it. The packets themselves name the order queue, as senders want.

What comes into the order queue of a sender counts there as a word of this queue manager. So neither
applications nor reports of what others sent go there from here: others would have written it.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    FormatName,
    LocalQueueName,
    PrivateFormatName,
)
from openmsmq.model.names.parts import fold
from openmsmq.wire.bodies.acknowledgments import ORDER_QUEUE_NUMBER

_ORDER_QUEUE: Final = "order_queue$"
_PREFIX: Final = f"{_ORDER_QUEUE}."


def return_queue(address: str, sender: Guid) -> DirectFormatName:
    """Name the queue of acknowledgments for a sender at an address."""
    name = LocalQueueName(f"{_PREFIX}{sender}", private=True)
    return DirectFormatName(DirectProtocol.TCP, address, name)


def sender_of(name: FormatName) -> Guid | None:
    """Return for whom such a queue is; None for any other queue."""
    if not isinstance(name, DirectFormatName) or not isinstance(name.queue, LocalQueueName):
        return None
    text = name.queue.name
    if not name.queue.private or not text.startswith(_PREFIX):
        return None
    try:
        return Guid.parse(text[len(_PREFIX) :])
    except ValueError:
        return None


def is_order_queue(name: FormatName) -> bool:
    """Whether messages to a name are for the order queue of a queue manager."""
    match name:
        case DirectFormatName(queue=LocalQueueName() as queue):
            # Behind a `?` stands the word by which a stream knows its receipts.
            own_name = fold(queue.name).partition("?")[0]
            return own_name == _ORDER_QUEUE or sender_of(name) is not None
        case PrivateFormatName(number=number):
            return number == ORDER_QUEUE_NUMBER
        case _:
            return False

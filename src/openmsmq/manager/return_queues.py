r"""The names under which acknowledgments wait for senders that named our queue by address.

Several senders may be behind one address, and only one of them can be its listener. So the name has
both: `DIRECT=TCP:10.0.0.7\private$\order_queue$.8f3c...` is for that queue manager at that address,
and leaves through a session with it. The packets themselves name the order queue, as senders want.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.names import DirectFormatName, DirectProtocol, FormatName, LocalQueueName

_PREFIX: Final = "order_queue$."


def return_queue(address: str, sender: Guid) -> DirectFormatName:
    """Name the queue of acknowledgments for a sender at an address."""
    name = LocalQueueName(f"{_PREFIX}{sender}", private=True)
    return DirectFormatName(DirectProtocol.TCP, address, name)


def sender_of(name: FormatName) -> Guid | None:
    """Give for whom such a queue is; None for any other queue."""
    if not isinstance(name, DirectFormatName) or not isinstance(name.queue, LocalQueueName):
        return None
    text = name.queue.name
    if not name.queue.private or not text.startswith(_PREFIX):
        return None
    try:
        return Guid.parse(text[len(_PREFIX) :])
    except ValueError:
        return None

"""What goes wrong between an application and its queue manager, beside the MSMQ errors.

    ConnectionError
    └── ConnectionLost      the queue manager cannot be reached; nothing was changed
        ├── NotSent         the call did not even leave; the client makes it again by itself
        └── OutcomeUnknown  the answer to a call was lost; it may have taken effect

What the queue manager itself refuses is an `MsmqError`.
"""

from __future__ import annotations


class ConnectionLost(ConnectionError):
    """There is no connection to the queue manager. What was asked for has not happened."""


class NotSent(ConnectionLost):
    """The connection was lost before the call left: it can safely be made again."""


class OutcomeUnknown(ConnectionLost):
    """The connection was lost while a call was under way: it may have taken effect, or not.

    The client never repeats such a call by itself. `call` names it. Look into the queue, or repeat
    the call when twice does no harm; inside a transaction the question does not arise.
    """

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(call, reason)
        self.call = call
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"The connection was lost before the answer to {self.call} came ({self.reason}): it "
            "may have taken effect or not. Look into the queue before you repeat it, or use a "
            "transaction, which is undone when its connection is lost."
        )

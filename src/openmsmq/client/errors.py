"""What goes wrong between an application and its queue manager, beside the MSMQ errors.

    ConnectionError
    └── ConnectionLost      the queue manager cannot be reached; nothing was changed
        ├── NotSent         the call did not even leave; the client makes it again by itself
        ├── TlsMismatch     one side speaks TLS and the other does not; waiting does not help
        └── OutcomeUnknown  the answer to a call was lost; it may have taken effect

What the queue manager itself refuses is an `MsmqError`.
"""

from __future__ import annotations


class ConnectionLost(ConnectionError):
    """There is no connection to the queue manager. What was asked for has not happened."""


class NotSent(ConnectionLost):
    """The connection was lost before the call left: it can safely be made again."""


class TlsMismatch(ConnectionLost):
    """One side speaks TLS and the other does not. To try again does not help."""

    def __init__(self, place: str, speaks_tls: bool) -> None:
        super().__init__(place, speaks_tls)
        self.place = place
        """Where it was found: a port and its host, or the path of a socket."""
        self.speaks_tls = speaks_tls
        """Whether the queue manager is the side that does."""

    @property
    def finding(self) -> str:
        """What was found, without what to do about it."""
        return f"{self.place} {'speaks only TLS' if self.speaks_tls else 'does not speak TLS'}"

    def __str__(self) -> str:
        advice = (
            "connect with tls=True, or with tls=FILE if a file has the certificates to trust"
            if self.speaks_tls
            else "connect without tls, or give the queue manager a certificate"
        )
        return f"{self.finding}: {advice}"


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

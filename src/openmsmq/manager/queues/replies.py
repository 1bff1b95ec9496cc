"""Answers to applications: at once, or when the disk has what they stand on."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Output, Respond
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.errors import MsmqError


class Replies:
    """The connections, and what is to be said to them."""

    def __init__(self, ledger: Ledger, outputs: list[Output]) -> None:
        self._ledger = ledger
        self.connections: dict[int, Connection] = {}
        self._outputs = outputs

    def answer(self, connection: int, call: int, reply: api.AnyReply) -> None:
        """Answer a call; who is gone gets no answer."""
        if connection in self.connections:
            self._outputs.append(Respond(connection, call, reply))

    def answer_when_done(self, connection: int, call: int, reply: api.AnyReply) -> None:
        """Answer a call when the current turn is durable, or say why it is not."""
        self._ledger.add_waiting(Replied(self, connection, call, reply))

    def fail(self, connection: int, call: int, error: MsmqError) -> None:
        """Refuse a call."""
        self.answer(connection, call, api.Failed(error.code, error.detail))


class Replied(Effect):
    """A call is answered, or told why it cannot be."""

    __slots__ = ("call", "connection", "replies", "reply")

    def __init__(self, replies: Replies, connection: int, call: int, reply: api.AnyReply) -> None:
        self.replies = replies
        self.connection = connection
        self.call = call
        self.reply = reply

    def follow(self) -> None:
        """Answer."""
        self.replies.answer(self.connection, self.call, self.reply)

    def revert(self, error: MsmqError, /) -> None:
        """Refuse the call."""
        self.replies.fail(self.connection, self.call, error)

    def describe(self) -> dict[str, Plain]:
        """Return who is answered, and with which kind of reply."""
        reply = type(self.reply).__name__
        return {"connection": self.connection, "call": self.call, "reply": reply}

"""Messages as they were received: views that decode their packets only when they are looked at."""

from __future__ import annotations

from openmsmq.api.messages import Entry
from openmsmq.client.formatters.base import Formatter, FormatterError
from openmsmq.client.messages.properties import MessageView
from openmsmq.model.message import MessageClass, TransactionFacts
from openmsmq.wire.errors import DecodeError


class ReceivedMessage(MessageView):
    """A message in its place in a queue. Nothing of it changes. [MQDMPR 3.1.1.12]

    `openmsmq.client.messages.properties` has its properties, and what each means. The packet is
    decoded when the first one is read; the body, when `body` is.
    """

    __slots__ = ("_formatter",)

    def __init__(self, entry: Entry, formatter: Formatter) -> None:
        # Not by `super`, which takes a third as long again: this runs for every message.
        self.entry = entry
        self._packet = None
        self._formatter = formatter

    @property
    def body(self) -> object:
        """The body as the queue's formatter reads it; may raise `FormatterError`."""
        body_type, body = self.plain_body()
        if body is None:
            raise FormatterError("the body is encrypted: body_bytes has its ciphertext")
        return self._formatter.read(body_type, body)

    @property
    def is_acknowledgment(self) -> bool:
        """Whether a queue manager reports with it what became of another message."""
        return self.message_class not in (MessageClass.NORMAL, MessageClass.REPORT)

    @property
    def transaction(self) -> TransactionFacts | None:
        """Which transaction it was sent in and its place there; None for a message of its own."""
        header = self.packet.transaction
        if header is None:
            return None
        return TransactionFacts(
            id=self.transaction_id,
            first=header.first_in_transaction,
            last=header.last_in_transaction,
            sequence=header.point,
            final_ack_requested=header.final_ack_wanted,
        )

    def __repr__(self) -> str:
        try:
            what = f"{self.message_id}, label {self.label!r}, {self.message_class_name}"
        except DecodeError as error:
            what = f"unreadable: {error}"
        return f"<ReceivedMessage {what}>"

"""Receipts for streams of ours: who knows the word in their URL has been sent the stream.

A receipt says that messages have arrived, and they are deleted. Nothing else about a post proves
who it is from: so the first message of a stream tells its receiver a URL with a word that nobody
guesses, and only what comes there is believed.
"""

from __future__ import annotations

import hmac
from typing import Final

from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.peers.confirmations import Confirmations
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.protocol.posts import ReceivedPost
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.srmp.arriving import final_class_in, order_ack_in
from openmsmq.wire.srmp.envelope import Envelope
from openmsmq.wire.srmp.kinds import ABOUT_STREAMS, kind_of
from openmsmq.wire.srmp.urls import query_of

_PATH: Final = "/msmq/private$/order_queue$"
_WORD: Final = "SenderStream="


class StreamReceipts:
    """Makes the URLs for receipts of streams, and heeds what comes there."""

    def __init__(
        self, base: Foundation, outgoing: OutgoingQueues, confirmations: Confirmations
    ) -> None:
        config = base.config
        self._place = config.http.url or f"http://{config.name}"
        self._own = base.counters.identifier
        self._notices = base.notices
        self._outgoing = outgoing
        self._confirmations = confirmations

    def url_for(self, outgoing: OutgoingQueue) -> str:
        """Return the URL for receipts of what leaves a queue."""
        return f"{self._place}{_PATH}?{_WORD}{outgoing.receipts_token.hex()}"

    def take(self, envelope: Envelope, post: ReceivedPost, now: Instant) -> bool:
        """Heed a receipt; say whether it is one that may be believed.

        One that tells nothing new is believed, too: it may be about what is long forgotten.
        """
        ack, receipt = order_ack_in(envelope), envelope.stream_receipt
        if kind_of(envelope) not in ABOUT_STREAMS or ack is None or receipt is None:
            return False
        if receipt.source != self._own:
            return False
        if isinstance(ack, FinalAck):
            return self._take_final(ack, final_class_in(envelope), post, now)
        return self._take_order(ack, post, now)

    def _take_order(self, ack: OrderAck, post: ReceivedPost, now: Instant) -> bool:
        outgoing = self._outgoing.of_sequence(ack.sequence)
        if outgoing is None:
            return True
        if not self._is_believed(outgoing, post):
            return False
        self._confirmations.order_acked(outgoing, ack.sequence, ack.number, now)
        return True

    def _take_final(
        self, ack: FinalAck, message_class: int, post: ReceivedPost, now: Instant
    ) -> bool:
        awaited = self._confirmations.awaited(ack)
        if awaited is None:
            return True
        if not self._is_believed(awaited.outgoing, post):
            return False
        self._confirmations.final_acked(awaited, message_class, now)
        return True

    def _is_believed(self, outgoing: OutgoingQueue, post: ReceivedPost) -> bool:
        """Whether a post names the word that only the receiver of a stream has been told."""
        word = query_of(post.target)
        expected = f"{_WORD}{outgoing.receipts_token.hex()}"
        if (
            outgoing.is_http
            and outgoing.receipts_token
            and hmac.compare_digest(word.casefold().encode(), expected.casefold().encode())
        ):
            return True
        self._notices.note(
            NoticeKind.ACKNOWLEDGMENT_REFUSED,
            "unknown word in the URL",
            peer=post.address,
            queue=str(outgoing.name),
        )
        return False

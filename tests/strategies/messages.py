"""Messages as applications send them: every wish a sender can have, and its packet."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from openmsmq.model.identity import NIL_GUID, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import NO_CORRELATION
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, encode


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message before it is sent."""

    body: bytes = b"body"
    priority: int = 3
    recoverable: bool = True
    time_to_be_received_s: int = INFINITE_S
    time_to_reach_queue_s: int = INFINITE_S
    acknowledge: int = 0
    admin_queue: str | None = None
    """The direct name of the administration queue, as the wire has it."""
    journal_on_failure: bool = False
    journal_on_success: bool = False
    transactional: bool = False
    correlation_id: bytes = NO_CORRELATION
    dead_letter_queue: str = ""
    """The path name of its own dead-letter queue."""

    def packet(self, destination: str = r"OS:ALPHA\private$\orders") -> bytes:
        """Return the packet, without what the queue manager fills in."""
        flags = (
            (user.RECOVERABLE if self.recoverable else 0)
            | (user.JOURNAL_ON_FAILURE if self.journal_on_failure else 0)
            | (user.JOURNAL_ON_SUCCESS if self.journal_on_success else 0)
        )
        admin = None if self.admin_queue is None else DirectName(self.admin_queue)
        return encode(
            UserMessage(
                UserHeader(
                    NIL_GUID,
                    flags=flags,
                    time_to_be_received_s=self.time_to_be_received_s,
                    destination=DirectName(destination),
                    admin_queue=admin,
                ),
                MessageProperties.of(
                    self.body, acknowledge=self.acknowledge, correlation_id=self.correlation_id
                ),
                BaseHeader(self.priority, self.time_to_reach_queue_s),
                TransactionHeader(SequenceId(0, 0), 0) if self.transactional else None,
                tail=dead_letter_extension(self.dead_letter_queue)
                if self.dead_letter_queue
                else b"",
            )
        )


def drafts(admin_queues: SearchStrategy[str | None]) -> SearchStrategy[Draft]:
    """Messages with all wishes; most have none."""
    return st.builds(
        Draft,
        priority=st.sampled_from([3, 3, 0, 5, 7]),
        recoverable=st.sampled_from([True, True, False]),
        time_to_be_received_s=st.sampled_from([INFINITE_S, INFINITE_S, INFINITE_S, 0, 1, 5, 60]),
        acknowledge=st.sampled_from([0, 0x0, 0x5, 0xE, 0xF, 0x8]),
        admin_queue=admin_queues,
        journal_on_failure=st.sampled_from([False, False, True]),
        journal_on_success=st.sampled_from([False, False, True]),
    )

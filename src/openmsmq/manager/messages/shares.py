"""What strangers may store here, what they are told, and what the operator hears of messages lost.

Applications and known peers may use the whole quota. Strangers together leave them a part of it,
and one of them leaves some to the others. Who fills it is not stored with each message: it is
reckoned up by queue and address, and what readers take out is taken off all in proportion. What
goes on into a journal or a dead-letter queue stays theirs, in proportion, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.queues.totals import KILOBYTE
from openmsmq.model.limits import (
    QUOTA_PARTS_COUNT,
    STRANGER_QUOTA_PARTS_COUNT,
    UNLIMITED_KB,
)
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers import queue_names
from openmsmq.wire.message_bytes import is_recoverable
from openmsmq.wire.outline import outline

if TYPE_CHECKING:
    from openmsmq.manager.queues.queue import LocalQueue
    from openmsmq.manager.queues.table import QueueTable
    from openmsmq.manager.turn.foundation import Foundation

_SHOWN_CHARACTERS: Final = 200
_ADDRESSES_PER_QUEUE_MAX_COUNT: Final = 64
"""Strangers whose bytes in one queue are told apart; further ones count together."""
_CHARGED_MAX_COUNT: Final = 1_000
"""Queues after which those that have become empty are looked for."""
_INSECURE: Final = frozenset(
    {
        MessageClass.NACK_BAD_DESTINATION_QUEUE,
        MessageClass.NACK_ACCESS_DENIED,
        MessageClass.NACK_BAD_SIGNATURE,
        MessageClass.NACK_BAD_ENCRYPTION,
        MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""Rejections of which administration queues hear only when that is permitted (C-88)."""

_SECRET: Final = _INSECURE | {
    MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE,
    MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE,
}
"""Rejections that, told apart, tell a stranger which queues there are."""

_REASONS: Final = {
    MessageClass.NACK_BAD_DESTINATION_QUEUE: "no such queue",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "expired",
    MessageClass.NACK_QUEUE_EXCEEDS_QUOTA: "queue quota",
    MessageClass.NACK_ACCESS_DENIED: "access denied",
    MessageClass.NACK_BAD_SIGNATURE: "not authenticated",
    MessageClass.NACK_BAD_ENCRYPTION: "cannot be decrypted",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "cannot be decrypted",
    MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE: "queue is not transactional",
    MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE: "queue is transactional",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "too many hops",
}


class Shares:
    """Judges what comes in sessions by the word on which it comes."""

    def __init__(self, base: Foundation, table: QueueTable) -> None:
        self._totals = table.totals
        self._acting = base.acting
        self._notices = base.notices
        self._permit_insecure_nacks = base.config.transfer.permit_insecure_nacks
        self._charges: dict[LocalQueue, dict[str, int]] = {}
        """What strangers have put into each queue, as far as it may still be there."""

    # Room.

    def takes(self, size: int) -> bool:
        """Whether so many more bytes may be stored on the present asker."""
        totals, asker = self._totals, self._acting.asker
        if not asker.is_stranger:
            return totals.room_for(size)
        return totals.room_for_strangers(size) and self._has_share(asker.address, size)

    def is_beyond_share(self, size: int) -> bool:
        """Whether so many bytes are too much for who is brought, and not for who brings him.

        Then nothing waits: who brings him would wait with all that others send through him.
        """
        return (
            self._acting.asker.is_brought and not self.takes(size) and self._totals.room_for(size)
        )

    def take_all(self, packets: list[bytes], size: int) -> bool:
        """Whether messages of one kind may be stored, with others `size` bytes together."""
        if not self.takes(size):
            return False
        if is_recoverable(packets[0]):
            return True
        strangers = self._acting.asker.is_stranger
        return self._totals.memory_for(len(packets), size, strangers=strangers)

    def has_memory(self, packet: bytes, size_before: int) -> bool:
        """Whether a message is recoverable, or there is memory for it and those before it."""
        if is_recoverable(packet):
            return True
        strangers = self._acting.asker.is_stranger
        return self._totals.memory_for(1, size_before + len(packet), strangers=strangers)

    def charge(self, queue: LocalQueue, size: int) -> None:
        """Note that so many bytes come into a queue on the present asker."""
        asker = self._acting.asker
        if asker.is_stranger and queue.can.be_charged:
            self._add(queue, asker.address, size)

    def copied(self, source: LocalQueue, target: LocalQueue, size: int) -> None:
        """Note that so many bytes have left a queue for a journal or dead-letter queue.

        They take up as much room there, so they stay with those whose they were.
        """
        charges = self._charges.get(source)
        if not charges:
            return
        whole = max(sum(charges.values()), source.size + size)
        moved = {address: charged * size // whole for address, charged in charges.items()}
        self._charges[source] = {
            address: charged - moved[address] for address, charged in charges.items()
        }
        for address, part in moved.items():
            self._add(target, address, part)

    def _add(self, queue: LocalQueue, address: str, size: int) -> None:
        if len(self._charges) >= _CHARGED_MAX_COUNT and queue not in self._charges:
            self._held_by("")
        charges = self._charges.setdefault(queue, {})
        if address not in charges and len(charges) >= _ADDRESSES_PER_QUEUE_MAX_COUNT:
            address = ""
        charges[address] = charges.get(address, 0) + size

    def _has_share(self, address: str, size: int) -> bool:
        quota_kb = self._totals.quota_kb
        if quota_kb == UNLIMITED_KB:
            return True
        limit = quota_kb * KILOBYTE // QUOTA_PARTS_COUNT * STRANGER_QUOTA_PARTS_COUNT
        if self._totals.bytes + size <= limit:
            return True
        return self._held_by(address) + size <= limit

    def _held_by(self, address: str) -> int:
        """Return how many bytes a stranger has here, about."""
        held = 0
        for queue, charges in list(self._charges.items()):
            total = sum(charges.values())
            if total > queue.size:
                # Readers have taken the difference, and nobody knows whose it was.
                charges = {
                    who: left
                    for who, charged in charges.items()
                    if (left := charged * queue.size // total)
                }
                self._charges[queue] = charges
            if not charges:
                del self._charges[queue]
            held += charges.get(address, 0)
        return held

    # What others hear, and what the operator hears.

    def may_report(self, reason: MessageClass) -> bool:
        """Whether an administration queue may hear of a rejection (C-88)."""
        return reason not in _INSECURE or self._permit_insecure_nacks

    def told(self, reason: MessageClass) -> MessageClass:
        """Return the reason that the source of a transactional message hears.

        It must hear that its message has failed. A stranger does not hear whether a queue is there:
        whatever keeps a message out, for him it is the same.
        """
        is_hidden = self._acting.asker.is_stranger and reason in _SECRET
        if self._permit_insecure_nacks or not is_hidden:
            return reason
        return MessageClass.NACK_ACCESS_DENIED

    def dropped(self, packet: bytes, reason: MessageClass) -> None:
        """Count a message that is refused for good."""
        said = _REASONS.get(reason, "refused")
        if reason is MessageClass.NACK_QUEUE_EXCEEDS_QUOTA and not self.has_memory(packet, 0):
            said = "express memory"
        if not self._notices.tells(NoticeKind.MESSAGE_DROPPED):
            self._notices.note(NoticeKind.MESSAGE_DROPPED, said)
            return
        queue = queue_names.describe(outline(packet).destination_name)[:_SHOWN_CHARACTERS]
        peer = self._acting.asker.address
        self._notices.note(NoticeKind.MESSAGE_DROPPED, said, peer=peer, queue=queue)

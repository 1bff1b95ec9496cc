"""What happens to packets on their way from an application into a queue. [MQDMPR 3.1.7.1.27]"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.access.message_security import Examined, MessageSecurity, without_claims
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.named_queues import NamedQueues
from openmsmq.manager.messages.placing import require_room
from openmsmq.manager.messages.plain_delivery import PlainDelivery, are_plain
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.targets import require_little_work
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    MessageNotAuthenticated,
    TransactionUsage,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.model.message import MessageClass
from openmsmq.model.names import PrivateFormatName, PublicFormatName
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.callers import Caller
from openmsmq.storage.records import StagedSend
from openmsmq.wire import message_bytes
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.headers.transaction import transaction_marks
from openmsmq.wire.outline import Outline, outline
from openmsmq.wire.packets import UserMessage, check, count_listed, decode
from openmsmq.wire.srmp.urls import is_url, url_of

_NAMING: Final = user.JOURNAL_ON_FAILURE | user.ADMIN_QUEUE
"""Flags of messages that may name queues into which they, or words of them, come."""
_PROTECTED: Final = user.SECURITY | user.MULTI_QUEUE
_TRACED: Final = base.DEBUG | base.TRACE
_TOLD_OVER_HTTP: Final = POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_RECEIVE
"""What the receiver of a message over HTTP may be asked to tell."""
_BEHIND_BODY: Final = user.MULTI_QUEUE | user.SOAP
_PASSED_OVER: Final = _BEHIND_BODY | user.OTHER_NAMES | user.SECURITY
"""Headers that an outline does not read; receivers do, and close the session if they cannot."""


class Sending:
    """Checks and stamps what applications send."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        plain: PlainDelivery,
        staging: Staging,
        security: MessageSecurity,
        named: NamedQueues,
    ) -> None:
        self._counters = base.counters
        self._table = table
        self._delivery = delivery
        self._plain = plain
        self._staging = staging
        self._security = security
        self._named = named
        self._last_checked: dict[bool, tuple[bytes, Outline | None]] = {
            False: (b"", None),
            True: (b"", None),
        }

    def put_new(
        self, queue: LocalQueue, packets: list[bytes], caller: Caller, now: Instant
    ) -> list[int]:
        """Check packets and put them into their queue with this turn; give their numbers."""
        packets, found, flags = self._admitted(queue, packets, caller, transactional=False)
        numbers = self._counters.take_messages(len(packets))
        needs_look = not queue.can.lead_away and (flags & _PROTECTED or _demands_protection(queue))
        if not needs_look and are_plain(packets, found):
            self._plain.put_alike(queue, packets, numbers, now)
        else:
            sends = self._staged(queue, packets, found, numbers, now)
            self._delivery.put(queue, sends, now)
        return numbers

    def accept(
        self,
        queue: LocalQueue,
        packets: list[bytes],
        caller: Caller,
        now: Instant,
        *,
        mark: int | None,
        are_copies: bool,
    ) -> tuple[list[StagedSend], list[int]]:
        """Check packets and stamp them; give them ready to be put, and their numbers.

        `mark` is what all messages of their transaction have, None without a transaction. Copies
        for one of several queues were written here, from what could be read.
        """
        packets, found, _ = self._admitted(
            queue, packets, caller, transactional=mark is not None, are_copies=are_copies
        )
        numbers = self._counters.take_messages(len(packets))
        return self._staged(queue, packets, found, numbers, now, mark), numbers

    def _admitted(
        self,
        queue: LocalQueue,
        packets: list[bytes],
        caller: Caller,
        *,
        transactional: bool,
        are_copies: bool = False,
    ) -> tuple[list[bytes], list[Outline], int]:
        """Check packets; give them as they may be put, their outlines and all their flags."""
        if not queue.can.lead_away and transactional != queue.properties.transactional:
            raise TransactionUsage(
                f"{queue.name} is {'' if queue.properties.transactional else 'not '}transactional"
                f", so it takes messages only {'in' if not transactional else 'outside'} "
                "transactions"
            )
        found, flags = self._all_checked(packets, transactional, are_copies)
        if flags & user.SECURITY:
            packets = [
                without_claims(packet, outlined)
                for packet, outlined in zip(packets, found, strict=True)
            ]
            if not queue.can.lead_away:
                protected = [each for each in found if each.flags & user.SECURITY]
                require_little_work(0, len(protected))
        if queue.can.lead_away:
            _require_destination(queue, packets, found)
            if _leads_over_http(queue):
                _require_postable(queue, packets, found)
        if flags & _NAMING:
            self._named.require_all(caller, queue, packets, found)
        require_room(self._table.totals, queue, packets)
        return packets, found, flags

    def _staged(
        self,
        queue: LocalQueue,
        packets: list[bytes],
        found: list[Outline],
        numbers: list[int],
        now: Instant,
        mark: int | None = None,
    ) -> list[StagedSend]:
        stage, own, sent_s = self._staging.stage, self._counters.identifier, now.unix_s
        staged: list[StagedSend] = []
        last: Outline | None = None
        stamp: message_bytes.Stamp | None = None
        queue_id, deadline_s, asks = queue.id, 0, 0
        is_local, is_strict = not queue.can.lead_away, _demands_protection(queue)
        for packet, number, outlined in zip(packets, numbers, found, strict=True):
            if outlined is last and stamp is not None:
                # It has the same headers as the one before, so it asks for the same.
                staged.append(StagedSend(queue_id, stamp.put(packet, number), deadline_s, asks))
            elif is_local and (is_strict or outlined.flags & _PROTECTED):
                stamped = message_bytes.stamped(packet, own, sent_s, number)
                examined = self._examined(stamped, outlined, queue, now)
                checked = examined.packet
                if mark is not None:
                    checked = message_bytes.marked(checked, mark)
                staged.append(stage(queue, checked, examined.found, sent_here=True))
                last = None
            else:
                stamp = message_bytes.Stamp(packet, own, sent_s, outlined, mark)
                like = stage(queue, stamp.put(packet, number), outlined, sent_here=True)
                staged.append(like)
                last, deadline_s, asks = outlined, like.deadline_s, like.asks
        return staged

    def put_all(
        self,
        accepted: list[tuple[LocalQueue, list[StagedSend]]],
        now: Instant,
        *,
        own_transaction: bool,
    ) -> None:
        """Put accepted packets into their queues, as one transaction if that is asked."""
        marks: list[int] | None = None
        if own_transaction:
            count = sum(len(sends) for _, sends in accepted)
            marks = transaction_marks(count, self._counters.take_transaction())
        position = 0
        for queue, sends in accepted:
            own_marks = None if marks is None else marks[position : position + len(sends)]
            position += len(sends)
            self._delivery.put(queue, sends, now, own_marks)

    def _all_checked(
        self, packets: list[bytes], transactional: bool, are_copies: bool
    ) -> tuple[list[Outline], int]:
        """Check packets; give their outlines and all their flags.

        One with headers and length of the one before needs no second look, unless something may be
        wrong behind its body.
        """
        found: list[Outline] = []
        flags = names = 0
        head, checked = self._last_checked[transactional]
        for packet in packets:
            if checked is None or len(packet) != checked.packet_size or not packet.startswith(head):
                checked = self._checked(packet, transactional, are_copies)
                flags |= checked.flags
                if checked.flags & user.MULTI_QUEUE and not are_copies:
                    names += count_listed(packet)
                    require_little_work(names, 0)
                head = packet
                if not (checked.flags & _BEHIND_BODY or checked.base_flags & _TRACED):
                    head = message_bytes.fixed_headers(packet, checked)
            found.append(checked)
        self._last_checked[transactional] = head, checked
        return found, flags | found[0].flags if found else 0

    def _checked(self, packet: bytes, transactional: bool, is_copy: bool) -> Outline:
        if len(packet) > PACKET_MAX_BYTES:
            raise InsufficientResources(
                f"a message of {len(packet)} bytes; at most {PACKET_MAX_BYTES}"
            )
        try:
            found = outline(packet)
            if not is_copy and (found.flags & _PASSED_OVER or found.base_flags & _TRACED):
                # An outline passes over these headers, and nobody could read the message without.
                check(packet)
        except DecodeError as error:
            raise InvalidParameter(f"not a message: {error}") from None
        if found.packet_size != len(packet) or found.base_flags & base.SESSION:
            raise InvalidParameter("not a message: its size and its bytes differ")
        if bool(found.flags & user.TRANSACTION) != transactional:
            raise TransactionUsage(
                "a message has a transaction header if and only if it is sent in a transaction"
            )
        return found

    def _examined(self, packet: bytes, found: Outline, queue: LocalQueue, now: Instant) -> Examined:
        """Verify a message for a queue of this computer, and refuse one that may not enter."""
        examined = self._security.examine(packet, found, queue, now, arrived=False)
        match examined.refusal:
            case None:
                return examined
            case MessageClass.NACK_BAD_SIGNATURE if found.flags & _PROTECTED:
                raise MessageNotAuthenticated(
                    f"{queue.name}: the signature of a message does not hold, or its certificate "
                    "is not registered for its sender"
                )
            case MessageClass.NACK_BAD_SIGNATURE:
                raise MessageNotAuthenticated(
                    f"{queue.name} takes only authenticated messages: sign them"
                )
            case _ if queue.properties.privacy is QueuePrivacy.BODY:
                raise AccessDenied(f"{queue.name} takes only encrypted messages: encrypt them")
            case _:
                raise InvalidParameter(f"{queue.name}: a body cannot be decrypted here")


def _demands_protection(queue: LocalQueue) -> bool:
    properties = queue.properties
    return properties.authentication_required or properties.privacy is QueuePrivacy.BODY


def _require_destination(queue: LocalQueue, packets: list[bytes], found: list[Outline]) -> None:
    """Refuse messages that would go elsewhere than to the queue that was opened."""
    last: Outline | None = None
    for packet, outlined in zip(packets, found, strict=True):
        if outlined is last:
            continue
        last = outlined
        if not _leads_to(queue.name, packet, outlined):
            raise InvalidParameter(f"a message is not addressed to {queue.name}")


def _leads_over_http(queue: LocalQueue) -> bool:
    return is_url(queue.name.removeprefix("DIRECT="))


def _require_postable(queue: LocalQueue, packets: list[bytes], found: list[Outline]) -> None:
    """Refuse messages that ask for what no message over HTTP can have."""
    last: Outline | None = None
    for packet, outlined in zip(packets, found, strict=True):
        if outlined is last:
            continue
        last = outlined
        if outlined.flags & user.SECURITY:
            raise InvalidParameter(
                f"{queue.name}: messages over HTTP are neither signed nor encrypted; send them to "
                "a URL with HTTPS, which protects them on their way"
            )
        if message_bytes.message_class(packet, outlined) != MessageClass.NORMAL:
            raise InvalidParameter(
                f"{queue.name}: a message over HTTP has no class of its own; its receiver would "
                "take it for nothing"
            )
        wanted = message_bytes.acknowledge(packet, outlined) & _TOLD_OVER_HTTP
        if wanted and outlined.flags & user.ADMIN_QUEUE and not _has_url_for_receipts(packet):
            raise InvalidParameter(
                f"{queue.name}: acknowledgments of a message over HTTP come over HTTP; name the "
                "administration queue by its URL, DIRECT=HTTP://host/msmq/private$/queue"
            )


def _has_url_for_receipts(packet: bytes) -> bool:
    message = decode(packet)
    return isinstance(message, UserMessage) and bool(url_of(message.user.admin_queue))


def _leads_to(name: str, packet: bytes, found: Outline) -> bool:
    match found.destination_name:
        case DirectName(text):
            return fold(f"DIRECT={text}") == fold(name)
        case PrivateOnDestination(number):
            manager = Guid(message_bytes.destination_manager(packet))
            return fold(str(PrivateFormatName(manager, number))) == fold(name)
        case PublicName(queue):
            # The next queue managers go by its owner, and may not know the queue yet.
            addressed = message_bytes.destination_manager(packet) != NIL_GUID
            return addressed and fold(str(PublicFormatName(queue))) == fold(name)
        case _:
            return False

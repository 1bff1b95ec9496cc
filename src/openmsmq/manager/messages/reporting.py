"""What the queue manager sends of its own: acknowledgments, reports and notifications.

Others ask for them, so all of them are within bounds: a lifetime here, a share of the quota and of
the outgoing queues, and, if a stranger has them sent to somebody else, a rate. What does not fit is
dropped and counted: a report is the first to give way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from openmsmq.manager.messages.report_rates import ReportRates
from openmsmq.manager.messages.reports import is_wanted, report_for
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.queues.guests import Guest
from openmsmq.manager.queues.return_queues import is_order_queue
from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    FINAL_ACK_LIFETIME_S,
    FINAL_ACKS_QUOTA_PARTS_COUNT,
    REPORT_BODY_MAX_BYTES,
    REPORT_LIFETIME_S,
)
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.model.names.urls import UrlMap
from openmsmq.storage.records import StagedSend
from openmsmq.wire.message_bytes import is_recoverable, stamped
from openmsmq.wire.outline import outline

if TYPE_CHECKING:
    from openmsmq.manager.access.message_security import MessageSecurity
    from openmsmq.manager.askers import Asker
    from openmsmq.manager.messages.placing import Placing
    from openmsmq.manager.messages.staging import Staging
    from openmsmq.manager.queues.queue import LocalQueue
    from openmsmq.manager.queues.table import QueueTable
    from openmsmq.manager.turn.foundation import Foundation
    from openmsmq.model.clock import Instant
    from openmsmq.model.message import MessageClass

_SHOWN_CHARACTERS: Final = 200
_TOO_MANY: Final = frozenset({"quota", "rate", "outgoing queues"})


class Known(Protocol):
    """Tells computers that are known from others."""

    def leads_back(self, name: FormatName, asker: Asker) -> bool:
        """Whether a queue is on the computer on whose word something goes there."""
        ...

    def knows(self, name: FormatName) -> bool:
        """Whether configuration or directory know the computer of a queue."""
        ...


class Reachable(Protocol):
    """Knows the ways to other computers."""

    def has_way(self, name: FormatName, manager: Guid, now: Instant) -> bool:
        """Whether it is known how to reach a queue of a queue manager."""
        ...


class Reporter:
    """Posts what others asked for, as far as they may ask for it."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        placing: Placing,
        staging: Staging,
        security: MessageSecurity,
        known: Known,
        reachable: Reachable,
    ) -> None:
        self._counters = base.counters
        self._notices = base.notices
        self._acting = base.acting
        self._table = table
        self._placing = placing
        self._staging = staging
        self._security = security
        self._known = known
        self._reachable = reachable
        self._rates = ReportRates()
        self._urls = UrlMap(base.config.http.queues, {})

    def report(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Tell the administration queue of a message what became of it, if it asked for that."""
        if not is_wanted(packet, reason):
            return
        if not self._acting.asker.known and self._rates.is_quiet(self._acting.asker, now):
            self._notices.note(NoticeKind.REPORT_DROPPED, "pause", peer=self._acting.asker.address)
            return
        made = report_for(
            packet,
            reason,
            self._counters.identifier,
            self._table.published.owner_of,
            self._body_max,
        )
        if made is None:
            return
        if is_order_queue(made.queue):
            # Label and body are those of the message: there they would be a word of ours.
            self._dropped(made.queue, "order queue")
            return
        self.post(made.queue, made.packet, now)

    def _body_max(self, queue: FormatName) -> int | None:
        """Return how long a body a report to a queue may show; None for any."""
        asker = self._acting.asker
        if asker.known or self._known.leads_back(queue, asker):
            return None
        return REPORT_BODY_MAX_BYTES

    def post(
        self,
        name: FormatName,
        packet: bytes,
        now: Instant,
        *,
        express_max_count: int | None = None,
        is_final: bool = False,
    ) -> None:
        """Send a message of the queue manager itself; one that has no way or no room is dropped.

        With `express_max_count` it is one by which flows go on: it finds its way when others do
        not, but is dropped where so many express messages wait already. With `is_final` it ends a
        flow, and nobody asks for it again: it lives longer, and has more room.
        """
        is_urgent = express_max_count is not None
        queue, problem = self._destination(name, now, is_urgent=is_urgent)
        if queue is not None:
            has_room = self._has_room(queue, packet, is_urgent=is_urgent) and (
                is_urgent or self._has_share(queue, name, len(packet), is_final=is_final)
            )
            problem = self._problem(queue, name, packet, now, has_room=has_room)
        if queue is None or problem:
            self._dropped(name, problem)
            if problem in _TOO_MANY and not self._acting.asker.known:
                self._rates.refused(self._acting.asker, now)
            return
        if express_max_count is not None and len(queue.express_ids) >= express_max_count:
            return
        number = self._counters.take_message_of_turn()
        stamped_packet = stamped(packet, self._counters.identifier, now.unix_s, number)
        staged = self._staging.stage(queue, stamped_packet, outline(stamped_packet))
        if queue.can.lead_away:
            # On the wire it lives for ever, as the specification says; here it does not.
            lifetime_s = FINAL_ACK_LIFETIME_S if is_final else REPORT_LIFETIME_S
            deadline_s = min(staged.deadline_s, now.unix_s + lifetime_s)
            staged = StagedSend(staged.queue, staged.packet, deadline_s, staged.asks)
        self._placing.put(queue, [staged], now)

    def _destination(
        self, name: FormatName, now: Instant, *, is_urgent: bool
    ) -> tuple[LocalQueue | None, str]:
        asker = self._acting.asker
        if not asker.known and isinstance(name, PrivateFormatName | PublicFormatName):
            manager = name.queue_manager if isinstance(name, PrivateFormatName) else asker.manager
            if manager != self._counters.identifier and not self._reachable.has_way(
                name, manager, now
            ):
                # Strangers may name queue managers without end.
                return None, "no way"
        guest = Guest(asker, reports=True, is_urgent=is_urgent)
        try:
            return self._table.destination(name, guest), ""
        except InsufficientResources:
            return None, "outgoing queues"
        except MsmqError:
            return None, "no such queue"

    def _problem(
        self, queue: LocalQueue, name: FormatName, packet: bytes, now: Instant, *, has_room: bool
    ) -> str:
        """Return why a report may not enter a queue; empty if it may."""
        if not queue.can.be_sent_to or queue.properties.transactional:
            return "wrong kind of queue"
        if queue.can.take_messages and not self._security.may_enter_plain(queue):
            # What a stranger has written may be in it; over the network it would not come in.
            return "closed queue"
        if (
            queue.can.take_messages
            and isinstance(name, DirectFormatName)
            and name.protocol.is_http
            and not self._urls.allows(name.queue)
        ):
            # It would not come in by this name from elsewhere, and no message leads it there.
            return "no URL"
        if not has_room:
            return "quota"
        asker = self._acting.asker
        if not asker.known and not self._known.leads_back(name, asker):
            return "" if self._rates.take(asker, len(packet), now) else "rate"
        return ""

    def _has_room(self, queue: LocalQueue, packet: bytes, *, is_urgent: bool) -> bool:
        totals, size = self._table.totals, len(packet)
        if not queue.room_for(size) or not totals.room_for(size):
            return False
        return is_recoverable(packet) or totals.memory_for(1, size, strangers=not is_urgent)

    def _has_share(self, queue: LocalQueue, name: FormatName, size: int, *, is_final: bool) -> bool:
        """Whether what is for another computer stays within what may wait for it."""
        if queue.can.take_messages:
            return True
        if not is_final:
            return self._table.guests.room_for_report(queue, size)
        totals = self._table.totals
        return self._known.knows(name) or totals.room_for_strangers(
            size, FINAL_ACKS_QUOTA_PARTS_COUNT
        )

    def _dropped(self, name: FormatName, problem: str) -> None:
        shown = str(name)[:_SHOWN_CHARACTERS]
        self._notices.note(
            NoticeKind.REPORT_DROPPED, problem, peer=self._acting.asker.address, queue=shown
        )

"""Lists of queues, a page at a time: which fit, in which order, and what they hold together."""

from __future__ import annotations

import fnmatch
import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl, security_of
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.requests.admin import Administration
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.limits import (
    QUEUE_FILTER_MAX_CHARACTERS,
    QUEUE_PAGE_MAX_COUNT,
    UNLIMITED_KB,
)
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueOrder, QueueRole
from openmsmq.security.access.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

RATE_SPAN_MIN_MS: Final = 5_000
"""Rates are those since a look at all queues that is at least so long ago. [ours]"""

_PATTERN: Final = frozenset("*?[")
_LISTED: Final = {role.value: role for role in QueueRole if role is not QueueRole.AWAITING}


class QueueRates:
    """How many messages came and went since a look at all queues some seconds ago.

    Before the second look there is none: then it is what came and went since the start.
    """

    def __init__(self, table: QueueTable, started: Instant) -> None:
        self._table = table
        self._before: dict[int, tuple[int, int]] = {}
        self._next: dict[int, tuple[int, int]] = {}
        self._next_ms = started.ticks_ms

    def look(self, now: Instant) -> None:
        """Look at all queues, if the last look is long enough ago."""
        if now.ticks_ms - self._next_ms < RATE_SPAN_MIN_MS:
            return
        self._before = self._next
        self._next_ms = now.ticks_ms
        self._next = {
            queue.id: (queue.flow.in_count, queue.flow.out_count)
            for queue in self._table
            if queue.flow.in_count or queue.flow.out_count
        }

    def came(self, queue: LocalQueue) -> int:
        """Return how many messages came into a queue since then."""
        return queue.flow.in_count - self._before.get(queue.id, (0, 0))[0]

    def left(self, queue: LocalQueue) -> int:
        """Return how many messages of a queue were received since then."""
        return queue.flow.out_count - self._before.get(queue.id, (0, 0))[1]


class QueuePages:
    """Shows queues a page at a time; only those of the page are looked at closely."""

    def __init__(
        self,
        table: QueueTable,
        admin: Administration,
        replies: Replies,
        access: AccessControl,
        started: Instant,
    ) -> None:
        self._table = table
        self._admin = admin
        self._replies = replies
        self._access = access
        self._rates = QueueRates(table, started)

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.PageQueues, self.page_queues)

    def page_queues(
        self, state: Connection, call: int, request: api.PageQueues, now: Instant
    ) -> None:
        """Show one page of the queues that fit."""
        self._replies.answer_when_done(state.id, call, self.page(state.caller, request, now))

    def page(self, caller: Caller, request: api.PageQueues, now: Instant) -> api.QueuePage:
        """Return one page of the queues that fit and that a caller may see."""
        if request.limit > QUEUE_PAGE_MAX_COUNT:
            raise InvalidParameter(
                f"a page of {request.limit} queues: ask for at most {QUEUE_PAGE_MAX_COUNT}"
            )
        queues = self._sorted(self._visible(caller, self._fitting(request)), request, now)
        stop = min(request.offset + request.limit, len(queues))
        page = [self._admin.status_of(queue) for queue in queues[request.offset : stop]]
        totals = _totals(queues) if request.with_totals else api.QueueTotals()
        return api.QueuePage(page, len(queues), totals, now.unix_s)

    def _fitting(self, request: api.PageQueues) -> list[LocalQueue]:
        """Return the queues that fit, by name, whoever may see them."""
        roles = _roles(request.kinds)
        if len(request.filter) > QUEUE_FILTER_MAX_CHARACTERS:
            raise InvalidParameter(
                f"a filter of {len(request.filter)} characters; at most "
                f"{QUEUE_FILTER_MAX_CHARACTERS}"
            )
        wanted = fold(request.filter)
        by_name = self._table.by_name
        names = [name for name, queue in by_name.items() if queue.role in roles]
        if wanted and _PATTERN.isdisjoint(wanted):
            names = [name for name in names if wanted in name]
        elif wanted:
            fits = re.compile(fnmatch.translate(wanted)).match
            names = [name for name in names if fits(name) is not None]
        names.sort()
        return [by_name[name] for name in names]

    def _visible(self, caller: Caller, queues: list[LocalQueue]) -> list[LocalQueue]:
        """Return those of some queues that a caller may see."""
        if caller.is_unlimited:
            return queues
        if caller.queues:
            return [queue for queue in queues if self._access.may_see(caller, queue)]
        # Most queues have the same rights, and are seen by the same callers.
        known: dict[tuple[bytes, bool], bool] = {}
        found: list[LocalQueue] = []
        for queue in queues:
            key = security_of(queue), queue.can.belong_to_manager
            may_see = known.get(key)
            if may_see is None:
                may_see = known[key] = self._access.may_see(caller, queue)
            if may_see:
                found.append(queue)
        return found

    def _sorted(
        self, queues: list[LocalQueue], request: api.PageQueues, now: Instant
    ) -> list[LocalQueue]:
        """Put queues that stand by name in another order; those that are alike stay so."""
        try:
            order = QueueOrder(request.sort)
        except ValueError:
            known = ", ".join(order.value for order in QueueOrder)
            raise InvalidParameter(f"{request.sort!r} is no order of queues: {known}") from None
        if order is not QueueOrder.NAME:
            queues.sort(key=self._value(order, now), reverse=request.descending)
        elif request.descending:
            queues.reverse()
        return queues

    def _value(self, order: QueueOrder, now: Instant) -> Callable[[LocalQueue], int]:
        known = _VALUES.get(order)
        if known is not None:
            return known
        self._rates.look(now)
        return self._rates.came if order is QueueOrder.IN else self._rates.left


def _age(queue: LocalQueue) -> int:
    """Return a number that is the larger the older the oldest message is."""
    oldest_s = queue.oldest_time_s if queue.count else 0
    return -oldest_s if oldest_s else -(1 << 62)


def _fullness(queue: LocalQueue) -> int:
    """Return how full a queue is, in thousandths of its quota."""
    quota_kb = queue.properties.quota_kb
    return 0 if quota_kb == UNLIMITED_KB else queue.size * 1000 // max(1, quota_kb * 1024)


_VALUES: Final[dict[QueueOrder, Callable[[LocalQueue], int]]] = {
    QueueOrder.MESSAGES: attrgetter("count"),
    QueueOrder.BYTES: attrgetter("size"),
    QueueOrder.AGE: _age,
    QueueOrder.QUOTA: _fullness,
}


def _roles(kinds: list[str]) -> tuple[QueueRole, ...]:
    for kind in kinds:
        if kind not in _LISTED:
            words = ", ".join(sorted(_LISTED))
            raise InvalidParameter(f"{kind!r} is no kind of queue that can be listed: {words}")
    # A tuple, because an enumeration takes longer to hash than to compare.
    return tuple([_LISTED[kind] for kind in kinds]) or (QueueRole.APPLICATION,)


def _totals(queues: list[LocalQueue]) -> api.QueueTotals:
    flows = [queue.flow for queue in queues]
    return api.QueueTotals(
        message_count=sum([queue.count for queue in queues]),
        message_bytes=sum([queue.size for queue in queues]),
        in_count=sum([flow.in_count for flow in flows]),
        in_bytes=sum([flow.in_bytes for flow in flows]),
        out_count=sum([flow.out_count for flow in flows]),
        out_bytes=sum([flow.out_bytes for flow in flows]),
        expired_count=sum([flow.expired_count for flow in flows]),
        purged_count=sum([flow.purged_count for flow in flows]),
    )

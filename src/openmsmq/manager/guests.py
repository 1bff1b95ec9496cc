"""Guests: outgoing queues that no application has asked for, and what may wait in them.

Acknowledgments and reports go to queues that messages of others name, and messages pass through to
queues that others name. Each name is an outgoing queue of ours, so strangers have a share of them,
and what applications open is never refused because of others.
"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.askers import Asker
from openmsmq.manager.queues import LocalQueue
from openmsmq.manager.totals import KILOBYTE, Share, Totals
from openmsmq.model.errors import InsufficientResources, UnsupportedFormatName
from openmsmq.model.limits import (
    OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT,
    OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT,
    OUTGOING_QUEUES_MAX_COUNT,
    OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT,
    QUOTA_PARTS_COUNT,
    REPORT_QUEUE_QUOTA_PARTS_COUNT,
    REPORTS_QUOTA_PARTS_COUNT,
    UNLIMITED_KB,
)
from openmsmq.model.names import DirectFormatName, FormatName

_KNOWN: Final = "known"
_NOBODY: Final = "nobody"


class Guest:
    """For whom an outgoing queue is made."""

    __slots__ = ("is_urgent", "reports", "who")

    def __init__(self, asker: Asker, *, reports: bool, is_urgent: bool = False) -> None:
        self.who = (_NOBODY if reports else _KNOWN) if asker.is_own else asker.address
        """An address, or how it is known; of a report that time brings, nobody says who asked."""
        if asker.known and not asker.is_own:
            self.who = _KNOWN
        self.reports = reports
        self.is_urgent = is_urgent
        """Whether a flow would stand still without it: then only the bound of all counts."""


class Guests:
    """Counts the outgoing queues of others, and the bytes of reports in them."""

    def __init__(self, totals: Totals) -> None:
        self.reports = Share(totals)
        """What waits in queues that were made for acknowledgments and reports."""
        self._totals = totals
        self.count = 0
        """How many outgoing queues of others there are."""
        self._counts: dict[str, int] = {}

    def require_new(self, name: FormatName, outgoing_count: int, guest: Guest | None) -> None:
        """Refuse an outgoing queue to a name that takes no messages, and one too many."""
        if isinstance(name, DirectFormatName) and name.protocol.is_http:
            raise UnsupportedFormatName(f"{name}: messages over HTTP are not sent")
        if not name.openable_for_send:
            raise UnsupportedFormatName(f"{name} takes no messages")
        allowed = OUTGOING_QUEUES_MAX_COUNT
        if guest is not None and self.count >= OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT:
            allowed = OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT
        elif guest is not None and not self._has_place(guest):
            allowed = OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT
        elif outgoing_count < OUTGOING_QUEUES_MAX_COUNT:
            return
        raise InsufficientResources(f"{allowed} outgoing queues are in use already")

    def _has_place(self, guest: Guest) -> bool:
        if guest.is_urgent or guest.who == _KNOWN:
            return True
        strangers = self.count - self._counts.get(_KNOWN, 0)
        if strangers >= OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT:
            return False
        own = self._counts.get(guest.who, 0)
        return guest.who == _NOBODY or own < OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT

    def came(self, queue: LocalQueue) -> None:
        """Count an outgoing queue, if it is one of others."""
        if queue.guest:
            self.count += 1
            self._counts[queue.guest] = self._counts.get(queue.guest, 0) + 1

    def left(self, queue: LocalQueue) -> None:
        """Count it no longer."""
        if queue.guest:
            self.count -= 1
            left = self._counts[queue.guest] - 1
            if left:
                self._counts[queue.guest] = left
            else:
                del self._counts[queue.guest]

    def adopt(self, queue: LocalQueue) -> None:
        """An application has opened a queue: if it is one of others, it no longer counts so."""
        self.left(queue)
        queue.guest = ""
        if queue.totals is self.reports:
            self.reports.bytes -= queue.size
            queue.totals = self._totals

    def totals_for(self, *, reports: bool) -> Totals:
        """Give where the bytes of a queue are counted."""
        return self.reports if reports else self._totals

    def room_for_report(self, queue: LocalQueue, size: int) -> bool:
        """Whether a report to another computer stays within what reports may take."""
        quota_kb = self._totals.quota_kb
        if quota_kb == UNLIMITED_KB:
            return True
        part = quota_kb * KILOBYTE // QUOTA_PARTS_COUNT
        return (
            queue.size + size <= part * REPORT_QUEUE_QUOTA_PARTS_COUNT
            and self.reports.bytes + size <= part * REPORTS_QUOTA_PARTS_COUNT
        )

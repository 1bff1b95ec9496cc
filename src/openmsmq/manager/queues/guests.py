"""Guests: outgoing queues that no application has asked for, and what may wait in them.

Acknowledgments and reports go to queues that messages of others name, and messages pass through to
queues that others name. Each name is an outgoing queue of ours, so strangers have a share of them,
and what applications open is never refused because of others. One application leaves some of them
to the next.
"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.askers import Asker
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.totals import KILOBYTE, Share, Totals
from openmsmq.model.errors import InsufficientResources, UnsupportedFormatName
from openmsmq.model.limits import (
    OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT,
    OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT,
    OUTGOING_QUEUES_MAX_COUNT,
    OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT,
    OWNER_SHARE_FACTOR,
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

    def __init__(self, totals: Totals, *, over_http: bool = False) -> None:
        self._over_http = over_http
        self.reports = Share(totals)
        """What waits in queues that were made for acknowledgments and reports."""
        self._totals = totals
        self.count = 0
        """How many outgoing queues of others there are."""
        self._counts: dict[str, int] = {}
        self.opener = ""
        """The application for which queues are opened at this moment; empty if it may have all."""
        self._opened_counts: dict[str, int] = {}

    def open_for(self, opener: str) -> None:
        """Open queues for an application from now on; empty for one that may have all."""
        self.opener = opener

    def require_new(self, name: FormatName, outgoing_count: int, guest: Guest | None) -> None:
        """Refuse an outgoing queue to a name that takes no messages, and one too many."""
        is_url = isinstance(name, DirectFormatName) and name.protocol.is_http
        if is_url and not self._over_http:
            raise UnsupportedFormatName(
                f"{name}: messages over HTTP are not sent; [http] in the configuration allows them"
            )
        if not name.openable_for_send:
            raise UnsupportedFormatName(f"{name} takes no messages")
        allowed = OUTGOING_QUEUES_MAX_COUNT
        if guest is not None and self.count >= OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT:
            allowed = OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT
        elif guest is not None and not self._has_place(guest):
            allowed = OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT
        elif outgoing_count < OUTGOING_QUEUES_MAX_COUNT:
            if guest is None:
                self._require_share(outgoing_count)
            return
        raise InsufficientResources(f"{allowed} outgoing queues are in use already")

    def _require_share(self, outgoing_count: int) -> None:
        own = self._opened_counts.get(self.opener, 0)
        share = (OUTGOING_QUEUES_MAX_COUNT - (outgoing_count - own)) // OWNER_SHARE_FACTOR
        if self.opener and own >= share:
            raise InsufficientResources(
                f"you have opened {own} outgoing queues, and may have {share} while others have "
                "theirs"
            )

    def _has_place(self, guest: Guest) -> bool:
        if guest.is_urgent or guest.who == _KNOWN:
            return True
        strangers = self.count - self._counts.get(_KNOWN, 0)
        if strangers >= OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT:
            return False
        own = self._counts.get(guest.who, 0)
        return guest.who == _NOBODY or own < OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT

    def came(self, queue: LocalQueue) -> None:
        """Count an outgoing queue, if it is one of others or its application is known."""
        if queue.guest:
            self.count += 1
            self._counts[queue.guest] = self._counts.get(queue.guest, 0) + 1
        if queue.opener:
            self._opened_counts[queue.opener] = self._opened_counts.get(queue.opener, 0) + 1

    def left(self, queue: LocalQueue) -> None:
        """Count it no longer."""
        if queue.guest:
            self.count -= 1
            _count_down(self._counts, queue.guest)
        if queue.opener:
            _count_down(self._opened_counts, queue.opener)

    def adopt(self, queue: LocalQueue) -> None:
        """An application has opened a queue: if it is one of others, it no longer counts so."""
        if queue.guest:
            self.left(queue)
            if queue.totals is self.reports:
                self.reports.leave(queue.size)
            queue.belong_to(self._totals, opener=self.opener)
            self.came(queue)

    def totals_for(self, *, reports: bool) -> Totals:
        """Return where the bytes of a queue are counted."""
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


def _count_down(counts: dict[str, int], who: str) -> None:
    left = counts[who] - 1
    if left:
        counts[who] = left
    else:
        del counts[who]

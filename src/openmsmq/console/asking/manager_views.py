"""What pages ask the queue manager, in one place: lists by page, and what needs somebody first.

Nothing here is larger than a page: a queue may have a million messages and a queue manager ten
thousand queues.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.aio import Queue, QueueManager
from openmsmq.api.messages import OutgoingStatus, QueueStatus, Status
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.console import limits, words
from openmsmq.console.names import segment
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import OutgoingQueueState, QueueOrder
from openmsmq.wire.errors import DecodeError

DEAD_LETTERS: Final = "system$;deadletter"
TRANSACTIONAL_DEAD_LETTERS: Final = "system$;deadxact"
DEAD_LETTER_QUEUES: Final = (DEAD_LETTERS, TRANSACTIONAL_DEAD_LETTERS)
SYSTEM_JOURNAL: Final = "system$;journal"
SYSTEM_QUEUES: Final = (*DEAD_LETTER_QUEUES, SYSTEM_JOURNAL)

_FULL_SHARE: Final = 0.9
_GOES_ON: Final = frozenset(
    {OutgoingQueueState.CONNECTED.management_text, OutgoingQueueState.INACTIVE.management_text}
)


# Queues.


class QueueList(msgspec.Struct, frozen=True):
    """A page of queues."""

    rows: list[QueueStatus]
    total_count: int
    offset: int

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; None if this is the last."""
        following = self.offset + len(self.rows)
        return following if following < self.total_count else None

    @property
    def previous_offset(self) -> int | None:
        """Where the page before begins; None if this is the first."""
        return max(0, self.offset - limits.QUEUES_PAGE_COUNT) if self.offset else None


SORTS: Final = tuple(order.value for order in QueueOrder)
"""By what the list of queues can be sorted."""


async def list_queues(
    manager: QueueManager, *, wanted: str, sort: str, descending: bool, offset: int
) -> QueueList:
    """Ask for a page of the queues whose names have a text in them, or are like a pattern."""
    page = await manager.queue_page(
        filter=wanted,
        sort=sort,
        descending=descending,
        offset=offset,
        limit=limits.QUEUES_PAGE_COUNT,
    )
    return QueueList(page.queues, page.total_count, offset)


async def busiest_queues(manager: QueueManager) -> list[QueueStatus]:
    """Ask for the queues of which a history is kept: the fullest, and those where most comes in.

    With ten thousand queues, to ask for all of them all the time would cost the queue manager more
    than a chart is worth.
    """
    found: dict[str, QueueStatus] = {}
    for sort in (QueueOrder.MESSAGES, QueueOrder.IN):
        page = await manager.queue_page(
            sort=sort, descending=True, limit=limits.HISTORY_ASKED_COUNT
        )
        found |= {one.path_name: one for one in page.queues}
    return list(found.values())


# Messages.


class MessageList(msgspec.Struct, frozen=True):
    """A page of messages, in the order in which they arrived."""

    rows: list[ReceivedMessage]
    start: int
    has_before: bool
    next_start: int | None
    """The arrival number from which the next page goes on; None if this is the last."""
    looked_count: int = 0
    """How many messages were looked at, if some were searched."""


async def search_messages(queue: Queue, status: QueueStatus, start: int, text: str) -> MessageList:
    """Look for messages with a text in label or body, from an arrival number on, up to a page.

    Bodies are compared as they are, with the text in UTF-8 and in UTF-16.
    """
    stop = status.last_arrival_number + 1
    wanted = (text.encode("utf-8"), text.encode("utf-16-le"))
    found: list[ReceivedMessage] = []
    place, looked_count, looked_bytes = start, 0, 0
    while looked_count < limits.SEARCHED_MAX_COUNT and looked_bytes < limits.SEARCHED_MAX_BYTES:
        entries = await queue.fetch_range(
            place, stop, limits.SEARCH_BATCH_COUNT, limits.MESSAGES_PAGE_BYTES
        )
        if not entries:
            return MessageList(found, start, bool(start), None, looked_count)
        for one in entries:
            looked_count += 1
            looked_bytes += len(one.packet)
            place = one.arrival_number + 1
            # Most are passed over without being decoded.
            if any(each in one.packet for each in wanted):
                message = ReceivedMessage(one, queue.formatter)
                if _has(message, text, wanted):
                    found.append(message)
            if len(found) == limits.MESSAGES_PAGE_COUNT:
                return MessageList(found, start, bool(start), place, looked_count)
    return MessageList(found, start, bool(start), place, looked_count)


def _has(message: ReceivedMessage, text: str, wanted: tuple[bytes, bytes]) -> bool:
    try:
        return text in message.label or any(each in message.body_bytes for each in wanted)
    except DecodeError:
        # It has the text somewhere: who looks for it may see that it is unreadable.
        return True


async def list_messages(queue: Queue, status: QueueStatus, start: int) -> MessageList:
    """Ask for a page of messages from an arrival number on."""
    stop = status.last_arrival_number + 1
    entries = await queue.fetch_range(
        start, stop, limits.MESSAGES_PAGE_COUNT + 1, limits.MESSAGES_PAGE_BYTES
    )
    rows = [ReceivedMessage(one, queue.formatter) for one in entries]
    shown = rows[: limits.MESSAGES_PAGE_COUNT]
    following = None
    if len(rows) > len(shown):
        following = rows[-1].arrival_number
    elif rows:
        # Bytes may have ended the answer before its count did.
        after = await queue.fetch_range(rows[-1].arrival_number + 1, stop, 1, 1)
        following = after[0].arrival_number if after else None
    has_before = bool(start) and bool(await queue.fetch_range(0, start, 1, 1))
    return MessageList(shown, start, has_before, following)


async def start_before(queue: Queue, stop: int) -> int:
    """Return from which arrival number on a page of messages lies below another number.

    It is searched for from the end; the queue manager counts, and no message is sent for it. Of
    very large messages it counts some, so that the page may begin a little earlier.
    """

    async def is_full(start: int) -> bool:
        parts = await queue.survey(start, stop, 1)
        return sum(part.count for part in parts) >= limits.MESSAGES_PAGE_COUNT

    width = limits.MESSAGES_PAGE_COUNT
    while width < stop and not await is_full(stop - width):
        width *= 2
    low, high = max(0, stop - width), stop
    while high - low > 1:
        middle = (low + high) // 2
        if await is_full(middle):
            low = middle
        else:
            high = middle
    return low


async def count_of(manager: QueueManager, name: str) -> int | None:
    """Ask how many messages a queue has; None for who may not know, or if it is not there."""
    try:
        return await manager.queue(name).count()
    except MsmqError:
        return None


# What needs somebody.


class Need(msgspec.Struct, frozen=True):
    """Something that somebody should look at."""

    kind: str
    """`bad` if something does not work, `open` if somebody has to decide."""
    title: str
    sentence: str
    path: str = ""
    link: str = ""


class Overview(msgspec.Struct, frozen=True):
    """How the queue manager is, and what needs somebody first."""

    status: Status
    fullest: list[QueueStatus]
    """The queues with most messages."""
    needs: list[Need]
    dead_letter_count: int | None
    in_doubt_count: int
    stuck: list[OutgoingStatus]


async def overview(manager: QueueManager) -> Overview:
    """Ask for everything that an operator looks at first."""
    status = await manager.status()
    fullest = await manager.queue_page(
        sort=QueueOrder.MESSAGES, descending=True, limit=limits.FULLEST_SHOWN_COUNT
    )
    outgoing = await manager.outgoing()
    stuck = [one for one in outgoing if is_stuck(one)]
    counts = {name: await count_of(manager, name) for name in DEAD_LETTER_QUEUES}
    known = [count for count in counts.values() if count is not None]
    in_doubt = status.in_doubt_count
    letters = sum(known) if known else None
    needs = [
        *_alarm_needs(status),
        *_store_needs(status),
        *_outgoing_needs(stuck),
        *_letter_needs(letters or 0),
    ]
    if in_doubt:
        needs.append(
            Need(
                "open",
                f"{words.some(in_doubt, 'transaction')} in doubt",
                "Prepared, and nobody has said whether to commit. What they hold, nobody gets.",
                "/transactions",
                "Decide",
            )
        )
    return Overview(status, fullest.queues, needs, letters, in_doubt, stuck)


def is_stuck(one: OutgoingStatus) -> bool:
    """Whether messages wait in an outgoing queue from which none leaves: it has no session, its
    posts fail, or it is paused or locked."""
    return bool(one.message_count) and (one.paused or one.failing or one.state not in _GOES_ON)


def _alarm_needs(status: Status) -> list[Need]:
    needs = []
    for alarm in status.alarms:
        for raised in alarm.raised[: limits.ALARMS_SHOWN_COUNT]:
            since = words.duration(status.now_s - raised.since_s)
            text = raised.text[:1].upper() + raised.text[1:]
            needs.append(Need("bad", f"Alarm {alarm.name}", f"{text}, for {since}.", "/status"))
        if rest := alarm.raised_count - min(len(alarm.raised), limits.ALARMS_SHOWN_COUNT):
            title = f"Alarm {alarm.name} for {words.some(rest, 'more queue')}"
            sentence = f"{alarm.measure} has reached {words.count(alarm.threshold)} there, too."
            needs.append(Need("bad", title, sentence, "/status"))
    return needs


def _store_needs(status: Status) -> list[Need]:
    needs = []
    if status.store_problem:
        since = words.duration(status.now_s - status.store_problem_since_s)
        needs.append(
            Need("bad", f"The store takes nothing, for {since}", status.store_problem, "/status")
        )
    if status.quota_kb != UNLIMITED_KB:
        share = status.message_bytes / max(1, status.quota_kb * 1024)
        if share >= _FULL_SHARE:
            sentence = (
                f"{words.size(status.message_bytes)} of {words.quota(status.quota_kb)} are used: "
                "when the quota is reached, messages are refused."
            )
            needs.append(
                Need("bad", f"The quota is {share:.0%} full", sentence, "/queues?sort=bytes&down=1")
            )
    free = status.vitals.free_disk_bytes
    if 0 <= free < limits.DISK_FREE_MIN_BYTES:
        sentence = "When it is full, nothing is stored: free some, or move the data directory."
        needs.append(Need("bad", f"The disk has {words.size(free)} left", sentence, "/status"))
    if status.directory_problem:
        needs.append(
            Need("open", "The directory does not answer", status.directory_problem, "/status")
        )
    if not status.online:
        needs.append(
            Need(
                "open",
                "The queue manager is offline",
                "Nothing goes to other computers or comes from them: openmsmq online ends that.",
            )
        )
    return needs


def _outgoing_needs(stuck: list[OutgoingStatus]) -> list[Need]:
    most = sorted(stuck, key=lambda one: -one.message_count)
    needs = [
        Need(
            "bad",
            f"{words.some(one.message_count, 'message')} cannot leave for {one.format_name}",
            one.explanation,
            f"/outgoing/{segment(one.format_name)}",
            "Look at it",
        )
        for one in most[:3]
    ]
    if len(most) > 3:
        rest = len(most) - 3
        sentence = "Each has its reason in the list."
        title = f"{words.some(rest, 'more outgoing queue')} with messages that wait"
        needs.append(Need("bad", title, sentence, "/outgoing", "See all"))
    return needs


def _letter_needs(count: int) -> list[Need]:
    if not count:
        return []
    sentence = "Messages that could not be delivered, or that nobody received in time."
    title = words.some(count, "dead letter")
    return [Need("open", title, sentence, "/dead-letters", "See why, and replay")]

"""`openmsmq queue list`: the queues that fit, once or again and again with what moves in them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from openmsmq.api.messages import QueueStatus
from openmsmq.cli.options.connecting import connected, target_of
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.queues import remote
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import (
    Columns,
    JsonObject,
    Screen,
    age_text,
    print_json,
    print_list,
    quota_value,
    time_text,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import QUEUE_PAGE_MAX_COUNT
from openmsmq.model.queue import QueueOrder, QueuePrivacy, QueueRole
from openmsmq.runtime.clocks import elapsed_ns

if TYPE_CHECKING:
    from openmsmq.client.blocking import QueueManager

WATCHED_COUNT: Final = 30
"""Queues that are watched if nobody says how many: more fit on few screens."""

_EVERYTHING: Final = (
    QueueRole.APPLICATION,
    QueueRole.JOURNAL,
    QueueRole.SUBQUEUE,
    QueueRole.SYSTEM,
)
_NOTHING: Final = r"there are no queues yet: openmsmq queue create 'private$\orders'"


def list_(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Journals, subqueues and system queues too.")
    ] = False,
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="GLOB",
            help=r"Only these, such as '*orders*'; without * ? [ a part of the name.",
        ),
    ] = "",
    sort: Annotated[
        QueueOrder,
        typer.Option(help="By name, or the most first: messages, bytes, age, in or out a second."),
    ] = QueueOrder.NAME,
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again and again, with rates; Ctrl-C ends it.")
    ] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Between two looks of --watch.")
    ] = 2.0,
    looks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="End --watch after so many looks.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the queues: all, or those that fit; --watch shows what moves in them."""
    wanted = Wanted(
        filter_,
        _EVERYTHING if everything else (QueueRole.APPLICATION,),
        sort,
        (sort is not QueueOrder.NAME) != reverse,
        limit if limit is not None or not watch else WATCHED_COUNT,
    )
    if target_of(context).remote:
        if watch or sort not in (QueueOrder.NAME, QueueOrder.MESSAGES, QueueOrder.BYTES):
            fail("with --remote queues can be sorted by name, messages or bytes, and not watched.")
        shown = remote.Listed(filter_, everything, f"{sort.value}", reverse, limit)
        remote.list_queues(context, shown, json=json)
        return
    with connected(context) as manager:
        if watch:
            _watch(manager, wanted, interval, looks, json=json)
            return
        found = wanted.ask(manager)
    columns: Columns = {
        "Queue": "path_name",
        ">Messages": "message_count",
        ">Size": "message_bytes",
        **({">Oldest": _oldest} if sort is QueueOrder.AGE else {}),
        ">Journal": lambda found: found["journal_message_count"] if found["journaling"] else "",
        "Kind": lambda found: "transactional" if found["transactional"] else "",
        "Label": "label",
    }
    nothing = f"no queue fits {filter_}" if filter_ else _NOTHING
    print_list(found.objects(), columns, nothing, json=json)
    if not json and 0 < len(found.queues) < found.fitting_count:
        typer.echo(f"{len(found.queues)} of {found.fitting_count} queues that fit", err=True)


class Found(msgspec.Struct, frozen=True):
    """The queues that were asked for, how many fit, and when that was."""

    queues: list[QueueStatus]
    fitting_count: int
    now_s: int

    def objects(self) -> list[JsonObject]:
        """Return what is known of each, with the age of the oldest message."""
        return [
            {
                **queue_object(queue),
                "oldest_age_s": (
                    max(0, self.now_s - queue.oldest_time_s) if queue.oldest_time_s else None
                ),
            }
            for queue in self.queues
        ]


class Wanted:
    """Which queues are asked for, and in which order."""

    def __init__(
        self,
        filter_: str,
        kinds: Sequence[QueueRole],
        order: QueueOrder,
        descending: bool,
        limit: int | None,
    ) -> None:
        self._filter = filter_
        self._kinds = kinds
        self._order = order
        self._descending = descending
        self._limit = limit

    def ask(self, manager: QueueManager) -> Found:
        """Ask for them, page by page."""
        found: list[QueueStatus] = []
        while True:
            wanted = QUEUE_PAGE_MAX_COUNT
            if self._limit is not None:
                wanted = min(wanted, self._limit - len(found))
            page = manager.queue_page(
                filter=self._filter,
                kinds=self._kinds,
                sort=self._order,
                descending=self._descending,
                offset=len(found),
                limit=wanted,
            )
            found += page.queues
            if len(page.queues) < wanted or len(found) == self._limit:
                return Found(found, page.total_count, page.now_s)


class Rates:
    """What moved between two looks, a second."""

    def __init__(self) -> None:
        self._before: dict[bytes, tuple[int, int]] = {}
        self._before_ns = 0

    def look(self, found: Found, now_ns: int) -> list[JsonObject]:
        """Return what is seen of each queue; rates are None at the first look."""
        elapsed_s = (now_ns - self._before_ns) / 1e9
        objects = found.objects()
        for queue, seen in zip(found.queues, objects, strict=True):
            before = self._before.get(queue.identifier)
            known = before is not None and elapsed_s > 0
            came, left = before or (0, 0)
            seen["in_per_s"] = _rate(came, queue.in_count, elapsed_s) if known else None
            seen["out_per_s"] = _rate(left, queue.out_count, elapsed_s) if known else None
        self._before = {
            queue.identifier: (queue.in_count, queue.out_count) for queue in found.queues
        }
        self._before_ns = now_ns
        return objects


def _rate(before: int, after: int, elapsed_s: float) -> float:
    # One that was started again counts from 0.
    return round((after - before if after >= before else after) / elapsed_s, 1)


def _watch(
    manager: QueueManager, wanted: Wanted, interval_s: float, looks: int | None, *, json: bool
) -> None:
    columns: Columns = {
        "Queue": "path_name",
        ">Messages": "message_count",
        ">Size": "message_bytes",
        ">In/s": "in_per_s",
        ">Out/s": "out_per_s",
        ">Oldest": _oldest,
    }
    rates, done = Rates(), 0
    never = threading.Event()
    # Whoever has seen enough interrupts it: that is its end, and no failure.
    with contextlib.suppress(KeyboardInterrupt), Screen() as screen:
        while looks is None or done < looks:
            if done:
                never.wait(interval_s)
            found = wanted.ask(manager)
            objects = rates.look(found, elapsed_ns())
            done += 1
            if json:
                for each in objects:
                    print_json(each)
            else:
                words = f"{len(objects)} of {found.fitting_count} queues, every {interval_s:g} s"
                screen.show(columns, objects, words)


def _oldest(found: Mapping[str, object]) -> str:
    age_s = found["oldest_age_s"]
    return age_text(age_s) if isinstance(age_s, int) else ""


def queue_object(found: QueueStatus) -> JsonObject:
    """Return everything about a queue under the names that programs rely on."""
    return {
        "path_name": found.path_name,
        "format_name": found.format_name,
        "identifier": str(Guid(found.identifier)),
        "label": found.label,
        "transactional": found.transactional,
        "journaling": found.journaling,
        "quota_kb": quota_value(found.quota_kb),
        "journal_quota_kb": quota_value(found.journal_quota_kb),
        "authenticate": found.authentication_required,
        "privacy": QueuePrivacy(found.privacy).name.lower(),
        "public": found.is_public,
        "service_type": str(Guid(found.service_type)),
        "base_priority": found.base_priority,
        "multicast_address": found.multicast_address or None,
        "message_count": found.message_count,
        "message_bytes": found.message_bytes,
        "journal_message_count": found.journal_message_count,
        "journal_message_bytes": found.journal_message_bytes,
        "created_time": time_text(found.created_time_s),
        "modified_time": time_text(found.modified_time_s),
        "open_count": found.open_count,
        "waiting_count": found.waiting_count,
        "last_arrival_number": found.last_arrival_number,
        **reservation(found),
        "kind": found.kind,
        "in_count": found.in_count,
        "in_bytes": found.in_bytes,
        "out_count": found.out_count,
        "out_bytes": found.out_bytes,
        "expired_count": found.expired_count,
        "purged_count": found.purged_count,
        "moved_count": found.moved_count,
        "refused_count": found.refused_count,
        "oldest_time": time_text(found.oldest_time_s) if found.oldest_time_s else None,
    }


def reservation(found: QueueStatus) -> JsonObject:
    """Return what is reserved in a queue, for programs; numbers from `start` to below `stop`."""
    there = bool(found.reserved_stop)
    return {
        "reserved_for": found.reserved_for if there else None,
        "reserved_start": found.reserved_start if there else None,
        "reserved_stop": found.reserved_stop if there else None,
    }

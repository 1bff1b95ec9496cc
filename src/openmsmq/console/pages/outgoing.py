"""Outgoing queues: what waits to leave, for what, and how to help it along."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from starlette.responses import Response

from openmsmq.aio import QueueManager
from openmsmq.console import limits
from openmsmq.console.asking.manager_views import is_stuck
from openmsmq.console.names import segment
from openmsmq.console.pages.confirming import Confirmation
from openmsmq.console.visit import Page, Visit
from openmsmq.model.queue import CONNECTION_WORDS


async def show_list(visit: Visit) -> Response:
    """Show the outgoing queues: those first that are stuck, with most messages."""
    found = sorted(
        await visit.manager.outgoing(),
        key=lambda one: (not is_stuck(one), -one.message_count, one.format_name),
    )
    shown = found[: limits.OUTGOING_SHOWN_COUNT]
    return visit.page("outgoing.html", rows=shown, total_count=len(found), is_stuck=is_stuck)


async def show_one(visit: Visit) -> Response:
    """Show one outgoing queue."""
    found = await visit.manager.outgoing_queue(visit.queue_name)
    history = [
        (one.time_s, CONNECTION_WORDS.get(one.status, hex(one.status)), ", ".join(one.addresses))
        for one in found.history
    ]
    return visit.page("outgoing_queue.html", one=found, history=history, is_stuck=is_stuck(found))


class Control(msgspec.Struct, frozen=True):
    """Something that can be done with an outgoing queue."""

    word: str
    title: str
    sentence: str
    done: str
    act: Callable[[QueueManager, str], Awaitable[None]]

    async def show(self, visit: Visit) -> Response:
        """Ask before it is done."""
        found = await visit.manager.outgoing_queue(visit.queue_name)
        return visit.page(
            "confirm.html",
            asked=Confirmation(
                title=f"{self.title}?",
                sentence=self.sentence,
                facts=(
                    ("Leads to", found.format_name),
                    ("Messages", f"{found.message_count:,}"),
                    ("Now", found.explanation),
                ),
                button=self.title,
                back=f"/outgoing/{segment(visit.queue_name)}",
                is_harmless=True,
            ),
        )

    async def do(self, visit: Visit) -> Response:
        """Do it."""
        await self.act(visit.manager, visit.queue_name)
        return visit.go(f"/outgoing/{segment(visit.queue_name)}", self.done)


CONTROLS: Final = (
    Control(
        "pause",
        "Pause the outgoing queue",
        "Its messages wait, also after a restart, until somebody resumes it.",
        "Paused: its messages wait until it is resumed.",
        lambda manager, name: manager.pause_outgoing(name),
    ),
    Control(
        "resume",
        "Resume the outgoing queue",
        "Its messages go on, and the other computer is tried at once.",
        "Resumed.",
        lambda manager, name: manager.resume_outgoing(name),
    ),
    Control(
        "resend",
        "Send again what is not acknowledged",
        "Transactional messages that are sent and not acknowledged are sent again now; the other "
        "side notices those that it has already.",
        "Sending again what is not acknowledged.",
        lambda manager, name: manager.resend_outgoing(name),
    ),
)

PAGES: Final = (
    Page("/outgoing", show_list),
    Page("/outgoing/{queue}", show_one),
    *(Page(f"/outgoing/{{queue}}/{one.word}", one.show, one.do) for one in CONTROLS),
)

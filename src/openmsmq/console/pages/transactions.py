"""Transactions in doubt: prepared, and nobody has said what is to become of them."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from starlette.responses import Response

from openmsmq.api.messages import InDoubt
from openmsmq.console import limits
from openmsmq.console.names import BadSegment
from openmsmq.console.pages.confirming import Confirmation
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.console.words import account, some, time

_UNIT: Final = re.compile("[0-9a-f]{32}")


async def show_list(visit: Visit) -> Response:
    """Show the transactions in doubt, the oldest first."""
    found = sorted(await visit.manager.in_doubt(), key=lambda one: one.prepared_time_s)
    now_s = await visit.session.manager_time_s()
    shown = found[: limits.IN_DOUBT_SHOWN_COUNT]
    return visit.page("transactions.html", rows=shown, total_count=len(found), now_s=now_s)


class Ending(msgspec.Struct, frozen=True):
    """One of the two ways in which a transaction can end."""

    word: str
    is_commit: bool
    title: str
    sentence: str

    async def show(self, visit: Visit) -> Response:
        """Ask before it ends."""
        found = await _find(visit)
        facts = (
            ("Transaction", found.unit_of_work.hex()),
            ("Prepared", f"{time(found.prepared_time_s)} UTC"),
            ("Sends", some(found.sent_count, "message")),
            ("Takes", some(found.received_count, "message")),
            ("Belongs to", account(found.owner)),
            ("Part of", f"batch {found.batch} of {found.query}" if found.query else "no query"),
            ("Called", str(found.xid) if found.xid else "nothing by its coordinator"),
        )
        asked = Confirmation(
            title=f"{self.title}?",
            sentence=self.sentence,
            facts=facts,
            button=self.title,
            back="/transactions",
        )
        return visit.page("confirm.html", asked=asked)

    async def do(self, visit: Visit) -> Response:
        """End it."""
        await visit.manager.resolve(_unit(visit), commit=self.is_commit)
        return visit.go("/transactions", f"{self.word.capitalize()}: {_unit(visit).hex()}.")


def _unit(visit: Visit) -> bytes:
    text = visit.request.path_params["unit"]
    if not _UNIT.fullmatch(text):
        raise BadSegment("a part of the path names no transaction")
    return bytes.fromhex(text)


async def _find(visit: Visit) -> InDoubt:
    unit = _unit(visit)
    for one in await visit.manager.in_doubt():
        if one.unit_of_work == unit:
            return one
    raise BadForm("This transaction is not in doubt, or not any more.", 404)


ENDINGS: Final = (
    Ending(
        "commit",
        True,
        "Commit the transaction",
        "What it sent appears, and what it took is gone. If its coordinator has decided otherwise "
        "elsewhere, that cannot be mended.",
    ),
    Ending(
        "abort",
        False,
        "Abort the transaction",
        "What it sent never appears, and what it took is in its queues again. If its coordinator "
        "has decided otherwise elsewhere, that cannot be mended.",
    ),
)

PAGES: Final = (
    Page("/transactions", show_list),
    *(Page(f"/transactions/{{unit}}/{one.word}", one.show, one.do) for one in ENDINGS),
)

"""The audit log: who changed what, and who was refused, from its end."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from starlette.responses import Response

from openmsmq.console import limits
from openmsmq.console.visit import Page, Visit

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z", re.ASCII)
_SHOWN: Final = ("time", "who", "action", "on", "result")


class Line(msgspec.Struct, frozen=True):
    """A line of the audit log, as far as it is understood."""

    time: str
    who: str
    action: str
    on: str
    result: str
    is_bad: bool
    rest: str
    """What else it says."""


async def show_audit(visit: Visit) -> Response:
    """Show a page of the audit log."""
    wanted = visit.asked("find", characters_max=limits.FILTER_MAX_CHARACTERS).strip()
    page = await visit.manager.read_audit(
        before=visit.asked("before"), count=limits.AUDIT_PAGE_COUNT, filter=wanted
    )
    return visit.page(
        "audit.html",
        lines=[_line(one) for one in page.lines],
        before=page.before,
        is_kept=page.is_kept,
        is_first=not visit.asked("before"),
        wanted=wanted,
    )


def _line(text: str) -> Line:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return Line("", "", "unreadable", "", "", True, text)
    result = _text(found.get("result"))
    rest = "; ".join(f"{key}: {_text(one)}" for key, one in found.items() if key not in _SHOWN)
    return Line(
        _moment(_text(found.get("time"))),
        _text(found.get("who")) or "the server",
        _text(found.get("action")),
        _text(found.get("on")),
        result,
        result not in ("", "done"),
        rest,
    )


def _moment(text: str) -> str:
    """Return a time of the log as other pages write one; anything else as it is."""
    found = _TIME.fullmatch(text)
    return text if found is None else f"{found[1]} {found[2]}"


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


PAGES: Final = (Page("/audit", show_audit),)

"""Numbers, times and texts as the pages say them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from openmsmq.client.accounts import account_text
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.security.access.sids import Sid

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_ELLIPSIS: Final = "…"
_LAYOUT: Final = "\n\t"


def plain(text: str, characters_max: int = 80) -> str:
    """Make a text of somebody else safe to show: nothing invisible, and not too long."""
    cut = text if len(text) <= characters_max else text[: characters_max - 1] + _ELLIPSIS
    return cut if cut.isprintable() else "".join(map(_visible, cut))


def lines(text: str) -> str:
    """Make a text of several lines safe to show: what turns or hides others is written out."""
    text = text.replace("\r\n", "\n")
    return "".join(each if each in _LAYOUT else _visible(each) for each in text)


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def count(number: int) -> str:
    """Say a count: 12,345."""
    return f"{number:,}"


def some(number: int, what: str) -> str:
    """Say how many there are of something: 1 queue, 2 queues."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def size(size_bytes: float) -> str:
    """Say a size as people read it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def quota(quota_kb: int) -> str:
    """Say a quota."""
    return "unlimited" if quota_kb == UNLIMITED_KB else size(quota_kb * 1024)


def duration(seconds: float) -> str:
    """Say a duration by its two largest units: 3 min 20 s."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for length, unit in _UNITS:
        number, left = divmod(left, length)
        if number:
            parts.append(f"{number} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def rate(per_second: float) -> str:
    """Say how many a second, or a minute if that is a small part of one."""
    if 0 < per_second < 0.95:
        return f"{per_second * 60:.1f}/min"
    return f"{per_second:,.1f}/s" if per_second else "0/s"


def account(owner: str) -> str:
    """Say who an owner is: a user by name, if this computer knows it, or a token."""
    try:
        return account_text(Sid.parse(owner))
    except ValueError:
        return plain(owner) or "not known"


def time(seconds: float) -> str:
    """Say a time, in UTC; nothing for 0."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}" if seconds else ""


def moment(when: datetime | None) -> str:
    """Say a time that is a value already."""
    return "" if when is None else f"{when:%Y-%m-%d %H:%M:%S}"

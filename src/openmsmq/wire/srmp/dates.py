"""Dates of envelopes: `YYYYMMDDThhmmss`, in UTC. [MQSRM 2.2.1.2]"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.errors import DecodeError

NEVER: Final = "20380119T031407"
_NEVER_S: Final = 0x7FFFFFFF
"""The last second of a signed clock of 32 bits: what is later, or never, is written so."""
_FORM: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1_024)
def write_date(unix_s: int) -> str:
    """Return a moment as text; `INFINITE_S` is never."""
    if unix_s >= _NEVER_S:
        return NEVER
    return f"{_EPOCH + timedelta(seconds=unix_s):%Y%m%dT%H%M%S}"


@lru_cache(maxsize=1_024)
def read_date(text: str, where: str) -> int:
    """Read a moment; one that means never is `INFINITE_S`, and what lies before 1970 is 0."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise DecodeError(where, 0, f"{text[:20]!r} is no date: YYYYMMDDThhmmss is one")
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise DecodeError(where, 0, f"{text} is no date: there is no such moment") from None
    unix_s = int((moment - _EPOCH).total_seconds())
    return INFINITE_S if unix_s >= _NEVER_S else max(unix_s, 0)

"""Every MSMQ result code, what it means, and what to do about it. [MQMQ 2.4]

The rows stand in `result_codes.tsv`: the one list from which the error classes, their messages and
`docs/reference/errors.md` come. Where other documents print another value for a name, the value of
MQMQ 2.4 stands.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class CatalogueEntry(msgspec.Struct, frozen=True):
    """One result code. `meaning` and `advice` are sentences; `advice` may be empty."""

    code: int
    name: str
    meaning: str
    advice: str = ""


def _read_rows() -> dict[int, CatalogueEntry]:
    table = pkgutil.get_data(__package__, "result_codes.tsv") or b""
    _titles, *lines = table.decode("utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    entries = [CatalogueEntry(int(code, 16), *texts) for code, *texts in rows]
    return {entry.code: entry for entry in entries}


CATALOGUE: Final[Mapping[int, CatalogueEntry]] = MappingProxyType(_read_rows())
"""All result codes by value: information codes first, then errors, in ascending order."""

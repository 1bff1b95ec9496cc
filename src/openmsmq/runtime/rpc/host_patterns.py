"""Which computers an operator means by a pattern: who is meant gets a proof of our account."""

from __future__ import annotations

import fnmatch
import ipaddress
from typing import Final

_EVERYBODY: Final = "*"
_DEEPER: Final = "*."
_OF_ADDRESSES: Final = frozenset("0123456789.*?")


def is_meant(host: str, pattern: str) -> bool:
    """Whether a computer is one of those that a pattern is for.

    A star stands within one part of a name, or else `alpha*` would be alpha.example.net, too, which
    can be anybody's; only `*.` at the beginning stands for any number of parts. A pattern of
    addresses is for addresses, and not for a name such as 10.0.0.example.
    """
    host, pattern = host.casefold(), pattern.casefold()
    if pattern == _EVERYBODY:
        return True
    if _OF_ADDRESSES.issuperset(pattern) and not _is_address(host):
        return False
    parts, wanted = host.split("."), pattern.removeprefix(_DEEPER).split(".")
    if pattern.startswith(_DEEPER):
        if len(parts) <= len(wanted):
            return False
        parts = parts[-len(wanted) :]
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

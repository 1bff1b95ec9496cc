"""The parts that names are made of: which characters, and how many of them. [MQMQ 2.1.1]

The grammar of the specification knows ASCII only. Characters beyond it are accepted where queue
managers accept them in practice: in computer, domain, queue and subqueue names. Excluded are
control characters, white space, and halves of surrogate pairs, which no packet can carry. Only a
plain space may stand inside the name of a queue or subqueue: programs have such queues.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from openmsmq.model.limits import (
    COMPUTER_NAME_MAX_CHARACTERS,
    DOMAIN_NAME_MAX_CHARACTERS,
    PORT_MAX_NUMBER,
    QUEUE_NAME_MAX_CHARACTERS,
    SUBQUEUE_NAME_MAX_CHARACTERS,
)
from openmsmq.model.names.errors import IllegalFormatName, IllegalName, quoted

_NEVER: Final = r"\x00-\x20\x80-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff"
_NOT_IN_QUEUE_NAME: Final = re.compile(rf'(?! )[{_NEVER}"+,;\\]')
_NOT_IN_COMPUTER_NAME: Final = re.compile(rf'[{_NEVER}\x7f",/;=\\]')
_NOT_IN_URL_HOST: Final = re.compile(r"[#?@\[\]]")
_NOT_IN_DOMAIN_NAME: Final = re.compile(rf"[{_NEVER}\x7f,]")


def keyword(text: str) -> str:
    """Return the text in lower case for the comparison with a keyword.

    Only ASCII letters have two cases here: the long s, for one, makes no keyword.
    """
    return text.lower() if text.isascii() else ""


def fold(text: str) -> str:
    """Make names comparable: the same for texts that differ in case only.

    Each character folds to one character. The full folding of Unicode would make one queue out
    of two that have different names, for it turns the sharp s into two letters.
    """
    if text.isascii():
        return text.lower()
    return "".join(
        folded if len(folded := character.casefold()) == 1 else character for character in text
    )


def excess_position(text: str, units_max: int) -> int | None:
    """Where a text exceeds so many UTF-16 code units, the characters of the specification."""
    if 2 * len(text) <= units_max or (text.isascii() and len(text) <= units_max):
        return None
    units = 0
    for position, character in enumerate(text):
        units += 2 if character > "\uffff" else 1
        if units > units_max:
            return position
    return None


def check_queue_name(name: str, error: type[IllegalName]) -> None:
    """Refuse what cannot be the name of a queue. [MQMQ 2.1.1]"""
    _check("queue name", name, _NOT_IN_QUEUE_NAME, QUEUE_NAME_MAX_CHARACTERS, error)
    _check_ends("queue name", name, error)
    if fold(name) in ("private$", "system$"):
        raise error(name, len(name), f"a queue name is missing after {name}")


def check_subqueue_name(name: str, error: type[IllegalName]) -> None:
    """Refuse what cannot be the name of a subqueue. [MQMQ 2.1.1]"""
    _check("subqueue name", name, _NOT_IN_QUEUE_NAME, SUBQUEUE_NAME_MAX_CHARACTERS, error)
    _check_ends("subqueue name", name, error)
    if fold(name) in ("journal", "deadletter", "deadxact"):
        raise error(
            name, 0, f"{name} is no subqueue name: it is reserved for journals and dead letters"
        )


def check_computer_name(name: str, error: type[IllegalName]) -> None:
    """Refuse what cannot be the name of a computer. [MQMQ 2.1.1]"""
    _check("computer name", name, _NOT_IN_COMPUTER_NAME, COMPUTER_NAME_MAX_CHARACTERS, error)


def check_domain_name(name: str) -> None:
    """Refuse what cannot be the name of a domain. [MQMQ 2.1.5]"""
    _check("domain name", name, _NOT_IN_DOMAIN_NAME, DOMAIN_NAME_MAX_CHARACTERS, IllegalFormatName)


def check_ip_address(address: str) -> None:
    """Refuse what is no address in Internet notation. [MQMQ 2.1.2, MQQB 2.2.4]

    IPv6 addresses stand without brackets and may have a zone, which link-local ones need.
    """
    check_computer_name(address, IllegalFormatName)
    if canonical_ip_address(address) is None:
        raise IllegalFormatName(
            address, 0, f"{address} is no IP address: use OS: for a computer name"
        )


def check_url_host(host: str) -> None:
    """Refuse what cannot stand as a host in a URL; IPv6 addresses come without brackets."""
    check_computer_name(host, IllegalFormatName)
    if flaw := _NOT_IN_URL_HOST.search(host):
        raise IllegalFormatName(
            host, flaw.start(), f"a host in a URL cannot contain {quoted(flaw[0])}"
        )
    if ":" in host and canonical_ip_address(host) is None:
        raise IllegalFormatName(host, host.index(":"), f"{host} is no IPv6 address")


@lru_cache(maxsize=1024)
def canonical_ip_address(text: str) -> str | None:
    """Return the one text that all spellings of an IP address share, or nothing if it is none."""
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def check_port(port: int) -> None:
    """Refuse a number that is no port."""
    if not 0 <= port <= PORT_MAX_NUMBER:
        raise IllegalFormatName(
            str(port), 0, f"{port} is no port: it must be from 0 to {PORT_MAX_NUMBER}"
        )


def read_port(text: str) -> int:
    """Read the number of a port."""
    if not text:
        raise IllegalFormatName(text, 0, "a port is missing")
    if not (text.isascii() and text.isdecimal()):
        raise IllegalFormatName(text, 0, f"{text!r} is no port: only digits can stand here")
    digits = text.lstrip("0")
    if len(digits) > len(str(PORT_MAX_NUMBER)) or int(text) > PORT_MAX_NUMBER:
        raise IllegalFormatName(text, 0, f"the port must be from 0 to {PORT_MAX_NUMBER}")
    return int(text)


def _check(
    what: str, text: str, excluded: re.Pattern[str], units_max: int, error: type[IllegalName]
) -> None:
    if not text:
        raise error(text, 0, f"a {what} is missing")
    # Behind what is too long nothing is looked at, for a text may be very long.
    position = excess_position(text, units_max)
    if flaw := excluded.search(text if position is None else text[:position]):
        raise error(text, flaw.start(), f"a {what} cannot contain {quoted(flaw[0])}")
    if position is not None:
        raise error(text, position, f"a {what} has at most {units_max} characters")


def _check_ends(what: str, text: str, error: type[IllegalName]) -> None:
    """Refuse a space that nobody sees: it would make another queue of the same look."""
    if text.startswith(" ") or text.endswith(" "):
        position = 0 if text.startswith(" ") else len(text) - 1
        raise error(text, position, f"a {what} cannot begin or end with a space")

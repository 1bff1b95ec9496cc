"""The names of queues in the directory, which has room for 64 characters. [MQDSSM 2.2.5]

A longer name is cut: its beginning and a hash of the whole are the name of the entry, the rest
stands in `mSMQQueueNameExt`. Characters are UTF-16 units, as everywhere in MSMQ.
"""

from __future__ import annotations

import re
from typing import Final

ENTRY_NAME_MAX_CHARACTERS: Final = 64
"""The name of an entry, in UTF-16 units. [MS-ADA1 2.110]"""

_WHOLE_MAX_CHARACTERS: Final = 63
_BEGINNING_CHARACTERS: Final = 55
_HASH_CHARACTERS: Final = 9
_POLYNOMIAL: Final = 0x9B619023
_ESCAPED: Final = re.compile(r"[\n/#><=]")


def _table_entry(index: int) -> int:
    for _ in range(8):
        index = index >> 1 ^ (_POLYNOMIAL if index & 1 else 0)
    return index


# The table of the specification is that of a cyclic redundancy check with this polynomial.
HASH_TABLE: Final = tuple(map(_table_entry, range(256)))


def lower_case(text: str) -> str:
    """Make every character a small one, alone and in place.

    MQDSSM takes UTF-16 units one by one. Python's own rules look at what is beside a character,
    and make two characters out of one.
    """
    return "".join(
        small if character <= "\uffff" and len(small := character.lower()) == 1 else character
        for character in text
    )


def name_hash(name: str) -> str:
    """Return the hash that keeps long names with the same beginning apart. [MQDSSM 2.2.5]"""
    value = 0
    for byte in lower_case(name).encode("utf-16-be", "surrogatepass"):
        value = value >> 8 ^ HASH_TABLE[value & 0xFF ^ byte]
    return f"{value:08x}"


def entry_name(queue_name: str) -> tuple[str, str]:
    """Return the name of a queue's entry and what is left over. [MQDSSM 3.1.6.1.2.5]

    Lengths and hash are those of the name with a backslash before each special character; the
    backslashes themselves belong to the written form of names and not into the directory.
    """
    escaped = _ESCAPED.sub(r"\\\g<0>", queue_name)
    units = escaped.encode("utf-16-le", "surrogatepass")
    if len(units) // 2 <= _WHOLE_MAX_CHARACTERS:
        return queue_name, ""
    cut = _BEGINNING_CHARACTERS
    # What belongs together stays together: the two halves of one character, and a backslash with
    # the character that it announces.
    last = int.from_bytes(units[2 * cut - 2 : 2 * cut], "little")
    if 0xD800 <= last <= 0xDBFF or last == ord("\\"):
        cut -= 1
    beginning, rest = (part.decode("utf-16-le") for part in (units[: 2 * cut], units[2 * cut :]))
    return f"{beginning}-{name_hash(escaped)}".replace("\\", ""), rest


def queue_name(entry_name: str, extension: str) -> str:
    """Put the name of a queue together again. [MQDSSM 3.1.6.11.2.1]

    The backslashes of both parts are removed: a queue's name has none.
    """
    units = len(entry_name.encode("utf-16-le", "surrogatepass")) // 2
    if extension or units >= ENTRY_NAME_MAX_CHARACTERS:
        entry_name = entry_name[:-_HASH_CHARACTERS]
    return (entry_name + extension).replace("\\", "")

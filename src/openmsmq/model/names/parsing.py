"""Reading format names. Any text gives a value or `IllegalName`, in linear time. [MQMQ 2.1]

Each reader sees only its part of the text and reports positions there; `read_part` makes them
positions in the whole. Keywords have no case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.names.base import check_format_name_size
from openmsmq.model.names.direct import DirectFormatName, read_direct
from openmsmq.model.names.errors import (
    IllegalFormatName,
    IllegalPathName,
    UnsupportedName,
    read_part,
)
from openmsmq.model.names.format_names import (
    ConnectorFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MulticastFormatName,
    MultipleFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
    check_element_count,
)
from openmsmq.model.names.local import SystemQueue
from openmsmq.model.names.parts import check_domain_name, keyword, read_port
from openmsmq.model.names.paths import PathName

_GUID_CHARACTERS: Final = 36
_FORMAT_NAME_PREFIX: Final = "formatname:"
_LABEL_PREFIX: Final = "label:"
_NO_GUID: Final = "a GUID is needed here, 8-4-4-4-12 hexadecimal digits without braces"


def parse_format_name(text: str) -> FormatName:
    """Read a format name of any kind; `IllegalName` tells what is wrong with it. [MQMQ 2.1]"""
    count = text.count(",") + 1
    if count == 1:
        return _read_single(text)
    check_element_count(text, count)
    elements: list[SingleFormatName] = []
    start = 0
    for element_text in text.split(","):
        stop = start + len(element_text)
        elements.append(read_part(text, start, stop, _read_element))
        start = stop + 1
    return MultipleFormatName(tuple(elements))


def is_format_name(text: str) -> bool:
    r"""Return whether a text is meant as a format name, and not as a path name.

    An equals sign behind a backslash belongs to the name of a queue: `.\private$\a=b` is a path.
    """
    computer_stop = text.find("\\")
    return "=" in (text if computer_stop < 0 else text[:computer_stop]) or _has_prefix(text)


def read_name(text: str) -> PathName | FormatName:
    r"""Read a name as programs write it: a path name, or a format name.

    Programs for .NET put `FormatName:` before a format name.
    """
    if keyword(text[: len(_LABEL_PREFIX)]) == _LABEL_PREFIX:
        problem = "a label opens no queue: `directory find-queues --label` finds its names"
        raise UnsupportedName(text, 0, problem)
    if not is_format_name(text):
        return PathName.parse(text)
    start = len(_FORMAT_NAME_PREFIX) if _has_prefix(text) else 0
    return read_part(text, start, len(text), parse_format_name)


def read_path(text: str) -> PathName:
    r"""Read the name of a queue that tells its computer by a name: a path, or `DIRECT=OS:`."""
    found = read_name(text)
    if isinstance(found, PathName):
        return found
    if isinstance(found, DirectFormatName) and not found.protocol.is_http:
        return PathName(found.host, found.queue)
    raise IllegalPathName(text, 0, r"a path name is needed here, such as private$\orders")


def _has_prefix(text: str) -> bool:
    return keyword(text[: len(_FORMAT_NAME_PREFIX)]) == _FORMAT_NAME_PREFIX


def _read_element(text: str) -> SingleFormatName:
    name = _read_single(text)
    if name.is_read_only:
        problem = "a journal or dead-letter queue cannot be among several destinations"
        raise IllegalFormatName(text, 0, problem)
    return name


def _read_single(text: str) -> SingleFormatName:
    check_format_name_size(text)
    stop = text.find("=") + 1
    read = _READERS.get(keyword(text[:stop]))
    if read is None:
        known = ", ".join(word.upper() for word in _READERS)
        raise IllegalFormatName(text, 0, f"a format name begins with one of {known}")
    return read_part(text, stop, len(text), read)


def _read_guid(text: str) -> Guid:
    """Read the GUID at the start of the text."""
    try:
        return Guid.parse(text[:_GUID_CHARACTERS])
    except ValueError:
        spoiled = _GUID_PREFIX.match(text)
        position = 0 if spoiled is None else spoiled.end()
        raise IllegalFormatName(text, position, _NO_GUID) from None


def _optional_guid_digits() -> re.Pattern[str]:
    """Match as much of a GUID as there is, to point to the character that spoils it."""
    pattern = ""
    for position in reversed(range(_GUID_CHARACTERS)):
        character = "-" if position in (8, 13, 18, 23) else "[0-9a-fA-F]"
        pattern = f"(?:{character}{pattern})?"
    return re.compile(pattern)


_GUID_PREFIX: Final = _optional_guid_digits()


def _has_suffix(text: str, start: int, suffix: str, kind: str) -> bool:
    """Return whether the one suffix that can follow does follow."""
    if start == len(text):
        return False
    if keyword(text[start:]) != suffix.lower():
        problem = f"after a {kind} format name only {suffix} can follow"
        raise IllegalFormatName(text, start, problem)
    return True


def _read_public(text: str) -> PublicFormatName:
    queue = _read_guid(text)
    return PublicFormatName(queue, _has_suffix(text, _GUID_CHARACTERS, ";JOURNAL", "public"))


def _read_private(text: str) -> PrivateFormatName:
    queue_manager = _read_guid(text)
    if text[_GUID_CHARACTERS : _GUID_CHARACTERS + 1] != "\\":
        problem = r"after the GUID comes '\' and the number of the queue"
        raise IllegalFormatName(text, _GUID_CHARACTERS, problem)
    start = _GUID_CHARACTERS + 1
    stop = text.find(";", start) if ";" in text else len(text)
    number = read_part(text, start, stop, _read_private_number)
    journal = _has_suffix(text, stop, ";JOURNAL", "private")
    return PrivateFormatName(queue_manager, number, journal)


def _read_private_number(text: str) -> int:
    digits = _HEXADECIMAL.match(text)
    if digits is None or digits.end() != len(text):
        position = 0 if digits is None else digits.end()
        problem = "the number of a private queue has one to eight hexadecimal digits"
        raise IllegalFormatName(text, position, problem)
    return int(text, 16)


_HEXADECIMAL: Final = re.compile("[0-9a-fA-F]{1,8}")


def _read_machine(text: str) -> MachineFormatName:
    queue_manager = _read_guid(text)
    queue = _MACHINE_SUFFIXES.get(keyword(text[_GUID_CHARACTERS:]))
    if queue is None:
        problem = "after a machine GUID comes ;JOURNAL, ;DEADLETTER or ;DEADXACT"
        raise IllegalFormatName(text, _GUID_CHARACTERS, problem)
    return MachineFormatName(queue_manager, queue)


def _read_connector(text: str) -> ConnectorFormatName:
    connector = _read_guid(text)
    transactional = _has_suffix(text, _GUID_CHARACTERS, ";XACTONLY", "connector")
    return ConnectorFormatName(connector, transactional)


def _read_multicast(text: str) -> MulticastFormatName:
    separator = text.find(":")
    if separator < 0:
        raise IllegalFormatName(text, len(text), "after a multicast address comes ':' and a port")
    address = read_part(text, 0, separator, _read_multicast_address)
    port = read_part(text, separator + 1, len(text), _read_multicast_port)
    return MulticastFormatName(address, port)


def _read_multicast_address(text: str) -> str:
    return MulticastFormatName(text, 0).address


def _read_multicast_port(text: str) -> int:
    port = read_port(text)
    if text != str(port):
        raise IllegalFormatName(text, 0, "a multicast port has no leading zeros")
    return port


def _read_distribution_list(text: str) -> DistributionListFormatName:
    distribution_list = _read_guid(text)
    if len(text) == _GUID_CHARACTERS:
        return DistributionListFormatName(distribution_list)
    if text[_GUID_CHARACTERS] != "@":
        problem = "after the GUID only '@' and a domain name can follow"
        raise IllegalFormatName(text, _GUID_CHARACTERS, problem)
    start = _GUID_CHARACTERS + 1
    read_part(text, start, len(text), check_domain_name)
    return DistributionListFormatName(distribution_list, text[start:])


_MACHINE_SUFFIXES: Final = {f";{queue.value.lower()}": queue for queue in SystemQueue}
_READERS: Final[dict[str, Callable[[str], SingleFormatName]]] = {
    "direct=": read_direct,
    "public=": _read_public,
    "private=": _read_private,
    "machine=": _read_machine,
    "connector=": _read_connector,
    "multicast=": _read_multicast,
    "dl=": _read_distribution_list,
}

"""QUEUE_FORMAT: how a queue is named in calls. [MQMQ 2.2.6 - 2.2.11]

The suffix that stands beside an identifier says whether its journal or a dead-letter queue is
meant. A direct name has its suffix in its text as well; where the two differ nobody can know which
queue is meant, so such a name is refused.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import DOMAIN_NAME_MAX_CHARACTERS, FORMAT_NAME_MAX_CHARACTERS
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    FormatName,
    IllegalFormatName,
    MachineFormatName,
    PrivateFormatName,
    PublicFormatName,
    QueueOnComputer,
    SystemQueue,
    UnsupportedName,
)
from openmsmq.wire.rpc.ndr import Struct, Union
from openmsmq.wire.rpc.ndr_types import U8, U16, U32, Nothing, Octets, Pointer, WideString


class QueueFormatType(enum.IntEnum):
    """What identifies the queue. [MQMQ 2.2.6]"""

    UNKNOWN = 0
    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DISTRIBUTION_LIST = 6
    MULTICAST = 7
    SUBQUEUE = 8


class Suffix(enum.IntEnum):
    """Which queue of what is identified. [MQMQ 2.2.11]"""

    NONE = 0
    JOURNAL = 1
    DEAD_LETTER = 2
    TRANSACTIONAL_DEAD_LETTER = 3
    TRANSACTIONAL_ONLY = 4
    SUBQUEUE = 5


SYSTEM_FLAG: Final = 0x80
"""Stands beside the suffix of a journal or dead-letter queue. [MQMQ 2.2.7]"""

_SUFFIX_BITS: Final = 0x0F
_FLAG_BITS: Final = 0xF0
_SYSTEM_QUEUES: Final[dict[int, SystemQueue]] = {
    Suffix.JOURNAL: SystemQueue.JOURNAL,
    Suffix.DEAD_LETTER: SystemQueue.DEAD_LETTER,
    Suffix.TRANSACTIONAL_DEAD_LETTER: SystemQueue.TRANSACTIONAL_DEAD_LETTER,
}
_SUFFIXES: Final = {queue: suffix for suffix, queue in _SYSTEM_QUEUES.items()}


class ObjectId(msgspec.Struct, frozen=True, gc=False):
    """A private queue by its number on its queue manager. [MQMQ 2.2.8]"""

    lineage: Guid
    uniquifier: int


class DistributionListId(msgspec.Struct, frozen=True, gc=False):
    """A distribution list and its domain. [MQMQ 2.2.9]"""

    distribution_list: Guid
    domain: str | None


class MulticastId(msgspec.Struct, frozen=True, gc=False):
    """A multicast address. [MQMQ 2.2.10]"""

    address: int
    port: int


Identifier: TypeAlias = Guid | ObjectId | str | DistributionListId | MulticastId | None


class QueueFormat(msgspec.Struct, frozen=True, gc=False):
    """The name of a queue as calls have it. [MQMQ 2.2.7]"""

    kind: int
    suffix_and_flags: int
    reserved: int
    identifier: Identifier

    @classmethod
    def of(cls, name: FormatName) -> QueueFormat:
        """Return the structure for a name; raise `UnsupportedName` for what nobody can read."""
        match name:
            case PublicFormatName(queue, journal):
                return cls(QueueFormatType.PUBLIC, _journal(journal), 0, queue)
            case PrivateFormatName(queue_manager, number, journal):
                identifier = ObjectId(queue_manager, number)
                return cls(QueueFormatType.PRIVATE, _journal(journal), 0, identifier)
            case MachineFormatName(queue_manager, queue):
                suffix = SYSTEM_FLAG | _SUFFIXES[queue]
                return cls(QueueFormatType.MACHINE, suffix, 0, queue_manager)
            case DirectFormatName():
                suffix = _direct_suffix(name.queue)
                kind = QueueFormatType.DIRECT
                if suffix == Suffix.SUBQUEUE:
                    kind = QueueFormatType.SUBQUEUE
                return cls(kind, suffix, 0, name.wire_text)
            case _:
                problem = "no reader on another computer can name a queue like this"
                raise UnsupportedName(str(name), 0, problem)

    def name(self) -> FormatName:
        """Return the name, or raise `IllegalFormatName` or `UnsupportedName`. [MQRR 2.2.3]"""
        match self.kind, self.identifier:
            case QueueFormatType.PUBLIC, Guid() as queue:
                return PublicFormatName(queue, self._is_journal())
            case QueueFormatType.PRIVATE, ObjectId(lineage, uniquifier):
                return PrivateFormatName(lineage, uniquifier, self._is_journal())
            case QueueFormatType.MACHINE, Guid() as queue_manager:
                return MachineFormatName(queue_manager, self._system_queue())
            case ((QueueFormatType.DIRECT | QueueFormatType.SUBQUEUE), str(text)):
                return self._direct(text)
            case ((QueueFormatType.UNKNOWN | QueueFormatType.DIRECT | QueueFormatType.SUBQUEUE), _):
                raise IllegalFormatName("", 0, "a name of a queue that names none")
            case _:
                shown = QueueFormatType(self.kind).name
                raise UnsupportedName(shown, 0, "nobody can read from a queue named like this")

    def _is_journal(self) -> bool:
        if self.suffix_and_flags == Suffix.NONE:
            return False
        if self.suffix_and_flags == SYSTEM_FLAG | Suffix.JOURNAL:
            return True
        raise self._wrong_suffix()

    def _system_queue(self) -> SystemQueue:
        queue = None
        if self.suffix_and_flags & _FLAG_BITS == SYSTEM_FLAG:
            queue = _SYSTEM_QUEUES.get(self.suffix_and_flags & _SUFFIX_BITS)
        if queue is None:
            raise self._wrong_suffix()
        return queue

    def _direct(self, text: str) -> FormatName:
        name = DirectFormatName.from_wire_text(text)
        if name.protocol not in (DirectProtocol.OS, DirectProtocol.TCP):
            raise UnsupportedName(text, 0, "only OS and TCP lead to a queue that is read remotely")
        said = self.suffix_and_flags
        found = _direct_suffix(name.queue)
        is_subqueue = found == Suffix.SUBQUEUE
        # A subqueue may be named by either type; its suffix says so only in the one of its own.
        if said != found and not (is_subqueue and said == Suffix.NONE):
            raise self._wrong_suffix()
        if self.kind == QueueFormatType.SUBQUEUE and not is_subqueue:
            raise IllegalFormatName(text, 0, "the name of a subqueue without one")
        return name

    def _wrong_suffix(self) -> IllegalFormatName:
        shown = f"{self.suffix_and_flags:#04x}"
        return IllegalFormatName(shown, 0, "a suffix that such a name does not have")


def _journal(journal: bool) -> int:
    return SYSTEM_FLAG | Suffix.JOURNAL if journal else Suffix.NONE


def _direct_suffix(queue: QueueOnComputer) -> int:
    if isinstance(queue, SystemQueue):
        return SYSTEM_FLAG | _SUFFIXES[queue]
    if queue.subqueue is not None:
        return Suffix.SUBQUEUE
    return _journal(queue.journal)


GUID: Final = Octets(16, 4, Guid)
_DIRECT_NAME: Final = Pointer(WideString(FORMAT_NAME_MAX_CHARACTERS))

QUEUE_FORMAT: Final = Struct(
    QueueFormat,
    ("kind", U8),
    ("suffix_and_flags", U8),
    ("reserved", U16),
    union=(
        "identifier",
        Union(
            "kind",
            U8,
            {
                QueueFormatType.UNKNOWN: Nothing(),
                QueueFormatType.PUBLIC: GUID,
                QueueFormatType.PRIVATE: Struct(ObjectId, ("lineage", GUID), ("uniquifier", U32)),
                QueueFormatType.DIRECT: _DIRECT_NAME,
                QueueFormatType.MACHINE: GUID,
                QueueFormatType.CONNECTOR: GUID,
                QueueFormatType.DISTRIBUTION_LIST: Struct(
                    DistributionListId,
                    ("distribution_list", GUID),
                    ("domain", Pointer(WideString(DOMAIN_NAME_MAX_CHARACTERS))),
                ),
                QueueFormatType.MULTICAST: Struct(MulticastId, ("address", U32), ("port", U32)),
                QueueFormatType.SUBQUEUE: _DIRECT_NAME,
            },
        ),
    ),
)
"""The type of the structure. [MQMQ 2.2.7]"""

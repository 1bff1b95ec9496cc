"""Format names: how programs name queues, each kind a value. [MQMQ 2.1.2 - 2.1.7]

Two values are equal when they print the same. Names that differ in letter case only, or in the
spelling of an address, name the same queue: compare their `key`.
"""

from __future__ import annotations

from typing import TypeAlias

from openmsmq.model.identity import Guid
from openmsmq.model.limits import FORMAT_NAME_MAX_COUNT, PRIVATE_QUEUE_MAX_NUMBER
from openmsmq.model.names.base import BaseFormatName
from openmsmq.model.names.direct import DirectFormatName
from openmsmq.model.names.errors import IllegalFormatName
from openmsmq.model.names.local import SystemQueue
from openmsmq.model.names.parts import canonical_ip_address, check_domain_name, check_port


class PublicFormatName(BaseFormatName, frozen=True, gc=False):
    """A queue that the directory knows: `PUBLIC=guid`, or its journal. [MQMQ 2.1.3]"""

    queue: Guid
    journal: bool = False

    @property
    def is_read_only(self) -> bool:
        """Whether it names a journal, to which nobody can send."""
        return self.journal

    def __str__(self) -> str:
        return f"PUBLIC={self.queue}{_journal_suffix(self.journal)}"


class PrivateFormatName(BaseFormatName, frozen=True, gc=False):
    r"""A queue by its number on a queue manager: `PRIVATE=guid\1f`, or its journal. [MQMQ 2.1.4]"""

    queue_manager: Guid
    number: int
    journal: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.number <= PRIVATE_QUEUE_MAX_NUMBER:
            problem = "the number of a private queue has 32 bits"
            raise IllegalFormatName(str(self.number), 0, problem)

    @property
    def is_read_only(self) -> bool:
        """Whether it names a journal, to which nobody can send."""
        return self.journal

    def __str__(self) -> str:
        suffix = _journal_suffix(self.journal)
        return f"PRIVATE={self.queue_manager}\\{self.number:x}{suffix}"


class MachineFormatName(BaseFormatName, frozen=True, gc=False):
    """A journal or dead-letter queue of a queue manager: `MACHINE=guid;JOURNAL`. [MQMQ 2.1.6]"""

    queue_manager: Guid
    queue: SystemQueue

    @property
    def is_read_only(self) -> bool:
        """Whether it names a journal or a dead-letter queue, to which nobody can send: always."""
        return True

    def __str__(self) -> str:
        return f"MACHINE={self.queue_manager};{self.queue.value}"


class ConnectorFormatName(BaseFormatName, frozen=True, gc=False):
    """The queue of a connector to foreign systems: `CONNECTOR=guid`. [MQMQ 2.1.6]

    Each connector has two queues; `;XACTONLY` names the transactional one.
    """

    connector: Guid
    transactional: bool = False

    @property
    def openable_for_send(self) -> bool:
        """Whether an application can send to it: no, messages come from routing."""
        return False

    def __str__(self) -> str:
        return f"CONNECTOR={self.connector}" + (";XACTONLY" if self.transactional else "")


class MulticastFormatName(BaseFormatName, frozen=True, gc=False):
    """All queues that listen to an address: `MULTICAST=234.1.1.1:8001`. [MQMQ 2.1.6]"""

    address: str
    port: int

    def __post_init__(self) -> None:
        address = canonical_ip_address(self.address) or ""
        first = address.partition(".")[0]
        if not (first.isdecimal() and 224 <= int(first) <= 239):
            problem = "a multicast address is from 224.0.0.0 to 239.255.255.255"
            raise IllegalFormatName(self.address, 0, problem)
        check_port(self.port)

    @property
    def openable_for_receive(self) -> bool:
        """Whether an application can receive from it: no, it receives from the queues behind."""
        return False

    def __str__(self) -> str:
        return f"MULTICAST={self.group}"

    @property
    def group(self) -> str:
        """The address and port alone, as queues have them. [MQMQ 2.3.1.23]"""
        return f"{self.address}:{self.port}"


class DistributionListFormatName(BaseFormatName, frozen=True, gc=False):
    """A list of queues in the directory: `DL=guid`, `DL=guid@domain`. [MQMQ 2.1.5]"""

    distribution_list: Guid
    domain: str | None = None

    def __post_init__(self) -> None:
        if self.domain is not None:
            check_domain_name(self.domain)

    @property
    def openable_for_receive(self) -> bool:
        """Whether an application can receive from it: no, it receives from the queues behind."""
        return False

    def __str__(self) -> str:
        domain = "" if self.domain is None else f"@{self.domain}"
        return f"DL={self.distribution_list}{domain}"


SingleFormatName: TypeAlias = (
    DirectFormatName
    | PublicFormatName
    | PrivateFormatName
    | MachineFormatName
    | ConnectorFormatName
    | MulticastFormatName
    | DistributionListFormatName
)


class MultipleFormatName(BaseFormatName, frozen=True, gc=False):
    """Several names, to which one message is sent: separated by commas. [MQMQ 2.1.7]

    Journals and dead-letter queues cannot be among them. A connector can, by the grammar, though
    nobody can send to it: `openable_for_send` tells whether all elements agree.
    """

    elements: tuple[SingleFormatName, ...]

    def __post_init__(self) -> None:
        check_element_count(str(self), len(self.elements))
        position = 0
        for element in self.elements:
            if element.is_read_only:
                problem = "a journal or dead-letter queue cannot be among several destinations"
                raise IllegalFormatName(str(self), position, problem)
            position += len(str(element)) + 1

    @property
    def key(self) -> str:
        """What is equal for lists of the same queues in the same order."""
        return ",".join(element.key for element in self.elements)

    @property
    def openable_for_send(self) -> bool:
        """Whether an application can send to all elements."""
        return all(element.openable_for_send for element in self.elements)

    @property
    def openable_for_receive(self) -> bool:
        """Whether an application can receive from it: no, a list is for sending."""
        return False

    def __str__(self) -> str:
        return ",".join(map(str, self.elements))


FormatName: TypeAlias = SingleFormatName | MultipleFormatName


def check_element_count(text: str, count: int) -> None:
    """Refuse a list that is none, or that is longer than anyone needs."""
    if count < 2:
        raise IllegalFormatName(text, len(text), "a list of format names has two or more")
    if count > FORMAT_NAME_MAX_COUNT:
        problem = f"a list of format names has at most {FORMAT_NAME_MAX_COUNT} elements"
        raise IllegalFormatName(text, 0, problem)


def _journal_suffix(journal: bool) -> str:
    return ";JOURNAL" if journal else ""

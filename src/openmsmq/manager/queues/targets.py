"""Where messages go that an application sends: into a queue, or by way of something that is none.

A list holds no messages: each of its queues gets a copy, which names all of them. [MQDMPR
3.1.7.1.27] A queue of a foreign computer holds none either: those wait for a connector, a program
that knows that computer. A connector has two queues here, `CONNECTOR=guid` and
`CONNECTOR=guid;XACTONLY`. They come into being with the first message or when the connector opens
them. Messages keep the address that their sender gave, so that the connector knows where to take
them. [MQMQ 2.1.6]
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.model.errors import InsufficientResources, InvalidParameter, UnsupportedFormatName
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import NAMES_PER_SEND_MAX_COUNT, PROTECTED_PER_SEND_MAX_COUNT
from openmsmq.model.names import (
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MulticastFormatName,
    MultipleFormatName,
    PrivateFormatName,
    PublicFormatName,
    parse_format_name,
    read_name,
)
from openmsmq.model.names.parts import fold
from openmsmq.wire.addressing import destinations_header
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.multi_queue import count_names
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.packets import UserMessage, decode, encode

ListName: TypeAlias = MultipleFormatName | DistributionListFormatName


class QueueList:
    """Several queues that were opened together for sending."""

    def __init__(self, name: ListName, table: QueueTable) -> None:
        self.name = str(name)
        given = name.elements if isinstance(name, MultipleFormatName) else (name,)
        self.named = frozenset(fold(str(element)) for element in given)
        """What the application has named itself; the others are members of lists."""
        elements = table.published.expanded(given)
        queues = [_destination(element, table) for element in elements]
        self._published = table.published
        # Messages to one queue name it alike: a sequence is known by the name of its destination.
        self.targets: list[tuple[FormatName, LocalQueue]] = [
            (parse_format_name(queue.name) if queue.can.lead_away else element, queue)
            for element, queue in zip(elements, queues, strict=True)
        ]
        self.header = destinations_header(name)
        self._written = self.header.write()
        """The same in bytes: each copy has them, and there are many copies."""

    def count_handles(self, change: int) -> None:
        """Keep the queues of the list while the list is open."""
        for _, queue in self.targets:
            queue.count_handles(change)

    def size_of_copies(self, packets: list[bytes]) -> int:
        """Return how many bytes all copies have, at most: each of them names all queues."""
        size = sum(map(len, packets)) + len(packets) * len(self._written)
        return size * len(self.targets)

    def copies(self, packets: list[bytes]) -> list[tuple[LocalQueue, list[bytes]]]:
        """Make the copies for each queue, addressed to it and naming all others."""
        drafts: list[tuple[UserMessage, bytes]] = []
        local_count = sum(not queue.can.lead_away for _, queue in self.targets)
        names = protected = 0
        for packet in packets:
            draft, lists = self._draft(packet)
            drafts.append((draft, lists))
            looks = 0 if lists is self._written else 1
            if draft.security is not None:
                # Each copy that stays here is examined, and its signature covers all names.
                looks += local_count
                protected += local_count
            if looks:
                names += looks * count_names(lists, 0)
            require_little_work(names, protected)
        return [
            (queue, [self._addressed(draft, lists, name) for draft, lists in drafts])
            for name, queue in self.targets
        ]

    def _draft(self, packet: bytes) -> tuple[UserMessage, bytes]:
        """Return a message that names all queues, and the bytes in which it does.

        A header that the application has signed is kept, if it names the same queues.
        """
        try:
            message = decode(packet)
        except DecodeError as error:
            raise InvalidParameter(f"not a message: {error}") from None
        if not isinstance(message, UserMessage):
            raise InvalidParameter("not a message: a packet of a session")
        signed = message.multi_queue
        if signed is None:
            return msgspec.structs.replace(message, multi_queue=self.header), self._written
        if signed.destinations != self.header.destinations:
            raise InvalidParameter(f"a message names other queues than {self.name}")
        return message, signed.write()

    def _addressed(self, draft: UserMessage, lists: bytes, name: FormatName) -> bytes:
        manager, destination = self._address(name)
        header = msgspec.structs.replace(
            draft.user, destination=destination, destination_manager=manager
        )
        try:
            return encode(msgspec.structs.replace(draft, user=header), lists)
        except EncodeError as error:
            # The names of all queues take room that the application did not reckon with.
            raise InvalidParameter(f"no message for {self.name}: {error.problem}") from None

    def _address(self, name: FormatName) -> tuple[Guid, QueueName]:
        match name:
            case DirectFormatName():
                return NIL_GUID, DirectName(name.wire_text)
            case PrivateFormatName():
                return name.queue_manager, PrivateOnDestination(name.number)
            case PublicFormatName():
                return self._published.owner_of(name), PublicName(name.queue)
            case _:
                raise UnsupportedFormatName(f"{name} cannot be one of several destinations")


class ForeignQueue:
    """A queue of a foreign computer, opened for sending."""

    def __init__(self, name: str, connector: LocalQueue) -> None:
        self.name = name
        self.connector = connector

    def count_handles(self, change: int) -> None:
        """Keep the connector's queue while this one is open."""
        self.connector.count_handles(change)


class MulticastTarget:
    """A multicast address, opened for sending: whoever listens there gets what is sent."""

    def __init__(self, name: MulticastFormatName) -> None:
        self.name = str(name)
        self.group = name.group

    def count_handles(self, _change: int) -> None:
        """Nothing here is kept for it."""


Target: TypeAlias = LocalQueue | QueueList | ForeignQueue | MulticastTarget
"""What can be opened; only a queue can be read."""


def in_its_kind(target: LocalQueue | ForeignQueue, *, transactional: bool) -> LocalQueue:
    """Return the queue that really takes messages of a kind."""
    queue = target.connector if isinstance(target, ForeignQueue) else target
    if transactional and queue.transactional_twin is not None:
        return queue.transactional_twin
    return queue


def require_little_work(names: int, protected: int) -> None:
    """Refuse messages whose names and signatures would take long to look at, in one call.

    `protected` of them are signed or encrypted.
    """
    if names > NAMES_PER_SEND_MAX_COUNT:
        raise InsufficientResources(
            f"messages whose lists have {names} names and more; {NAMES_PER_SEND_MAX_COUNT} may be "
            "sent at once: send fewer messages at once, or to fewer queues"
        )
    if protected > PROTECTED_PER_SEND_MAX_COUNT:
        raise InsufficientResources(
            f"{protected} signed or encrypted messages and more; {PROTECTED_PER_SEND_MAX_COUNT} "
            "may be sent at once: send fewer messages at once, or to fewer queues"
        )


def parse_multicast(name: str) -> MulticastFormatName | None:
    """Read a multicast address; None if it is another name."""
    parsed = read_name(name)
    return parsed if isinstance(parsed, MulticastFormatName) else None


def parse_list(name: str) -> ListName | None:
    """Read a name that stands for several queues; None if it stands for one."""
    parsed = read_name(name)
    return parsed if isinstance(parsed, MultipleFormatName | DistributionListFormatName) else None


def _destination(name: FormatName, table: QueueTable) -> LocalQueue:
    queue = table.destination(name)
    if not queue.can.be_sent_to:
        raise UnsupportedFormatName(f"{name} takes no messages from applications")
    return queue

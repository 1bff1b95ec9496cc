"""Messages to multicast addresses: they wait in no queue, but go to the driver with their turn.

The driver's source has so much room for each address; what is more is refused, so that whoever
sends hears that the network is slower. Nobody hears what became of a message. [MQSRM 2.1.2]
"""

from __future__ import annotations

from openmsmq.manager.outputs import SendMulticast
from openmsmq.manager.queues.targets import MulticastTarget
from openmsmq.manager.requests.multicast.effects import MulticastSent
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    InvalidParameter,
    ServiceNotAvailable,
    TransactionUsage,
    UnsupportedOperation,
)
from openmsmq.protocol.pgm.limits import (
    MULTICAST_SOURCES_MAX_COUNT,
    PGM_BACKLOG_MAX_BYTES,
    PGM_PAYLOAD_MAX_BYTES,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import user
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.srmp.multicast import write_multicast


class MulticastSends:
    """Takes what applications send to multicast addresses."""

    def __init__(self, base: Foundation) -> None:
        self._counters = base.counters
        self._ledger = base.ledger
        self._outputs = base.outputs
        self._problem = "nothing was said of multicast yet"
        # What the driver has taken over and not sent yet, by address.
        self._backlogs: dict[str, int] = {}
        # What waits for the disk, and is not the driver's yet.
        self._reserved: dict[str, int] = {}

    def take_problem(self, problem: str) -> None:
        """Note why there is no multicast on this computer; nothing if there is."""
        self._problem = problem

    def took_backlog(self, group: str, size: int) -> None:
        """Note how much of what was sent to an address waits."""
        if size:
            self._backlogs[group] = size
        else:
            self._backlogs.pop(group, None)

    def send(self, target: MulticastTarget, packets: list[bytes], now: Instant) -> list[int]:
        """Send packets, all or none of them; return their numbers."""
        if self._problem:
            raise ServiceNotAvailable(self._problem)
        group = target.group
        busy = self._backlogs.keys() | self._reserved.keys()
        if group not in busy and len(busy) >= MULTICAST_SOURCES_MAX_COUNT:
            raise InsufficientResources(
                f"messages to {len(busy)} multicast addresses wait: send again later"
            )
        first = self._counters.take_messages(len(packets))
        payloads = [
            self._payload(group, packet, number, now)
            for packet, number in zip(packets, first, strict=True)
        ]
        waiting = self._backlogs.get(group, 0) + self._reserved.get(group, 0)
        sent = MulticastSent(self, group, payloads)
        if waiting + sent.size > PGM_BACKLOG_MAX_BYTES:
            raise InsufficientResources(
                f"{waiting} bytes to {target.name} wait, and {PGM_BACKLOG_MAX_BYTES} may: send "
                "again in a moment; rate_kb_s in [multicast] says how fast they leave"
            )
        self._ledger.add(sent)
        return first

    def reserve(self, group: str, size: int) -> None:
        """Count bytes that wait for the disk, or no longer do. Only effects call this."""
        left = self._reserved.pop(group, 0) + size
        if left:
            self._reserved[group] = left

    def hand_over(self, group: str, payloads: list[bytes]) -> None:
        """Give messages to the driver. Only effects call this."""
        self._backlogs[group] = self._backlogs.get(group, 0) + sum(map(len, payloads))
        self._outputs.extend(SendMulticast(group, payload) for payload in payloads)

    def _payload(self, group: str, packet: bytes, number: int, now: Instant) -> bytes:
        try:
            stamped = message_bytes.stamped(packet, self._counters.identifier, now.unix_s, number)
            message = decode(stamped)
        except DecodeError as error:
            raise InvalidParameter(f"not a message: {error}") from None
        if not isinstance(message, UserMessage):
            raise InvalidParameter("not a message: a packet of a session")
        if message.user.flags & user.TRANSACTION:
            raise TransactionUsage("messages to a multicast address are in no transaction")
        if message.user.flags & user.SECURITY:
            raise UnsupportedOperation(
                "signatures and encryption do not travel by multicast: send without them"
            )
        payload = write_multicast(message, group)
        if len(payload) > PGM_PAYLOAD_MAX_BYTES:
            raise InsufficientResources(
                f"a message of {len(payload)} bytes with its envelope; by multicast it may have "
                f"{PGM_PAYLOAD_MAX_BYTES}"
            )
        return payload

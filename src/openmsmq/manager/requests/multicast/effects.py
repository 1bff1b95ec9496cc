"""What a turn does with messages to multicast addresses: they leave when it is durable."""

from __future__ import annotations

from typing import Protocol

from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.model.errors import MsmqError


class Backlogs(Protocol):
    """What waits for the network, and for the disk."""

    def reserve(self, group: str, size: int) -> None:
        """Count bytes that wait for the disk, or, with a minus, no longer do."""

    def hand_over(self, group: str, payloads: list[bytes]) -> None:
        """Give messages to the driver."""


class MulticastSent(Effect):
    """Messages go to a multicast address.

    They are in no store. But what stands for them may be: the voucher of a key, without which their
    sender would send them again.
    """

    __slots__ = ("backlogs", "group", "payloads", "size")

    def __init__(self, backlogs: Backlogs, group: str, payloads: list[bytes]) -> None:
        self.backlogs = backlogs
        self.group = group
        self.payloads = payloads
        self.size = sum(map(len, payloads))

    def apply(self) -> None:
        """Leave no room to others for the same."""
        self.backlogs.reserve(self.group, self.size)

    def follow(self) -> None:
        """Let them leave."""
        self.backlogs.reserve(self.group, -self.size)
        self.backlogs.hand_over(self.group, self.payloads)

    def revert(self, _: MsmqError, /) -> None:
        """Let nobody have sent them."""
        self.backlogs.reserve(self.group, -self.size)

    def describe(self) -> dict[str, Plain]:
        """Return where they go, and how much they are."""
        return {"group": self.group, "messages": len(self.payloads), "bytes": self.size}

"""What stands between a machine of RPC and the queue manager: one for each caller and interface.

A driver gives each of them a connection of its own to the queue manager, with the rights of the
caller. When the last connection of the association group is gone, the driver ends that one: the
queue manager then gives back what was locked, as it does for every application that is lost.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from openmsmq.api.messages import AnyReply, AnyRequest
from openmsmq.model.clock import Instant


class Ask(msgspec.Struct, frozen=True):
    """Ask the queue manager, then call `answered` with the same number.

    The number is the call's at the queue manager, too: `Cancel` names a call by it.
    """

    number: int
    request: AnyRequest


class Return(msgspec.Struct, frozen=True):
    """The results of a call."""

    call: int
    stub: bytes


class Throw(msgspec.Struct, frozen=True):
    """End a call with a fault."""

    call: int
    status: int


Output: TypeAlias = Ask | Return | Throw


class Interface(Protocol):
    """What answers the calls of one caller through one interface; `call` is the driver's number."""

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        """Take a call whose fragments are all there."""

    def answered(self, number: int, reply: AnyReply, now: Instant) -> list[Output]:
        """Take the queue manager's reply."""

    def cancelled(self, call: int, now: Instant) -> list[Output]:
        """Somebody does not want to wait for a call any more; it still ends once."""

    @property
    def next_wake_ms(self) -> int | None:
        """When to call `wake`, in ticks; None when nothing is due."""

    def wake(self, now: Instant) -> list[Output]:
        """Do what is due."""


class AsksNobody:
    """What an interface has that answers each call at once, from what it knows."""

    def answered(self, number: int, reply: AnyReply, now: Instant) -> list[Output]:
        """Nothing was asked."""
        del number, reply, now
        return []

    def cancelled(self, call: int, now: Instant) -> list[Output]:
        """Every call has ended already."""
        del call, now
        return []

    @property
    def next_wake_ms(self) -> int | None:
        """There is nothing to be done later."""
        return None

    def wake(self, now: Instant) -> list[Output]:
        """Nothing is due."""
        del now
        return []

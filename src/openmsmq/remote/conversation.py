"""One connection of a client of RPC, without the connection: bytes to calls, and answers back.

Its association turns bytes into calls, the desk has them answered, and the association turns the
answers into bytes. When the connection is lost, nobody waits for its calls any more, and what
nobody can use any more is given back.
"""

from __future__ import annotations

from typing import Protocol

from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import (
    CallArrived,
    CallCancelled,
    Closed,
    Output,
    Proved,
    Refused,
    Written,
)
from openmsmq.remote.clerks import Clerk, Desk


class Line(Protocol):
    """The connection itself: what a driver does with it."""

    @property
    def peer(self) -> str:
        """Who is at the other end, for the log."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def proved(self, proved: Proved) -> None:
        """Somebody has proved to be somebody."""

    def refused(self, refused: Refused) -> None:
        """Somebody has not proved enough."""

    def closed(self, sentence: str) -> None:
        """End it when all is written, because of what its client did."""

    def cut(self, reason: str) -> None:
        """End it, because its client may not stay."""

    def settled(self) -> None:
        """Everything is done that there was to do."""

    def note_defect(self, error: Exception) -> None:
        """Log a mistake of ours."""


class Conversation:
    """What is said on one connection, from its first byte to its loss."""

    def __init__(self, association: Association, key: int, desk: Desk, line: Line) -> None:
        """`key` is the connection in the groups."""
        self.association = association
        self._key = key
        self._desk = desk
        self._line = line
        self._clerks: dict[int, Clerk] = {}
        """Who answers each call that is under way."""
        self._met: dict[Clerk, None] = {}
        self._is_at_work = False

    # What drivers call.

    def received(self, data: bytes) -> None:
        """Take bytes of the client."""
        self.association.received(data)
        self._work()

    def lost(self, groups: Groups) -> None:
        """The connection is gone."""
        for clerk in self._met:
            clerk.forget(self)
        self._clerks.clear()
        for ended in groups.left(self._key):
            self._desk.end(ended.group, ended.caller)

    # What clerks call.

    @property
    def peer(self) -> str:
        """Who is at the other end, for the log."""
        return self._line.peer

    def returned(self, call: int, stub: bytes) -> None:
        """Take the results of a call."""
        self._clerks.pop(call, None)
        self.association.returned(call, stub)
        self._work()

    def threw(self, call: int, status: int) -> None:
        """Take the status of a call that has failed."""
        self._clerks.pop(call, None)
        self.association.threw(call, status)
        self._work()

    def cut(self, reason: str) -> None:
        """End the connection of a client that may not stay."""
        self._line.cut(reason)

    def note_defect(self, error: Exception) -> None:
        """Log a mistake of ours."""
        self._line.note_defect(error)

    # What the association wants.

    def _work(self) -> None:
        if self._is_at_work:
            # An answer that comes at once is written by whoever has handed in the call.
            return
        self._is_at_work = True
        try:
            outputs = self.association.take_outputs()
            while outputs:
                for output in outputs:
                    self._do(output)
                outputs = self.association.take_outputs()
        finally:
            self._is_at_work = False
        self._line.settled()

    def _do(self, output: Output) -> None:
        match output:
            case Written(data):
                self._line.write(data)
            case CallArrived():
                self._call(output)
            case CallCancelled(call):
                clerk = self._clerks.get(call)
                if clerk is not None:
                    clerk.cancel(self, call)
            case Proved():
                self._line.proved(output)
            case Refused():
                self._line.refused(output)
            case Closed(sentence):
                self._line.closed(sentence)

    def _call(self, arrived: CallArrived) -> None:
        clerk = self._desk.call(self, self.association.group, arrived)
        if clerk is not None:
            self._met[clerk] = None
            # It may be answered before anybody knows by whom.
            if self.association.is_under_way(arrived.call):
                self._clerks[arrived.call] = clerk

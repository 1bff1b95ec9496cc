"""Association groups: connections of one client that share what its calls have opened.

What calls of a caller have opened belongs to the group and the caller. It is given back when the
last connection of the group goes on which that caller has been seen: a stranger who joins a group
keeps nothing alive in it. [C706 9.3.1, MS-RPCE 3.3.1.5.6]
"""

from __future__ import annotations

import msgspec

from openmsmq.security.access.callers import Caller


class GroupEnded(msgspec.Struct, frozen=True):
    """Nobody is left through whom a caller could use what it has opened in a group."""

    group: int
    caller: Caller


class _Group:
    def __init__(self) -> None:
        self.connections: set[int] = set()
        self.callers: dict[Caller, set[int]] = {}


class Groups:
    """The groups of one door, by their numbers, which are never given twice."""

    def __init__(self) -> None:
        self._last = 0
        self._groups: dict[int, _Group] = {}
        self._of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def join(self, connection: int, wanted: int) -> int | None:
        """Put a connection into a group, or into a new one for 0; None if there is no such."""
        if not wanted:
            self._last += 1
            wanted = self._last
            self._groups[wanted] = _Group()
        group = self._groups.get(wanted)
        if group is None:
            return None
        group.connections.add(connection)
        self._of[connection] = wanted
        return wanted

    def seen(self, connection: int, caller: Caller) -> None:
        """Note that a caller speaks through a connection."""
        group = self._groups[self._of[connection]]
        group.callers.setdefault(caller, set()).add(connection)

    def left(self, connection: int) -> list[GroupEnded]:
        """Forget a connection; say for whom that was the last one."""
        number = self._of.pop(connection, None)
        if number is None:
            return []
        group = self._groups[number]
        group.connections.discard(connection)
        ended = []
        for caller, through in list(group.callers.items()):
            through.discard(connection)
            if not through:
                del group.callers[caller]
                ended.append(GroupEnded(number, caller))
        if not group.connections:
            del self._groups[number]
        return ended

"""The computer of a remote reader: an address from which it connects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from openmsmq.sim.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.sim.world import World


class Hearing(Protocol):
    """What hears what happens to one connection."""

    def connected(self) -> None:
        """It is there."""

    def received(self, data: bytes) -> None:
        """The other side says something."""

    def gone(self) -> None:
        """It is lost, or never came about."""


class ReaderHost:
    """An address, as the network sees it."""

    is_watched: Final = False
    up: Final = True

    def __init__(self, world: World, index: int, name: str, address: str) -> None:
        self._world = world
        self.index = index
        self.name = name
        self.address = address
        self.boot = 1
        self.clock = Clock(world.timeline, 0)
        self._last_session = 0
        self._hearing: dict[int, Hearing] = {}

    # What readers do.

    def connect(self, address: str, hearing: Hearing) -> int:
        """Begin a connection; give its number."""
        self._last_session += 1
        self._hearing[self._last_session] = hearing
        self._world.network.connect(self, self._last_session, address)
        return self._last_session

    def write(self, session: int, data: bytes) -> None:
        """Send bytes."""
        if session in self._hearing:
            self._world.network.send(self, session, data)

    def leave(self, session: int) -> None:
        """Close a connection."""
        if self._hearing.pop(session, None) is not None:
            self._world.network.disconnect(self, session)

    def die(self) -> None:
        """Lose power, and start again at once: nobody is told."""
        self._world.network.node_gone(self)
        self._hearing.clear()
        self.boot += 1

    # As the network sees it.

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen here."""
        self._world.timeline.after(delay_ms, self._if_same, self.boot, action, arguments)

    def _if_same(self, boot: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self.boot == boot:
            action(*arguments)

    def accept(self, address: str, proven: str = "") -> int:
        """Nobody connects to a reader."""
        raise AssertionError(f"{address} connects to {self.name} {proven}")

    def input(self, name: str, session: int, *arguments: Any, **_: Any) -> None:
        """Hear what happens to a connection."""
        hearing = self._hearing.get(session)
        if hearing is None:
            return
        if name == "session_connected":
            hearing.connected()
        elif name == "session_data":
            hearing.received(arguments[0])
        else:
            del self._hearing[session]
            hearing.gone()

    def datagram(self, address: str, port: int, data: bytes, *, is_answer: bool) -> None:
        """Readers send none, and hear none."""

"""What the pump works between: the queue manager, the applications, the other queue managers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from openmsmq.api.messages import Answer, AnyRequest
from openmsmq.manager.outputs import Output
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, DirectoryChanges, Position
from openmsmq.model.errors import MsmqError
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.session_states import CloseReason
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.sids import Sid
from openmsmq.security.own_key import OwnKey


class Outlet(Protocol):
    """Where the answers to a connection go, and who may have more calls to make."""

    def deliver(self, answers: list[Answer]) -> None:
        """Write answers to the connection."""
        ...

    def go_on(self) -> None:
        """Take calls again."""
        ...


class Engine(Protocol):
    """A queue manager as the pump and the sockets see it; `QueueManager` is one."""

    def connected(self, connection: int, caller: Caller) -> None:
        """An application has connected; the caller is who it is."""
        ...

    def user_of(self, certificate: bytes) -> Sid | None:
        """Say for whom the directory has a certificate."""
        ...

    def connection_lost(self, connection: int, now: Instant) -> None:
        """An application is gone."""
        ...

    def request(self, connection: int, call: int, request: AnyRequest, now: Instant) -> None:
        """An application asks for something."""
        ...

    def session_accepted(self, session: int, address: str, now: Instant, peer: str = "") -> None:
        """Another queue manager has connected; its number is even.

        Over TLS, `peer` is the name of the rule whose certificate it has shown.
        """
        ...

    def session_connected(self, session: int, now: Instant, peer: str = "") -> None:
        """What `Connect` asked for is there; `peer` as above."""
        ...

    def session_failed(
        self, session: int, status: ConnectionStatus, now: Instant, reason: str = ""
    ) -> None:
        """What `Connect` asked for could not be had; `reason` says more than the status does."""
        ...

    def session_data(self, session: int, data: bytes, now: Instant) -> None:
        """Another queue manager has sent bytes."""
        ...

    def session_lost(
        self, session: int, now: Instant, reason: CloseReason = CloseReason.PEER_CLOSED
    ) -> None:
        """The connection of a session is gone."""
        ...

    def host_resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """What `Resolve` asked for is known; no address means that there is none."""
        ...

    def datagram_received(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool = False
    ) -> None:
        """A datagram has come to the ping port, or to the port from which we asked."""
        ...

    def directory_told(self, told: DirectoryChanges, now: Instant) -> None:
        """The directory has answered."""
        ...

    def directory_failed(self, error: MsmqError, now: Instant) -> None:
        """The directory could not be asked."""
        ...

    def directory_moved(self, now: Instant) -> None:
        """The directory has changed since it answered last."""
        ...

    def directory_changed(self, ticket: int, changes: Sequence[Change], now: Instant) -> None:
        """The directory has changes that were asked for."""
        ...

    def directory_refused(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """The directory has refused changes that were asked for."""
        ...

    def keys_made(self, keys: Sequence[OwnKey], now: Instant) -> None:
        """New key pairs are there."""
        ...

    def keys_failed(self, error: MsmqError, now: Instant) -> None:
        """New key pairs could not be made."""
        ...

    @property
    def kept_keys(self) -> tuple[OwnKey, ...]:
        """All key pairs that are of use."""
        ...

    def persisted(self, ticket: int, now: Instant) -> None:
        """A batch is durable."""
        ...

    def persist_failed(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """A batch was refused."""
        ...

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        ...

    def take_outputs(self) -> list[Output]:
        """Return what is to be done now."""
        ...

    def next_wake_ms(self, now: Instant) -> int | None:
        """When to call `wake`."""
        ...


@runtime_checkable
class HoldsBytes(Protocol):
    """An engine that can say what it holds for a session."""

    def session_held_bytes(self, session: int) -> int:
        """Return how many bytes of a packet wait for its rest; 0 for a session that is over."""
        ...


class Keys(Protocol):
    """What makes key pairs, as the pump uses it."""

    def make(self) -> None:
        """Begin to make keys."""
        ...


class Directory(Protocol):
    """The way to a directory, as the pump uses it."""

    def ask(self, position: Position) -> None:
        """Ask for changes."""
        ...

    def change(self, ticket: int, changes: tuple[Change, ...]) -> None:
        """Make changes."""
        ...


class Network(Protocol):
    """What reaches other queue managers. All but the first call no input before they return."""

    def take_waiting(self) -> bool:
        """Hand in what strangers have sent, if it is their time; say whether anything was."""
        ...

    def resolve(self, host: str) -> None:
        """Look up a host."""
        ...

    def connect(self, session: int, address: str) -> None:
        """Open the connection of a session."""
        ...

    def send(self, session: int, data: bytes) -> None:
        """Write to the connection of a session, at the next `flush`."""
        ...

    def disconnect(self, session: int) -> None:
        """Close the connection of a session once everything is written."""
        ...

    def send_datagram(self, address: str, port: int | None, data: bytes) -> None:
        """Send a datagram, to the ping port if no other is given."""
        ...

    def flush(self) -> None:
        """Let go what `send` was given. Every turn calls it at least once."""
        ...

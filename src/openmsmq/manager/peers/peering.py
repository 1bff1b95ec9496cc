"""Peers and neighbours: a session with whoever is at its other end, and a link with its queues."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.peers import PeerRule, canonical_address
from openmsmq.protocol.link import Link, LinkState, OpenSession
from openmsmq.protocol.session import NOBODY_CALLED, Called, Role, Session


class Word(Enum):
    """What the name of a queue manager is worth in the mouth of a peer."""

    SURE = "sure"
    """Configuration, directory or certificate say that it is that one, or speaks for it."""
    OWN = "own"
    """Its own name, which nobody else has at another place; only its address speaks for it."""
    BROUGHT = "brought"
    """Our own, brought by a way; or of one who is known elsewhere and not in the directory, brought
    by a way of the directory.

    The way is honest and cannot know whose it is: it is a message like any, and moves nothing."""
    FOREIGN = "foreign"
    """Somebody else's, or its own that is known to belong elsewhere."""


class Judge(Protocol):
    """Says who may be let in."""

    def admits(self, peer: Peer, claimed: Guid, now: Instant) -> bool:
        """Whether somebody may be who he says he is."""
        ...


class Peer:
    """A session and the outgoing queues that use it."""

    __slots__ = (
        "_judge",
        "engine",
        "expected",
        "histories",
        "is_counted",
        "link",
        "number",
        "place",
        "proven",
        "queues",
        "received_bytes",
        "rule",
        "sent_bytes",
        "served",
        "since_s",
        "waiting",
        "words",
        "words_version",
    )

    def __init__(
        self,
        number: int,
        base: Foundation,
        judge: Judge,
        address: str,
        *,
        link: Neighbour | None = None,
        asked: OpenSession | None = None,
    ) -> None:
        """Begin a session that somebody has opened, or that a link has `asked` for."""
        self.since_s = base.started.unix_s
        self.sent_bytes = 0
        self.received_bytes = 0
        self.is_counted = False
        """Whether it is one of the sessions that others opened and that were let in."""
        self.number = number
        self._judge = judge
        called = NOBODY_CALLED
        if link is not None and asked is not None:
            called = Called(asked.manager, direct=link.engine.direct, pinged=asked.pinged)
        self.engine = Session(
            base.counters.identifier,
            Role.ACCEPTOR if asked is None else Role.INITIATOR,
            base.config.transfer,
            address=canonical_address(address),
            called=called,
            gate=self,
        )
        self.expected = NIL_GUID if link is not None and link.is_return else called.manager
        """Who was asked for at an address of his; nil for one who only says himself who he is."""
        self.link = link
        self.place = self.engine.address
        """Where it is: at an address, or behind a certificate, wherever that is shown."""
        self.proven = ""
        """The rule of `[peers]` whose certificate it has shown; empty without TLS."""
        self.rule: PeerRule | None = None
        """The rule of `[peers]` that names it."""
        self.words: dict[bytes, Word] = {}
        """What was found out about the names it uses, while nothing has changed."""
        self.words_version = -1
        self.histories: dict[bytes, bytes] = {}
        """Under what its messages of a source are remembered."""
        self.queues: dict[OutgoingQueue, None] = {}
        self.waiting: dict[OutgoingQueue, None] = {}
        """Queues that had more to send than there was room."""
        self.served: OutgoingQueue | None = None
        """The queue that took the last room: the others come before it next time."""

    def admits(self, claimed: Guid, now: Instant) -> bool:
        """Whether the other side may be who it says it is."""
        return self._judge.admits(self, claimed, now)

    def shows(self, proven: str) -> None:
        """Note the rule of `[peers]` whose certificate it has shown."""
        self.proven = proven
        if proven:
            self.place = f"[peers.{proven}]"

    def begins(self, now: Instant) -> None:
        """Note since when it is there."""
        self.since_s = now.unix_s

    def heard(self, size: int) -> None:
        """Count bytes that came."""
        self.received_bytes += size

    def told(self, size: int) -> None:
        """Count bytes that are sent."""
        self.sent_bytes += size

    def judged_by(self, rule: PeerRule | None) -> None:
        """Note the rule of `[peers]` that names it."""
        self.rule = rule

    def count(self, *, counted: bool) -> None:
        """Count it among the sessions that others opened and that were let in, or not."""
        self.is_counted = counted

    def forget_words(self, version: int) -> None:
        """Forget what was found out about names: something has changed."""
        self.words.clear()
        self.words_version = version

    def serves(self, outgoing: OutgoingQueue) -> None:
        """Let the messages of a queue go through it."""
        outgoing.join(self.number)
        self.queues[outgoing] = None

    def has_served(self, outgoing: OutgoingQueue) -> None:
        """Note the queue that took the last room."""
        self.served = outgoing

    @property
    def remote(self) -> Guid:
        """Who it says it is."""
        return self.engine.remote

    @property
    def is_dialled(self) -> bool:
        """Whether we have opened the session: at its other end is the listener of its address."""
        return self.engine.role is Role.INITIATOR


class Neighbour:
    """A link and the outgoing queues behind it."""

    __slots__ = ("engine", "is_return", "key", "peer", "queues", "reached")

    def __init__(self, key: str, engine: Link, reached: Guid, *, is_return: bool) -> None:
        self.key = key
        self.engine = engine
        self.peer: Peer | None = None
        self.is_return = is_return
        """Whether only acknowledgments go there, to somebody who said himself where he is."""
        self.reached = reached
        """Who has answered there last; nil while nobody has."""
        self.queues: dict[OutgoingQueue, None] = {}

    def opens(self, peer: Peer) -> None:
        """Note the session that is being opened to it."""
        self.peer = peer

    def lost(self) -> None:
        """Note that its session has ended, or never came to be."""
        self.peer = None

    def answered(self, manager: Guid) -> None:
        """Note who has answered there."""
        self.reached = manager

    @property
    def first_manager(self) -> Guid:
        """The queue manager that is tried first; nil where it is not known who answers."""
        hops = self.engine.hops
        return hops[0].manager if hops else NIL_GUID

    @property
    def is_unneeded(self) -> bool:
        """Whether it leads nowhere that anybody wants to go."""
        return not self.queues and self.engine.state is LinkState.IDLE

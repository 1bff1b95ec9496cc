"""What attacks are made of: targets, names, queues, and what was overheard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.sim.clock import EPOCH_S
from openmsmq.sim.hostile import forgeries
from openmsmq.sim.hostile.forgeries import name_at
from openmsmq.sim.scenarios.scenario import (
    ADMIN,
    CLOSED,
    CLOSED_TRANSACTIONAL,
    PLAIN,
    SMALL,
    TRANSACTIONAL,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PrivateOnSource,
    QueueName,
)

if TYPE_CHECKING:
    import random

    from openmsmq.sim.hostile.adversary import Adversary
    from openmsmq.sim.hostile.overheard import Heard
    from openmsmq.sim.node import Node

QUEUES: Final = (PLAIN, TRANSACTIONAL, SMALL, ADMIN, CLOSED, CLOSED_TRANSACTIONAL)
MISSING: Final = "private$\\missing"
ALL_ACKS: Final = 0x0F

_UNREACHABLE: Final = "10.99."
"""How addresses begin at which nobody is."""


class Kit:
    """Draws what an attack needs."""

    def __init__(self, adversary: Adversary, rng: random.Random) -> None:
        self._adversary = adversary
        self._rng = rng

    @property
    def _now_s(self) -> int:
        return EPOCH_S + self._adversary.world.timeline.now_ms // 1000

    def _target(self) -> Node:
        return self._rng.choice(self._adversary.world.nodes)

    def _heard_transactional(self) -> Heard | None:
        heard = self._adversary.heard.transactional
        return self._rng.choice(heard) if heard else None

    def _heard_anything(self) -> Heard | None:
        heard = self._adversary.heard
        kinds = [each for each in (heard.transactional, heard.plain, heard.acknowledgments) if each]
        return self._rng.choice(self._rng.choice(kinds)) if kinds else None

    def _name_for(self, target: Node, other: Node) -> Guid:
        """Choose a name: mostly that of an honest node, else one of the adversary's own."""
        if self._rng.random() < 0.2 or not self._adversary.may_name(target, other.identifier):
            return self._adversary.own_name()
        return other.identifier

    def _any_name(self, target: Node) -> Guid:
        return self._name_for(target, self._target())

    def _claim_like(self, target: Node, source: Guid) -> Guid:
        """Say in the handshake what the packets will say, or something else."""
        return source if self._rng.random() < 0.6 else self._any_name(target)

    def _say(
        self,
        target: Node,
        packets: list[bytes],
        *,
        claim: Guid | None = None,
        stays_ms: int = 3_000,
    ) -> None:
        if claim is None:
            claim = (
                self._adversary.identifier if self._rng.random() < 0.5 else self._any_name(target)
            )
        self._adversary.say(target, packets, claim=claim, stays_ms=stays_ms)

    def _nowhere(self) -> tuple[Guid, QueueName]:
        """Name a queue that nobody can reach."""
        number = self._rng.randrange(256)
        text = f"{_UNREACHABLE}{self._rng.randrange(256)}.{number}\\{PLAIN}"
        name: QueueName = self._rng.choice(
            (
                DirectName(f"TCP:{text}"),
                DirectName(f"OS:NOWHERE{number}\\{PLAIN}"),
                PrivateName(forgeries.invented(self._rng), number + 1),
            )
        )
        if isinstance(name, PrivateName):
            return name.manager, PrivateOnDestination(name.number)
        return NIL_GUID, name

    def _admin(self, target: Node) -> QueueName:
        """Name a queue for reports, anywhere."""
        other = self._target()
        way = self._rng.randrange(6)
        if way == 0:
            manager, name = self._nowhere()
            if isinstance(name, PrivateOnDestination):
                return PrivateName(manager, name.number)
            return name
        if way == 1:
            return DirectName(f"TCP:{self._adversary.hideout().address}\\{PLAIN}")
        if way == 2:
            return PrivateOnSource(self._rng.randrange(1, 12))
        if way == 3:
            return DirectName(f"TCP:{target.address}\\{CLOSED}")
        queue = self._rng.choice(QUEUES)
        manager, name = name_at(other, queue, self._rng)
        return PrivateName(manager, name.number) if isinstance(name, PrivateOnDestination) else name

    def _sender_of(self, heard: Heard) -> Node:
        """Return the node that wrote a message, which may not be the one that passed it on."""
        source = message_bytes.source(heard.packet)
        for node in self._adversary.world.nodes:
            if node.identifier == source:
                return node
        return heard.sender

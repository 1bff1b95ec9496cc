"""The adversary: it overhears everything between honest nodes, and tells them whatever it likes.

It knows every byte on the wire and every address, name and identifier. It has no key, it cannot
write into a connection of others, and it has addresses of its own (`hideout`). What it must not do
is what the threat model does not promise to withstand; that depends on the mode and is decided in
`may_name` alone.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.sim.hostile import forgeries
from openmsmq.sim.hostile.attacks import Attacks
from openmsmq.sim.hostile.burdens import Burdens
from openmsmq.sim.hostile.forgeries import Forgery, Wanted
from openmsmq.sim.hostile.hideout import Hideout, Visit
from openmsmq.sim.hostile.overheard import Heard, Overheard
from openmsmq.sim.scenarios.hostile import ATTACKS, Cue

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.hostile import HostileScenario
    from openmsmq.sim.world import World

HIDING: Final = "10.66.0."
"""How its addresses begin."""

_REACTION_MAX_MS: Final = 300
_LATER_EVERY_MS: Final = 2_000
_OWN_NAMES: Final = 3


class Adversary:
    """One who sits at some addresses and acts."""

    def __init__(self, world: World, scenario: HostileScenario, seed: int) -> None:
        self.world = world
        self.scenario = scenario
        self._rng = random.Random(f"moves of {seed}")
        self.heard = Overheard()
        self.forgeries: dict[int, Forgery] = {}
        self.move_count = 0
        self._names = [forgeries.invented(self._rng) for _ in range(_OWN_NAMES)]
        self.identifier = self._names[0]
        """Who it says it is when it says no other's name."""
        self._kinds = Attacks(self, self._rng).kinds | Burdens(self, self._rng).kinds
        self._reactive = [
            name for name in sorted(set(scenario.attacks)) if ATTACKS[name] is not Cue.NOTHING
        ]
        self._reactions_left = scenario.reactions
        self._hideouts: list[Hideout] = []
        self._housemates: dict[int, Hideout] = {}

    def settle_in(self) -> None:
        """Take its addresses, once the honest nodes have theirs."""
        for number in range(self.scenario.hideouts):
            hideout = self._hideout(f"MALLORY{number + 1}", f"{HIDING}{number + 1}")
            self._hideouts.append(hideout)
            self.world.network.join(hideout)
        for node in self.world.nodes:
            self._housemates[node.index] = self._hideout(f"AT-{node.name}", node.address)

    def _hideout(self, name: str, address: str) -> Hideout:
        hideout = Hideout(self, len(self.world.trace.names), name, address)
        self.world.trace.names.append(name)
        return hideout

    # When.

    def schedule(self) -> None:
        """Spread the moves over the first phase, and some over the time after it."""
        duration_ms = self.world.scenario.duration_ms
        for _ in range(self.scenario.moves):
            self._move_after(self._rng.randrange(duration_ms))
        for number in range(self.scenario.later_moves):
            self._move_after(duration_ms + number * _LATER_EVERY_MS)

    def overhears(self, packet: bytes, sender: Node, receiver: Node) -> None:
        """Hear a packet between honest nodes, and perhaps answer at once."""
        heard = self.heard.hear(packet, sender, receiver)
        if heard is None or not self._reactions_left or not self._reactive:
            return
        if not self.world.calm and self._rng.random() < 0.3:
            self._reactions_left -= 1
            kinds = self._reactive if heard.is_transactional else self._plain_reactions()
            if kinds:
                delay_ms = self._rng.randrange(_REACTION_MAX_MS)
                self.world.timeline.after(delay_ms, self._move, self._rng.choice(kinds), heard)

    def _plain_reactions(self) -> list[str]:
        return [kind for kind in self._reactive if ATTACKS[kind] is Cue.MESSAGES]

    def node_is_down(self, node: Node) -> None:
        """A node has lost power: a good moment to be that one."""
        delay_ms = self._rng.randrange(1_000)
        if "claims" not in self.scenario.attacks:
            self._move_after(delay_ms)
            return
        victim = self._rng.choice([each for each in self.world.nodes if each is not node])
        self.world.timeline.after(delay_ms, self._move, "claims", Heard(b"", victim, node))

    def _move_after(self, delay_ms: int) -> None:
        kind = self._rng.choice(self.scenario.attacks)
        self.world.timeline.after(delay_ms, self._move, kind, None)

    def _move(self, kind: str, heard: Heard | None) -> None:
        self.move_count += 1
        self.world.trace.note(-1, "attack", kind)
        self._kinds[kind](heard)

    # With what.

    def may_name(self, target: Node, name: bytes) -> bool:
        """Whether the threat model promises to withstand it if this name is used at a target.

        Without rules, directory or certificates a queue manager believes the first who begins a
        sequence under a name. The adversary uses a name there once its owner has done that.
        """
        if self.scenario.is_pinned or self.scenario.comes_first or name == target.identifier:
            return True
        for node in self.world.nodes:
            if node.identifier == name:
                return (target.index, node.index) in self.heard.met
        return True

    def own_name(self) -> Guid:
        """Choose one of the names of which it is the first owner."""
        return self._rng.choice(self._names)

    def hideout(self) -> Hideout:
        """Choose an address of its own."""
        return self._rng.choice(self._hideouts)

    def housemate_of(self, node: Node) -> Hideout:
        """Return a place from which connections have the address of an honest node."""
        return self._housemates[node.index]

    def forge(self, wanted: Wanted) -> bytes:
        """Make a message, and remember that."""
        number = len(self.forgeries) + 1
        honest = {node.identifier for node in self.world.nodes}
        is_barred = wanted.source in honest and not self.scenario.comes_first
        self.forgeries[number] = Forgery(number, wanted.source, wanted.message_class, is_barred)
        return forgeries.make(wanted, number)

    def say(
        self,
        target: Node,
        packets: list[bytes],
        *,
        claim: Guid,
        hideout: Hideout | None = None,
        first: bytes = b"",
        stays_ms: int = 0,
    ) -> None:
        """Connect to a node and say something."""
        server = self._rng.choice((NIL_GUID, target.identifier))
        visit = Visit(
            claim=claim, server=server, packets=tuple(packets), first=first, stays_ms=stays_ms
        )
        self._visit(target, visit, hideout or self.hideout())

    def break_off(self, target: Node, claim: Guid, *, greets: bool) -> None:
        """Connect to a node, and end no handshake."""
        server = self._rng.choice((NIL_GUID, target.identifier))
        visit = Visit(claim=claim, server=server, greets=greets, goes_on=False)
        self._visit(target, visit, self.hideout())

    def _visit(self, target: Node, visit: Visit, place: Hideout) -> None:
        claim = visit.claim
        self.world.trace.note(place.index, "visit", f"{target.name} as {self._shown(claim)}")
        place.visit(target.address, visit)

    def answer_to(self, address: str) -> Visit:
        """Decide what to be for one who connects to an address of the adversary."""
        for node in self.world.nodes:
            if node.address == address:
                other = self._rng.choice(self.world.nodes)
                claim = self.own_name()
                if self._rng.random() < 0.5 and self.may_name(node, other.identifier):
                    claim = other.identifier
                return Visit(claim=claim, server=NIL_GUID, acknowledges=self._rng.random() < 0.7)
        return Visit(claim=self.identifier, server=NIL_GUID)

    def _shown(self, name: Guid) -> str:
        for node in self.world.nodes:
            if node.identifier == name:
                return node.name
        return "itself"

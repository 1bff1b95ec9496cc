"""Attacks on what others have begun: their sequences, their acknowledgments, their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.sim.hostile import forgeries
from openmsmq.sim.hostile.attack_kit import Kit
from openmsmq.sim.hostile.forgeries import Wanted, name_at, place_of
from openmsmq.sim.scenarios.scenario import CLOSED_TRANSACTIONAL
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import user
from openmsmq.wire.headers.transaction import TransactionHeader

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from openmsmq.sim.hostile.adversary import Adversary
    from openmsmq.sim.hostile.overheard import Heard

_FINAL_CLASSES: Final = (0x4000, 0xC000, 0xC001, 0xC002, 0xC003, 0xC004, 0x8000, 0x8004, 0x4001)
_SEQUENCE_MAX: Final = 0x7FFF_FFFF


class Attacks(Kit):
    """Speaks in the names of others, about what was overheard."""

    def __init__(self, adversary: Adversary, rng: random.Random) -> None:
        super().__init__(adversary, rng)
        self.kinds: dict[str, Callable[[Heard | None], None]] = {
            "order acks": self._order_acks,
            "final acks": self._final_acks,
            "jumps": self._jumps,
            "younger sequences": self._younger,
            "replays": self._replays,
            "numbers": self._numbers,
            "claims": self._claims,
            "housemates": self._housemates,
        }

    # Acknowledgments in another's name.

    def _order_acks(self, heard: Heard | None) -> None:
        heard = heard or self._heard_transactional()
        if heard is None:
            return
        sender = self._sender_of(heard)
        source = self._name_for(sender, heard.receiver)
        ahead = self._rng.choice((0, 0, 1, 5, 1000))
        packet = forgeries.order_ack(heard, source, ahead, self._rng)
        self._say(sender, [packet], claim=self._claim_like(sender, source))

    def _final_acks(self, heard: Heard | None) -> None:
        heard = heard or self._heard_transactional()
        if heard is None:
            return
        sender = self._sender_of(heard)
        source = self._name_for(sender, heard.receiver)
        packets = [
            forgeries.final_ack(heard, source, self._rng.choice(_FINAL_CLASSES), off, self._rng)
            for off in self._rng.choice(((0,), (0,), (0, 1, 2), tuple(range(8))))
        ]
        self._say(sender, packets, claim=self._claim_like(sender, source))

    # Sequences of others.

    def _jumps(self, heard: Heard | None) -> None:
        heard = heard or self._heard_transactional()
        if heard is None:
            return
        place = place_of(heard.packet)
        ahead = self._rng.choice((1, 1, 2, 10, 1000))
        previous = self._rng.choice((place.number, 0, place.number + ahead - 1))
        number = min(place.number + ahead, _SEQUENCE_MAX)
        header = TransactionHeader(place.sequence, number, previous)
        self._in_sequence(heard, header)

    def _younger(self, heard: Heard | None) -> None:
        heard = heard or self._heard_transactional()
        if heard is None:
            return
        sequence = place_of(heard.packet).sequence
        younger = SequenceId(
            min(sequence.ordinal + self._rng.randrange(3), _SEQUENCE_MAX),
            min(sequence.timestamp + self._rng.choice((0, 1, 1000)), _SEQUENCE_MAX),
        )
        number = self._rng.choice((1, 1, 1, 7))
        self._in_sequence(heard, TransactionHeader(younger, number, self._rng.choice((0, 0, 6))))

    def _in_sequence(self, heard: Heard, header: TransactionHeader) -> None:
        """Send a message of one's own under a place in the sequence of another."""
        target = heard.receiver
        manager, destination = forgeries.destination_of(heard.packet)
        source = Guid(message_bytes.source(heard.packet))
        if not self._adversary.may_name(target, source):
            return
        if self._rng.random() < 0.2:
            # A closed queue refuses it, and still nothing may move.
            manager, destination = name_at(target, CLOSED_TRANSACTIONAL, self._rng)
        wanted = Wanted(
            source=source,
            manager=manager,
            destination=destination,
            flags=user.RECOVERABLE,
            transaction=header,
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s,
            time_to_reach_queue_s=self._rng.choice((0xFFFFFFFF, 0xFFFFFFFF, 0)),
        )
        packet = self._adversary.forge(wanted)
        self._say(target, [packet], claim=self._claim_like(target, source))

    def _replays(self, heard: Heard | None) -> None:
        heard = heard or self._heard_anything()
        if heard is None:
            return
        target = heard.receiver if self._rng.random() < 0.7 else self._target()
        source = Guid(message_bytes.source(heard.packet))
        if not self._adversary.may_name(target, source):
            return
        number = self._rng.choice((None, None, self._rng.getrandbits(31)))
        hops = self._rng.choice((None, None, 0, 3, 14, 15, 31))
        packet = forgeries.changed(heard.packet, number=number, hops=hops)
        packets = [packet] * self._rng.choice((1, 1, 3))
        self._say(target, packets, claim=self._claim_like(target, source))

    def _numbers(self, heard: Heard | None) -> None:
        """Use up the numbers that another will give its next messages."""
        heard = heard or self._heard_anything()
        if heard is None:
            return
        target, source = heard.receiver, Guid(message_bytes.source(heard.packet))
        if not self._adversary.may_name(target, source):
            return
        manager, destination = forgeries.destination_of(heard.packet)
        last = message_bytes.message_number(heard.packet)
        packets = [
            self._adversary.forge(
                Wanted(
                    source=source,
                    manager=manager,
                    destination=destination,
                    flags=user.RECOVERABLE,
                    message_number=number,
                    sent_time_s=self._now_s,
                )
            )
            for number in range(last + 1, last + 1 + self._rng.choice((1, 4, 10)))
        ]
        self._say(target, packets, claim=self._claim_like(target, source))

    # Sessions in another's name.

    def _claims(self, heard: Heard | None) -> None:
        """Say that one is somebody else, and take whatever is given to that one."""
        target = self._target() if heard is None else heard.sender
        other = self._target() if heard is None else heard.receiver
        claim = self._name_for(target, other)
        self._say(target, [], claim=claim, stays_ms=self._rng.choice((0, 5_000, 60_000)))

    def _housemates(self, heard: Heard | None) -> None:
        """Come from the address of an honest node, as somebody else, and take what is given.

        Whoever works on the same computer, or behind the same address translation, can do so.
        """
        target = self._target() if heard is None else heard.sender
        other = self._target() if heard is None else heard.receiver
        if target is other:
            return
        claim = self._adversary.identifier
        if self._adversary.scenario.mode == "tls":
            claim = self._name_for(target, other)
        self._adversary.say(
            target,
            [],
            claim=claim,
            hideout=self._adversary.housemate_of(other),
            stays_ms=self._rng.choice((0, 5_000, 60_000)),
        )

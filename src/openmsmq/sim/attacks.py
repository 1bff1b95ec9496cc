"""What the adversary tries: a library of attacks, each with what the seed draws for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.message import MessageClass
from openmsmq.sim import forgeries
from openmsmq.sim.clock import EPOCH_S
from openmsmq.sim.forgeries import Wanted, name_at, place_of
from openmsmq.sim.plan import ADMIN, CLOSED, CLOSED_TRANSACTIONAL, PLAIN, SMALL, TRANSACTIONAL
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PrivateOnSource,
    QueueName,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.packets import SessionAck, encode

if TYPE_CHECKING:
    import random

    from openmsmq.sim.adversary import Adversary
    from openmsmq.sim.node import Node
    from openmsmq.sim.overheard import Heard

UNREACHABLE: Final = "10.99."
"""How addresses begin at which nobody is."""

_QUEUES: Final = (PLAIN, TRANSACTIONAL, SMALL, ADMIN, CLOSED, CLOSED_TRANSACTIONAL)
_MISSING: Final = "private$\\missing"
_FINAL_CLASSES: Final = (0x4000, 0xC000, 0xC001, 0xC002, 0xC003, 0xC004, 0x8000, 0x8004, 0x4001)
_ALL_ACKS: Final = 0x0F
_SEQUENCE_MAX: Final = 0x7FFF_FFFF
_MARK_BYTES: Final = 9


class Attacks:
    """Carries attacks out, one call each."""

    def __init__(self, adversary: Adversary, rng: random.Random) -> None:
        self._adversary = adversary
        self._rng = rng
        self.kinds: dict[str, Callable[[Heard | None], None]] = {
            "order acks": self._order_acks,
            "final acks": self._final_acks,
            "jumps": self._jumps,
            "younger sequences": self._younger,
            "replays": self._replays,
            "claims": self._claims,
            "relays": self._relays,
            "reports": self._reports,
            "dead letters": self._dead_letters,
            "floods": self._floods,
            "invented senders": self._invented_senders,
            "many names": self._many_names,
            "handshakes": self._handshakes,
            "garbage": self._garbage,
            "session acks": self._session_acks,
            "housemates": self._housemates,
            "forged reports": self._forged_reports,
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

    def _sender_of(self, heard: Heard) -> Node:
        """Give the node that wrote a message, which may not be the one that passed it on."""
        source = heard.packet[16:32]
        for node in self._adversary.world.nodes:
            if node.identifier == source:
                return node
        return heard.sender

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
        source = Guid(heard.packet[16:32])
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
            reach_within_s=self._rng.choice((0xFFFFFFFF, 0xFFFFFFFF, 0)),
        )
        packet = self._adversary.forge(target, wanted)
        self._say(target, [packet], claim=self._claim_like(target, source))

    def _replays(self, heard: Heard | None) -> None:
        heard = heard or self._heard_anything()
        if heard is None:
            return
        target = heard.receiver if self._rng.random() < 0.7 else self._target()
        source = Guid(heard.packet[16:32])
        if not self._adversary.may_name(target, source):
            return
        number = self._rng.choice((None, None, self._rng.getrandbits(31)))
        hops = self._rng.choice((None, None, 0, 3, 14, 15, 31))
        packet = forgeries.changed(heard.packet, number=number, hops=hops)
        packets = [packet] * self._rng.choice((1, 1, 3))
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
        if self._adversary.plan.mode == "tls":
            claim = self._name_for(target, other)
        self._adversary.say(
            target,
            [],
            claim=claim,
            hideout=self._adversary.housemate_of(other),
            stays_ms=self._rng.choice((0, 5_000, 60_000)),
        )

    # Messages of its own.

    def _relays(self, heard: Heard | None) -> None:
        """Let an honest node pass something on, to another one or to nobody."""
        del heard
        target, goal = self._target(), self._target()
        queue = self._rng.choice(_QUEUES)
        manager, destination = name_at(goal, queue, self._rng)
        if self._rng.random() < 0.3:
            manager, destination = self._nowhere()
        source = self._any_name(target)
        wanted = Wanted(
            source=source,
            manager=manager,
            destination=destination,
            flags=self._rng.choice((0, user.RECOVERABLE)) | self._rng.choice((0, 1, 14, 15, 31)),
            acknowledge=self._rng.choice((0, _ALL_ACKS)),
            admin=self._admin(target),
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s,
        )
        self._say(target, [self._adversary.forge(target, wanted)])

    def _reports(self, heard: Heard | None) -> None:
        """Ask for acknowledgments and dead letters, to whoever it may be."""
        del heard
        target = self._target()
        packets = [
            self._adversary.forge(target, self._asking(target))
            for _ in range(self._rng.choice((1, 3, 10)))
        ]
        self._say(target, packets)

    def _asking(self, target: Node) -> Wanted:
        queue = self._rng.choice((*_QUEUES, _MISSING))
        manager, destination = name_at(target, queue, self._rng)
        expired = self._rng.random() < 0.4
        flags = self._rng.choice((0, user.RECOVERABLE)) | self._rng.choice(
            (0, user.JOURNAL_ON_FAILURE, user.JOURNAL_ON_SUCCESS)
        )
        placed = None
        if self._rng.random() < 0.3:
            flags |= user.RECOVERABLE
            placed = TransactionHeader(
                SequenceId(1, self._now_s), 1, 0, self._rng.choice((0, transaction.FINAL_ACK))
            )
        return Wanted(
            source=self._adversary.own_name(),
            manager=manager,
            destination=destination,
            admin=self._admin(target),
            response=self._rng.choice((None, self._admin(target))),
            acknowledge=self._rng.choice((_ALL_ACKS, _ALL_ACKS, 1, 4, 8)),
            flags=flags,
            transaction=placed,
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s - (1000 if expired else 0),
            reach_within_s=1 if expired else 0xFFFFFFFF,
            receive_within_s=self._rng.choice((0xFFFFFFFF, 2)),
            size_bytes=self._rng.choice((0, 0, 2000)),
        )

    def _dead_letters(self, heard: Heard | None) -> None:
        """Name a closed queue as dead-letter queue, as only who sent a message may."""
        del heard
        target = self._target()
        transactional = self._rng.random() < 0.2
        queue = CLOSED_TRANSACTIONAL if transactional else CLOSED
        aim = self._rng.choice((PLAIN, SMALL, _MISSING, TRANSACTIONAL))
        manager, destination = name_at(target, aim, self._rng)
        placed = TransactionHeader(SequenceId(1, self._now_s), 1) if transactional else None
        source = self._name_for(target, target)
        wanted = Wanted(
            source=source,
            manager=manager,
            destination=destination,
            flags=user.JOURNAL_ON_FAILURE
            | (user.RECOVERABLE if transactional else self._rng.choice((0, user.RECOVERABLE))),
            transaction=placed,
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s - 1000,
            reach_within_s=1,
            tail=dead_letter_extension(self._rng.choice((queue, f".\\{queue}"))),
        )
        packet = self._adversary.forge(target, wanted)
        self._say(target, [packet], claim=self._claim_like(target, source))

    def _forged_reports(self, heard: Heard | None) -> None:
        """Tell an application in the name of its receiver that its message was received."""
        heard = heard or self._heard_anything()
        if heard is None:
            return
        target = self._sender_of(heard)
        source = self._name_for(target, heard.receiver)
        manager, destination = name_at(target, self._rng.choice((ADMIN, CLOSED)), self._rng)
        wanted = Wanted(
            source=source,
            manager=manager,
            destination=destination,
            message_class=self._rng.choice((0x0002, 0x4000, 0x8000, 0xC004)),
            correlation=heard.packet[16:32] + heard.packet[56:60],
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s,
        )
        packet = self._adversary.forge(target, wanted)
        self._say(target, [packet], claim=self._claim_like(target, source))

    # More than there is room for.

    def _floods(self, heard: Heard | None) -> None:
        del heard
        target = self._target()
        queue = self._rng.choice((PLAIN, SMALL, _MISSING, CLOSED))
        flags = self._rng.choice((0, 0, user.RECOVERABLE))
        size_bytes = self._rng.choice((100, 4_000, 16_000))
        manager, destination = name_at(target, queue, self._rng)
        packets = [
            self._adversary.forge(
                target,
                Wanted(
                    source=self._adversary.identifier,
                    manager=manager,
                    destination=destination,
                    flags=flags,
                    message_number=self._rng.getrandbits(31),
                    sent_time_s=self._now_s,
                    size_bytes=size_bytes,
                ),
            )
            for _ in range(self._rng.choice((10, 40)))
        ]
        self._say(target, packets)

    def _invented_senders(self, heard: Heard | None) -> None:
        """Begin a sequence in the name of each of many senders that do not exist."""
        del heard
        target = self._target()
        packets = []
        for _ in range(self._rng.choice((5, 30))):
            manager, destination = name_at(target, TRANSACTIONAL, self._rng)
            wanted = Wanted(
                source=forgeries.invented(self._rng),
                manager=manager,
                destination=destination,
                flags=user.RECOVERABLE,
                transaction=TransactionHeader(SequenceId(1, self._now_s), 1),
                message_number=1,
                sent_time_s=self._now_s,
            )
            packets.append(self._adversary.forge(target, wanted))
        self._say(target, packets)

    def _many_names(self, heard: Heard | None) -> None:
        """Make a node owe something to many computers that do not exist."""
        del heard
        target = self._target()
        manager, destination = name_at(target, self._rng.choice((PLAIN, SMALL)), self._rng)
        packets = [
            self._adversary.forge(
                target,
                Wanted(
                    source=self._adversary.identifier,
                    manager=manager,
                    destination=destination,
                    admin=self._nowhere()[1],
                    acknowledge=_ALL_ACKS,
                    flags=self._rng.choice((0, user.RECOVERABLE)),
                    message_number=self._rng.getrandbits(31),
                    sent_time_s=self._now_s,
                ),
            )
            for _ in range(self._rng.choice((5, 30)))
        ]
        self._say(target, packets)

    # Broken sessions.

    def _handshakes(self, heard: Heard | None) -> None:
        del heard
        for _ in range(self._rng.choice((1, 5))):
            target = self._target()
            greets = self._rng.random() < 0.6
            self._adversary.say(
                target, [], claim=self._any_name(target), greets=greets, goes_on=False
            )

    def _garbage(self, heard: Heard | None) -> None:
        del heard
        target = self._target()
        noise = self._rng.randbytes(self._rng.choice((1, 40, 700)))
        known = self._heard_anything()
        if known is not None and self._rng.random() < 0.5:
            packet = bytearray(known.packet)
            for _ in range(self._rng.randrange(1, 6)):
                packet[self._rng.randrange(8, len(packet) - _MARK_BYTES)] = self._rng.randrange(256)
            source = Guid(bytes(packet[16:32]))
            if self._adversary.may_name(target, source) and self._adversary.plan.is_pinned:
                noise = bytes(packet)
        before = self._rng.random() < 0.4
        self._adversary.say(
            target,
            [] if before else [noise],
            claim=self._any_name(target),
            first=noise if before else b"",
        )

    def _session_acks(self, heard: Heard | None) -> None:
        """Acknowledge what was never given, in a session or before there is one."""
        target = self._target() if heard is None else heard.sender
        header = SessionHeader(
            self._rng.choice((1, 5, 0xFFFF)),
            self._rng.choice((0, 1, 3)),
            self._rng.choice((0, 1, 0xFFFFFFFF)),
            self._rng.choice((0, 1, 9)),
            0,
            self._rng.choice((0, 1, 64)),
        )
        packet = encode(SessionAck(header))
        claim = self._any_name(target)
        if self._rng.random() < 0.5:
            self._adversary.say(target, [], claim=claim, first=packet)
        else:
            self._say(target, [packet], claim=claim)

    # What an attack is made of.

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

    def _say(self, target: Node, packets: list[bytes], *, claim: Guid | None = None, stays_ms: int = 3_000) -> None:
        if claim is None:
            claim = self._adversary.identifier if self._rng.random() < 0.5 else self._any_name(target)
        self._adversary.say(target, packets, claim=claim, stays_ms=stays_ms)

    def _nowhere(self) -> tuple[Guid, QueueName]:
        """Name a queue that nobody can reach."""
        number = self._rng.randrange(256)
        text = f"{UNREACHABLE}{self._rng.randrange(256)}.{number}\\{PLAIN}"
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
        queue = self._rng.choice(_QUEUES)
        manager, name = name_at(other, queue, self._rng)
        return PrivateName(manager, name.number) if isinstance(name, PrivateOnDestination) else name

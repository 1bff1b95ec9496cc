"""Attacks that need nothing of others: messages, reports, names and sessions without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.sim.hostile import forgeries
from openmsmq.sim.hostile.attack_kit import ALL_ACKS, MISSING, QUEUES, Kit
from openmsmq.sim.hostile.forgeries import Wanted, name_at
from openmsmq.sim.scenarios.scenario import (
    ADMIN,
    CLOSED,
    CLOSED_TRANSACTIONAL,
    PLAIN,
    SMALL,
    TRANSACTIONAL,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.packets import SessionAck, encode

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from openmsmq.sim.hostile.adversary import Adversary
    from openmsmq.sim.hostile.overheard import Heard
    from openmsmq.sim.node import Node


_ARRIVAL_ACKS: Final = 0x05
_MANY_NAMES: Final = 300
"""More names than one address may cause outgoing queues for."""
_MANY_SEQUENCES: Final = 60
"""So many are soon more than their share of the quota."""


class Burdens(Kit):
    """Sends more than anybody wants, and what makes others send."""

    def __init__(self, adversary: Adversary, rng: random.Random) -> None:
        super().__init__(adversary, rng)
        self.kinds: dict[str, Callable[[Heard | None], None]] = {
            "relays": lambda _: self._relays(),
            "reports": lambda _: self._reports(),
            "dead letters": lambda _: self._dead_letters(),
            "forged reports": self._forged_reports,
            "floods": lambda _: self._floods(),
            "invented senders": lambda _: self._invented_senders(),
            "many names": lambda _: self._many_names(),
            "handshakes": lambda _: self._handshakes(),
            "garbage": lambda _: self._garbage(),
            "session acks": self._session_acks,
        }

    # Messages of its own.

    def _relays(self) -> None:
        """Let an honest node pass something on, to another one or to nobody."""
        target, goal = self._target(), self._target()
        queue = self._rng.choice(QUEUES)
        manager, destination = name_at(goal, queue, self._rng)
        if self._rng.random() < 0.3:
            manager, destination = self._nowhere()
        source = self._any_name(target)
        wanted = Wanted(
            source=source,
            manager=manager,
            destination=destination,
            flags=self._rng.choice((0, user.RECOVERABLE)) | self._rng.choice((0, 1, 14, 15, 31)),
            acknowledge=self._rng.choice((0, ALL_ACKS)),
            admin=self._admin(target),
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s,
        )
        self._say(target, [self._adversary.forge(wanted)])

    def _reports(self) -> None:
        """Ask for acknowledgments and dead letters, to whoever it may be."""
        target = self._target()
        packets = [
            self._adversary.forge(self._asking(target)) for _ in range(self._rng.choice((1, 3, 10)))
        ]
        self._say(target, packets)

    def _asking(self, target: Node) -> Wanted:
        queue = self._rng.choice((*QUEUES, MISSING))
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
            acknowledge=self._rng.choice((ALL_ACKS, ALL_ACKS, 1, 4, 8)),
            flags=flags,
            transaction=placed,
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s - (1000 if expired else 0),
            time_to_reach_queue_s=1 if expired else 0xFFFFFFFF,
            time_to_be_received_s=self._rng.choice((0xFFFFFFFF, 2)),
            size_bytes=self._rng.choice((0, 0, 2_000, 16_000)),
        )

    def _dead_letters(self) -> None:
        """Name a closed queue as dead-letter queue, as only who sent a message may."""
        target = self._target()
        transactional = self._rng.random() < 0.2
        queue = CLOSED_TRANSACTIONAL if transactional else CLOSED
        aim = self._rng.choice((PLAIN, SMALL, MISSING, TRANSACTIONAL))
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
            time_to_reach_queue_s=1,
            tail=dead_letter_extension(self._rng.choice((queue, f".\\{queue}"))),
        )
        packet = self._adversary.forge(wanted)
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
            correlation=message_bytes.message_id(heard.packet),
            message_number=self._rng.getrandbits(31),
            sent_time_s=self._now_s,
        )
        packet = self._adversary.forge(wanted)
        self._say(target, [packet], claim=self._claim_like(target, source))

    # More than there is room for.

    def _floods(self) -> None:
        target = self._target()
        queue = self._rng.choice((PLAIN, SMALL, MISSING, CLOSED))
        flags = self._rng.choice((0, 0, user.RECOVERABLE))
        size_bytes = self._rng.choice((100, 4_000, 16_000))
        manager, destination = name_at(target, queue, self._rng)
        packets = [
            self._adversary.forge(
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
            for _ in range(self._rng.choice((5, 20)))
        ]
        self._say(target, packets)

    def _invented_senders(self) -> None:
        """Begin sequences without end: of senders that do not exist, to all names of a queue."""
        target = self._target()
        for _ in range(self._rng.choice((1, 3, 8))):
            sender = forgeries.invented(self._rng)
            names = [name_at(target, TRANSACTIONAL, self._rng)]
            names += [
                (NIL_GUID, DirectName(f"OS:{target.name}.{number}\\{TRANSACTIONAL}"))
                for number in range(self._rng.choice((0, 5, _MANY_SEQUENCES)))
            ]
            packets = [
                self._adversary.forge(
                    Wanted(
                        source=sender,
                        manager=manager,
                        destination=destination,
                        flags=user.RECOVERABLE,
                        transaction=TransactionHeader(SequenceId(1, self._now_s), 1),
                        message_number=1,
                        sent_time_s=self._now_s,
                    )
                )
                for manager, destination in names
            ]
            self._say(target, packets, claim=sender)

    def _many_names(self) -> None:
        """Make a node owe something to many computers that do not exist."""
        target = self._target()
        manager, destination = name_at(target, self._rng.choice((PLAIN, SMALL)), self._rng)
        packets = [
            self._adversary.forge(
                Wanted(
                    source=self._adversary.identifier,
                    manager=manager,
                    destination=destination,
                    admin=self._nowhere()[1],
                    acknowledge=_ARRIVAL_ACKS,
                    flags=self._rng.choice((0, user.RECOVERABLE)),
                    message_number=self._rng.getrandbits(31),
                    sent_time_s=self._now_s,
                ),
            )
            for _ in range(_MANY_NAMES if self._rng.random() < 0.03 else self._rng.choice((3, 12)))
        ]
        self._say(target, packets)

    # Broken sessions.

    def _handshakes(self) -> None:
        for _ in range(self._rng.choice((1, 5))):
            target = self._target()
            greets = self._rng.random() < 0.6
            self._adversary.break_off(target, self._any_name(target), greets=greets)

    def _garbage(self) -> None:
        target = self._target()
        noise = self._rng.randbytes(self._rng.choice((1, 40, 700)))
        known = self._heard_anything()
        if known is not None and self._rng.random() < 0.5:
            # Under another source it would be a message of its own with the words of another.
            head, rest = message_bytes.parted_behind_source(known.packet)
            spoilt = bytearray(rest)
            for _ in range(self._rng.randrange(1, 6)):
                spoilt[self._rng.randrange(len(spoilt))] = self._rng.randrange(256)
            if self._adversary.may_name(target, Guid(message_bytes.source(head))):
                noise = head + spoilt
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

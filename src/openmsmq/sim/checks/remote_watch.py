"""What remote readers are given, against the disks: one reader at a time, and never lost.

A reader on another computer first gets a message, which is locked for it, and then says that it has
it. Everything here is what readers sent and heard, what disks have, and when connections ended at
the computer of the queue. Nothing of it asks a queue manager.

- Nobody else gets a message, and nobody removes it, while a reader surely has it: from the moment
  at which it was heard of until the reader speaks of it, its connection, its handle or the power
  is gone, or five minutes are over.
- A message is the first of its queue, if nobody else reads there.
- What a reader surely has it can take for good or give back, unless the disk is in the way.
- What was taken for good, and the reader knows so, is on no disk any more and comes never again.
- A message comes again to somebody who has taken it only if he does not know how that went.
  [MQRR 3.1.2.2, 3.2.4.9 note]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.model.errors import InsufficientResources, MessageStorageFailed
from openmsmq.sim.checks.facts import FOREVER_MS, SimMessage, number_in
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from typing import TypeAlias

    from openmsmq.sim.checks.books import Errand
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

    Place: TypeAlias = tuple[int, int, int]
    """A node, one of its starts, and a group of connections there."""

PATIENCE_MS: Final = 300_000
"""For so long a reader may have a message without a word. [MQRR 3.1.2.2]"""


class Read(msgspec.Struct, eq=False):
    """A read that a reader has begun."""

    reader: str
    node: Node
    queue: str
    place: Place
    handle: bytes
    begun_ms: int
    ended_ms: int = FOREVER_MS


class Lease(msgspec.Struct, eq=False):
    """A message that a reader has heard, and is to say what becomes of it."""

    message: SimMessage
    read: Read
    is_loose: bool = False
    """Whether something has happened after which others may have it."""
    is_spoken_of: bool = False
    """Whether the reader has said what becomes of it, and has not heard that this was refused."""
    may_be_taken: bool = False
    """Whether the reader has said that it is taken, and may have been understood."""
    is_taken: bool = False
    """Whether the reader knows that it is taken."""


class RemoteWatch:
    """Follows messages to remote readers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leases: dict[int, list[Lease]] = {}
        self._places: dict[Place, list[Lease]] = {}
        self._lost: set[Place] = set()
        self._reads: dict[tuple[int, str], list[Read]] = {}
        self.spoilt: set[str] = set()
        """Addresses of readers of whom somebody on the way has changed a call."""
        self.taken_count = 0
        """How many messages readers know to have taken."""
        self.again_count = 0
        """How many came again to somebody after a reader that does not know if it took them."""

    # What readers hear and say.

    def begins(self, read: Read) -> None:
        """A reader asks for a message."""
        self._reads.setdefault((read.node.index, read.queue), []).append(read)

    def ends(self, read: Read) -> None:
        """It hears the answer."""
        read.ended_ms = self._world.timeline.now_ms

    def may_have_had(self, message: SimMessage, errand: Errand) -> bool:
        """Whether somebody may have had a message while something was done to its queue.

        Who has not heard an answer by then may have any message of the queue; others have what
        they were given.
        """
        leases = self._leases.get(message.number, ())
        reads = self._reads.get((message.target.index, message.queue), ())
        return any(lease.read.begun_ms <= errand.ended_ms for lease in leases) or any(
            read.begun_ms <= errand.ended_ms and read.ended_ms >= errand.begun_ms for read in reads
        )

    def purged(self, errand: Errand, node: Node, queue: str) -> None:
        """A reader hears that a queue was purged: what nobody has is on the disk no more."""
        books = self._world.books
        books.purged(errand, node, queue)
        place = node.index, queue
        if any(each.ended_ms >= errand.begun_ms for each in self._reads.get(place, ())) or any(
            each.ended_ms >= errand.begun_ms for each in books.errands[place] if each is not errand
        ):
            return
        for entry in books.disks.watches[node.index].entries.values():
            message = books.messages.get(entry.message or 0)
            if message is None or entry.shelf.path != queue or message.purged_ms is None:
                continue
            if not message.held and message.number not in self._leases:
                raise Violation(
                    f"{queue} of {node.name} was purged, and still has {message} on its disk",
                    messages=(message.number,),
                )

    def require_first(self, read: Read, packet: bytes) -> None:
        """A reader was given the first message of its queue, if nobody else was there meanwhile."""
        if not self._was_alone(read):
            return
        entries = self._world.books.disks.watches[read.node.index].entries.values()
        lying = {entry.message: entry for entry in entries if entry.shelf.path == read.queue}
        given = lying.get(number_in(packet))
        for number, entry in lying.items():
            if given is None or entry.lookup_id >= given.lookup_id or number is None:
                continue
            message = self._world.books.messages[number]
            if message.arrived_ms < read.begun_ms and self._was_always_free(message):
                raise Violation(
                    f"{read.reader} was given m{given.message}, and {message} lies before it",
                    messages=(message.number, given.message or 0),
                )

    def _was_alone(self, read: Read) -> bool:
        """Whether nobody else has read a queue since a read began."""
        if "stream" in self._world.scenario.operations:
            return False
        place = read.node.index, read.queue
        errands = self._world.books.errands.get(place, ())
        others = self._reads[place]
        return not any(each.ended_ms >= read.begun_ms for each in errands) and not any(
            each.ended_ms >= read.begun_ms for each in others if each is not read
        )

    def _was_always_free(self, message: SimMessage) -> bool:
        """Whether nobody has ever had a message."""
        return not (
            message.held
            or message.number in self._leases
            or message.may_have_expired()
            or self._world.books.purged_late(message)
        )

    def heard(self, read: Read, packet: bytes) -> SimMessage:
        """A reader hears a message, perhaps only to look at it."""
        books = self._world.books
        message = books.known(number_in(packet), read.node, read.queue)
        if message is None:
            raise Violation(f"{read.reader} was given what nobody sent")
        if message.target is not read.node or message.queue != read.queue:
            raise Violation(f"{message} was given to {read.reader} from {read.queue}")
        if not message.arrivals:
            raise Violation(f"{message} was given to {read.reader} and never was on a disk")
        if message.removed_ms is not None and message.removed_ms < read.begun_ms:
            raise Violation(f"{message} was given to {read.reader} after it had been removed")
        return message

    def given(self, read: Read, packet: bytes) -> Lease:
        """A reader hears a message of which it is to say what becomes of it."""
        message = self.heard(read, packet)
        lease = Lease(message, read, is_loose=read.place in self._lost)
        if not lease.is_loose:
            self._world.books.require_free(message, read.begun_ms)
        before = self._leases.setdefault(message.number, [])
        self.again_count += any(each.may_be_taken for each in before)
        before.append(lease)
        self._places.setdefault(read.place, []).append(lease)
        return lease

    def speaks(self, lease: Lease, *, takes: bool) -> None:
        """A reader is about to say what becomes of a message."""
        # Whatever comes second may be refused.
        lease.is_loose = lease.is_loose or lease.is_spoken_of
        lease.is_spoken_of = True
        lease.may_be_taken = lease.may_be_taken or takes

    def was_refused(self, lease: Lease, code: int) -> None:
        """A reader hears that what it said of a message has had no effect."""
        if code == MessageStorageFailed.code:
            # Nobody knows: the next start finds it taken, or not.
            lease.is_loose = True
            return
        if code != InsufficientResources.code:
            if not lease.is_loose and not self._is_over(lease):
                raise Violation(
                    f"{lease.read.reader} had {lease.message} for itself, and is told {code:#010x}"
                )
            lease.is_loose = True
        if not lease.is_loose:
            lease.is_spoken_of = lease.may_be_taken = False

    def was_taken(self, lease: Lease) -> None:
        """A reader hears that it has taken a message."""
        message = lease.message
        if message.is_there and message.arrived_ms <= lease.read.begun_ms:
            raise Violation(
                f"{message} was taken by {lease.read.reader} while {lease.read.node.name} still "
                "had it on its disk"
            )
        lease.is_taken = True
        self.taken_count += 1
        if not self._world.books.purged_late(message):
            # A purge wins over the reader's word: then it counts as purged, and not as received.
            self._world.books.consumed(message)

    def closes(self, handle: bytes) -> None:
        """A reader is about to close a handle: from now on others may have what it has."""
        for lease in self._all():
            if lease.read.handle == handle:
                lease.is_loose = True

    def _all(self) -> list[Lease]:
        return [lease for leases in self._places.values() for lease in leases]

    # What happens at nodes.

    def line_lost(self, place: Place) -> None:
        """A connection of a group is gone, as its node has it, or the power is."""
        self._lost.add(place)
        for lease in self._places.pop(place, ()):
            lease.is_loose = True

    def has_lost(self, place: Place) -> bool:
        """Whether the node has lost a connection of a group."""
        return place in self._lost

    def require_free(self, message: SimMessage) -> None:
        """Nobody gets, or removes, what a reader surely has."""
        for lease in self._leases.get(message.number, ()):
            if not (lease.is_loose or lease.is_spoken_of or self._is_over(lease)):
                raise Violation(
                    f"{message} was given away or removed while {lease.read.reader} has it",
                    messages=(message.number,),
                )

    def may_be_removed(self, message: SimMessage) -> bool:
        """Whether a reader has said that it takes a message."""
        return any(lease.may_be_taken for lease in self._leases.get(message.number, ()))

    def _is_over(self, lease: Lease) -> bool:
        """Whether others may have a message because of the time."""
        late = self._world.timeline.now_ms >= lease.read.begun_ms + PATIENCE_MS
        return late or lease.message.may_have_expired()

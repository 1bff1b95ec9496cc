"""The life of an entry, a message in a queue, as a table; and which entries are how far in it.

An entry is in the store, and most are just available. Of these nothing is remembered here, so a
queue with a million messages costs no more than an empty one. What is not in the table is a defect
of the queue manager, and raised. For a run of entries one operation on sets tells whether all are
where they may be; only if it does not, the table is asked about each.

What is reserved for a reader is available, in this sense: a reservation is a range that others jump
over, see `LocalQueue.is_reserved`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from openmsmq.manager.turn.defects import Defect
from openmsmq.manager.turn.passage import Passage
from openmsmq.model.message import MessageClass
from openmsmq.storage import records

IN_TRANSIT: Final = -1
"""Holder of an entry that was sent to a neighbour; transactions and readers have numbers from 1."""
_LEAVING: Final = 0
_FINISHED: Final = -2


class EntryState(Enum):
    """How far an entry has come."""

    GONE = "gone"
    """It is not there: not yet, or not any more."""
    ARRIVING = "arriving"
    """It was placed, and waits for the disk; nobody sees it yet."""
    AVAILABLE = "available"
    """Whoever comes may take it."""
    HELD = "held"
    """A transaction, a reader in two steps or a session has it, and may give it back."""
    DOOMED = "doomed"
    """It is held, and was purged meanwhile: given back, it goes (C-126)."""
    FINISHED = "finished"
    """Its time is over, and nobody sees it any more, even while the disk refuses to remove it."""
    LEAVING = "leaving"
    """Its removal waits for the disk."""
    RECALLED = "recalled"
    """It is arriving, and its removal waits for the disk as well."""


class EntryEvent(Enum):
    """What happens to an entry."""

    PLACE = "place"
    """A turn puts it into its queue."""
    ARRIVE = "arrive"
    """The disk has it."""
    WITHDRAW = "withdraw"
    """The disk refused it."""
    HOLD = "hold"
    """Somebody takes it who may give it back."""
    RELEASE = "release"
    """He gives it back."""
    DOOM = "doom"
    """Its queue is purged or deleted while somebody holds it."""
    REPRIEVE = "reprieve"
    """That is taken back, or overruled."""
    FINISH = "finish"
    """It expired, or a neighbour has it: it must not be seen again."""
    REMOVE = "remove"
    """A turn takes it out of its queue."""
    GO = "go"
    """The disk has removed it."""
    STAY = "stay"
    """The disk refused to remove it."""


TRANSITIONS: Final[Mapping[tuple[EntryState, EntryEvent], EntryState]] = MappingProxyType(
    {
        (EntryState.GONE, EntryEvent.PLACE): EntryState.ARRIVING,
        (EntryState.ARRIVING, EntryEvent.ARRIVE): EntryState.AVAILABLE,
        (EntryState.ARRIVING, EntryEvent.WITHDRAW): EntryState.GONE,
        (EntryState.ARRIVING, EntryEvent.REMOVE): EntryState.RECALLED,
        (EntryState.AVAILABLE, EntryEvent.HOLD): EntryState.HELD,
        (EntryState.AVAILABLE, EntryEvent.FINISH): EntryState.FINISHED,
        (EntryState.AVAILABLE, EntryEvent.REMOVE): EntryState.LEAVING,
        (EntryState.HELD, EntryEvent.RELEASE): EntryState.AVAILABLE,
        (EntryState.HELD, EntryEvent.DOOM): EntryState.DOOMED,
        (EntryState.HELD, EntryEvent.FINISH): EntryState.FINISHED,
        (EntryState.HELD, EntryEvent.REMOVE): EntryState.LEAVING,
        (EntryState.DOOMED, EntryEvent.DOOM): EntryState.DOOMED,
        (EntryState.DOOMED, EntryEvent.REPRIEVE): EntryState.HELD,
        (EntryState.DOOMED, EntryEvent.FINISH): EntryState.FINISHED,
        (EntryState.DOOMED, EntryEvent.REMOVE): EntryState.LEAVING,
        (EntryState.FINISHED, EntryEvent.FINISH): EntryState.FINISHED,
        (EntryState.FINISHED, EntryEvent.REMOVE): EntryState.LEAVING,
        (EntryState.LEAVING, EntryEvent.GO): EntryState.GONE,
        (EntryState.LEAVING, EntryEvent.STAY): EntryState.AVAILABLE,
        (EntryState.RECALLED, EntryEvent.ARRIVE): EntryState.LEAVING,
        (EntryState.RECALLED, EntryEvent.STAY): EntryState.ARRIVING,
    }
)
"""Where an event leads from a state. Any other pair is a defect.

An entry that stays is held, doomed or finished again at once if it was before it was removed.
"""


class Entries:
    """The entries of one queue that are not just available."""

    __slots__ = ("_arriving", "_doomed", "_passage", "held", "name", "ranges")

    def __init__(self, name: str, passage: Passage) -> None:
        self.name = name
        self._passage = passage
        self.held: dict[int, int] = {}
        """Who has an entry, so that nobody else can see or take it. Others only look here."""
        self._doomed: dict[int, MessageClass] = {}
        """Why entries are doomed."""
        self._arriving: set[int] = set()
        self.ranges: list[tuple[int, int]] = []
        """Ranges of arrival numbers that are leaving as a whole. Others only look here."""

    # Looking.

    def state(self, lookup_id: int) -> EntryState:
        """Return how far an entry has come that is in the store, or arriving."""
        holder = self.held.get(lookup_id)
        if holder == _LEAVING:
            return EntryState.RECALLED if lookup_id in self._arriving else EntryState.LEAVING
        if holder is None:
            if lookup_id in self._arriving:
                return EntryState.ARRIVING
            leaves = self.leaves_in_range(lookup_id & records.ARRIVAL_MASK)
            return EntryState.LEAVING if leaves else EntryState.AVAILABLE
        if holder == _FINISHED:
            return EntryState.FINISHED
        return EntryState.DOOMED if lookup_id in self._doomed else EntryState.HELD

    @property
    def arriving(self) -> Collection[int]:
        """The entries on their way to the disk, which come before any later one."""
        return self._arriving

    def is_leaving(self, lookup_id: int) -> bool:
        """Whether an entry is finished or leaves: it will not be seen again if the disk agrees."""
        holder = self.held.get(lookup_id, IN_TRANSIT)
        if holder in (_LEAVING, _FINISHED):
            return True
        return self.leaves_in_range(lookup_id & records.ARRIVAL_MASK)

    def leaves_in_range(self, arrival: int) -> bool:
        """Whether an arrival number is in a range that leaves."""
        return bool(self.ranges) and any(low <= arrival < high for low, high in self.ranges)

    def is_held_by(self, lookup_id: int, holder: int) -> bool:
        """Whether a certain holder has an entry."""
        return self.held.get(lookup_id) == holder

    def may_return(self) -> list[int]:
        """Return the entries that somebody may give back, or the disk may not let go."""
        return [lookup_id for lookup_id, holder in self.held.items() if holder != _LEAVING]

    def doom_of(self, lookup_id: int) -> MessageClass | None:
        """Return why an entry is doomed; None if it is not."""
        return self._doomed.get(lookup_id)

    # Into the queue.

    def place(self, lookup_ids: list[int]) -> None:
        """Note entries that a turn puts into the queue."""
        arriving, held = self._arriving, self.held
        if (arriving and not arriving.isdisjoint(lookup_ids)) or (
            held and not held.keys().isdisjoint(lookup_ids)
        ):
            self._require(lookup_ids, EntryEvent.PLACE)
        arriving.update(lookup_ids)
        self._passage.placed += len(lookup_ids)

    def arrive(self, lookup_ids: list[int]) -> None:
        """Let entries be there: the disk has them."""
        self._leave_arriving(lookup_ids, EntryEvent.ARRIVE)

    def withdraw(self, lookup_ids: list[int]) -> None:
        """Forget entries that the disk refused."""
        if self.held and not self.held.keys().isdisjoint(lookup_ids):
            self._require(lookup_ids, EntryEvent.WITHDRAW)
        self._leave_arriving(lookup_ids, EntryEvent.WITHDRAW)

    def _leave_arriving(self, lookup_ids: list[int], event: EntryEvent) -> None:
        arriving = self._arriving
        if not arriving.issuperset(lookup_ids):
            self._require(lookup_ids, event)
        arriving.difference_update(lookup_ids)
        self._passage.arrived += len(lookup_ids)

    # Held, and given back.

    def hold(self, lookup_ids: Iterable[int], holder: int) -> None:
        """Let somebody have available entries."""
        taken = dict.fromkeys(lookup_ids, holder)
        held, arriving = self.held, self._arriving
        if (held and not held.keys().isdisjoint(taken)) or (
            arriving and not arriving.isdisjoint(taken)
        ):
            self._require(taken, EntryEvent.HOLD)
        held.update(taken)

    def release(self, lookup_id: int) -> None:
        """Let everybody have an entry again that was held."""
        self._step(lookup_id, EntryEvent.RELEASE)
        del self.held[lookup_id]

    def doom(self, lookup_ids: list[int], reason: MessageClass) -> dict[int, MessageClass]:
        """Let held entries go when they are given back; return which were doomed, and why."""
        before: dict[int, MessageClass] = {}
        for lookup_id in lookup_ids:
            self._step(lookup_id, EntryEvent.DOOM)
            known = self._doomed.get(lookup_id)
            if known is not None:
                before[lookup_id] = known
            self._doomed[lookup_id] = reason
        return before

    def undo_doom(self, lookup_ids: list[int], before: dict[int, MessageClass]) -> None:
        """Let entries be doomed as they were before; one may have been given back meanwhile."""
        for lookup_id in lookup_ids:
            if self.state(lookup_id) is EntryState.DOOMED:
                if lookup_id in before:
                    self._doomed[lookup_id] = before[lookup_id]
                else:
                    self.reprieve(lookup_id)

    def reprieve(self, lookup_id: int) -> None:
        """Let a doomed entry be held as if nobody had purged it."""
        self._step(lookup_id, EntryEvent.REPRIEVE)
        del self._doomed[lookup_id]

    def pardon(self, lookup_id: int) -> None:
        """Reprieve an entry if it is doomed."""
        if self.state(lookup_id) is EntryState.DOOMED:
            self.reprieve(lookup_id)

    def free(self, lookup_ids: Iterable[int]) -> None:
        """Take entries from whoever has them, doomed or not; available ones stay as they are."""
        for lookup_id in lookup_ids:
            self.pardon(lookup_id)
            if self.state(lookup_id) is EntryState.HELD:
                self.release(lookup_id)

    # Out of the queue.

    def finish(self, lookup_ids: list[int]) -> None:
        """Let nobody see entries again, whatever becomes of their removal."""
        held = self.held
        if (_LEAVING in map(held.get, lookup_ids)) or not self._arriving.isdisjoint(lookup_ids):
            self._require(lookup_ids, EntryEvent.FINISH)
        held.update(dict.fromkeys(lookup_ids, _FINISHED))
        self._forget_dooms(lookup_ids)

    def remove(self, lookup_ids: list[int]) -> dict[int, int]:
        """Let entries leave; return who had those that somebody had."""
        held = self.held
        before: dict[int, int] = {}
        if held:
            before = {lookup_id: held[lookup_id] for lookup_id in lookup_ids if lookup_id in held}
        if _LEAVING in before.values() or self.ranges:
            self._require(lookup_ids, EntryEvent.REMOVE)
        leaving = dict.fromkeys(lookup_ids, _LEAVING)
        if len(leaving) != len(lookup_ids):
            raise Defect(f"an entry of {self.name} is removed twice at once: {lookup_ids}")
        held.update(leaving)
        self._passage.removed += len(lookup_ids)
        return before

    def gone(self, lookup_ids: list[int]) -> None:
        """Forget entries: the disk has removed them."""
        if self._arriving and not self._arriving.isdisjoint(lookup_ids):
            self._require(lookup_ids, EntryEvent.GO)
        self._stop_leaving(lookup_ids, EntryEvent.GO)
        self._forget_dooms(lookup_ids)
        self._passage.gone += len(lookup_ids)

    def stay(self, lookup_ids: list[int], before: dict[int, int]) -> list[int]:
        """Let entries be as they were before they were removed; return the available ones."""
        self._stop_leaving(lookup_ids, EntryEvent.STAY)
        self.held.update(before)
        available = [
            lookup_id
            for lookup_id in lookup_ids
            if lookup_id not in before and lookup_id not in self._arriving
        ]
        self._passage.gone += len(lookup_ids)
        return available

    def _stop_leaving(self, lookup_ids: list[int], event: EntryEvent) -> None:
        held = self.held
        had = [held.pop(lookup_id, None) for lookup_id in lookup_ids]
        if had.count(_LEAVING) != len(had):
            for lookup_id, holder in zip(lookup_ids, had, strict=True):
                if holder is not None:
                    held[lookup_id] = holder
            self._require(lookup_ids, event)

    def remove_range(self, bounds: tuple[int, int]) -> None:
        """Let all available entries between two arrival numbers leave."""
        start, stop = bounds
        for low, high in self.ranges:
            if low < stop and start < high:
                self._refuse(max(start, low), EntryState.LEAVING, EntryEvent.REMOVE)
        self.ranges.append(bounds)
        self._passage.removed += 1

    def range_gone(self, bounds: tuple[int, int]) -> None:
        """Forget a range: the disk has removed its entries, or they are available again."""
        if bounds not in self.ranges:
            self._refuse(bounds[0], EntryState.AVAILABLE, EntryEvent.GO)
        self.ranges.remove(bounds)
        self._passage.gone += 1

    # The table.

    def _forget_dooms(self, lookup_ids: Iterable[int]) -> None:
        if self._doomed:
            for lookup_id in lookup_ids:
                self._doomed.pop(lookup_id, None)

    def _step(self, lookup_id: int, event: EntryEvent) -> None:
        """Raise `Defect` for an event that the table does not have."""
        state = self.state(lookup_id)
        if (state, event) not in TRANSITIONS:
            self._refuse(lookup_id, state, event)

    def _require(self, lookup_ids: Iterable[int], event: EntryEvent) -> None:
        """Look at entries one by one, because not all are where the event finds most."""
        for lookup_id in lookup_ids:
            state = self.state(lookup_id)
            if event is EntryEvent.PLACE and state is EntryState.AVAILABLE:
                # What is noted nowhere is not there, as far as can be seen without the store.
                state = EntryState.GONE
            if (state, event) not in TRANSITIONS:
                self._refuse(lookup_id, state, event)

    def _refuse(self, lookup_id: int, state: EntryState, event: EntryEvent) -> None:
        raise Defect(
            f"lookup id {lookup_id} in {self.name} is {state.value}, and no event {event.value!r} "
            "leads on from there"
        )

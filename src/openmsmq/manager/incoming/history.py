"""Which messages came already, also before a restart (C-59, C-81, C-82). [MQQB 3.1.5.8.1]

The identifiers of recoverable messages that one turn takes are one record, written with that turn.
An identifier is the number of a message and what stands for its source (`places`).
"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.incoming.effects import IdentifiersNoted
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.limits import IDENTIFIER_BYTES
from openmsmq.protocol.duplicates import DuplicateFilter
from openmsmq.storage import records

_RECORDS: Final = 100_000


class History:
    """The duplicate filter, and its records in the store."""

    def __init__(self, base: Foundation) -> None:
        config, now = base.config.transfer, base.started
        self._ledger = base.ledger
        kept_ms = config.duplicates_kept_ms
        if base.config.http.enabled:
            # Sessions send again as soon as there is a connection. Over HTTP a sender's pauses grow
            # to hours, and nobody calls him when we are back: he is still to be known then (S-31).
            kept_ms = max(kept_ms, config.resends_ms)
        self.filter = DuplicateFilter(config.duplicates_max, kept_ms)
        self._next_record = 0
        self._fresh: dict[bytes, bool] = {}
        """What came in this turn, and whether it is recoverable."""
        self._noting: IdentifiersNoted | None = None
        """The effect of this turn that has it."""
        self._now = now
        start, stop = records.kind_range(b"H")
        for key, value in base.reader.scan(start, stop, _RECORDS):
            number = records.history_of(key)
            self._next_record = number
            size = IDENTIFIER_BYTES
            identifiers = [value[at : at + size] for at in range(0, len(value), size)]
            self.filter.note(identifiers, now, number)

    def saw(self, identifier: bytes, now: Instant) -> bool:
        """Whether a message came before; if so, it is remembered from now on again."""
        self._now = now
        if identifier in self._fresh:
            return True
        if identifier in self.filter:
            self.filter.refresh(identifier, now)
            return True
        return False

    def take_new(self, identifiers: list[bytes], now: Instant, *, recoverable: bool) -> list[bool]:
        """Return which messages did not come before, and remember them for this turn to decide."""
        self._now = now
        if self._noting is None:
            self._begin()
        fresh, known = self._fresh, self.filter
        latest = dict.fromkeys(identifiers, recoverable)
        if (
            len(latest) == len(identifiers)
            and not known.has_any(identifiers)
            and fresh.keys().isdisjoint(identifiers)
        ):
            fresh.update(latest)
            return [True] * len(identifiers)
        new: list[bool] = []
        for identifier in identifiers:
            if identifier in fresh:
                new.append(False)
            elif identifier in known:
                known.refresh(identifier, now)
                new.append(False)
            else:
                fresh[identifier] = recoverable
                new.append(True)
        return new

    def note(self, identifier: bytes, *, recoverable: bool) -> None:
        """Remember a message whose fate this turn decides."""
        if self._noting is None:
            self._begin()
        self._fresh[identifier] = recoverable

    def _begin(self) -> None:
        self._noting = IdentifiersNoted(self)
        self._fresh = self._noting.fresh
        self._ledger.add_growing(self._noting)

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self.filter.next_wake_ms

    def wake(self, now: Instant) -> None:
        """Time has passed: some may be too old."""
        due_ms = self.filter.next_wake_ms
        if due_ms is not None and due_ms <= now.ticks_ms:
            self.clean_up(now)

    def clean_up(self, now: Instant) -> None:
        """Drop what is too old. [MQQB 3.1.6.7]"""
        self._now = now
        for number in self.expired():
            self._ledger.delete(records.history_key(number))

    def expired(self) -> list[int]:
        """Forget what is too old; gives the records that are not needed any more."""
        return [number for number in self.filter.expired(self._now) if number > 0]

    def drop_fresh(self) -> None:
        """Let nothing of this turn have come."""
        self._fresh = {}
        self._noting = None

    def complete(self, fresh: dict[bytes, bool]) -> int:
        """End the turn: what came in it is a group. Return its number, 0 if nothing came.

        Groups without a record have negative numbers. One group for both kinds, so that all
        are forgotten if the disk refuses the turn.
        """
        self.drop_fresh()
        if not fresh:
            return 0
        self._next_record += 1
        number = self._next_record if any(fresh.values()) else -self._next_record
        self.filter.note(list(fresh), self._now, number)
        return number

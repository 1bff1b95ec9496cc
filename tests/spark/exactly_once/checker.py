"""What was sent, against what arrived: counts, contents and order.

Senders tell a `Ledger` what they begin and what became of it. Messages of one call or of one
transaction are a `Bundle`: either all of them arrive or none. `check_table` and `check_queues`
raise `AssertionError` with the first thing that is not as it must be.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """What the sender of a bundle knows about it."""

    SENT = "sent"
    """The queue manager has acknowledged it: it must arrive, once."""
    UNKNOWN = "unknown"
    """The answer was lost: it arrives once, or not at all."""
    NOT_SENT = "not sent"
    """It was aborted, or never left: it must not arrive."""


class Sent(NamedTuple):
    """A message as its sender made it."""

    number: int
    sender: str
    content: str
    priority: int


class Arrived(NamedTuple):
    """A message as it was found at the end of a job."""

    number: int
    sender: str
    content: str
    priority: int
    arrival_number: int


class Bundle:
    """Messages that arrive together; its sender says what became of them."""

    def __init__(self, messages: list[Sent], *, late: bool = False) -> None:
        self.messages = messages
        self.late = late
        # Until its sender says something else, whatever happened may have happened.
        self.outcome = Outcome.UNKNOWN


class Ledger:
    """What the senders to one queue, and those who took something away from it, have done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self.bundles: list[Bundle] = []
        self.taken: set[int] = set()
        """Messages that somebody else has received: these must not arrive."""
        self.maybe_taken: set[int] = set()

    def numbers(self, count: int) -> range:
        """Return numbers that no other message of this queue has."""
        with self._lock:
            self._next += count
            return range(self._next - count, self._next)

    def begin(self, messages: list[Sent], *, late: bool = False) -> Bundle:
        """Note messages before they are sent."""
        bundle = Bundle(messages, late=late)
        with self._lock:
            self.bundles.append(bundle)
        return bundle

    def count(self, outcome: Outcome) -> int:
        """How many messages ended so."""
        return sum(len(each.messages) for each in self.bundles if each.outcome is outcome)

    # What must be true at the end.

    def check_table(self, rows: Iterable[Arrived]) -> None:
        """Compare with rows, which have no order."""
        found = list(rows)
        arrivals = Counter(row.arrival_number for row in found)
        doubled = [number for number, count in arrivals.items() if count > 1]
        assert not doubled, f"arrival numbers came twice: {_few(doubled)}"
        self._check(found)

    def check_queues(self, queues: Iterable[Iterable[Arrived]], *, one_source: bool = True) -> None:
        """Compare with messages in the order of the queues where the job put them.

        Without a shuffle the sink keeps the order in which they arrived at each source, so each
        sender's order is kept too.
        """
        found = [list(rows) for rows in queues]
        self._check([row for rows in found for row in rows])
        for rows in found:
            arrivals = [row.arrival_number for row in rows]
            assert not one_source or arrivals == sorted(arrivals), "the order of arrival is lost"
            last: dict[str, int] = {}
            for row in rows:
                assert row.number > last.get(row.sender, 0), f"the order of {row.sender} is lost"
                last[row.sender] = row.number

    def _check(self, found: list[Arrived]) -> None:
        counts = Counter(row.number for row in found)
        doubled = [number for number, count in counts.items() if count > 1]
        assert not doubled, f"{len(doubled)} messages came twice: {_few(doubled)}"
        stolen = self.taken & counts.keys()
        assert not stolen, f"{len(stolen)} messages came that others had taken: {_few(stolen)}"
        sent = {message.number: message for each in self.bundles for message in each.messages}
        for bundle in self.bundles:
            self._check_bundle(bundle, counts)
        unknown = counts.keys() - sent.keys()
        assert not unknown, f"{len(unknown)} messages came from nowhere: {_few(unknown)}"
        for row in found:
            message = sent[row.number]
            assert row[:4] == message, f"message {row.number} came as {row}, not as {message}"

    def _check_bundle(self, bundle: Bundle, counts: Counter[int]) -> None:
        numbers = {message.number for message in bundle.messages}
        here = {number for number in numbers if counts[number]}
        if bundle.outcome is Outcome.NOT_SENT:
            assert not here, f"{len(here)} aborted messages came: {_few(here)}"
            return
        missing = numbers - here - self.taken - self.maybe_taken
        if bundle.outcome is Outcome.UNKNOWN and not here:
            return
        lost = f"{len(missing)} of {len(numbers)} messages are lost: {_few(missing)}"
        assert not missing, lost


def _few(numbers: Iterable[int]) -> list[int]:
    return sorted(numbers)[:10]

"""The log of a queue manager that survives the loss of a computer: what is asked of it, and told.

The log is a table of numbered records in a database, and one line about it. A record is what one
turn stores. Each request is one transaction of the database, and each says on what it depends, so
that the database itself refuses what comes too late:

* an epoch begins with each take-over, and only its holder may append,
* a record has the number behind the last one, or it is not appended,
* whether a lease has ended is judged by the clock of the database, and by no other.

A transaction that has written is durable when it is answered. One that has only read may have seen
what a database that fails now would lose again, so nobody builds on a record that is not confirmed:
a later transaction of the primary has said that it was durable.
"""

from __future__ import annotations

import msgspec


class LeaseTimes(msgspec.Struct, frozen=True):
    """How long a primary may answer without word of the database, and who looks how often."""

    lease_ms: int = 3000
    """A lease ends so long after it was renewed last."""
    margin_ms: int = 500
    """A primary stops answering so long before its lease can have ended."""
    renew_ms: int = 750
    """A primary renews its lease so often."""
    look_ms: int = 200
    """A standby looks at the log so often, and whoever got no answer asks again so soon."""
    long_record_bytes: int = 4 << 20
    """A longer record has a longer lease: nothing can renew it while the record is on its way."""
    long_ms_per_mib: int = 125
    """How much longer: a database takes eight MiB in a second, or more."""

    def longer_ms(self, record: bytes) -> int:
        """Return how much longer a lease has to be for a record."""
        size = len(record)
        return size * self.long_ms_per_mib >> 20 if size > self.long_record_bytes else 0


class LogState(msgspec.Struct, frozen=True):
    """The line about a log."""

    log: str
    """Which log it is: a name that no other log ever has."""
    epoch: int
    holder: str
    """Who began the epoch: a name that nobody else ever has. Nobody: the log is new."""
    first: int
    """The oldest record that is still there, or would be."""
    last: int
    """The newest record."""
    confirmed: int
    """The newest record of which the primary knows that it is durable."""
    lease_ended: bool
    """Whether the lease had ended, by the clock of the database."""
    handover: bool = False
    """Whether an operator wants another primary."""


class Read(msgspec.Struct, frozen=True):
    """Give the records behind a number; note that who asks has all up to there."""

    after: int
    follower: str


class Take(msgspec.Struct, frozen=True):
    """Begin an epoch, if the one that was seen has not changed and its lease has ended."""

    seen_epoch: int
    holder: str


class Renew(msgspec.Struct, frozen=True):
    """Renew the lease, and say which record is the newest that is known to be durable."""

    epoch: int
    holder: str
    confirmed: int
    longer_ms: int = 0
    """How much longer than others it is, as a long record comes next."""


class Append(msgspec.Struct, frozen=True):
    """Append a record behind the last one, which is confirmed by that; renews the lease."""

    epoch: int
    holder: str
    number: int
    record: bytes
    longer_ms: int = 0
    """How much longer than others its lease is."""


class Release(msgspec.Struct, frozen=True):
    """End the lease now."""

    epoch: int
    holder: str


class Trim(msgspec.Struct, frozen=True):
    """Remove records up to a number, as far as all have them; note what who asks has itself."""

    epoch: int
    holder: str
    backed_up: int
    follower: str
    number: int


Request = Read | Take | Renew | Append | Release | Trim


class Answer(msgspec.Struct, frozen=True):
    """What the log says to a request."""

    state: LogState
    """The line about the log, after the transaction."""
    done: bool = True
    """Whether what was asked for was done; otherwise the state says why not."""
    records: list[tuple[int, bytes]] = []
    """What was read, in order."""


class Ask(msgspec.Struct, frozen=True):
    """Ask the log something. Exactly one of `answered` and `failed` has to follow."""

    request: Request


class Apply(msgspec.Struct, frozen=True):
    """Store records, in order, then say so with `applied`."""

    records: list[tuple[int, bytes]]


class Promoted(msgspec.Struct, frozen=True):
    """The store has every record, and the lease is ours: be the primary."""

    name: str
    holder: str
    epoch: int
    answer_until_ms: int


class Durable(msgspec.Struct, frozen=True):
    """The record that was appended survives."""

    number: int


class Ended(msgspec.Struct, frozen=True):
    """Nothing may be answered any more."""

    why: str
    is_damage: bool = False
    """Whether somebody has to put something right; otherwise another start goes on."""


FollowerOutput = Ask | Apply | Promoted | Ended
TenureOutput = Ask | Durable | Ended

"""Requests and replies of the application interface that are about the directory."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Number, Octets, Reply, Request, Several, Text
from openmsmq.api.facts import ADMINISTER, SHOW, Facts, Repeats


class ObjectRow(msgspec.Struct, frozen=True, array_like=True):
    """An object of the directory, as `directory.codec` writes it; empty bytes if it is gone."""

    kind: Text
    """The value of an `ObjectKind`."""
    identifier: Octets
    data: bytes


class DirectoryPart(Reply, frozen=True, tag="directory-part"):
    """A part of the changes. If the position differs from that of the part before, begin again."""

    incarnation: bytes
    number: int
    rows: list[ObjectRow]
    is_complete: bool
    """Whether all parts together are all objects, so that others are gone."""
    has_more: bool


class ReadDirectory(Request[DirectoryPart], frozen=True, tag="read-directory"):
    """Ask what has changed since a copy was at a position; the whole directory from number 0 on.

    A long answer comes in parts: `skip` is how many rows of it the caller has. If nothing has
    changed, the answer may wait for so many milliseconds until something does; then it is a part
    without rows, and there is more. A connection has one such call: the next one ends it.
    """

    facts = Facts(SHOW, Repeats.ALWAYS, waits=True)

    incarnation: Octets = bytes(16)
    number: Number = 0
    skip: Number = 0
    wait_ms: Number = 0

    @property
    def patience_ms(self) -> int | None:
        """How long it waits for a change."""
        return self.wait_ms


class DirectoryChanged(Reply, frozen=True, tag="directory-changed"):
    """The objects as the directory has them now."""

    rows: list[ObjectRow]


class ChangeDirectory(Request[DirectoryChanged], frozen=True, tag="change-directory"):
    """Change objects, all or none. A queue manager with a copy asks the directory itself."""

    facts = Facts(ADMINISTER, Repeats.NEVER, is_audited=True)

    rows: Several[ObjectRow]


class RefreshDirectory(Request[Done], frozen=True, tag="refresh-directory"):
    """Bring the copy of the directory up to date; answered when it is."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS)


class FoundQueues(Reply, frozen=True, tag="found-queues"):
    """Public queues in the order of their path names."""

    rows: list[ObjectRow]
    has_more: bool = False
    """Whether there are more than one answer holds."""


class FindQueues(Request[FoundQueues], frozen=True, tag="find-queues"):
    """Look for public queues by what their owners say of them; what is None does not matter."""

    facts = Facts(SHOW, Repeats.ALWAYS)

    label: Text | None = None
    service_type: Octets | None = None

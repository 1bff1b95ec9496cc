"""What a directory is bounded by, with the source of each bound beside it."""

from __future__ import annotations

from typing import Final

# The directory.

DIRECTORY_POLL_S: Final = 30
"""A copy of the directory is brought up to date once in it. [ours]"""

DIRECTORY_OBJECTS_MAX_COUNT: Final = 200_000
"""Objects in a directory. [ours]"""

DIRECTORY_OBJECT_MAX_BYTES: Final = 256 * 1024
"""One object of a directory, as it is stored. [ours]"""

DIRECTORY_REMOVED_MAX_COUNT: Final = 10_000
"""Removals that a directory remembers; who has missed more reads everything again. [ours]"""

DIRECTORY_CHANGES_MAX_COUNT: Final = 10_000
"""Objects changed in one call. [ours]"""

DIRECTORY_PART_MAX_BYTES: Final = 1024 * 1024
"""Objects in one part of an answer; one object more may be in it. [ours]"""

DIRECTORY_CALLS_MAX_COUNT: Final = 1_000
"""Calls that wait for the directory at a time. [ours]"""

DIRECTORY_READS_WAITING_MAX_COUNT: Final = 1_000
"""Reads of the directory that wait for its next change; one of each connection. [ours]"""

DIRECTORY_READ_WAIT_MAX_S: Final = 300
"""How long a read waits for the next change of the directory, whatever was asked for. [ours]"""

DIRECTORY_LOOKUP_WAIT_S: Final = 5
"""A name that no copy has is "not found" when the directory has not answered by then. [ours]"""

UNROUTED_MAX_COUNT: Final = 256
"""Queues of unknown queue managers for which messages of others wait. [ours]"""

UNROUTED_MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of these messages. [ours]"""

UNROUTED_STRANGERS_FACTOR: Final = 8
"""Senders that the directory does not know have one part in so many of both. [ours]"""

UNROUTED_PATIENCE_S: Final = 60
"""So long after a message came the directory must still not know its queue manager, before the
message is refused: copies and servers of the directory need time to come up to date. [ours]"""

LIST_MEMBERS_MAX_COUNT: Final = 1_000
"""Queues that a distribution list stands for, those of lists in it included. [ours]"""

"""Requests and replies of the application interface that are about many messages at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from openmsmq.api.base import Done, Name, Number, Reply, Request, Text
from openmsmq.api.exchange import Entries, Removed
from openmsmq.api.facts import OWN, Facts, Repeats, on_queue
from openmsmq.model.access import QueueAccess

if TYPE_CHECKING:
    Octets: TypeAlias = bytes | memoryview
else:
    # So that msgspec shows the bytes of the frame and does not copy them.
    Octets = memoryview

PLACE_FORMAT: Final = "<I4xIHBx"
"""In `Packets`, before each packet: arrived_time_s, moved_time_s, abort_count, move_count."""


class FetchRange(Request[Entries], frozen=True, tag="fetch-range"):
    """Peek messages by arrival number, `start` <= number < `stop`, lowest first.

    Arrival numbers are given when a message becomes available, so none appears below one that
    was already seen: they are what a stream of messages is read by.
    """

    facts = Facts(OWN, Repeats.ALWAYS, is_heavy=True)

    handle: Number
    start: Number
    stop: Number
    count: Number = 1000
    bytes_max: Number = 4 << 20


class Packets(Reply, frozen=True, tag="packets"):
    """Messages in the order of their arrival numbers, side by side, for readers of very many.

    An entry is its place (`PLACE_FORMAT`) and then its packet, together as MessagePack has bytes:
    before them stand one byte and their length, of one byte up to 255, of two up to 65,535, of
    four beyond. So stores keep them, and nobody on the way has to look at each.
    """

    lookup_ids: bytes
    """Eight bytes each, big-endian."""
    sizes: bytes
    """The bytes of each entry, with its place and what is before it: four bytes each,
    little-endian."""
    entries: Octets
    next_start: int = 0
    """Where to go on: no message between these and that number is left out."""
    slate: int = 0
    """If above 0, the entries are not here: they stand at the beginning of this slate."""
    slate_bytes: int = 0
    """How many bytes they have there."""


class FetchPackets(Request[Packets], frozen=True, tag="fetch-packets"):
    """Peek messages by arrival number as `FetchRange` does, for readers of very many.

    With a `checkpoint` it is the task of a query that has reserved them, and they count as read
    from now on. It gets nothing that is not reserved for this query.
    """

    facts = Facts(OWN, Repeats.ALWAYS, is_heavy=True)

    handle: Number
    start: Number
    stop: Number
    count: Number = 10_000
    bytes_max: Number = 8 << 20
    reader: Text = ""
    checkpoint: Text = ""
    slate: Number = 0
    """The slate to put the entries on, from 1 on: nobody looks at what it has now."""


class RemoveRange(Request[Removed], frozen=True, tag="remove-range"):
    """Take out messages by arrival number, as if received; those already gone do not matter.

    One request takes out so many, and says where the next one goes on.
    """

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number
    start: Number
    stop: Number


class Reserved(Reply, frozen=True, tag="reserved"):
    """All messages with `start` <= arrival number < `stop` are the reader's.

    `stop` is behind the last of them, or `start` if there is none.
    """

    stop: int
    completed: int = 0
    """If above `start`: nothing was reserved, the checkpoint has completed all below this."""
    held: str = ""
    """If not empty: nothing was reserved, and this says who is connected and reads."""


class Reserve(Request[Reserved], frozen=True, tag="reserve"):
    """Keep messages for one reader by arrival number, so that it can read them again and again.

    From `start` on, up to `count` messages or `bytes_max` bytes (0 for all that are there), and
    never beyond a message that somebody else holds: that one may come back. Nobody else can
    receive them until the reader has completed them, not even after a restart. While some are
    left that it has not completed, it can only begin among them, or right behind them.

    A `checkpoint` tells queries of one reader apart, however their name: what one of them has
    reserved and read is not another's. `is_new` says that this one has not read anything yet; it
    may follow one that is gone. `holder` is the process that asks: while its connection lasts,
    nobody else reserves under the name of the reader.
    """

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number
    reader: Text
    start: Number
    count: Number = 0
    bytes_max: Number = 0
    below: Number = 0
    """Only arrival numbers below this; 0 for all."""
    checkpoint: Text = ""
    holder: Text = ""
    is_new: bool = False
    epoch: Text = ""
    """The life of the queue manager in which `start` was told, if the store is to know it."""


class Measured(Reply, frozen=True, tag="measured"):
    """The messages asked about have arrival numbers below `stop`.

    It is behind the last of them, or `start` if there is none.
    """

    stop: int


class Measure(Request[Measured], frozen=True, tag="measure"):
    """Ask how far `count` messages or `bytes_max` bytes reach from `start` on; 0 for no limit."""

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number
    start: Number
    count: Number = 0
    bytes_max: Number = 0
    below: Number = 0
    """Only arrival numbers below this; 0 for all."""
    epoch: Text = ""
    """The life of the queue manager in which `start` was told, if the store is to know it."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a range: so many messages, and their bytes.

    Of a short range both are exact. Of a long one they are concluded from some of the messages.
    """

    start: int
    stop: int
    count: int
    size: int


class Surveyed(Reply, frozen=True, tag="surveyed"):
    """The parts of a range one behind the other, from the first message on; none if it is empty."""

    parts: list[Part]


class Survey(Request[Surveyed], frozen=True, tag="survey"):
    """Ask how messages are spread over a range of arrival numbers, in up to `parts` parts."""

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number
    start: Number
    stop: Number
    parts: Number = 32


class Epoch(msgspec.Struct, frozen=True, array_like=True):
    """One life of a queue manager: a random word, and the first arrival number it could give.

    A place in a queue that was told in one life is good as long as the store knows this life, and
    the next one did not begin below the place. Otherwise the store is not the one it was.
    """

    identifier: str
    first: int


class Epochs(Reply, frozen=True, tag="epochs"):
    """The lives of the queue manager, the oldest first; the last one is now."""

    epochs: list[Epoch]


class GetEpochs(Request[Epochs], frozen=True, tag="get-epochs"):
    """Ask for the lives of the queue manager that its store remembers."""

    facts = Facts(OWN, Repeats.ALWAYS)


class Completed(Reply, frozen=True, tag="completed"):
    """How many messages were taken out, and whether there are more below `stop`."""

    count: int
    more: bool
    unread: bool = False
    """Whether nothing was taken out, because nobody has fetched any of it."""


class Complete(Request[Completed], frozen=True, tag="complete"):
    """Take out what a reader has reserved below `stop`, as if received; what is gone is gone.

    One call takes out so many that others need not wait; `Completed` says whether to go on.
    """

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number
    reader: Text
    stop: Number
    checkpoint: Text = ""
    unread_too: bool = False
    """Whether messages go that nobody has fetched for the checkpoint."""


class Release(Request[Done], frozen=True, tag="release"):
    """Give all that is reserved in a queue back to its other readers, and forget its reader."""

    facts = Facts(on_queue(QueueAccess.RECEIVE_MESSAGE), Repeats.ALWAYS, is_audited=True)

    name: Name

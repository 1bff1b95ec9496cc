"""The queue names of many messages at once. Most messages have the same ones as others."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from openmsmq.api.messages import Entry
from openmsmq.client.messages.properties import PLAIN, MessageView
from openmsmq.model.identity import Guid
from openmsmq.spark.decode.alike import alike
from openmsmq.spark.decode.layouts import Layout, Part
from openmsmq.spark.decode.packed import Flags, Packed
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import base, queue_names, user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import QueueName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

NAMES: Final = ("destination", "response_queue", "admin_queue")
Texts: TypeAlias = tuple[str | None, ...]
"""The names of a message, in the order of `NAMES`."""

KEPT_MAX_COUNT: Final = 2048
KEPT_MAX_BYTES: Final = 1024
_MANAGERS_BYTES: Final = 32
_FLAGS_PLACE: Final = base.SIZE + user.FIXED_SIZE - 4
_RELATIVE_FORMS: Final = 2
"""Private queues of the source and, one more, of the destination's queue manager: numbers only."""
_SHIFTS: Final = (user.DESTINATION_SHIFT, user.ADMIN_SHIFT, user.RESPONSE_SHIFT)
_NO_MANAGERS: Final = bytes(_MANAGERS_BYTES)


class QueueTexts(msgspec.Struct, frozen=True):
    """Which names there are, and which of them each message has."""

    different: list[Texts | None]
    """None for names that the scalar codec refuses."""
    numbers: NDArray[Any]

    @property
    def good(self) -> Flags:
        """Return which messages have names that can be read."""
        good: Flags = np.array([texts is not None for texts in self.different], bool)[self.numbers]
        return good

    @property
    def all_good(self) -> bool:
        """Whether all names can be read."""
        return None not in self.different


def read_queue_texts(packed: Packed, layout: Layout) -> QueueTexts:
    """Read the names of messages that are good so far."""
    destination, admin_queue, response_queue = layout.names
    # The bytes that decide. Padding is none of them: some senders leave there what was in memory.
    parts = [(np.asarray(_FLAGS_PLACE), destination[1])]
    if layout.has(user.OTHER_NAMES).any():
        parts += (admin_queue, response_queue)
    managers_count = 0
    if _any_relative(layout):
        parts.insert(0, (np.asarray(base.SIZE), np.asarray(base.SIZE + _MANAGERS_BYTES)))
        managers_count = _MANAGERS_BYTES
    common = [_common(packed, layout, part) for part in parts]
    if None not in common:
        keys, numbers = [b"".join(filter(None, common))], np.zeros(len(layout.packets), np.int32)
    else:
        encoded = packed.gather_joined(list(map(layout.places, parts))).dictionary_encode()
        keys, numbers = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    different = [_texts(key[:managers_count] or _NO_MANAGERS, key[managers_count:]) for key in keys]
    return QueueTexts(different, numbers)


def _common(packed: Packed, layout: Layout, part: Part) -> bytes | None:
    """Return the bytes of a part that are the same in all messages; None if they are not."""
    size = alike(part[1] - part[0])
    if size.ndim or len(layout.packets) == 0:
        return None
    if not size:
        return b""
    octets = np.dtype([("octets", "u1", (int(size),))])
    found = alike(packed.records(octets, layout.packets + part[0])["octets"])
    return found.tobytes() if found.ndim == 1 else None


def _any_relative(layout: Layout) -> bool:
    flags = layout.start["flags"]
    # Both relative forms are the number 2, whatever its lowest bit.
    return any((flags >> shift & 6 == _RELATIVE_FORMS).any() for shift in _SHIFTS)


def _texts(managers: bytes, names: bytes) -> Texts | None:
    if len(names) > KEPT_MAX_BYTES:
        return _read_texts(managers, names)
    return _kept_texts(managers, names)


def _read_texts(managers: bytes, names: bytes) -> Texts | None:
    """Let the scalar codec read names: they are put into a packet that has nothing else."""
    flags = int.from_bytes(names[:4], "little")
    offset = 4
    found: list[QueueName] = []
    try:
        for shift in _SHIFTS:
            name, offset = queue_names.read(flags >> shift & 7, names, offset, "UserHeader")
            found.append(name)
    except DecodeError:
        return None
    header = UserHeader(
        Guid(managers[:16]),
        Guid(managers[16:]),
        destination=found[0],
        admin_queue=found[1],
        response_queue=found[2],
    )
    packet = packets.encode(UserMessage(header, MessageProperties()))
    message = MessageView(Entry(0, 0, 0, 0, packet))
    return tuple(PLAIN[name](message) for name in NAMES)


_kept_texts: Final = lru_cache(KEPT_MAX_COUNT)(_read_texts)

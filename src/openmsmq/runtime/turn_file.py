"""A file with one line of JSON for each turn of the queue manager, for those who work on it.

It has the names of queues and computers, numbers and sizes, and nothing of a message itself.
"""

from __future__ import annotations

import msgspec

from openmsmq.manager.turn.trace import TurnTrace
from openmsmq.runtime.limits import TURN_FILE_MAX_BYTES
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.owner_file import OwnerFile


class TurnFile:
    """Writes what a queue manager describes; each line is there when the turn has ended."""

    def __init__(
        self, path: str, trace: TurnTrace, log: EventLog, max_bytes: int = TURN_FILE_MAX_BYTES
    ) -> None:
        full = f"it would be longer than {max_bytes} bytes"
        self._file = OwnerFile(path, "the turns to", max_bytes, full, log, Event.TURN_FILE_ENDED)
        self._encoder = msgspec.json.Encoder()
        self._trace = trace
        trace.is_on = True

    def write(self) -> None:
        """Write the turns that have ended since the last time."""
        if self._file.is_open:
            self._file.write(
                b"".join(self._encoder.encode(turn) + b"\n" for turn in self._trace.take())
            )
            self._file.flush()
            self._trace.is_on = self._file.is_open

    def close(self) -> None:
        """End the file."""
        self.write()
        self._file.close()

"""A recording of the traffic with other queue managers, for any tool that reads pcapng.

It holds the messages themselves, so only its owner may read it. A recording that cannot go on
ends; the queue manager does not.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
from typing import BinaryIO, Final

from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.recorder import Recorder
from openmsmq.runtime.clocks import unix_ns
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.start_errors import StartError, os_reason

_OWNER_ONLY: Final = 0o600


def endpoint(address: str, port: int) -> Endpoint:
    """Return an address and port as a capture has them."""
    return Endpoint(ipaddress.ip_address(address.partition("%")[0]).packed, port)


class CaptureFile:
    """Writes what is sent and received; `flush` shows it to those who read along."""

    def __init__(self, path: str, max_bytes: int, log: EventLog) -> None:
        self._path = path
        self._left_bytes = max_bytes
        self._log = log
        self._recorder = Recorder()
        self._file: BinaryIO | None = None
        try:
            self._file = open(path, "wb", opener=_open_for_owner)  # noqa: SIM115 - until the end
        except OSError as error:
            raise StartError(
                f"cannot write the capture {path} ({os_reason(error)}): give another file"
            ) from None
        self._write(self._recorder.start())
        self.flush()

    def opened(self, client: Endpoint, server: Endpoint) -> None:
        """A connection was made."""
        if self._file is not None:
            self._write(self._recorder.opened(client, server, unix_ns()))

    def stream(self, source: Endpoint, destination: Endpoint, data: bytes) -> None:
        """Bytes went over a connection."""
        if self._file is not None:
            self._write(self._recorder.sent(source, destination, data, unix_ns()))

    def closed(self, source: Endpoint, destination: Endpoint) -> None:
        """A connection has ended."""
        if self._file is not None:
            self._write(self._recorder.closed(source, destination, unix_ns()))

    def datagram(self, source: Endpoint, destination: Endpoint, data: bytes) -> None:
        """A datagram was sent or received."""
        if self._file is not None:
            self._write(self._recorder.datagram(source, destination, data, unix_ns()))

    def flush(self) -> None:
        """Hand everything to the system."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._end(os_reason(error))

    def close(self) -> None:
        """End the recording."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._end("it has reached capture_max_bytes")
            return
        try:
            self._file.write(data)
        except OSError as error:
            self._end(os_reason(error))

    def _end(self, reason: str) -> None:
        file, self._file = self._file, None
        if file is not None:
            # What is still in the buffer is written once more, and may fail once more.
            with contextlib.suppress(OSError):
                file.close()
        self._log.warning(Event.CAPTURE_ENDED, file=self._path, reason=reason)


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, _OWNER_ONLY)

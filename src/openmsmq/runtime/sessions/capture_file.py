"""A recording of the traffic with other queue managers, for any tool that reads pcapng.

It holds the messages themselves.
"""

from __future__ import annotations

import ipaddress

from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.recorder import Recorder
from openmsmq.runtime.clocks import unix_ns
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.owner_file import OwnerFile


def endpoint(address: str, port: int) -> Endpoint:
    """Return an address and port as a capture has them."""
    return Endpoint(ipaddress.ip_address(address.partition("%")[0]).packed, port)


class CaptureFile:
    """Writes what is sent and received; `flush` shows it to those who read along."""

    def __init__(self, path: str, max_bytes: int, log: EventLog) -> None:
        full = "it has reached capture_max_bytes"
        self._file = OwnerFile(path, "the capture", max_bytes, full, log, Event.CAPTURE_ENDED)
        self._recorder = Recorder()
        self._file.write(self._recorder.start())
        self.flush()

    def opened(self, client: Endpoint, server: Endpoint) -> None:
        """A connection was made."""
        if self._file.is_open:
            self._file.write(self._recorder.opened(client, server, unix_ns()))

    def stream(self, source: Endpoint, destination: Endpoint, data: bytes) -> None:
        """Bytes went over a connection."""
        if self._file.is_open:
            self._file.write(self._recorder.sent(source, destination, data, unix_ns()))

    def closed(self, source: Endpoint, destination: Endpoint) -> None:
        """A connection has ended."""
        if self._file.is_open:
            self._file.write(self._recorder.closed(source, destination, unix_ns()))

    def datagram(self, source: Endpoint, destination: Endpoint, data: bytes) -> None:
        """A datagram was sent or received."""
        if self._file.is_open:
            self._file.write(self._recorder.datagram(source, destination, data, unix_ns()))

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """End the recording."""
        self._file.close()

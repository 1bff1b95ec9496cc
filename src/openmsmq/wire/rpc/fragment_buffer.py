"""Cuts the bytes of a connection into fragments, and refuses lengths before anything is kept."""

from __future__ import annotations

from collections.abc import Iterator

from openmsmq.model.limits import RPC_BIND_MAX_BYTES, RPC_FRAGMENT_MAX_BYTES
from openmsmq.wire.rpc.pdus import HEADER_BYTES, Header, PduType

_WITH_TOKENS = (PduType.BIND, PduType.ALTER_CONTEXT, PduType.AUTH3)


class TooLong(ValueError):
    """A fragment is longer than fragments of its kind may be; its header is known."""

    def __init__(self, header: Header) -> None:
        super().__init__(f"a fragment of {header.length} bytes")
        self.header = header


def longest(kind: int) -> int:
    """Return how many bytes a fragment of a kind may have: tickets of Kerberos are long."""
    return RPC_BIND_MAX_BYTES if kind in _WITH_TOKENS else RPC_FRAGMENT_MAX_BYTES


class FragmentBuffer:
    """What has come of a fragment that is not whole yet, and the fragments that are."""

    def __init__(self) -> None:
        self._data = b""
        self._more = bytearray()
        """What has come since, while the fragment that it belongs to was not whole."""
        self._wanted = HEADER_BYTES
        """How many bytes there must be before there is anything to look at."""
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept."""
        return self._held_bytes

    def feed(self, data: bytes) -> None:
        """Take bytes; they are cut by `fragments`."""
        self._held_bytes += len(data)
        if self._data or self._more:
            self._more += data
        else:
            # Most fragments come alone and whole: then nothing is copied.
            self._data = data

    def fragments(self) -> Iterator[tuple[Header, bytes]]:
        """Take out the fragments that are whole; raise `DecodeError` or `TooLong`.

        After an error there is nothing more to be had: nobody knows where the next one begins.
        """
        while self._held_bytes >= self._wanted:
            if self._more:
                self._data += bytes(self._more)
                self._more.clear()
            data = self._data
            header = Header.read(data)
            if not header.is_understood:
                # What follows cannot be read; the length may be written in another order.
                yield header, data[:HEADER_BYTES]
                return
            if header.length > longest(header.kind):
                raise TooLong(header)
            if len(data) < header.length:
                self._wanted = header.length
                return
            self._wanted = HEADER_BYTES
            self._held_bytes -= header.length
            if self._held_bytes:
                self._data = data[header.length :]
                data = data[: header.length]
            else:
                self._data = b""
            yield header, data

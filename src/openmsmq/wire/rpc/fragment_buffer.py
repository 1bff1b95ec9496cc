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
        self._data = bytearray()

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept."""
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Take bytes; they are cut by `fragments`."""
        self._data += data

    def fragments(self) -> Iterator[tuple[Header, bytes]]:
        """Take out the fragments that are whole; raise `DecodeError` or `TooLong`.

        After an error there is nothing more to be had: nobody knows where the next one begins.
        """
        while len(self._data) >= HEADER_BYTES:
            header = Header.read(bytes(self._data[:HEADER_BYTES]))
            if header.is_understood and header.length > longest(header.kind):
                raise TooLong(header)
            if not header.is_understood:
                # What follows cannot be read; the length may be written in another order.
                yield header, bytes(self._data[:HEADER_BYTES])
                return
            if len(self._data) < header.length:
                return
            whole = bytes(self._data[: header.length])
            del self._data[: header.length]
            yield header, whole

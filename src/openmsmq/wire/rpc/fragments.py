"""Fragments as they come and as they leave: cut, read and written for every call.

Lengths are refused before anything is kept. What fragments say are the values of `pdus`; here is
what is done with each of them, so that it can be compiled. Reading is total.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.model.limits import RPC_BIND_MAX_BYTES, RPC_FRAGMENT_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.pdus import (
    HEADER_BYTES,
    LITTLE_ENDIAN,
    REQUEST_BYTES,
    TRAILER_BYTES,
    VERSION,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Body,
    Fault,
    Flag,
    Header,
    Notice,
    PduType,
    Request,
    Response,
    Verifier,
)

_HEADER: Final = struct.Struct("<4B4sHHI")
_REQUEST: Final = struct.Struct("<IHH")
_RESPONSE: Final = struct.Struct("<IHBx")
_TRAILER: Final = struct.Struct("<4BI")
_REQUEST_HEAD: Final = struct.Struct("<4B4sHHIIHH")
_RESPONSE_HEAD: Final = struct.Struct("<4B4sHHIIHBx")
"""A header, and what stands between it and the stub."""

_WITH_TOKENS: Final = (PduType.BIND, PduType.ALTER_CONTEXT, PduType.AUTH3)
_NOTICES: Final = (PduType.SHUTDOWN, PduType.CO_CANCEL, PduType.ORPHANED)
_REQUEST_KIND: Final = int(PduType.REQUEST)
_RESPONSE_KIND: Final = int(PduType.RESPONSE)
_OBJECT: Final = Flag.OBJECT
_WHERE: Final = "a fragment of RPC"


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
            header = read_header(data)
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


# Reading.


def read_header(data: bytes) -> Header:
    """Read the first 16 bytes of a fragment. Versions and kinds are for others to judge."""
    _need(len(data), 0, HEADER_BYTES)
    version, minor, kind, flags, representation, length, auth_length, call = _HEADER.unpack_from(
        data
    )
    if not representation[0]:
        # Not for us, but who is refused wants to know which call it was.
        call = int.from_bytes(data[12:16], "big")
    found = Header(kind, flags, length, auth_length, call, version, minor, representation)
    if length < HEADER_BYTES and found.is_understood:
        raise DecodeError(_WHERE, 8, f"a fragment of {length} bytes")
    return found


def stub_offset(flags: int) -> int:
    """Return where the stub of a request begins."""
    return REQUEST_BYTES + GUID_BYTES if flags & _OBJECT else REQUEST_BYTES


def read_verifier(header: Header, data: bytes) -> Verifier | None:
    """Read the trailer of a whole fragment; None if it has none."""
    auth_length, length = header.auth_length, header.length
    if not auth_length:
        return None
    at = length - auth_length - TRAILER_BYTES
    if at < HEADER_BYTES:
        raise DecodeError(_WHERE, 10, "a trailer that is longer than its fragment")
    _need(len(data), at, TRAILER_BYTES + auth_length)
    kind, level, padding, _, context = _TRAILER.unpack_from(data, at)
    first = stub_offset(header.flags) if header.kind == _REQUEST_KIND else REQUEST_BYTES
    if padding > max(0, at - first):
        raise DecodeError(_WHERE, at + 2, f"{padding} bytes of padding that are not there")
    return Verifier(kind, level, context, data[at + TRAILER_BYTES : length], padding)


def body_end(header: Header) -> int:
    """Return where the body ends; padding before the trailer belongs to it."""
    auth_length = header.auth_length
    if not auth_length:
        return header.length
    return max(HEADER_BYTES, header.length - auth_length - TRAILER_BYTES)


def read_request(header: Header, data: bytes) -> tuple[int, int, int]:
    """Read what a part of a call says beside its stub.

    These are the number of bytes that its sender thinks there are from here on, the context and
    the operation; the stub begins at `stub_offset`, inside the fragment.
    """
    _need(len(data), 0, header.length)
    end = body_end(header)
    _need(end, HEADER_BYTES, _REQUEST.size)
    _need(end, stub_offset(header.flags), 0)
    hint, context, operation = _REQUEST.unpack_from(data, HEADER_BYTES)
    return hint, context, operation


def read_body(header: Header, data: bytes) -> Body:
    """Read what a whole fragment says, by the kind in its header."""
    kind = header.kind
    if kind == _REQUEST_KIND:
        return _read_request(header, data)
    _need(len(data), 0, header.length)
    end = body_end(header)
    if kind == _RESPONSE_KIND:
        # Padding before a trailer is still part of its stub.
        _need(end, HEADER_BYTES, _RESPONSE.size)
        hint, context, cancels = _RESPONSE.unpack_from(data, HEADER_BYTES)
        return Response(context, data[REQUEST_BYTES:end], hint, cancels)
    match kind:
        case PduType.BIND | PduType.ALTER_CONTEXT:
            return Bind.read(data, end)
        case PduType.AUTH3:
            return Auth3()
        case PduType.FAULT:
            return Fault.read(data, end)
        case PduType.BIND_ACK | PduType.ALTER_CONTEXT_RESPONSE:
            return BindAck.read(data, end)
        case PduType.BIND_NAK:
            return BindNak.read(data, end)
        case _ if kind in _NOTICES:
            return Notice(PduType(kind))
        case _:
            raise DecodeError(_WHERE, 2, f"a fragment of the unknown kind {kind}")


def _read_request(header: Header, data: bytes) -> Request:
    hint, context, operation = read_request(header, data)
    at = stub_offset(header.flags)
    about = Guid(data[REQUEST_BYTES:at]) if at > REQUEST_BYTES else None
    return Request(context, operation, data[at : body_end(header)], hint, about)


def _need(there: int, offset: int, size: int) -> None:
    """Refuse to read `size` bytes at `offset` when so many are there."""
    if offset + size > there:
        raise DecodeError(_WHERE, offset, f"{offset + size - there} bytes are missing")


# Writing what is protected: all of a fragment that stands around its stub.


def request_head(
    flags: int, length: int, auth_length: int, call: int, hint: int, context: int, operation: int
) -> bytes:
    """Return all before the stub of a part of a call without an object."""
    header = (VERSION, 0, _REQUEST_KIND, flags, LITTLE_ENDIAN, length, auth_length, call)
    try:
        return _REQUEST_HEAD.pack(*header, hint, context, operation)
    except struct.error as error:
        raise _misfit(error) from None


def response_head(
    flags: int, length: int, auth_length: int, call: int, hint: int, context: int, cancels: int
) -> bytes:
    """Return all before the stub of a part of the results of a call."""
    header = (VERSION, 0, _RESPONSE_KIND, flags, LITTLE_ENDIAN, length, auth_length, call)
    try:
        return _RESPONSE_HEAD.pack(*header, hint, context, cancels)
    except struct.error as error:
        raise _misfit(error) from None


def trailer(kind: int, level: int, context: int, padding: int) -> bytes:
    """Return the eight bytes before a signature."""
    try:
        return _TRAILER.pack(kind, level, padding, 0, context)
    except struct.error as error:
        raise _misfit(error) from None


def _misfit(error: struct.error) -> EncodeError:
    return EncodeError(_WHERE, f"a value does not fit its field: {error}")

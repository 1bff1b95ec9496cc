"""Objects of a directory as bytes: what is stored, and what travels between queue managers.

Fields are written with their names, so that an older queue manager reads what a newer one wrote,
and passes over what it does not know.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from openmsmq.model.directory import TYPES, DirectoryObject, ObjectKind
from openmsmq.model.identity import GUID_BYTES, Guid


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Guid):
        return bytes(value)
    raise TypeError(f"{type(value).__name__} is not in a directory")


def _decode_hook(kind: type, value: Any) -> Any:
    if kind is Guid and len(value) == GUID_BYTES:
        return Guid(value)
    raise ValueError(f"{len(value)} bytes are no {kind.__name__}")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode_hook)
_DECODERS: Final[dict[ObjectKind, msgspec.msgpack.Decoder[DirectoryObject]]] = {
    kind: msgspec.msgpack.Decoder(kept, dec_hook=_decode_hook) for kind, kept in TYPES.items()
}


def encode_object(value: DirectoryObject) -> bytes:
    """Write an object."""
    return _ENCODER.encode(value)


def decode_object(kind: ObjectKind, data: bytes) -> DirectoryObject:
    """Read an object; raises `ValueError` for bytes that are none of this kind."""
    try:
        return _DECODERS[kind].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a {kind.value} of a directory: {error}") from None

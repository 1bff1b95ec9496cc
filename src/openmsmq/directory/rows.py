"""Changes as they travel over the application interface, and back."""

from __future__ import annotations

from collections.abc import Iterable

from openmsmq.api.directory import ObjectRow
from openmsmq.directory.codec import decode_object, encode_object
from openmsmq.directory.limits import DIRECTORY_OBJECT_MAX_BYTES
from openmsmq.model.directory import Change, ObjectKind, Removal, kind_of
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import GUID_BYTES, Guid


def row_of(change: Change) -> ObjectRow:
    """Write a change."""
    if isinstance(change, Removal):
        return ObjectRow(change.kind.value, bytes(change.identifier), b"")
    return ObjectRow(kind_of(change).value, bytes(change.identifier), encode_object(change))


def changes_in(rows: Iterable[ObjectRow]) -> tuple[Change, ...]:
    """Read changes; raises `InvalidParameter` where one is none."""
    return tuple(map(_change_in, rows))


def _change_in(row: ObjectRow) -> Change:
    try:
        kind = ObjectKind(row.kind)
        if len(row.identifier) != GUID_BYTES:
            raise ValueError(f"an identifier has 16 bytes, not {len(row.identifier)}")
        if not row.data:
            return Removal(kind, Guid(row.identifier))
        if len(row.data) > DIRECTORY_OBJECT_MAX_BYTES:
            raise ValueError(
                f"an object of {len(row.data)} bytes; at most {DIRECTORY_OBJECT_MAX_BYTES}"
            )
        found = decode_object(kind, row.data)
        if found.identifier != row.identifier:
            raise ValueError("an object has another identifier than its row")
    except ValueError as error:
        raise InvalidParameter(f"not a change of a directory: {error}") from None
    return found

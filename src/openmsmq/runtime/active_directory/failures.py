"""What a server or its client library refuses, as an error of MSMQ that says what to do."""

from __future__ import annotations

from typing import Final

import bonsai

from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import (
    AccessDenied,
    DirectoryFailed,
    IllegalPropertyValue,
    MachineNotFound,
    MsmqError,
    NoDirectory,
    QueueExists,
    QueueNotFound,
)

MACHINE_EXISTS: Final = 0xC00E0040
NOT_MATCHING: Final = 0xC00E0078

_NOT_FOUND: Final = 0x20
_EXISTS: Final = 0x44
_NOT_EMPTY: Final = 0x42
_BAD_PASSWORD: Final = 0x31
_NO_RIGHT: Final = frozenset((0x08, 0x30, 0x32))
_NO_TICKET: Final = frozenset((-2, 0x52))
_NOT_REACHED: Final = frozenset((-1, -5, -11, -101, 0x33, 0x34, 0x51, 0x55))
_BAD_VALUE: Final = frozenset((0x10, 0x11, 0x13, 0x14, 0x15, 0x22, 0x40, 0x41, 0x43))


def failure(error: bonsai.LDAPError, what: str, kind: ObjectKind | None = None) -> MsmqError:
    """Translate an error; `what` says what was tried, such as `create CN=orders,...`."""
    code = error.code
    said = str(error.args[0]).rstrip(". ") if error.args else "no reason given"
    if code in _NOT_REACHED:
        return NoDirectory(f"{what}: {said}")
    if code == _BAD_PASSWORD:
        return AccessDenied(
            f"{what}: the server knows no such user with this password; check user and "
            "password_file"
        )
    if code in _NO_TICKET:
        return AccessDenied(f"{what}: there is no Kerberos ticket that could be used ({said})")
    if code in _NO_RIGHT:
        return AccessDenied(f"{what}: Active Directory gives this user no right to ({said})")
    if code == _EXISTS:
        return _exists(what, kind)
    if code == _NOT_FOUND:
        return not_found(what, kind)
    if code == _NOT_EMPTY:
        return DirectoryFailed(f"{what}: there is something below it; delete that first")
    if code in _BAD_VALUE:
        return IllegalPropertyValue(f"{what}: {said}")
    return DirectoryFailed(f"{what}: {said}")


def _exists(what: str, kind: ObjectKind | None) -> MsmqError:
    if kind is ObjectKind.QUEUE:
        return QueueExists(what)
    if kind is ObjectKind.MANAGER:
        return MsmqError.from_code(MACHINE_EXISTS, what)
    return DirectoryFailed(f"{what}: there is one of this name already")


def not_found(what: str, kind: ObjectKind | None = None) -> MsmqError:
    """Say that an object is not there."""
    if kind is ObjectKind.QUEUE:
        return QueueNotFound(what)
    if kind is ObjectKind.MANAGER:
        return MachineNotFound(what)
    return DirectoryFailed(f"{what}: Active Directory has no such object that this user may see")

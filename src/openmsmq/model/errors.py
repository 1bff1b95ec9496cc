"""What applications get when something is wrong: `MsmqError` and its kinds. [MQMQ 2.4]

Each error carries its HRESULT in `code` and its MQ_ERROR name in `name`; its text says what is
wrong, where, and what to do. The texts come from the catalogue. Errors survive pickling, so that
they cross process borders whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from openmsmq.model.error_catalogue import CATALOGUE, CatalogueEntry

_GENERIC: Final = 0xC00E0001
_KINDS: Final[dict[int, type[MsmqError]]] = {}


class MsmqError(Exception):
    """Something that MSMQ has a result code for. `detail` says which object and which value."""

    code: int = _GENERIC

    def __init_subclass__(cls, *, code: int | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code
            _KINDS[code] = cls

    def __init__(self, detail: str = "", *, code: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code

    @classmethod
    def from_code(cls, code: int, detail: str = "") -> MsmqError:
        """Make the error for a result code, also for one that nobody has heard of."""
        return error_for(code)(detail, code=code)

    @property
    def name(self) -> str:
        """The name of the code, or the code itself when it has none."""
        entry = CATALOGUE.get(self.code)
        return entry.name if entry else f"0x{self.code:08X}"

    @property
    def sentence(self) -> str:
        """What is wrong, where, and what to do, without the name of the code."""
        entry = CATALOGUE.get(self.code) or CatalogueEntry(
            self.code, self.name, "The result code is not one of MSMQ"
        )
        what = f"{entry.meaning}: {self.detail}" if self.detail else entry.meaning
        sentence = what if what.endswith(".") else f"{what}."
        advice = f" {entry.advice}" if entry.advice else ""
        return f"{sentence}{advice}"

    def __str__(self) -> str:
        return f"{self.sentence} ({self.name})"

    def __reduce__(self) -> tuple[Callable[[int, str], MsmqError], tuple[int, str]]:
        return MsmqError.from_code, (self.code, self.detail)


def error_for(code: int) -> type[MsmqError]:
    """Find the class of a result code; `MsmqError` itself when the code has none of its own."""
    return _KINDS.get(code, MsmqError)


class QueueNotFound(MsmqError, code=0xC00E0003):
    """MQ_ERROR_QUEUE_NOT_FOUND"""


class QueueNotActive(MsmqError, code=0xC00E0004):
    """MQ_ERROR_QUEUE_NOT_ACTIVE"""


class QueueExists(MsmqError, code=0xC00E0005):
    """MQ_ERROR_QUEUE_EXISTS"""


class InvalidParameter(MsmqError, code=0xC00E0006):
    """MQ_ERROR_INVALID_PARAMETER"""


class InvalidHandle(MsmqError, code=0xC00E0007):
    """MQ_ERROR_INVALID_HANDLE"""


class OperationCancelled(MsmqError, code=0xC00E0008):
    """MQ_ERROR_OPERATION_CANCELLED"""


class SharingViolation(MsmqError, code=0xC00E0009):
    """MQ_ERROR_SHARING_VIOLATION"""


class ServiceNotAvailable(MsmqError, code=0xC00E000B):
    """MQ_ERROR_SERVICE_NOT_AVAILABLE"""


class MachineNotFound(MsmqError, code=0xC00E000D):
    """MQ_ERROR_MACHINE_NOT_FOUND"""


class NoDirectory(MsmqError, code=0xC00E0013):
    """MQ_ERROR_NO_DS"""


class IllegalPathName(MsmqError, code=0xC00E0014):
    """MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"""


class IllegalPropertyValue(MsmqError, code=0xC00E0018):
    """MQ_ERROR_ILLEGAL_PROPERTY_VALUE"""


class BufferOverflow(MsmqError, code=0xC00E001A):
    """MQ_ERROR_BUFFER_OVERFLOW"""


class ReceiveTimeout(MsmqError, code=0xC00E001B):
    """MQ_ERROR_IO_TIMEOUT"""


class IllegalCursorAction(MsmqError, code=0xC00E001C):
    """MQ_ERROR_ILLEGAL_CURSOR_ACTION"""


class MessageAlreadyReceived(MsmqError, code=0xC00E001D):
    """MQ_ERROR_MESSAGE_ALREADY_RECEIVED"""


class IllegalFormatName(MsmqError, code=0xC00E001E):
    """MQ_ERROR_ILLEGAL_FORMATNAME"""


class UnsupportedFormatName(MsmqError, code=0xC00E0020):
    """MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"""


class IllegalSecurityDescriptor(MsmqError, code=0xC00E0021):
    """MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"""


class AccessDenied(MsmqError, code=0xC00E0025):
    """MQ_ERROR_ACCESS_DENIED"""


class InsufficientResources(MsmqError, code=0xC00E0027):
    """MQ_ERROR_INSUFFICIENT_RESOURCES"""


class MessageStorageFailed(MsmqError, code=0xC00E002A):
    """MQ_ERROR_MESSAGE_STORAGE_FAILED"""


class EncryptionNotSupported(MsmqError, code=0xC00E0033):
    """MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION"""


class IllegalPropertySize(MsmqError, code=0xC00E003B):
    """MQ_ERROR_ILLEGAL_PROPERTY_SIZE"""


class PropertyNotAllowed(MsmqError, code=0xC00E003E):
    """MQ_ERROR_PROPERTY_NOTALLOWED"""


class DirectoryFailed(MsmqError, code=0xC00E0043):
    """MQ_ERROR_DS_ERROR"""


class UnsupportedAccessMode(MsmqError, code=0xC00E0045):
    """MQ_ERROR_UNSUPPORTED_ACCESS_MODE"""


class QueueNotAvailable(MsmqError, code=0xC00E004B):
    """MQ_ERROR_QUEUE_NOT_AVAILABLE"""


class NoTransactionCoordinator(MsmqError, code=0xC00E004C):
    """MQ_ERROR_DTC_CONNECT"""


class TransactionUsage(MsmqError, code=0xC00E0050):
    """MQ_ERROR_TRANSACTION_USAGE"""


class TransactionSequence(MsmqError, code=0xC00E0051):
    """MQ_ERROR_TRANSACTION_SEQUENCE"""


class MissingConnectorType(MsmqError, code=0xC00E0055):
    """MQ_ERROR_MISSING_CONNECTOR_TYPE"""


class StaleHandle(MsmqError, code=0xC00E0056):
    """MQ_ERROR_STALE_HANDLE"""


class QueueDeleted(MsmqError, code=0xC00E005A):
    """MQ_ERROR_QUEUE_DELETED"""


class LabelTooLong(MsmqError, code=0xC00E005D):
    """MQ_ERROR_LABEL_TOO_LONG"""


class RemoteMachineNotAvailable(MsmqError, code=0xC00E0069):
    """MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"""


class UnsupportedOperation(MsmqError, code=0xC00E006A):
    """MQ_ERROR_UNSUPPORTED_OPERATION"""


class EncryptionProviderNotSupported(MsmqError, code=0xC00E006B):
    """MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED"""


class PublicKeyNotFound(MsmqError, code=0xC00E0079):
    """MQ_ERROR_PUBLIC_KEY_NOT_FOUND"""


class PropertiesConflict(MsmqError, code=0xC00E0087):
    """MQ_ERROR_PROPERTIES_CONFLICT"""


class MessageNotFound(MsmqError, code=0xC00E0088):
    """MQ_ERROR_MESSAGE_NOT_FOUND"""


class MessageNotAuthenticated(MsmqError, code=0xC00E009B):
    """MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"""


class MessageLocked(MsmqError, code=0xC00E009C):
    """MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"""

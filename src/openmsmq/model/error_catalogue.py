"""Every MSMQ result code, what it means, and what to do about it. [MQMQ 2.4]

The one list from which the error classes, their messages and `docs/reference/errors.md` come.
Where other documents print another value for a name, the value of MQMQ 2.4 stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class CatalogueEntry(msgspec.Struct, frozen=True):
    """One result code. `meaning` and `advice` are sentences; `advice` may be empty."""

    code: int
    name: str
    meaning: str
    advice: str = ""


_ERROR: Final = 0xC00E0000
_INFORMATION: Final = 0x400E0000

_CREATE_OR_CHECK: Final = "Create it first, or check its name and the queue manager asked."
_ASK_FOR_MORE: Final = "Pass a larger buffer."
_ASK_OWNER: Final = "Ask the owner of the object for the right, or use another account."
_GIVE_CERTIFICATE: Final = "Register a certificate for the user, or send without a signature."
_OLD: Final = "Only MSMQ 1.0 and 2.0 give this code."

_INFORMATION_ROWS: Final = (
    (0x01, "MQ_INFORMATION_PROPERTY", "It worked, but some properties gave a warning"),
    (0x02, "MQ_INFORMATION_ILLEGAL_PROPERTY", "A property identifier is unknown"),
    (0x03, "MQ_INFORMATION_PROPERTY_IGNORED", "This operation does not look at the property"),
    (0x04, "MQ_INFORMATION_UNSUPPORTED_PROPERTY", "The property is not supported and was skipped"),
    (0x05, "MQ_INFORMATION_DUPLICATE_PROPERTY", "A property was given twice; the first one counts"),
    (0x06, "MQ_INFORMATION_OPERATION_PENDING", "The operation goes on in the background"),
    (
        0x09,
        "MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL",
        "The queue was created, but its format name did not fit into the buffer",
    ),
    (0x0A, "MQ_INFORMATION_INTERNAL_USER_CERT_EXIST", "The user has an internal certificate"),
    (0x0B, "MQ_INFORMATION_OWNER_IGNORED", "The owner of the queue was left as it is"),
)

_ERROR_ROWS: Final[tuple[tuple[int, str, str] | tuple[int, str, str, str], ...]] = (
    (0x01, "MQ_ERROR", "The operation failed for a reason that has no code of its own"),
    (0x02, "MQ_ERROR_PROPERTY", "Some of the properties given are wrong"),
    (0x03, "MQ_ERROR_QUEUE_NOT_FOUND", "There is no such queue", _CREATE_OR_CHECK),
    (
        0x04,
        "MQ_ERROR_QUEUE_NOT_ACTIVE",
        "Nobody has the queue open and nothing waits in it",
        "Open the queue or send to it, then ask again.",
    ),
    (
        0x05,
        "MQ_ERROR_QUEUE_EXISTS",
        "A queue with this path name is there already",
        "Open the existing queue, or choose another name.",
    ),
    (
        0x06,
        "MQ_ERROR_INVALID_PARAMETER",
        "An argument is not allowed here",
        "Check the arguments against the reference of the operation.",
    ),
    (
        0x07,
        "MQ_ERROR_INVALID_HANDLE",
        "The handle does not belong to an open queue or cursor",
        "Open the queue again; a closed handle cannot be used.",
    ),
    (
        0x08,
        "MQ_ERROR_OPERATION_CANCELLED",
        "The operation was given up before it was done",
        "Start it again if it is still wanted.",
    ),
    (
        0x09,
        "MQ_ERROR_SHARING_VIOLATION",
        "Somebody else has the queue open in a way that excludes this use",
        "Wait until the other application closes the queue, or open it without deny-receive.",
    ),
    (
        0x0B,
        "MQ_ERROR_SERVICE_NOT_AVAILABLE",
        "The queue manager does not answer",
        "Check that it runs and that the address is right.",
    ),
    (
        0x0D,
        "MQ_ERROR_MACHINE_NOT_FOUND",
        "No computer of this name is known",
        "Check the computer name and the directory.",
    ),
    (0x10, "MQ_ERROR_ILLEGAL_SORT", "The sort order asked for is impossible"),
    (0x11, "MQ_ERROR_ILLEGAL_USER", "The user is not known"),
    (
        0x13,
        "MQ_ERROR_NO_DS",
        "The directory cannot be reached",
        "Check the directory server, or use a private or direct name, which needs none.",
    ),
    (
        0x14,
        "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME",
        "The path name of the queue is malformed",
        r"Write computer\queue, or computer\private$\queue.",
    ),
    (
        0x18,
        "MQ_ERROR_ILLEGAL_PROPERTY_VALUE",
        "A property has a value that it can never have",
        "Use a value in the range that the reference gives.",
    ),
    (0x19, "MQ_ERROR_ILLEGAL_PROPERTY_VT", "A property has a value of the wrong type"),
    (
        0x1A,
        "MQ_ERROR_BUFFER_OVERFLOW",
        "A property of the message did not fit; the message is still in the queue",
        _ASK_FOR_MORE,
    ),
    (
        0x1B,
        "MQ_ERROR_IO_TIMEOUT",
        "No message came in the time allowed",
        "Wait longer, or treat the queue as empty for now.",
    ),
    (
        0x1C,
        "MQ_ERROR_ILLEGAL_CURSOR_ACTION",
        "The cursor cannot move on from where it stands",
        "Peek the current message first.",
    ),
    (
        0x1D,
        "MQ_ERROR_MESSAGE_ALREADY_RECEIVED",
        "The message at the cursor was received already, by this application or by another",
        "Move the cursor on to the next message.",
    ),
    (
        0x1E,
        "MQ_ERROR_ILLEGAL_FORMATNAME",
        "The format name is malformed",
        r"Write for example DIRECT=TCP:10.0.0.1\private$\orders.",
    ),
    (
        0x1F,
        "MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL",
        "The format name did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x20,
        "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        "Names of this kind cannot be used for this operation",
        "Use the path name, or a public or private format name.",
    ),
    (0x21, "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR", "The security descriptor is malformed"),
    (
        0x22,
        "MQ_ERROR_SENDERID_BUFFER_TOO_SMALL",
        "The sender identifier did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x23,
        "MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL",
        "The security descriptor did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x24,
        "MQ_ERROR_CANNOT_IMPERSONATE_CLIENT",
        "The server could not act as the calling user, so it could not check the rights",
    ),
    (0x25, "MQ_ERROR_ACCESS_DENIED", "The user has no right to do this", _ASK_OWNER),
    (0x26, "MQ_ERROR_PRIVILEGE_NOT_HELD", "The user lacks a privilege of the system", _ASK_OWNER),
    (
        0x27,
        "MQ_ERROR_INSUFFICIENT_RESOURCES",
        "A quota, the disk or the memory is exhausted, or the message is too large",
        "Receive or purge messages, raise the quota, or send less at once.",
    ),
    (
        0x28,
        "MQ_ERROR_USER_BUFFER_TOO_SMALL",
        "The answer did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x2A,
        "MQ_ERROR_MESSAGE_STORAGE_FAILED",
        "The message could not be written to the store, so it was not sent",
        "Check the disk of the queue manager, then send again.",
    ),
    (
        0x2B,
        "MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL",
        "The certificate of the sender did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x2C,
        "MQ_ERROR_INVALID_CERTIFICATE",
        "The certificate is not valid",
        "Give an X.509 certificate in DER form that has not expired.",
    ),
    (
        0x2D,
        "MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE",
        "The internal certificate is damaged",
        "Renew the internal certificate.",
    ),
    (0x2E, "MQ_ERROR_INTERNAL_USER_CERT_EXIST", "The user has an internal certificate already"),
    (
        0x2F,
        "MQ_ERROR_NO_INTERNAL_USER_CERT",
        "The user has no internal certificate",
        _GIVE_CERTIFICATE,
    ),
    (0x30, "MQ_ERROR_CORRUPTED_SECURITY_DATA", "A cryptographic step failed on damaged data"),
    (0x31, "MQ_ERROR_CORRUPTED_PERSONAL_CERT_STORE", "The user's certificate store is damaged"),
    (
        0x33,
        "MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION",
        "The destination computer cannot decrypt messages",
        "Send without encryption, or publish an encryption key for the destination.",
    ),
    (0x35, "MQ_ERROR_BAD_SECURITY_CONTEXT", "The security context is not valid"),
    (0x36, "MQ_ERROR_COULD_NOT_GET_USER_SID", "The security identifier of the user is unknown"),
    (0x37, "MQ_ERROR_COULD_NOT_GET_ACCOUNT_INFO", "The account of the user cannot be read"),
    (0x38, "MQ_ERROR_ILLEGAL_MQCOLUMNS", "The list of columns of the query is wrong"),
    (0x39, "MQ_ERROR_ILLEGAL_PROPID", "There is no property with this identifier"),
    (0x3A, "MQ_ERROR_ILLEGAL_RELATION", "The comparison of the query is unknown"),
    (
        0x3B,
        "MQ_ERROR_ILLEGAL_PROPERTY_SIZE",
        "A property, or the message as a whole, has a size that is not allowed",
        "Give it the size that is said here; identifiers have exactly 20 bytes.",
    ),
    (0x3C, "MQ_ERROR_ILLEGAL_RESTRICTION_PROPID", "The query filters on an unknown property"),
    (0x3D, "MQ_ERROR_ILLEGAL_MQQUEUEPROPS", "No queue properties were given"),
    (
        0x3E,
        "MQ_ERROR_PROPERTY_NOTALLOWED",
        "This property cannot be set or read by this operation",
        "Leave the property out; some are fixed when a queue is created.",
    ),
    (
        0x3F,
        "MQ_ERROR_INSUFFICIENT_PROPERTIES",
        "A property that the operation needs is missing",
        "Add the property that is missing.",
    ),
    (0x40, "MQ_ERROR_MACHINE_EXISTS", "The directory has an object for this computer already"),
    (0x41, "MQ_ERROR_ILLEGAL_MQQMPROPS", "No queue manager properties were given"),
    (0x42, "MQ_ERROR_DS_IS_FULL", "The directory has no room left", "Remove what nobody needs."),
    (
        0x43,
        "MQ_ERROR_DS_ERROR",
        "The directory failed",
        "Look at the log of the directory server.",
    ),
    (0x44, "MQ_ERROR_INVALID_OWNER", "The owner of the object is not valid"),
    (
        0x45,
        "MQ_ERROR_UNSUPPORTED_ACCESS_MODE",
        "The queue cannot be opened in this way",
        "Open with receive, send or peek access; name lists are for sending only.",
    ),
    (
        0x46,
        "MQ_ERROR_RESULT_BUFFER_TOO_SMALL",
        "The result did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (0x48, "MQ_ERROR_DELETE_CN_IN_USE", "The connected network is still in use", _OLD),
    (0x49, "MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER", "The server of the object did not answer"),
    (0x4A, "MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE", "The server of the object cannot be reached"),
    (
        0x4B,
        "MQ_ERROR_QUEUE_NOT_AVAILABLE",
        "Reading from the queue on another computer failed",
        "Check the connection to that computer and open the queue again.",
    ),
    (
        0x4C,
        "MQ_ERROR_DTC_CONNECT",
        "There is no distributed transaction coordinator",
        "Use an internal transaction of the queue manager.",
    ),
    (0x4E, "MQ_ERROR_TRANSACTION_IMPORT", "The transaction cannot be taken over from elsewhere"),
    (
        0x50,
        "MQ_ERROR_TRANSACTION_USAGE",
        "Transaction and queue do not go together",
        "Use a transaction with transactional queues, and none with other queues.",
    ),
    (
        0x51,
        "MQ_ERROR_TRANSACTION_SEQUENCE",
        "The transaction is not in a state that allows this step",
        "Begin a new transaction; a finished one cannot be used again.",
    ),
    (
        0x55,
        "MQ_ERROR_MISSING_CONNECTOR_TYPE",
        "Properties that only a connector may set were given without a connector type",
        "Set the connector type, or leave those properties out.",
    ),
    (
        0x56,
        "MQ_ERROR_STALE_HANDLE",
        "The queue manager was restarted after the queue was opened",
        "Close the handle and open the queue again.",
    ),
    (0x58, "MQ_ERROR_TRANSACTION_ENLIST", "The queue manager could not join the transaction"),
    (
        0x5A,
        "MQ_ERROR_QUEUE_DELETED",
        "The queue was deleted while it was open",
        "Close the handle; create the queue again if it is still wanted.",
    ),
    (0x5B, "MQ_ERROR_ILLEGAL_CONTEXT", "The context given is not valid"),
    (0x5C, "MQ_ERROR_ILLEGAL_SORT_PROPID", "The query sorts by an unknown property"),
    (
        0x5D,
        "MQ_ERROR_LABEL_TOO_LONG",
        "The label of the message is too long",
        "Use at most 249 characters.",
    ),
    (
        0x5E,
        "MQ_ERROR_LABEL_BUFFER_TOO_SMALL",
        "The label did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (0x5F, "MQ_ERROR_MQIS_SERVER_EMPTY", "No directory servers are configured", _OLD),
    (0x60, "MQ_ERROR_MQIS_READONLY_MODE", "The directory accepts no changes now", _OLD),
    (
        0x61,
        "MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL",
        "The symmetric key did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x62,
        "MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL",
        "The signature did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (
        0x63,
        "MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL",
        "The name of the provider did not fit into the buffer",
        _ASK_FOR_MORE,
    ),
    (0x64, "MQ_ERROR_ILLEGAL_OPERATION", "Foreign systems do not allow this operation"),
    (0x65, "MQ_ERROR_WRITE_NOT_ALLOWED", "The directory is locked while a server is installed"),
    (0x66, "MQ_ERROR_WKS_CANT_SERVE_CLIENT", "This queue manager serves no dependent clients"),
    (0x67, "MQ_ERROR_DEPEND_WKS_LICENSE_OVERFLOW", "The server has too many dependent clients"),
    (
        0x68,
        "MQ_CORRUPTED_QUEUE_WAS_DELETED",
        "The description of the queue was damaged and has been removed",
        "Create the queue again.",
    ),
    (
        0x69,
        "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE",
        "The other computer cannot be asked from here",
        "To read a queue of another computer, or to ask about it, connect to the queue manager "
        "there; messages can be sent to it from here.",
    ),
    (
        0x6A,
        "MQ_ERROR_UNSUPPORTED_OPERATION",
        "A queue manager in workgroup mode cannot do this",
        "Use private queues, or join the queue manager to a directory.",
    ),
    (
        0x6B,
        "MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED",
        "The cryptographic provider asked for is not supported",
        "Use another privacy level or algorithm.",
    ),
    (0x6C, "MQ_ERROR_CANNOT_SET_CRYPTO_SEC_DESCR", "The rights on the keys could not be set"),
    (
        0x6D,
        "MQ_ERROR_CERTIFICATE_NOT_PROVIDED",
        "A signed message needs a certificate, and none was given",
        _GIVE_CERTIFICATE,
    ),
    (0x6E, "MQ_ERROR_Q_DNS_PROPERTY_NOT_SUPPORTED", "The query cannot return the DNS path name"),
    (0x6F, "MQ_ERROR_CANNOT_CREATE_CERT_STORE", "The certificate store could not be created"),
    (0x70, "MQ_ERROR_CANNOT_OPEN_CERT_STORE", "The certificate store could not be opened"),
    (0x71, "MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION", "The enterprise object does not allow this"),
    (0x72, "MQ_ERROR_CANNOT_GRANT_ADD_GUID", "The right to choose object identifiers is missing"),
    (0x73, "MQ_ERROR_CANNOT_LOAD_MSMQOCM", "The setup library could not be loaded", _OLD),
    (0x74, "MQ_ERROR_NO_ENTRY_POINT_MSMQOCM", "The setup library lacks a function"),
    (0x75, "MQ_ERROR_NO_MSMQ_SERVERS_ON_DC", "No domain controller runs a directory server"),
    (
        0x76,
        "MQ_ERROR_CANNOT_JOIN_DOMAIN",
        "The queue manager could not register in the directory and stays in workgroup mode",
    ),
    (0x77, "MQ_ERROR_CANNOT_CREATE_ON_GC", "The global catalogue server did not create the object"),
    (
        0x78,
        "MQ_ERROR_GUID_NOT_MATCHING",
        "The directory object has another identifier than the installation",
        _OLD,
    ),
    (
        0x79,
        "MQ_ERROR_PUBLIC_KEY_NOT_FOUND",
        "The public key of the destination was not found",
        "Check that the destination has published its keys in the directory.",
    ),
    (
        0x7A,
        "MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST",
        "The destination has no public key",
        "Publish a key for the destination, or send without encryption.",
    ),
    (0x7B, "MQ_ERROR_ILLEGAL_MQPRIVATEPROPS", "No computer properties were given"),
    (0x7C, "MQ_ERROR_NO_GC_IN_DOMAIN", "The domain has no global catalogue server"),
    (0x7D, "MQ_ERROR_NO_MSMQ_SERVERS_ON_GC", "No global catalogue server runs message queuing"),
    (0x7E, "MQ_ERROR_CANNOT_GET_DN", "The directory name of this computer is unknown", _OLD),
    (0x7F, "MQ_ERROR_CANNOT_HASH_DATA_EX", "The data to be signed could not be hashed"),
    (0x80, "MQ_ERROR_CANNOT_SIGN_DATA_EX", "The message could not be signed"),
    (0x81, "MQ_ERROR_CANNOT_CREATE_HASH_EX", "The hash for the signature could not be set up"),
    (0x82, "MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX", "The signature of the message is wrong"),
    (0x83, "MQ_ERROR_CANNOT_DELETE_PSC_OBJECTS", "A site controller owns the object to delete"),
    (0x84, "MQ_ERROR_NO_MQUSER_OU", "The directory lacks the unit for message queuing users"),
    (0x85, "MQ_ERROR_CANNOT_LOAD_MQAD", "The directory library could not be loaded"),
    (0x86, "MQ_ERROR_CANNOT_LOAD_MQDSSRV", "Reserved; no version of MSMQ gives this code"),
    (
        0x87,
        "MQ_ERROR_PROPERTIES_CONFLICT",
        "Two of the properties given exclude each other",
        "Leave one of them out.",
    ),
    (
        0x88,
        "MQ_ERROR_MESSAGE_NOT_FOUND",
        "There is no such message in the queue",
        "It may have been received, moved or expired meanwhile; look at the queue again.",
    ),
    (0x89, "MQ_ERROR_CANT_RESOLVE_SITES", "The site of this computer is unknown to the directory"),
    (0x8A, "MQ_ERROR_NOT_SUPPORTED_BY_DEPENDENT_CLIENTS", "Dependent clients cannot do this"),
    (
        0x8B,
        "MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER",
        "The queue manager on the other computer cannot do this",
    ),
    (0x8C, "MQ_ERROR_NOT_A_CORRECT_OBJECT_CLASS", "The directory object has another class"),
    (0x8D, "MQ_ERROR_MULTI_SORT_KEYS", "The directory sorts by one property only"),
    (0x8E, "MQ_ERROR_GC_NEEDED", "No object with this identifier can be created here"),
    (0x8F, "MQ_ERROR_DS_BIND_ROOT_FOREST", "The root of the forest cannot be reached; check DNS"),
    (0x90, "MQ_ERROR_DS_LOCAL_USER", "Local users cannot use the directory; log on to the domain"),
    (0x91, "MQ_ERROR_Q_ADS_PROPERTY_NOT_SUPPORTED", "The query cannot return the directory path"),
    (0x92, "MQ_ERROR_BAD_XML_FORMAT", "The property is not well-formed XML"),
    (0x93, "MQ_ERROR_UNSUPPORTED_CLASS", "Directory objects of this class are not supported"),
    (0x94, "MQ_ERROR_UNINITIALIZED_OBJECT", "The management object was used before it was set up"),
    (0x95, "MQ_ERROR_CANNOT_CREATE_PSC_OBJECTS", "Only a site controller can create this object"),
    (0x96, "MQ_ERROR_CANNOT_UPDATE_PSC_OBJECTS", "Only a site controller can change this object"),
    (
        0x99,
        "MQ_ERROR_RESOLVE_ADDRESS",
        "The address of the destination cannot be found out",
        "Check the spelling of the host and the name service.",
    ),
    (
        0x9A,
        "MQ_ERROR_TOO_MANY_PROPERTIES",
        "More properties were given than one call can take",
        "Pass at most 128 properties.",
    ),
    (
        0x9B,
        "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED",
        "The queue takes signed messages only",
        "Sign the message, or change the queue.",
    ),
    (
        0x9C,
        "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION",
        "The message is in the hands of a transaction that is not finished",
        "Try again when that transaction has committed or aborted.",
    ),
    (0x504, "MQDS_UNKNOWN_SOURCE", "The directory server that reports the change is unknown"),
)

CATALOGUE: Final[Mapping[int, CatalogueEntry]] = MappingProxyType(
    {
        base | row[0]: CatalogueEntry(base | row[0], *row[1:])
        for base, rows in ((_INFORMATION, _INFORMATION_ROWS), (_ERROR, _ERROR_ROWS))
        for row in rows
    }
)
"""All result codes by value: information codes first, then errors, in ascending order."""

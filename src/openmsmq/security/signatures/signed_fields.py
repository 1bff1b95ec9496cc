"""What a signature covers, in order, and as which bytes. [MQMQ 2.5]

MQMQ names the fields but not their bytes. We sign them as they stand on the wire (C-102); what
others may do instead is tried when a signature is checked.

In all kinds of MSMQ the fields follow each other without their lengths, so the same bytes can be
cut into fields in another way: the end of the body becomes the beginning of the label. An exact
signature is ours, for messages between our own hosts: each field has its length before it, and the
first bytes say that it is one, so that no signature of MSMQ is taken for an exact one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import product
from typing import Final, assert_never

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.message import AuthenticationLevel
from openmsmq.wire.headers import multi_queue, queue_names
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    Element,
)
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.user import DELIVERY, UserHeader
from openmsmq.wire.packets import UserMessage

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_FACTS: Final = struct.Struct("<16sBBBBHI")
_ACKNOWLEDGE: Final = 0x0F
_WHERE: Final = "signature"


class NameForm(Enum):
    """How names of queues are signed."""

    WIRE = "wire"
    TEXT = "text"
    TERMINATED_TEXT = "text with NUL"


class SignatureProfile(msgspec.Struct, frozen=True):
    """One reading of MQMQ 2.5."""

    names: NameForm = NameForm.WIRE
    label_terminated: bool = True
    connector_always: bool = True
    """Whether a message without connector type is signed with 16 zero bytes in its place."""
    all_lists: bool = False
    """Whether the lists of administration and response queues are signed too."""

    def __str__(self) -> str:
        return (
            f"names as {self.names.value}, label {'with' if self.label_terminated else 'without'} "
            f"NUL, {'always' if self.connector_always else 'only if present'} a connector type, "
            f"{'all lists' if self.all_lists else 'destinations only'}"
        )


OURS: Final = SignatureProfile()
"""How we sign in the kinds of MSMQ."""

_EXACT_MARK: Final = b"OpenMSMQ exact signature 1\0"

_WIDEST: Final = SignatureProfile(all_lists=True)

PROFILES: Final = tuple(
    SignatureProfile(names, label, connector, lists)
    for lists, names, label, connector in product(
        (False, True), NameForm, (True, False), (True, False)
    )
)
"""All that are tried, ours first, those that differ for several destinations only last."""

OTHER_READINGS_MAX_BYTES: Final = 16_384
"""With more than that behind the body only our own reading is tried: names in many lists would
take long to write in all the others."""

_CODES: Final[dict[type, int]] = {
    PublicName: 1,
    PrivateName: 2,
    DirectName: 3,
    DistributionListName: 6,
}


def first_fields(message: UserMessage) -> bytes:
    """The fields that all signatures begin with and that can be read in one way only."""
    properties = message.properties
    return b"".join(
        (
            properties.correlation_id,
            _U32.pack(properties.application_tag),
            properties.body[: properties.body_size],
        )
    )


def other_fields(
    message: UserMessage, kind: AuthenticationLevel, source: bytes, profile: SignatureProfile
) -> bytes:
    """The fields behind them, for a message that `source` sends."""
    header = message.user
    label = message.properties.label
    if not profile.label_terminated and label[-2:] == b"\0\0":
        label = label[:-2]
    fields = [
        label,
        _name(header.response_queue, header, source, profile.names),
        _name(header.admin_queue, header, source, profile.names),
    ]
    if kind is AuthenticationLevel.SIGNATURE_10:
        return b"".join(fields)
    if kind is AuthenticationLevel.SIGNATURE_30:
        fields.append(message.properties.extension)
        fields += _lists(message, profile)
    fields.append(_facts(message, source))
    if header.connector_type is not None:
        fields.append(header.connector_type)
    elif profile.connector_always:
        fields.append(NIL_GUID)
    if kind is AuthenticationLevel.SIGNATURE_20:
        fields.append(_name(header.destination, header, source, profile.names))
    return b"".join(fields)


def exact_fields(message: UserMessage, source: bytes) -> bytes:
    """All fields of an exact signature, each behind its length."""
    header, properties = message.user, message.properties
    lists = message.multi_queue
    named = () if lists is None else (lists.destinations, lists.administration, lists.responses)
    fields = [
        properties.correlation_id,
        _U32.pack(properties.application_tag),
        properties.body[: properties.body_size],
        properties.label,
        _name(header.response_queue, header, source, NameForm.WIRE),
        _name(header.admin_queue, header, source, NameForm.WIRE),
        properties.extension,
        *(_exact(_element(each, NameForm.WIRE) for each in one.elements) for one in named),
        _facts(message, source),
        b"" if header.connector_type is None else header.connector_type,
    ]
    return _EXACT_MARK + _exact(fields)


def _exact(fields: Iterable[bytes]) -> bytes:
    parts: list[bytes] = []
    for field in fields:
        parts += (_U32.pack(len(field)), field)
    return b"".join(parts)


def destination_element(header: UserHeader) -> Element | None:
    """Return the destination of a message as an element of a list; None where lists have none."""
    match header.destination:
        case PrivateOnDestination(number):
            return PrivateName(header.destination_manager, number)
        case (DirectName() | PublicName() | PrivateName()) as name:
            return name
        case _:
            return None


def readings(
    message: UserMessage, kind: AuthenticationLevel
) -> Iterator[tuple[SignatureProfile, bytes]]:
    """Yield the fields behind the first in all readings that differ for a message, ours first."""
    source = message.user.source
    ours = other_fields(message, kind, source, OURS)
    yield OURS, ours
    if len(other_fields(message, kind, source, _WIDEST)) > OTHER_READINGS_MAX_BYTES:
        return
    seen = {ours}
    for profile in PROFILES:
        if profile.all_lists and kind is not AuthenticationLevel.SIGNATURE_30:
            return
        fields = other_fields(message, kind, source, profile)
        if fields not in seen:
            seen.add(fields)
            yield profile, fields


def _facts(message: UserMessage, source: bytes) -> bytes:
    header = message.user
    return _FACTS.pack(
        source,
        (header.flags & DELIVERY) >> 5,
        message.base.priority,
        header.journal_on_success << 1 | header.journal_on_failure,
        message.properties.acknowledge & _ACKNOWLEDGE,
        message.properties.message_class,
        message.properties.body_type,
    )


def _name(name: QueueName, header: UserHeader, source: bytes, form: NameForm) -> bytes:
    if form is NameForm.WIRE or name is None:
        return queue_names.write(name, _WHERE)
    return _text(_name_text(name, header, source), form)


def _text(text: str, form: NameForm) -> bytes:
    return (text + "\0" * (form is NameForm.TERMINATED_TEXT)).encode("utf-16-le", "replace")


def _name_text(name: QueueName, header: UserHeader, source: bytes) -> str:
    whole = _whole_name(name, header, source)
    return "" if whole is None else queue_names.describe(whole)


def with_whole_names(header: UserHeader, source: bytes) -> UserHeader:
    """Return the header with its queues named in full.

    On the wire, the number of a private queue looks the same whose queue it is.
    """
    admin = _whole_name(header.admin_queue, header, source)
    response = _whole_name(header.response_queue, header, source)
    if admin is header.admin_queue and response is header.response_queue:
        return header
    return msgspec.structs.replace(header, admin_queue=admin, response_queue=response, padding=b"")


def _whole_name(name: QueueName, header: UserHeader, source: bytes) -> QueueName:
    match name:
        case PrivateOnSource(number):
            return PrivateName(Guid(source), number)
        case PrivateOnDestination(number):
            return PrivateName(header.destination_manager, number)
        case PrivateOnAdminHost(number):
            host = _whole_name(header.admin_queue, header, source)
            return PrivateName(
                host.manager if isinstance(host, PrivateName) else Guid(source), number
            )
        case SameAsAdmin():
            return _whole_name(header.admin_queue, header, source)
        case _:
            return name


def _lists(message: UserMessage, profile: SignatureProfile) -> Iterator[bytes]:
    lists = message.multi_queue
    if lists is None:
        return
    yield _list(lists.destinations, profile.names)
    if profile.all_lists:
        yield _list(lists.administration, profile.names)
        yield _list(lists.responses, profile.names)


def _list(addresses: AddressList, form: NameForm) -> bytes:
    """The elements one behind the other, without the padding between them."""
    return b"".join([_element(element, form) for element in addresses.elements])


def _element(element: Element, form: NameForm) -> bytes:
    if form is not NameForm.WIRE:
        return _text(multi_queue.describe(element), form)
    code = _U16.pack(_CODES[type(element)])
    match element:
        case PublicName(identifier) | DistributionListName(identifier):
            return code + identifier
        case PrivateName(manager, number):
            return code + manager + _U32.pack(number)
        case DirectName(text):
            return code + text.encode("utf-16-le") + b"\0\0"
        case _:
            assert_never(element)

"""Every packet a session can carry, drawn so that each header and form occurs often."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire.fields.cursor import keep_padding, padding_size
from openmsmq.wire.headers import base, queue_names, transaction, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    SameAsAdmin,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)
from tests.strategies.wire_parts import (
    debug_headers,
    multi_queue_headers,
    security_headers,
    soap_headers,
)

u8 = st.integers(0, 0xFF)
u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFF_FFFF)
guids = st.binary(min_size=16, max_size=16).map(Guid)
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)

direct_names = texts.map(DirectName)
destinations = st.one_of(
    direct_names,
    guids.map(PublicName),
    u32.map(PrivateOnDestination),
    st.none(),
)
admin_queues = st.one_of(
    st.none(),
    direct_names,
    guids.map(PublicName),
    u32.map(PrivateOnSource),
    u32.map(PrivateOnDestination),
    st.builds(PrivateName, guids, u32),
)
response_queues = st.one_of(admin_queues, u32.map(PrivateOnAdminHost), st.builds(SameAsAdmin))

base_headers = st.builds(BaseHeader, u16.map(lambda flags: flags & ~base.STRUCTURAL), u32, u8)
session_headers = st.builds(SessionHeader, u16, u16, u32, u16, u16, u16, u16)
transaction_headers = st.builds(
    TransactionHeader,
    st.builds(SequenceId, u32, u32),
    u32,
    u32,
    u32.map(lambda flags: flags & ~transaction.CONNECTOR),
    st.none() | guids,
)


def _user_flags(recoverable: bool) -> SearchStrategy[int]:
    mode = user.RECOVERABLE if recoverable else 0
    return u32.map(lambda flags: flags & ~user.STRUCTURAL & ~user.DELIVERY | mode)


def _paddings(size: int) -> SearchStrategy[bytes]:
    """Draw padding as it is kept: nothing for zeros, or what Windows leaves there."""
    return st.binary(min_size=size, max_size=size).map(keep_padding)


@st.composite
def user_headers(draw: st.DrawFn, recoverable: bool | None = None) -> UserHeader:
    """Draw a UserHeader with any padding."""
    if recoverable is None:
        recoverable = draw(st.booleans())
    names = draw(destinations), draw(admin_queues), draw(response_queues)
    size = sum(padding_size(len(queue_names.write(name, "here"))) for name in names)
    return UserHeader(
        draw(guids),
        draw(guids),
        draw(u32),
        draw(u32),
        draw(u32),
        draw(_user_flags(recoverable)),
        *names,
        draw(st.none() | guids),
        draw(_paddings(size)),
    )


@st.composite
def message_properties(draw: st.DrawFn) -> MessageProperties:
    """Draw properties whose two body sizes agree with the body, with any padding."""
    body = draw(st.binary(max_size=80))
    smaller = draw(st.integers(0, len(body)))
    sizes = draw(st.sampled_from([(len(body), smaller), (smaller, len(body))]))
    label = draw(st.binary(max_size=30).map(lambda raw: raw[: len(raw) & ~1]))
    extension = draw(st.binary(max_size=20))
    size = len(label) + len(extension) + len(body)
    return MessageProperties(
        body,
        label,
        draw(u16),
        draw(st.binary(min_size=20, max_size=20)),
        draw(u32),
        draw(u32),
        sizes[0],
        sizes[1],
        draw(u32),
        draw(u32),
        draw(u32),
        extension,
        draw(u8),
        draw(_paddings(padding_size(size))),
    )


@st.composite
def user_messages(draw: st.DrawFn) -> UserMessage:
    """Draw a user message with any headers it may have."""
    transaction_header = draw(st.none() | transaction_headers)
    session = draw(st.none() | session_headers)
    debug = draw(st.none() | debug_headers())
    header = draw(base_headers)
    if debug is None:
        header = BaseHeader(
            header.flags & ~base.TRACE, header.time_to_reach_queue_s, header.reserved
        )
    counted = session is not None and draw(st.booleans())
    return UserMessage(
        draw(user_headers(recoverable=True if transaction_header else None)),
        draw(message_properties()),
        header,
        transaction_header,
        draw(st.none() | security_headers()),
        debug,
        draw(st.none() | soap_headers()),
        draw(st.none() | multi_queue_headers()),
        session,
        draw(st.binary(max_size=40 if counted or session is None else 15)),
        counted,
    )


_internal_headers = st.builds(InternalHeader, u16.map(lambda flags: flags & ~0xF), u16)
_tails = st.binary(max_size=20)
establish_headers = st.builds(
    EstablishHeader, guids, guids, u32, u16, u16, st.binary(min_size=512, max_size=512)
)
parameters_headers = st.builds(ParametersHeader, u32, u32, u16, u16)

internal_packets: SearchStrategy[Packet] = st.one_of(
    st.builds(EstablishConnection, establish_headers, _internal_headers, base_headers, _tails),
    st.builds(ConnectionParameters, parameters_headers, _internal_headers, base_headers, _tails),
    st.builds(
        SessionAck,
        session_headers,
        _internal_headers.map(lambda h: InternalHeader(h.flags & ~0x10, h.reserved)),
        base_headers,
        _tails,
    ),
)
packets: SearchStrategy[Packet] = internal_packets | user_messages()

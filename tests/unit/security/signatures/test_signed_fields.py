"""Exact signatures hold what they cover apart; those of MSMQ do not, which is shown here, too."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import BadSignature, Checked, check_signature, sign
from openmsmq.wire import packets
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.strategies.keys import DESTINATION, ONE, QUEUE, SOURCE, THREE, TWO, signer, user_message

USUAL = SecurityPolicy()
WITH_ONE = SecurityPolicy(signatures=frozenset({ONE, TWO, THREE}))
STRICT = SecurityPolicy(signatures=frozenset())
ELSEWHERE = Guid(range(16))
EXACT = AuthenticationRequest.EXACT
OF_MSMQ = AuthenticationRequest.SIGNATURE_20


def order(destination: QueueName | None = None, body: bytes = b"pay 1000", **more: object) -> bytes:
    return packets.encode(
        UserMessage(
            UserHeader(SOURCE, DESTINATION, destination=destination or DirectName(r"OS:bank\pay")),
            MessageProperties.of(body, "label", **more),  # type: ignore[arg-type]
        )
    )


def signed(packet: bytes, request: AuthenticationRequest) -> UserMessage:
    return user_message(sign(packet, signer(), request, SOURCE))


def accepted(message: UserMessage, policy: SecurityPolicy) -> Checked | None:
    """Send a message as its bytes, and say what the receiver finds."""
    try:
        return check_signature(user_message(packets.encode(message)), policy)
    except BadSignature:
        return None


def with_fields(message: UserMessage, body: bytes, label: bytes, extension: bytes) -> UserMessage:
    properties = msgspec.structs.replace(
        message.properties,
        body=body,
        label=label,
        extension=extension,
        body_size=len(body),
        allocated_size=len(body),
        padding=b"",
    )
    return msgspec.structs.replace(message, properties=properties)


def sent_to(
    message: UserMessage, destination: QueueName, manager: Guid = DESTINATION
) -> UserMessage:
    header = msgspec.structs.replace(
        message.user, destination=destination, destination_manager=manager, padding=b""
    )
    return msgspec.structs.replace(message, user=header)


def recut(message: UserMessage, count: int) -> UserMessage:
    """Move the end of the body into the label."""
    body, label = message.properties.body, message.properties.label
    return with_fields(message, body[:-count], body[-count:] + label, message.properties.extension)


def test_an_exact_signature_is_accepted_and_stands_for_one_of_msmq_30() -> None:
    message = signed(order(), EXACT)
    for policy in (USUAL, STRICT):
        found = accepted(message, policy)
        assert found is not None
        assert found.kind is AuthenticationLevel.SIGNATURE_30
        assert found.profile is None


def test_in_kinds_of_msmq_the_end_of_the_body_can_become_part_of_the_label() -> None:
    # The guide says so. No receiver can tell: both messages are signed by the same bytes.
    forged = recut(signed(order(), OF_MSMQ), 2)
    assert forged.properties.body == b"pay 10"
    assert accepted(forged, USUAL) is not None
    assert accepted(forged, STRICT) is None


def test_a_signature_of_msmq_20_is_none_of_10_unless_those_are_allowed() -> None:
    original = signed(order(body=b"pay 1000 now"), OF_MSMQ)
    # Everything behind the shorter body is signed by both kinds, the older one as a label.
    tail = original.properties.body[8:]
    covered = tail + original.properties.label + _behind_names(original)
    forged = sent_to(
        with_fields(original, original.properties.body[:8], covered, b""),
        DirectName(r"OS:bank\other"),
    )
    assert accepted(forged, WITH_ONE) is not None
    assert accepted(forged, USUAL) is None


def _behind_names(message: UserMessage) -> bytes:
    """Write what MSMQ 2.0 signs behind the names of queues, from MQMQ 2.5 and not by our code."""
    facts = bytes(SOURCE) + bytes((0, message.base.priority, 0, 0))
    facts += message.properties.message_class.to_bytes(2, "little")
    facts += message.properties.body_type.to_bytes(4, "little")
    name = r"OS:bank\pay".encode("utf-16-le") + b"\0\0"
    return facts + bytes(16) + len(name).to_bytes(2, "little") + name


@settings(max_examples=200)
@given(st.binary(min_size=2, max_size=20), st.binary(max_size=12), st.data())
def test_an_exact_signature_holds_for_one_way_to_cut_its_fields(
    body: bytes, extension: bytes, data: st.DataObject
) -> None:
    message = signed(order(body=body, extension=extension), EXACT)
    label = message.properties.label
    whole = body + label + extension
    first = data.draw(st.integers(0, len(whole)))
    second = data.draw(st.integers(first, len(whole)))
    cut = (whole[:first], whole[first:second], whole[second:])
    if len(cut[1]) % 2 or (cut[1] and cut[1][-2:] != b"\0\0") or cut == (body, label, extension):
        return
    assert accepted(with_fields(message, *cut), USUAL) is None
    assert accepted(with_fields(message, body, label, extension), USUAL) is not None


@pytest.mark.parametrize(
    ("name", "other", "manager"),
    [
        (DirectName(r"OS:bank\pay"), DirectName(r"OS:bank\steal"), DESTINATION),
        (PublicName(QUEUE), PublicName(ELSEWHERE), DESTINATION),
        (PrivateOnDestination(7), PrivateOnDestination(8), DESTINATION),
        (PrivateOnDestination(7), PrivateOnDestination(7), ELSEWHERE),
    ],
)
def test_a_message_is_refused_at_a_queue_that_it_was_not_signed_for(
    name: QueueName, other: QueueName, manager: Guid
) -> None:
    message = signed(order(name), EXACT)
    assert accepted(message, STRICT) is not None
    assert accepted(sent_to(message, other, manager), STRICT) is None


def test_a_private_queue_of_the_same_number_elsewhere_is_told_apart_by_exact_ones_only() -> None:
    name = PrivateOnDestination(7)
    assert accepted(sent_to(signed(order(name), OF_MSMQ), name, ELSEWHERE), USUAL) is not None
    assert accepted(sent_to(signed(order(name), EXACT), name, ELSEWHERE), USUAL) is None


def test_each_copy_of_a_message_to_several_queues_has_the_signature_of_all() -> None:
    several = MultiQueueFormatHeader(AddressList((DirectName(r"OS:bank\pay"), PublicName(QUEUE))))
    draft = msgspec.structs.replace(user_message(order()), multi_queue=several)
    message = signed(packets.encode(draft), EXACT)
    assert accepted(message, STRICT) is not None
    assert accepted(sent_to(message, PublicName(QUEUE)), STRICT) is not None
    assert accepted(sent_to(message, PublicName(ELSEWHERE)), STRICT) is None


def test_lists_of_the_directory_cannot_be_signed_exactly() -> None:
    lists = MultiQueueFormatHeader(AddressList((DistributionListName(QUEUE),)))
    draft = msgspec.structs.replace(user_message(order()), multi_queue=lists)
    with pytest.raises(EncodeError, match="name the queues"):
        signed(packets.encode(draft), EXACT)


def test_a_policy_without_exact_signatures_takes_none() -> None:
    message = signed(order(), EXACT)
    assert accepted(message, SecurityPolicy(exact_signatures=False)) is None


def test_a_signature_of_msmq_30_is_not_exact() -> None:
    several = MultiQueueFormatHeader(AddressList((DirectName(r"OS:bank\pay"),)))
    draft = msgspec.structs.replace(user_message(order()), multi_queue=several)
    message = signed(packets.encode(draft), AuthenticationRequest.SIGNATURE_30)
    assert accepted(message, USUAL) is not None
    assert accepted(message, STRICT) is None

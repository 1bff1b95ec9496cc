"""Signatures: every kind with every hash, what they cover, and what is refused."""

from __future__ import annotations

import hashlib
import struct
from itertools import product

import msgspec
import pytest

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest, HashAlgorithm
from openmsmq.security.hashes import MD2_MAX_BYTES
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import (
    BadSignature,
    Checked,
    Signer,
    check_signature,
    is_signed,
    sign,
)
from openmsmq.security.signatures.signed_fields import (
    OURS,
    PROFILES,
    NameForm,
    SignatureProfile,
    first_fields,
    other_fields,
    readings,
)
from openmsmq.wire import packets
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties, label_bytes
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    MultiQueueFormatHeader,
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
from openmsmq.wire.headers.security import (
    BODY_ENCRYPTED,
    DEFAULT_PROVIDER,
    SecurityHeader,
    SenderKind,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.strategies.keys import (
    ANYTHING_GOES,
    DESTINATION,
    ONE,
    QUEUE,
    REQUESTS,
    SID,
    SOURCE,
    THREE,
    TWO,
    certificate,
    letter,
    private_key,
    signer,
    user_message,
    with_properties,
    with_security,
)

POLICY = SecurityPolicy(signatures=frozenset({ONE, TWO, THREE}))
NOBODY = Guid(range(16))


ADMIN = PrivateName(NOBODY, 7)
RESPONSE = PublicName(NOBODY)


def rich_letter(admin: QueueName = ADMIN, response: QueueName = RESPONSE) -> UserMessage:
    """Return a message in which every field that can be signed says something."""
    return UserMessage(
        UserHeader(
            SOURCE,
            DESTINATION,
            flags=user.RECOVERABLE | user.JOURNAL_ON_SUCCESS,
            destination=DirectName(r"OS:host\q"),
            admin_queue=admin,
            response_queue=response,
            connector_type=NOBODY,
        ),
        MessageProperties.of(
            b"a body",
            "a label",
            body_type=0x1234_5678,
            acknowledge=0x0E,
            message_class=0x0102,
            correlation_id=bytes(range(20)),
            application_tag=0x0A0B_0C0D,
            extension=b"extension",
        ),
        BaseHeader(flags=5),
    )


def to_several(message: UserMessage) -> UserMessage:
    """Address a message to several queues."""
    lists = MultiQueueFormatHeader(
        AddressList(
            (
                DirectName(r"OS:a\queue"),
                PublicName(QUEUE),
                PrivateName(NOBODY, 9),
                DistributionListName(NOBODY),
            )
        ),
        AddressList((PublicName(NOBODY),)),
        AddressList((PublicName(SOURCE),)),
    )
    return msgspec.structs.replace(message, multi_queue=lists)


def signed(
    kind: AuthenticationLevel, message: UserMessage | None = None, who: Signer | None = None
) -> bytes:
    """Return a signed packet."""
    message = message or rich_letter()
    if kind is THREE:
        message = to_several(message)
    return sign(packets.encode(message), who or signer(), REQUESTS[kind], SOURCE)


def check(packet: bytes, policy: SecurityPolicy = POLICY) -> Checked:
    return check_signature(user_message(packet), policy)


@pytest.mark.spec("MQQB-3.1.7.1.4-02", "MQQB-3.1.7.1.4-05", "MQQB-3.1.5.8.3-02")
@pytest.mark.parametrize(("kind", "algorithm"), list(product(REQUESTS, HashAlgorithm)))
def test_every_kind_of_signature_with_every_hash_is_accepted_where_allowed(
    kind: AuthenticationLevel, algorithm: HashAlgorithm
) -> None:
    packet = signed(kind, who=signer(algorithm))
    assert user_message(packet).properties.hash_algorithm == algorithm
    assert check(packet, ANYTHING_GOES) == Checked(kind, algorithm, certificate(), OURS, False)


@pytest.mark.spec("MQQB-3.1.7.1.4-06", "MQMQ-2.5.1-01", "MQMQ-2.2.20.6-25", "MQDMPR-3.1.1.12-11")
def test_a_signature_of_msmq_10_is_the_hash_of_its_fields_encrypted_with_the_private_key() -> None:
    header = user_message(signed(ONE)).security
    assert header is not None
    assert header.signature == private_key().sign(
        HashAlgorithm.SHA512, hashlib.sha512(fields_of_one()).digest()
    )


def fields_of_one() -> bytes:
    return (
        bytes(range(20))
        + struct.pack("<I", 0x0A0B_0C0D)
        + b"a body"
        + "a label\0".encode("utf-16-le")
        + NOBODY
        + NOBODY
        + struct.pack("<I", 7)
    )


def facts() -> bytes:
    return SOURCE + bytes([1, 5, 2, 0x0E]) + struct.pack("<HI", 0x0102, 0x1234_5678) + NOBODY


@pytest.mark.spec("MQMQ-2.5.2-01", "MQMQ-2.2.20.6-26", "MQDMPR-3.1.1.12-12")
def test_a_signature_of_msmq_20_covers_its_fields_in_their_order() -> None:
    name = "OS:host\\q\0".encode("utf-16-le")
    expected = fields_of_one() + facts() + struct.pack("<H", len(name)) + name
    header = user_message(signed(TWO)).security
    assert header is not None
    assert header.signature == private_key().sign(
        HashAlgorithm.SHA512, hashlib.sha512(expected).digest()
    )


@pytest.mark.spec(
    "MQQB-3.1.7.1.4-03",
    "MQQB-3.1.7.1.4-04",
    "MQMQ-2.5.3-01",
    "MQMQ-2.2.20.3-05",
    "MQDMPR-3.1.1.12-13",
    "MQDMPR-3.1.1.12-26",
    "MQDMPR-3.1.1.12-27",
)
def test_a_signature_of_msmq_30_covers_its_fields_and_stands_behind_the_lists() -> None:
    listed = (
        b"\3\0"
        + "OS:a\\queue\0".encode("utf-16-le")
        + b"\1\0"
        + QUEUE
        + b"\2\0"
        + NOBODY
        + struct.pack("<I", 9)
        + b"\6\0"
        + NOBODY
    )
    expected = fields_of_one() + b"extension" + listed + facts()
    message = user_message(signed(THREE))
    assert message.multi_queue is not None
    assert message.multi_queue.signature == private_key().sign(
        HashAlgorithm.SHA512, hashlib.sha512(expected).digest()
    )
    assert message.security is not None
    assert message.security.signature == b""
    assert message.security.sender_certificate == certificate()


@pytest.mark.spec("MQDMPR-3.1.1.12-26")
def test_a_message_for_several_queues_gets_a_signature_of_msmq_30_whatever_is_asked() -> None:
    packet = packets.encode(to_several(rich_letter()))
    for request in AuthenticationRequest:
        if request is not AuthenticationRequest.EXACT:
            assert check(sign(packet, signer(), request, SOURCE)).kind is THREE


@pytest.mark.parametrize(
    "request_", [AuthenticationRequest.ALWAYS, AuthenticationRequest.SIGNATURE_30]
)
def test_a_message_for_one_queue_gets_a_signature_of_msmq_20_unless_10_is_asked(
    request_: AuthenticationRequest,
) -> None:
    assert check(sign(packets.encode(letter()), signer(), request_, SOURCE)).kind is TWO


def test_a_message_is_signed_for_the_queue_manager_that_is_going_to_send_it() -> None:
    unstamped = packets.encode(
        msgspec.structs.replace(letter(), user=UserHeader(NIL_GUID, destination=PublicName(QUEUE)))
    )
    packet = sign(unstamped, signer(), AuthenticationRequest.ALWAYS, SOURCE)
    with pytest.raises(BadSignature):
        check(packet)
    stamped = packet[:16] + SOURCE + packet[32:]
    assert check(stamped).kind is TWO


@pytest.mark.parametrize(
    ("admin", "response", "whole"),
    [
        (PrivateOnSource(1), PrivateOnDestination(2), (SOURCE, 1, DESTINATION, 2)),
        (PrivateOnDestination(1), SameAsAdmin(), (DESTINATION, 1, DESTINATION, 1)),
        (PrivateName(NOBODY, 1), PrivateOnAdminHost(2), (NOBODY, 1, NOBODY, 2)),
        (PrivateOnSource(1), PrivateOnAdminHost(2), (SOURCE, 1, SOURCE, 2)),
    ],
)
def test_signed_messages_name_their_queues_in_full(
    admin: QueueName, response: QueueName, whole: tuple[Guid, int, Guid, int]
) -> None:
    header = user_message(signed(TWO, rich_letter(admin, response))).user
    assert header.admin_queue == PrivateName(*whole[:2])
    assert header.response_queue == PrivateName(*whole[2:])


@pytest.mark.spec("MQMQ-2.2.20.6-03", "MQMQ-2.2.20.6-23")
def test_who_signs_is_named_with_the_certificate_and_the_default_provider() -> None:
    header = user_message(signed(TWO)).security
    assert header is not None
    assert header.flags == DEFAULT_PROVIDER | SenderKind.SID
    assert (header.sender_id, header.sender_certificate) == (SID, certificate())
    assert not header.provider_info
    assert not header.encryption_key


@pytest.mark.spec("MQMQ-2.2.20.6-04", "MQMQ-2.2.20.6-22", "MQMQ-2.2.20.6-24")
def test_a_queue_manager_signs_with_its_identifier() -> None:
    who = Signer(private_key(), certificate(), SenderKind.QUEUE_MANAGER, SOURCE)
    header = user_message(signed(TWO, who=who)).security
    assert header is not None
    assert (header.sender_kind, header.sender_id) == (SenderKind.QUEUE_MANAGER, SOURCE)


def test_a_signer_without_a_name_leaves_the_sender_that_the_packet_names() -> None:
    named = msgspec.structs.replace(
        letter(), security=SecurityHeader(sender_id=SID, flags=SenderKind.SID)
    )
    who = Signer(private_key(), certificate())
    header = user_message(signed(TWO, named, who)).security
    assert header is not None
    assert (header.sender_kind, header.sender_id) == (SenderKind.SID, SID)
    header = user_message(signed(TWO, letter(), who)).security
    assert header is not None
    assert (header.sender_kind, header.sender_id) == (SenderKind.NONE, b"")


def test_signing_is_repeatable() -> None:
    assert signed(TWO) == signed(TWO)


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_signature_in_the_other_byte_order_is_accepted_and_noted(
    kind: AuthenticationLevel,
) -> None:
    message = user_message(signed(kind))
    assert message.security is not None
    if message.multi_queue is not None:
        lists = msgspec.structs.replace(
            message.multi_queue, signature=message.multi_queue.signature[::-1]
        )
        turned = msgspec.structs.replace(message, multi_queue=lists)
    else:
        header = msgspec.structs.replace(
            message.security, signature=message.security.signature[::-1]
        )
        turned = msgspec.structs.replace(message, security=header)
    assert check_signature(turned, POLICY).big_endian


NAMES: list[QueueName] = [
    None,
    PrivateOnSource(5),
    PrivateOnDestination(5),
    PublicName(NOBODY),
    PrivateName(NOBODY, 5),
    DirectName(r"TCP:10.0.0.1\q"),
]


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (profile, kind)
        for profile, kind in product(PROFILES, REQUESTS)
        if kind is THREE or not profile.all_lists
    ],
    ids=str,
)
def test_every_reading_of_the_specification_is_accepted_and_noted(
    profile: SignatureProfile, kind: AuthenticationLevel
) -> None:
    for admin, response in product(NAMES, [*NAMES, SameAsAdmin(), PrivateOnAdminHost(5)]):
        plain = rich_letter(admin, response)
        if kind is THREE:
            plain = to_several(plain)
        hashed = hashlib.sha512(
            first_fields(plain) + other_fields(plain, kind, SOURCE, profile)
        ).digest()
        # Others may sign names that are not whole: put theirs back.
        message = msgspec.structs.replace(user_message(signed(kind, plain)), user=plain.user)
        own = private_key().sign(HashAlgorithm.SHA512, hashed)
        if message.multi_queue is not None:
            lists = msgspec.structs.replace(message.multi_queue, signature=own)
            message = msgspec.structs.replace(message, multi_queue=lists)
        else:
            assert message.security is not None
            header = msgspec.structs.replace(message.security, signature=own)
            message = msgspec.structs.replace(message, security=header)
        found = check_signature(message, POLICY)
        assert found.kind is kind
        assert other_fields(plain, kind, SOURCE, found.profile) == other_fields(
            plain, kind, SOURCE, profile
        )


def test_our_reading_is_tried_first_and_each_says_what_it_is() -> None:
    assert PROFILES[0] == OURS
    assert len({str(profile) for profile in PROFILES}) == len(PROFILES) == 24


def test_of_a_message_with_long_lists_only_our_reading_is_tried() -> None:
    many = AddressList((PublicName(NOBODY),) * 1000)
    for lists in (
        MultiQueueFormatHeader(many),
        MultiQueueFormatHeader(AddressList((PublicName(QUEUE),)), many),
    ):
        message = msgspec.structs.replace(rich_letter(), multi_queue=lists)
        assert len(list(readings(message, THREE))) == 1
        packet = sign(packets.encode(message), signer(), AuthenticationRequest.ALWAYS, SOURCE)
        assert check(packet).kind is THREE
    assert len(list(readings(to_several(rich_letter()), THREE))) > 10


def test_what_is_encrypted_or_no_user_message_is_not_signed() -> None:
    encrypted = msgspec.structs.replace(
        letter(), security=SecurityHeader(encryption_key=b"key", flags=BODY_ENCRYPTED)
    )
    with pytest.raises(EncodeError, match="before it is encrypted"):
        signed(TWO, encrypted)
    other = packets.encode(packets.SessionAck(SessionHeader(1, 2, 3, 4, 5, 6, 7)))
    with pytest.raises(EncodeError, match="only user messages"):
        sign(other, signer(), AuthenticationRequest.ALWAYS, SOURCE)


def test_names_as_text_are_format_names() -> None:
    profile = SignatureProfile(names=NameForm.TEXT)
    plain = rich_letter(PrivateOnSource(0x1F), PrivateOnAdminHost(0x20))
    text = f"PRIVATE={SOURCE}\\20PRIVATE={SOURCE}\\1f".encode("utf-16-le")
    label = label_bytes("a label")
    assert other_fields(plain, ONE, SOURCE, profile) == label + text


@pytest.mark.spec("MQQB-3.1.5.8.3-03")
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_signature_of_another_message_is_refused(kind: AuthenticationLevel) -> None:
    packet = signed(kind)
    with pytest.raises(BadSignature, match="not one of this message"):
        check(with_properties(packet, body=b"o body"))
    with pytest.raises(BadSignature, match="not one of this message"):
        check(with_properties(packet, application_tag=1))


@pytest.mark.spec("MQQB-3.1.5.8.3-03")
def test_a_signature_by_another_key_is_refused() -> None:
    with pytest.raises(BadSignature, match="by the certificate's key"):
        check(with_security(signed(TWO), sender_certificate=certificate(seed=1)))


@pytest.mark.parametrize("algorithm", [HashAlgorithm.MD2, HashAlgorithm.MD4, HashAlgorithm.MD5])
def test_forgeable_hashes_are_refused_unless_the_policy_allows_them(
    algorithm: HashAlgorithm,
) -> None:
    packet = signed(TWO, who=signer(algorithm))
    with pytest.raises(BadSignature, match="not allowed by the policy"):
        check(packet)
    assert check(packet, SecurityPolicy(hashes=frozenset({algorithm}))).kind is TWO


def test_another_name_of_a_hash_does_not_pass_for_the_one_that_was_signed() -> None:
    for other in (HashAlgorithm.SHA256, HashAlgorithm.SHA1):
        with pytest.raises(BadSignature):
            check(with_properties(signed(TWO), hash_algorithm=int(other)))


@pytest.mark.spec("MQMQ-2.2.19.3-22")
def test_a_hash_that_nobody_knows_is_refused() -> None:
    with pytest.raises(BadSignature, match="0x1234"):
        check(with_properties(signed(TWO), hash_algorithm=0x1234), ANYTHING_GOES)


def test_kinds_of_signatures_are_refused_if_the_policy_does_not_have_them() -> None:
    only_new = SecurityPolicy(signatures=frozenset({TWO, THREE}))
    with pytest.raises(BadSignature):
        check(signed(ONE), only_new)
    assert check(signed(TWO), only_new).kind is TWO


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_signature_without_a_certificate_is_refused(kind: AuthenticationLevel) -> None:
    with pytest.raises(BadSignature, match="no certificate"):
        check(with_security(signed(kind), sender_certificate=b""))


def test_a_list_s_signature_without_any_security_header_is_refused() -> None:
    message = msgspec.structs.replace(user_message(signed(THREE)), security=None)
    assert is_signed(message)
    with pytest.raises(BadSignature, match="no certificate"):
        check_signature(message, POLICY)


@pytest.mark.parametrize("bad", [b"x", bytes(500), bytes(0xFFFF)])
def test_what_is_no_certificate_is_refused(bad: bytes) -> None:
    with pytest.raises(BadSignature, match="certificate"):
        check(with_security(signed(TWO), sender_certificate=bad))


def test_a_short_key_proves_nothing_unless_the_policy_takes_it() -> None:
    packet = signed(TWO, who=signer(HashAlgorithm.SHA256, bits=512))
    with pytest.raises(BadSignature, match="512 bits"):
        check(packet)
    assert check(packet, ANYTHING_GOES).kind is TWO


@pytest.mark.parametrize("bad", [b"x", bytes(128), bytes(0xFFFF), b"\xff" * 128])
def test_what_is_no_signature_is_refused(bad: bytes) -> None:
    with pytest.raises(BadSignature, match="not one of SHA512"):
        check(with_security(signed(TWO), signature=bad))


def test_a_message_without_signature_is_not_signed() -> None:
    message = letter()
    assert not is_signed(message)
    with pytest.raises(BadSignature, match="not signed"):
        check_signature(message, POLICY)


def test_a_body_that_is_still_encrypted_proves_nothing() -> None:
    header = user_message(signed(TWO)).security
    assert header is not None
    with pytest.raises(BadSignature, match="still encrypted"):
        check(with_security(signed(TWO), flags=header.flags | 0x20))


def test_a_long_message_is_neither_signed_nor_checked_with_a_slow_hash() -> None:
    size = MD2_MAX_BYTES + 1
    with pytest.raises(EncodeError, match=f"at most {MD2_MAX_BYTES} bytes"):
        signed(TWO, letter(bytes(size)), signer(HashAlgorithm.MD2))
    packet = signed(TWO, letter(b"x"), signer(HashAlgorithm.MD2))
    longer = with_properties(packet, body=bytes(size), body_size=size, allocated_size=size)
    with pytest.raises(BadSignature, match=f"at most {MD2_MAX_BYTES} bytes"):
        check(longer, ANYTHING_GOES)


def test_only_the_body_itself_is_signed_and_not_what_was_set_aside_for_it() -> None:
    packet = signed(TWO, letter(b"body"))
    roomy = with_properties(packet, body=b"body and more", allocated_size=13)
    assert check(roomy).kind is TWO

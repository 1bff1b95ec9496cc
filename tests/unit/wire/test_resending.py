"""Messages that somebody else sends again."""

from __future__ import annotations

import msgspec

from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from openmsmq.wire.resending import unsigned
from tests.strategies.messages import Draft

SIGNED = SecurityHeader(
    sender_id=bytes(28), signature=b"signed", sender_certificate=b"certificate", flags=1
)


def message(**changes: object) -> UserMessage:
    plain = decode(Draft(body=b"body").packet())
    assert isinstance(plain, UserMessage)
    return msgspec.structs.replace(plain, **changes)


def test_what_is_not_signed_stays_as_it_is() -> None:
    plain = message()
    assert unsigned(plain) is plain


def test_sender_and_signature_go() -> None:
    assert unsigned(message(security=SIGNED)) == message()


def test_what_decrypts_the_body_stays() -> None:
    found = unsigned(
        message(
            security=msgspec.structs.replace(
                SIGNED, encryption_key=b"key", provider_info=b"info", flags=1 | BODY_ENCRYPTED
            )
        )
    )
    assert found.security == SecurityHeader(
        encryption_key=b"key", provider_info=b"info", flags=BODY_ENCRYPTED
    )
    assert decode(encode(found)) == found


def test_the_other_destinations_stay_without_their_signature() -> None:
    listed = MultiQueueFormatHeader(AddressList((DirectName(r"OS:a\private$\b"),)))
    signed = msgspec.structs.replace(listed, signature=b"signed")
    assert unsigned(message(multi_queue=signed)) == message(multi_queue=listed)


def test_a_message_that_only_says_it_is_encrypted_can_be_sent_again() -> None:
    found = unsigned(
        message(security=msgspec.structs.replace(SIGNED, flags=1 | BODY_ENCRYPTED, signature=b""))
    )
    assert found == message()
    assert decode(encode(found)) == found

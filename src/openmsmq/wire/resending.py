"""Messages that somebody else sends again: without what only their first sender could say."""

from __future__ import annotations

import msgspec

from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader
from openmsmq.wire.packets import UserMessage


def unsigned(message: UserMessage) -> UserMessage:
    """Take sender and signature out of a message.

    A signature covers the queue manager that sends, so it holds no longer, and who sends again is
    not who has signed. What is needed to decrypt the body stays.
    """
    security, listed = message.security, message.multi_queue
    if security is None and (listed is None or not listed.signature):
        return message
    if listed is not None:
        listed = msgspec.structs.replace(listed, signature=b"", padding=b"")
    return msgspec.structs.replace(message, security=_without_sender(security), multi_queue=listed)


def _without_sender(header: SecurityHeader | None) -> SecurityHeader | None:
    if header is None or not header.body_encrypted:
        return None
    if not (header.encryption_key or header.provider_info):
        # It says that it is encrypted and has nothing to decrypt it with: a header needs an item.
        return None
    return SecurityHeader(
        encryption_key=header.encryption_key,
        provider_info=header.provider_info,
        flags=BODY_ENCRYPTED,
    )

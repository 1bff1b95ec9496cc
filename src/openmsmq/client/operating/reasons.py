"""Why a message became a dead letter, and what an operator can do about it."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.model.message import MessageClass


class Reason(msgspec.Struct, frozen=True):
    """What a reason means."""

    title: str
    advice: str


UNKNOWN: Final = Reason(
    "Not known", "The message does not say why it could not be delivered: look at it."
)
REASONS: Final = {
    MessageClass.NACK_BAD_DESTINATION_QUEUE.name: Reason(
        "The destination queue does not exist",
        "Create the queue there, or correct the name by which the sender opens it.",
    ),
    MessageClass.NACK_PURGED.name: Reason(
        "The message was deleted on its way",
        "Ask who purged an outgoing queue, and whether the messages are still needed.",
    ),
    MessageClass.NACK_REACH_QUEUE_TIMEOUT.name: Reason(
        "It did not reach the queue in time",
        "Look at the outgoing queues for what is stuck; mend that, or give messages more time.",
    ),
    MessageClass.NACK_QUEUE_EXCEEDS_QUOTA.name: Reason(
        "The destination queue was full",
        "Find out why nobody receives from the queue, or raise its quota.",
    ),
    MessageClass.NACK_ACCESS_DENIED.name: Reason(
        "The sender may not send to the queue",
        "Give the sender the right with openmsmq queue acl, or have it sign its messages.",
    ),
    MessageClass.NACK_HOP_COUNT_EXCEEDED.name: Reason(
        "It was passed on too often",
        "It probably went in a circle: look at its path, and at routing links that lead back.",
    ),
    MessageClass.NACK_BAD_SIGNATURE.name: Reason(
        "Its signature is wrong",
        "See whether the certificate has expired, and whether somebody changes messages.",
    ),
    MessageClass.NACK_BAD_ENCRYPTION.name: Reason(
        "It could not be decrypted",
        "See whether the destination's key was renewed and the sender still uses the old one.",
    ),
    MessageClass.NACK_COULD_NOT_ENCRYPT.name: Reason(
        "It could not be encrypted", "Make the public key of the destination known to the source."
    ),
    MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE.name: Reason(
        "It is transactional, and the queue is not",
        "Create the queue as a transactional one, or send without a transaction.",
    ),
    MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE.name: Reason(
        "The queue is transactional, and the message is not", "Send it in a transaction."
    ),
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER.name: Reason(
        "The destination does not know its cryptography", "Let the sender use one that both know."
    ),
    MessageClass.NACK_SOURCE_COMPUTER_GUID_CHANGED.name: Reason(
        "The source has a new identity since it was sent",
        "Send what is still needed again: the old identity is not coming back.",
    ),
    MessageClass.NACK_QUEUE_DELETED.name: Reason(
        "The queue was deleted", "Ask who deleted it, and send what is still needed to another."
    ),
    MessageClass.NACK_QUEUE_PURGED.name: Reason(
        "The queue was purged", "Ask who purged it, and whether the messages are still needed."
    ),
    MessageClass.NACK_RECEIVE_TIMEOUT.name: Reason(
        "Nobody received it in time",
        "See why nobody receives there, or give messages more time to be received.",
    ),
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER.name: Reason(
        "Its sender heard nothing in time",
        "Look for it in its queue and the journal there: it may have been received all the same.",
    ),
    MessageClass.NACK_RECEIVE_REJECTED.name: Reason(
        "Its reader rejected it", "Look at the application's log for the message."
    ),
}


def reason_of(name: str | None) -> Reason:
    """Return what a reason means; one that is not listed stands for itself."""
    if name is None:
        return UNKNOWN
    return REASONS.get(name) or Reason(name.capitalize().replace("_", " "), UNKNOWN.advice)

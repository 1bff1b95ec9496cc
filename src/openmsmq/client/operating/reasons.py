"""Why a message became a dead letter, and what an operator can do about it."""

from __future__ import annotations

from typing import Final

import msgspec


class Reason(msgspec.Struct, frozen=True):
    """What a reason means."""

    title: str
    advice: str


UNKNOWN: Final = Reason(
    "Not known", "The message does not say why it could not be delivered: look at it."
)
REASONS: Final = {
    "NACK_BAD_DESTINATION_QUEUE": Reason(
        "The destination queue does not exist",
        "Create the queue, or correct the name that the sender uses; then replay.",
    ),
    "NACK_PURGED": Reason(
        "The message was deleted on its way", "Somebody purged an outgoing queue."
    ),
    "NACK_REACH_QUEUE_TIMEOUT": Reason(
        "It did not reach the queue in time",
        "Look at the outgoing queues for what is stuck; replay when the way is free.",
    ),
    "NACK_QUEUE_EXCEEDS_QUOTA": Reason(
        "The destination queue was full", "Empty the queue or raise its quota; then replay."
    ),
    "NACK_ACCESS_DENIED": Reason(
        "The sender may not send to the queue", "Grant the right, or correct the sender."
    ),
    "NACK_HOP_COUNT_EXCEEDED": Reason(
        "It was passed on too often", "The routes go in a circle: look at the directory."
    ),
    "NACK_BAD_SIGNATURE": Reason(
        "Its signature is wrong", "Look at the certificates of the sender."
    ),
    "NACK_BAD_ENCRYPTION": Reason(
        "It could not be decrypted", "The keys have changed: let the sender send it again."
    ),
    "NACK_COULD_NOT_ENCRYPT": Reason(
        "It could not be encrypted", "The destination has published no key."
    ),
    "NACK_NOT_TRANSACTIONAL_QUEUE": Reason(
        "It is transactional, and the queue is not", "Send it outside of transactions."
    ),
    "NACK_NOT_TRANSACTIONAL_MESSAGE": Reason(
        "The queue is transactional, and the message is not", "Send it in a transaction."
    ),
    "NACK_QUEUE_DELETED": Reason("The queue was deleted", "Create it again before you replay."),
    "NACK_QUEUE_PURGED": Reason(
        "The queue was purged", "Somebody deleted it with the others: ask before you replay."
    ),
    "NACK_RECEIVE_TIMEOUT": Reason(
        "Nobody received it in time", "See that its reader runs; then replay."
    ),
    "NACK_RECEIVE_TIMEOUT_AT_SENDER": Reason(
        "Its time was up before it left", "Look at the outgoing queues for what is stuck."
    ),
    "NACK_RECEIVE_REJECTED": Reason(
        "Its reader rejected it", "The reader could not use it: correct one of both first."
    ),
}


def reason_of(name: str | None) -> Reason:
    """Return what a reason means; one that is not listed stands for itself."""
    if name is None:
        return UNKNOWN
    return REASONS.get(name) or Reason(name.capitalize().replace("_", " "), UNKNOWN.advice)

"""Who may do what with a queue, in words."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.client.accounts import account_text
from openmsmq.client.verbs.access import Security
from openmsmq.security.access.rights import QUEUE_WORDS, words_of
from openmsmq.security.access.sids import Sid

MEANINGS: Final = {
    "full": "do everything",
    "receive": "receive messages",
    "receive-journal": "receive messages from the journal",
    "peek": "look at messages",
    "send": "send messages",
    "get-properties": "see its properties",
    "set-properties": "change its properties",
    "get-permissions": "see who may do what",
    "set-permissions": "change who may do what",
    "delete": "delete the queue",
    "take-ownership": "become its owner",
}
"""What each right on a queue lets somebody do."""


class Right(msgspec.Struct, frozen=True):
    """What somebody may do, or may not."""

    who: str
    is_denied: bool
    rights: list[str]


def rights_in_words(found: Security) -> list[Right]:
    """Return the entries of an access list, in their order."""
    if found.descriptor.entries is None:
        return [Right("everybody", False, [MEANINGS["full"]])]
    return [
        Right(
            account_text(Sid(one.user)),
            one.is_denied,
            [MEANINGS.get(word, word) for word in words_of(one.rights, QUEUE_WORDS)],
        )
        for one in found.descriptor.entries
    ]

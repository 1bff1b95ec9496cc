"""The words that people use for rights, each for one right or set of rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.security.access.descriptors import Descriptor
from openmsmq.security.access.sids import Sid, sid_words

QUEUE_WORDS: Final[Mapping[str, int]] = {
    "full": int(QueueAccess.GENERIC_ALL),
    "receive": int(QueueAccess.RECEIVE_MESSAGE),
    "receive-journal": int(QueueAccess.RECEIVE_JOURNAL_MESSAGE),
    "peek": int(QueueAccess.PEEK_MESSAGE),
    "send": int(QueueAccess.WRITE_MESSAGE),
    "get-properties": int(QueueAccess.GET_PROPERTIES),
    "set-properties": int(QueueAccess.SET_PROPERTIES),
    "get-permissions": int(QueueAccess.GET_PERMISSIONS),
    "set-permissions": int(QueueAccess.CHANGE_PERMISSIONS),
    "delete": int(QueueAccess.DELETE_QUEUE),
    "take-ownership": int(QueueAccess.TAKE_OWNERSHIP),
}
"""Rights on a queue; what contains others comes first."""

MANAGER_WORDS: Final[Mapping[str, int]] = {
    "full": int(ManagerAccess.GENERIC_ALL),
    "receive-dead-letters": int(ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
    "peek-dead-letters": int(ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
    "receive-journal": int(ManagerAccess.RECEIVE_JOURNAL_MESSAGE),
    "peek-journal": int(ManagerAccess.PEEK_JOURNAL_MESSAGE),
    "create-queue": int(ManagerAccess.CREATE_QUEUE),
    "get-properties": int(ManagerAccess.GET_PROPERTIES),
    "set-properties": int(ManagerAccess.SET_PROPERTIES),
    "get-permissions": int(ManagerAccess.GET_PERMISSIONS),
    "set-permissions": int(ManagerAccess.CHANGE_PERMISSIONS),
    "delete": int(ManagerAccess.DELETE_MANAGER),
    "take-ownership": int(ManagerAccess.TAKE_OWNERSHIP),
}
"""Rights on the queue manager."""


def mask_of(words: Iterable[str], known: Mapping[str, int]) -> int:
    """Return the rights that words stand for, or raise `ValueError`."""
    mask = 0
    for word in words:
        if word not in known:
            raise ValueError(f"{word!r} is no right: use {', '.join(known)}")
        mask |= known[word]
    return mask


def words_of(mask: int, known: Mapping[str, int]) -> list[str]:
    """Say rights in words; what has none is said as a number."""
    said: list[str] = []
    covered = 0
    for word, rights in known.items():
        if mask & rights == rights and rights & ~covered:
            said.append(word)
            covered |= rights
    left = mask & ~covered
    return [*said, f"0x{left:x}"] if left else said


def describe(descriptor: Descriptor, known: Mapping[str, int]) -> str:
    """Say in one line whose something is and who may do what with it."""
    parts = [f"owner {sid_words(Sid(descriptor.owner)) if descriptor.owner else 'nobody'}"]
    if descriptor.entries is None:
        parts.append("everybody may do everything")
    for entry in descriptor.entries or ():
        verb = "denied" if entry.is_denied else "allowed"
        rights = ", ".join(words_of(entry.rights, known)) or "nothing"
        parts.append(f"{sid_words(Sid(entry.user))} {verb} {rights}")
    return "; ".join(parts)

"""Doubts: a message in another's name that may be an honest one all the same.

Who brings messages of others is said by the directory, and two queue managers may know different
states of it: one passes a message on by a way that the other has not heard of yet, or not any more.
Were such a message dropped as forged and acknowledged, nobody would have it. So it is left to who
brings it, by ending the session, until it is sure that the directory is against him.
"""

from __future__ import annotations

from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.peering import Peer
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DOUBTED_STRANGER_S, DOUBTED_STRANGERS_MAX_COUNT


class Doubts:
    """Says which messages in another's name stay where they are."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._ways = identities.ways
        self._questions: dict[tuple[str, Guid], tuple[int, int]] = {}
        """What the directory was asked because of a stranger at a place, and until when its answer
        holds; who brought something last is at the end."""

    def leave(self, peer: Peer, now: Instant) -> bool:
        """Whether a message in another's name is left to who brings it; it may be dropped if not.

        A queue manager of the directory keeps it until it is believed, or the message expires: what
        it brings was taken by somebody's word for it. A stranger keeps it until the directory has
        been asked, as he may have joined it a moment ago, and then it is forged. So is what else he
        brings for a while: were each message asked for, one who has him pass on very many would
        have all his sessions ended.
        """
        if self._identities.is_of_enterprise(peer, now):
            if self._ways.may_learn:
                self._ways.doubt()
            return True
        if not self._ways.may_learn:
            return False
        key = peer.place, peer.remote
        question, until_ms = self._questions.pop(key, (0, now.ticks_ms))
        if until_ms <= now.ticks_ms:
            question, until_ms = self._ways.doubt(), now.ticks_ms + DOUBTED_STRANGER_S * 1000
        self._questions[key] = question, until_ms
        if len(self._questions) > DOUBTED_STRANGERS_MAX_COUNT:
            del self._questions[next(iter(self._questions))]
        return not self._ways.is_answered(question)

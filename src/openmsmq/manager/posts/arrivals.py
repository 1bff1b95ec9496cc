"""What becomes of posts. [MQSRM 3.1.5]

A post is decided about like a packet of a session, once: its message, its place in a stream and
its identity become durable in one turn, or none of them does and it is answered 500 (S-6). Those
that come together are put into their queue together, as far as one poster has brought them. Who
posts is a stranger, whatever he says; if he has shown a certificate that the operator trusts, it
is the certificate that is known.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from openmsmq.manager.access.message_security import MessageSecurity
from openmsmq.manager.askers import OURSELVES, Asker
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.incoming.destinations import Destination
from openmsmq.manager.incoming.incoming_sequences import Flow, IncomingSequences
from openmsmq.manager.incoming.local_arrivals import LocalArrivals
from openmsmq.manager.incoming.runs import NoRoom, Runs
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.peers.peering import Word
from openmsmq.manager.posts.effects import ACCEPTED, MALFORMED, UNAVAILABLE, PostsTaken
from openmsmq.manager.posts.receipts import StreamReceipts
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid, SequenceId
from openmsmq.model.names import DirectFormatName, IllegalName, LocalQueueName, PathName, read_path
from openmsmq.protocol.incoming_sequence import Verdict
from openmsmq.protocol.posts import PostAnswer, ReceivedPost
from openmsmq.security.certificate_facts import described
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.outline import Outline
from openmsmq.wire.srmp.alike import ArrivingRow
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.envelope import NO_ID, Envelope, Stream
from openmsmq.wire.srmp.kinds import ABOUT_STREAMS, kind_of
from openmsmq.wire.srmp.urls import host_of, is_same_place, is_url, names_order_queue

_SHOWN_CHARACTERS: Final = 200


class PostArrivals:
    """Takes posts, and says how they are answered."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        security: MessageSecurity,
        sequences: IncomingSequences,
        local: LocalArrivals,
        runs: Runs,
        receipts: StreamReceipts,
    ) -> None:
        self._enabled = base.config.http.enabled
        self._hosts = _own_hosts(base.config)
        self._ledger = base.ledger
        self._outputs = base.outputs
        self._notices = base.notices
        self._acting = base.acting
        self._rng = base.rng
        self._table = table
        self._security = security
        self._sequences = sequences
        self._local = local
        self._runs = runs
        self._receipts = receipts
        self._row = ArrivingRow()

    def take(self, posts: list[ReceivedPost], now: Instant, *, online: bool) -> None:
        """Decide about posts; those that are accepted are answered when that is durable."""
        if not (online and self._enabled):
            self._outputs.extend([PostAnswer(post.number, UNAVAILABLE) for post in posts])
            return
        accepted: list[int] = []
        asker: Asker | None = None
        try:
            for post in posts:
                poster = _subject_of(post.certificate) if post.certificate else ""
                if asker is None or (asker.address, asker.known) != (post.address, bool(poster)):
                    # What somebody has brought counts among what is his.
                    self._runs.flush(now)
                    asker = Asker(post.address, NIL_GUID, known=bool(poster))
                    self._acting.on_word_of(asker)
                refusal = self._judge(post, poster, now)
                if refusal is None:
                    accepted.append(post.number)
                else:
                    self._outputs.append(refusal)
        finally:
            self._runs.flush(now)
            self._acting.on_word_of(OURSELVES)
        if accepted:
            self._ledger.add_waiting(PostsTaken(self._outputs, accepted))

    def _judge(self, post: ReceivedPost, poster: str, now: Instant) -> PostAnswer | None:
        """Decide about a post; give the answer to one that is not accepted."""
        try:
            status = self._decide(post, poster, now)
        except DecodeError as error:
            # Who writes a sender of his own hears what is wrong with his post, and nothing of us.
            said = str(error)
            status = self._refuse(post, "malformed", detail=said[:_SHOWN_CHARACTERS])
            body = f"{said}\n".encode("utf-8", "replace")
            return PostAnswer(post.number, status, body, "text/plain; charset=utf-8")
        except NoRoom:
            status = UNAVAILABLE
        return None if status == ACCEPTED else PostAnswer(post.number, status)

    def _refuse(self, post: ReceivedPost, problem: str, detail: str = "") -> int:
        """Let the operator hear of a post that its sender is to delete."""
        facts = {"peer": post.address, "queue": post.queue[:_SHOWN_CHARACTERS]}
        if detail:
            facts["detail"] = detail
        self._notices.note(NoticeKind.MESSAGE_DROPPED, problem, 1, **facts)
        return MALFORMED

    def _decide(self, post: ReceivedPost, poster: str, now: Instant) -> int:
        parts = read_compound(post.headers.get("content-type", ""), post.body)
        envelope = self._row.envelope(parts.envelope)
        if names_order_queue(unquote(post.target.partition("?")[0])):
            return ACCEPTED if self._receipts.take(envelope, post, now) else MALFORMED
        problem = self._problem(envelope, post)
        if problem:
            return self._refuse(post, problem)
        queue = self._queue(post.queue)
        if queue is None or not queue.can.take_messages:
            return self._refuse(post, "no such queue")
        stream = envelope.stream
        if queue.properties.transactional != (stream is not None):
            return self._refuse(post, "wrong kind of queue")
        if not self._security.may_enter_plain(queue):
            # Whoever it is from, nothing in it proves that (S-13).
            return self._refuse(post, "closed queue")
        packet, found = self._row.packet(envelope, parts, now.unix_s)
        to = Destination(NIL_GUID, Word.OWN, self._remembered_as(envelope, poster, post))
        to.lead_to(queue)
        if stream is not None:
            status = self._find_flow(stream, packet, found, to, (poster, post.address), now)
            if status != ACCEPTED or to.flow is None:
                return status
        self._local.take(packet, found, to, [packet], 1, now)
        return ACCEPTED

    def _problem(self, envelope: Envelope, post: ReceivedPost) -> str:
        """Say why an envelope is none for a queue of ours; nothing if it may be."""
        kind = kind_of(envelope)
        if kind is None:
            return "neither message nor receipt"
        if kind in ABOUT_STREAMS:
            return "receipt elsewhere"
        if not is_url(envelope.to) or not is_same_place(envelope.to, post.target):
            return "queue and URL differ"
        host = host_of(envelope.to)
        if host not in self._hosts and host != host_of(f"//{post.host}"):
            return "another computer"
        return ""

    def _queue(self, path: str) -> LocalQueue | None:
        """Find the queue to which the driver has let a post through."""
        try:
            name = _read_path(path).queue
            return self._table.find_here(name) if isinstance(name, LocalQueueName) else None
        except (MsmqError, IllegalName):
            return None

    def _remembered_as(self, envelope: Envelope, poster: str, post: ReceivedPost) -> bytes:
        """Return under what a message is remembered: it does not come twice from its sender, and
        nobody else makes it look so.

        One without an identity is like no other.
        """
        if envelope.id == NO_ID:
            return self._rng.randbytes(GUID_BYTES)
        return _name_under(envelope.id.source, poster or post.address)

    def _find_flow(
        self,
        stream: Stream,
        packet: bytes,
        found: Outline,
        to: Destination,
        who: tuple[str, str],
        now: Instant,
    ) -> int:
        """Find the flow of a message of a stream; give how the post is answered.

        One that came already, or before its time, is dropped, and its sender hears again how far
        he has come (S-5). One for which there is no room waits at its sender (S-9).
        """
        poster, address = who
        flow = self._sequences.of_post(packet, found, poster, address, now)
        if not isinstance(flow, Flow):
            self._notices.note(NoticeKind.SEQUENCE_REFUSED, flow, peer=address)
            return UNAVAILABLE
        sequence = SequenceId.from_int(stream.sequence)
        if (
            not poster
            and flow.sequence.is_younger(sequence)
            and self._sequences.is_begun_by_another(flow, address, stream.receipts_to, now)
        ):
            self._notices.note(NoticeKind.SEQUENCE_REFUSED, "foreign-sequence", peer=address)
            return UNAVAILABLE
        self._sequences.heard(flow, now)
        previous = max(stream.current - 1, 0) if stream.previous is None else stream.previous
        if flow.sequence.judge(sequence, stream.current, previous) is not Verdict.ACCEPT:
            self._sequences.reject(flow)
            return ACCEPTED
        if flow.sequence.is_younger(sequence):
            if not stream.receipts_to:
                # We may have forgotten how it began: its sender keeps it, and says so again.
                return UNAVAILABLE
            if not _is_place_for_receipts(stream.receipts_to):
                return MALFORMED
        assert to.queue is not None
        if not self._runs.has_expired(packet, now) and self._runs.quota_problem(to.queue, packet):
            return UNAVAILABLE
        flow.brought_by(poster, address, stream.receipts_to)
        to.begin_flow(flow)
        return ACCEPTED


def _own_hosts(config: ManagerConfig) -> frozenset[str]:
    """Return the hosts that URLs of our queues have; nothing is passed on to others."""
    hosts = (config.name, *config.addresses, *config.http.hosts, host_of(config.http.url))
    return frozenset(host.strip("[]").lower() for host in hosts if host)


@lru_cache(maxsize=64)
def _subject_of(certificate: bytes) -> str:
    return described(certificate).subject


@lru_cache(maxsize=1_024)
def _name_under(source: Guid, poster: str) -> bytes:
    return hashlib.blake2b(source + poster.encode(), digest_size=GUID_BYTES).digest()


@lru_cache(maxsize=1_024)
def _read_path(path: str) -> PathName:
    """Read the path of a queue of this computer; those that posts name are always the same."""
    return read_path(f".\\{path}")


def _is_place_for_receipts(url: str) -> bool:
    """Whether a URL is that of a queue, whatever stands behind its `?`."""
    try:
        name = DirectFormatName.from_wire_text(url.partition("?")[0])
    except IllegalName:
        return False
    return name.protocol.is_http

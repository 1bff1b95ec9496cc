"""Defects of messages over HTTP that the simulator must notice."""

from __future__ import annotations

from openmsmq.sim.scenarios.scenario import Options
from tests.sim.mutants import Mutant

_POSTS = Options(
    managers=2,
    operations=12,
    names=("http",),
    doing=("recoverable", "own transaction"),
    only=("crash", "disk full", "partition"),
)
"""Two queue managers that post to each other, between faults of HTTP, which there always are."""

HTTP_MUTANTS = (
    Mutant(
        "a post is answered before its message is durable",
        "manager.posts.arrivals:PostArrivals.take",
        "self._ledger.add_waiting(PostsTaken(self._outputs, accepted))",
        "self._outputs.extend([PostAnswer(number, ACCEPTED) for number in accepted])",
        options=_POSTS,
    ),
    Mutant(
        "what the disk refused is answered as if it had been taken",
        "manager.posts.effects:PostsTaken.revert",
        "UNAVAILABLE",
        "ACCEPTED",
        options=_POSTS,
        likely=3,
    ),
    Mutant(
        "the number of a stream is raised although its message was refused",
        "manager.incoming.effects:SequencePassed.revert",
        "self.flow.take_back()",
        "self.flow.end_advance()",
        options=_POSTS,
        likely=4,
    ),
    Mutant(
        "a receipt is believed whoever posts it",
        "manager.posts.receipts:StreamReceipts._is_believed",
        "and hmac.compare_digest(word.casefold().encode(), expected.casefold().encode())",
        "and word != expected + word",
        options=_POSTS,
    ),
    Mutant(
        "what comes again is not acknowledged again",
        "manager.posts.arrivals:PostArrivals._find_flow",
        "self._sequences.heard(flow, now)",
        "if sequence != flow.sequence.id or stream.current > flow.sequence.number:\n"
        "        self._sequences.heard(flow, now)",
        options=_POSTS,
        likely=4,
    ),
    Mutant(
        "a message of a stream is gone when its post is answered",
        "manager.posts.departures:PostDepartures.answered",
        "self._departures.acknowledged([(outgoing, *row)], now)",
        "self._departures._let_go(outgoing.queue, [row], now)",
        options=_POSTS,
    ),
    Mutant(
        "a message whose post had no answer is not sent again",
        "manager.posts.departures:PostDepartures._fail",
        "self._departures.give_back(outgoing.queue, lookup_id, value, now)",
        "pass",
        options=_POSTS,
    ),
    Mutant(
        "any answer counts as a yes",
        "manager.posts.departures:PostDepartures.answered",
        "if status == ACCEPTED:",
        "if status:",
        options=_POSTS,
    ),
    Mutant(
        "a message that comes twice is taken twice",
        "manager.posts.arrivals:PostArrivals._remembered_as",
        "if envelope.id == NO_ID:",
        "if envelope:",
        options=_POSTS,
    ),
    Mutant(
        "a message like the one before has its number",
        "wire.srmp.alike:DepartingRow.request",
        'number = b"%d" % form.number(packet)',
        'number = b"%d" % (form.number(packet) & ~1)',
        options=_POSTS,
    ),
    Mutant(
        "the word for receipts is not stored",
        "manager.peers.outgoing:OutgoingQueue.record",
        "self.receipts_token,",
        "",
        options=_POSTS,
        likely=2,
    ),
    Mutant(
        "where receipts go is not stored",
        "manager.incoming.incoming_sequences:Flow.record_at",
        "self.direct_address,",
        "'',",
        options=_POSTS,
        likely=3,
    ),
)

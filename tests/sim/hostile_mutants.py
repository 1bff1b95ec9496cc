"""Defects that the simulator must notice beside an adversary: holes that strangers had, and kin."""

from __future__ import annotations

from openmsmq.sim.scenarios.scenario import Options
from tests.sim.mutants import Mutant


def _beside(mode: str, *attacks: str) -> Options:
    return Options(hostile=mode, attacks=attacks)


HOSTILE_MUTANTS = (
    # Acknowledgments.
    Mutant(
        "an order acknowledgment counts whoever brings it",
        "manager.incoming.order_acks:OrderAcks.take",
        "if outgoing is not None and self._counts(outgoing, packet, peer, now):",
        "if outgoing is not None:",
        options=_beside("all", "order acks"),
        likely=21,
    ),
    Mutant(
        "a final acknowledgment counts whoever brings it",
        "manager.incoming.order_acks:OrderAcks.take",
        "if awaited is not None and self._counts(awaited.outgoing, packet, peer, now):",
        "if awaited is not None:",
        options=_beside("all", "final acks"),
    ),
    Mutant(
        "a final acknowledgment is found by the number of its message alone, whoever brings it",
        "manager.incoming.order_acks:OrderAcks._counts",
        "and self._identities.may_acknowledge(peer, source, outgoing, now):",
        "and peer is not None:",
        options=_beside("all", "final acks", "order acks"),
    ),
    # Names.
    Mutant(
        "a final acknowledgment that comes before its flow has reached anybody is dropped",
        "manager.incoming.order_acks:OrderAcks.take",
        "self._may_count_later(awaited.outgoing, packet, peer)",
        "False",
        options=Options(hostile="all"),
        likely=204736,
    ),
    Mutant(
        "everybody may bring messages of others",
        "manager.peers.identities:Identities._word",
        "if not is_configured and not self._brings_by_directory(peer, name, now):",
        "is_configured = True\n    if False:",
        options=_beside("all", "jumps", "younger sequences"),
    ),
    Mutant(
        "everybody is who he says he is",
        "manager.peers.identities:Identities._known_elsewhere",
        "if self._is_placed(peer, claimed):",
        "if True:",
        options=_beside("plain", "claims", "jumps", "younger sequences"),
    ),
    Mutant(
        "a rule that pins a name keeps nobody else from it",
        "model.peers:PeerBook.judge",
        "return Judgement(Refusal.ELSEWHERE)",
        "return Judgement()",
        options=_beside("known", "jumps", "younger sequences", "replays"),
    ),
    Mutant(
        "a certificate is not asked for",
        "model.peers:_lets",
        "return not rule.tls and",
        "return True or",
        options=_beside("tls", "housemates"),
        seeds=120,
        likely=8,
    ),
    Mutant(
        "strangers are let in though the rules are strict",
        "model.peers:PeerBook.__init__",
        "self._strict = policy.strict",
        "self._strict = False",
        options=_beside("strict", "handshakes", "claims"),
    ),
    Mutant(
        "what is refused of a stranger moves the sequence all the same",
        "manager.incoming.destinations:Judging._may_move",
        "self.tell_of(problem, NoticeKind.SEQUENCE_REFUSED, packet, peer)\n",
        "flow = self._sequences.find(Guid(message_bytes.source(packet)), packet, found)\n"
        "    if isinstance(flow, Flow):\n"
        "        self._sequences.accept(flow, *message_bytes.sequence_place(packet)[:2])\n",
        options=_beside("known", "jumps", "younger sequences"),
    ),
    Mutant(
        "a plain message may come in the name of somebody who is known",
        "manager.incoming.destinations:Judging.may_come",
        "and self._identities.knows_elsewhere(peer, message_bytes.source(packet), now)",
        "and False",
        options=_beside("all", "replays", "numbers"),
    ),
    Mutant(
        "messages of others are passed on for anybody",
        "manager.incoming.destinations:Judging.may_pass_on",
        "to.word is not Word.FOREIGN and ",
        "",
        options=_beside("all", "relays"),
        seeds=200,
    ),
    # Addresses.
    Mutant(
        "what goes to an address goes to whoever has called from there",
        "manager.transfer.neighbours:Neighbours._is_listener",
        "return word is Word.SURE or (word is Word.OWN and peer.remote == reached)",
        "return True",
        options=_beside("all", "housemates"),
    ),
    # Room.
    Mutant(
        "reports may fill the whole quota",
        "manager.queues.guests:Guests.room_for_report",
        "if quota_kb == UNLIMITED_KB:",
        "if True:",
        options=_beside("known", "reports"),
    ),
    Mutant(
        "reports live for ever",
        "manager.messages.reporting:Reporter.post",
        "deadline_s = min(staged.deadline_s, now.unix_s + lifetime_s)",
        "deadline_s = staged.deadline_s",
        options=_beside("known", "reports"),
    ),
    Mutant(
        "final acknowledgments give way like reports",
        "manager.messages.reporting:Reporter._has_share",
        "if not is_final:",
        "if True:",
        seeds=150,
        options=Options(hostile="all"),
    ),
    Mutant(
        "sequences of invented senders have no bound",
        "manager.incoming.sequence_records:SequenceRecords.has_room",
        "if len(self) < self.max_count:",
        "if True:",
        options=_beside("known", "invented senders"),
    ),
    Mutant(
        "one stranger may have all outgoing queues",
        "manager.queues.guests:Guests._has_place",
        "return guest.who == _NOBODY or own < OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT",
        "return True",
        options=_beside("known", "many names"),
        seeds=120,
        likely=10,
    ),
    Mutant(
        "strangers may store more than the quota",
        "manager.messages.shares:Shares.takes",
        "return totals.room_for_strangers(size) and self._has_share(asker.address, size)",
        "return True",
        options=_beside("known", "floods"),
        likely=57,
    ),
    # Closed doors.
    Mutant(
        "anybody may name a dead-letter queue, also a closed one",
        "manager.messages.delivery:Delivery.keep_dead_letter",
        "queue = dead_letter_queue(self._table, packet, sent_here=sent_here)\n",
        "from openmsmq.wire.extensions import dead_letter_path_of\n"
        "    path = dead_letter_path_of(packet)\n"
        "    known = dead_letter_queue(self._table, packet, sent_here=sent_here)\n"
        "    queue = self._table.find(path) if path else known\n",
        options=_beside("known", "dead letters"),
    ),
    Mutant(
        "reports enter closed queues",
        "manager.messages.reporting:Reporter._problem",
        "if queue.can.take_messages and not self._security.may_enter_plain(queue):",
        "if False:",
        options=_beside("known", "reports"),
    ),
)

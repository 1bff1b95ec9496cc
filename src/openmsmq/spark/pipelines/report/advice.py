"""What needs somebody: each way in which messages are not well, the worst first, and what to do.

Lost messages and those of which nobody knows come before failures, because a failure at least says
what happened.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.client.operating.reasons import reason_of
from openmsmq.spark.pipelines.delivery.outcomes import Outcome
from openmsmq.spark.pipelines.delivery.rollups import OTHER_REASON
from openmsmq.spark.pipelines.report.data import ReportData
from openmsmq.spark.pipelines.report.text import plain

IN_DOUBT: Final = "in doubt"
UNTRACED: Final = "untraced"


class Advice(msgspec.Struct, frozen=True):
    """A kind of messages that are not well."""

    fate: str
    """The key of the kind, as `fate_of` gives it for each message."""
    title: str
    count: int
    colour: str
    meaning: str
    steps: tuple[str, ...]
    """What to do, one after the other."""
    commands: tuple[str, ...] = ()


MEANINGS: Final = {
    Outcome.RECEIVED.value: "Somebody took it from its queue.",
    Outcome.WAITING.value: "It is in its queue.",
    Outcome.REACHED.value: "It reached its queue; nothing says whether somebody took it.",
    Outcome.DEAD_LETTER.value: "It failed, and its copy is in a dead-letter queue.",
    Outcome.FAILED.value: "It failed, as a negative acknowledgment says; no copy was found.",
    Outcome.LOST.value: "The acknowledgment that it asked for is overdue, and no failure was told.",
    Outcome.IN_TRANSIT.value: "It was sent, and has time left to reach its queue.",
    Outcome.UNKNOWN.value: "Its time is over, and it asked for nothing that would tell more.",
}

HOW_TO_ASK: Final = (
    "openmsmq send QUEUE … --ack full-receive --admin-queue 'DIRECT=OS:HOST\\private$\\acks'",
    "queue.send(…, acknowledge=AckRequest.FULL_RECEIVE, admin_queue=…)  # Python",
    "columns acknowledge = 14 and admin_queue  # rows that Spark writes",
    "AcknowledgeType = AcknowledgeTypes.FullReceive, AdministrationQueue = …  // .NET",
)
"""How a sender asks to be told, in each language; 14 is what AckRequest.FULL_RECEIVE is."""


def fate_of(outcome: str, reason: str, *, in_doubt: bool = False, asked: bool = True) -> str:
    """Return the kind that a message belongs to, as a key and for the filter."""
    if in_doubt:
        return IN_DOUBT
    if outcome == Outcome.IN_TRANSIT.value and not asked:
        return f"in transit, {UNTRACED}"
    name = outcome.replace("_", " ")
    return f"{name}: {reason_text(reason)}" if reason else name


def reason_text(reason: str) -> str:
    """Say a reason as a word of its own: `reach queue timeout`."""
    return plain(reason.removeprefix("NACK_").replace("_", " ").lower())


def advices(data: ReportData) -> list[Advice]:
    """Return what needs somebody, in the order in which to look at it."""
    outcomes = data.totals.outcomes
    lost, unknown = (outcomes.get(one.value, 0) for one in (Outcome.LOST, Outcome.UNKNOWN))
    found = []
    if lost:
        found.append(_lost(lost))
    if unknown:
        found.append(_unknown(unknown))
    for outcome in (Outcome.FAILED, Outcome.DEAD_LETTER):
        found += [
            _failure(outcome, fate.reason, fate.message_count)
            for fate in data.fates
            if fate.outcome == outcome.value
        ]
    untraced_on_the_way = data.totals.untraced_count - unknown
    if untraced_on_the_way > 0:
        found.append(_unasked(untraced_on_the_way))
    if data.in_doubt_count:
        found.append(_in_doubt(data.in_doubt_count))
    return found


def _lost(count: int) -> Advice:
    return Advice(
        fate_of(Outcome.LOST.value, ""),
        "lost",
        count,
        "bad",
        "They asked to be told when they arrive, that is overdue, and nobody told of a failure.",
        (
            "Make sure that the administration queues and dead-letter queues of all senders were "
            "read, for the whole time: a queue that was not looked at looks like this.",
            "Look at the last queue manager of each path: its outgoing queues may still have them.",
        ),
        ("openmsmq --qm LAST-QUEUE-MANAGER outgoing list",),
    )


def _unknown(count: int) -> Advice:
    return Advice(
        fate_of(Outcome.UNKNOWN.value, ""),
        "left no trace",
        count,
        "bad",
        "Nobody knows what became of them: their time is over, and they asked for no "
        "acknowledgment, so nobody was obliged to tell.",
        ("Let their senders ask, and name the administration queue when you read queues again:",),
        HOW_TO_ASK,
    )


def _unasked(count: int) -> Advice:
    return Advice(
        fate_of(Outcome.IN_TRANSIT.value, "", asked=False),
        "on their way, and will leave no trace",
        count,
        "open",
        "They have time left, but asked for no acknowledgment: unless somebody finds them in a "
        "queue or a journal, nobody will ever know.",
        ("Let their senders ask:",),
        HOW_TO_ASK,
    )


def _in_doubt(count: int) -> Advice:
    return Advice(
        IN_DOUBT,
        IN_DOUBT,
        count,
        "open",
        "There is a failure as well as an arrival: the sender gave up, and could not know.",
        ("Do not send them again before you have looked for them at their destination.",),
    )


def _failure(outcome: Outcome, reason: str, count: int) -> Advice:
    known = reason_of(None if reason == OTHER_REASON else reason)
    steps, commands = [known.advice], []
    if outcome is Outcome.DEAD_LETTER:
        name = reason.removeprefix("NACK_").lower().replace("_", "-")
        chosen = "" if reason == OTHER_REASON else f" --reason {name}"
        steps.append("Then send the dead letters again; without --send this only shows a plan:")
        commands.append(f"openmsmq pipeline replay --audit AUDIT-DIR{chosen}")
    else:
        steps.append(
            "There is no copy to send again: the application has to. Senders that ask for "
            "--deadletter keep one."
        )
    return Advice(
        fate_of(outcome.value, reason),
        f"{outcome.value.replace('_', ' ')}{'s' if outcome is Outcome.DEAD_LETTER else ''}: "
        f"{reason_text(reason)}",
        count,
        "bad",
        f"{known.title}.",
        tuple(steps),
        tuple(commands),
    )

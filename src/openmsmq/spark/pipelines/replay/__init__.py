r"""Pipeline: dead letters sent again, each of them once, however often the run is repeated.

    letters = select_dead_letters(dead_letters(spark, options), reasons=["receive-timeout"])
    audit = AuditTable(spark, "/data/replays", who, clock)
    audit.begin("r1", plan_replay(letters, options))        # a dry run: what would be sent
    replay(audit, options, "r1")                            # the run: exactly that is sent

The plan comes first and is kept, so a repeated run knows what it is about. What it has done is
noted in the audit table. How a batch is sent depends on its queues (`Method`):

- Together: sending and removing are one transaction, so a letter is either sent or still there.
- Sent first: the messages are a transaction, of which the queue manager keeps the number. A run
  that was cut off behind it only removes the letters.
- One by one: no transaction is possible. It is noted before that letters are going to be sent.
  Each is sent, then removed, one after the other; of a run that was cut off, only the first
  letter that is left can have been sent. That one is in doubt, and is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from openmsmq.spark.connecting import connected, explained
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.pipelines.replay.audit import (
    IN_DOUBT,
    SENDING,
    SENT,
    AuditTable,
    Batch,
    Letter,
    require_run,
)
from openmsmq.spark.pipelines.replay.letters import (
    dead_letters,
    letter_options,
    load_transform,
    one_after_the_other,
    select_dead_letters,
    setting,
)
from openmsmq.spark.pipelines.replay.plan import SKIPPED, Method, plan_replay
from openmsmq.spark.pipelines.replay.sending import GONE, Refused, Sender
from openmsmq.spark.source.options import read_source_options

__all__ = [
    "AuditTable",
    "Notes",
    "dead_letters",
    "load_transform",
    "one_after_the_other",
    "plan_replay",
    "replay",
    "require_run",
    "select_dead_letters",
    "send_batch",
    "setting",
]

_CUT_OFF: Final = (
    "the run was cut off while it was sent: look into its destination, then send it with "
    "`openmsmq deadletter --requeue --lookup-id` or drop it with `--receive --lookup-id`"
)
_BY_HAND: Final = "it was in doubt, and somebody has taken its dead letter out"


def replay(
    audit: AuditTable,
    options: Mapping[str, str],
    run: str,
    *,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Send what the plan of a run says and was not sent yet; `done` hears of each batch."""
    query, managers = audit.runs_at(run)
    place = read_source_options(letter_options(options)).place
    for address in place.addresses:
        with connected(place, address) as manager, explained(address):
            if manager.name not in managers:
                continue
            managers.discard(manager.name)
            sender = Sender(manager, query)
            for batch in audit.open_batches(run, manager.name):
                send_batch(sender, audit, run, batch)
                done(len(batch.letters))
    if managers:
        raise QueueProblem(
            f"run {run} also has dead letters of {', '.join(sorted(managers))}: give the addresses "
            "of all its queue managers"
        )


class Notes(Protocol):
    """Where it is noted what was done; the audit table is one."""

    def note(
        self, run: str, letters: Iterable[Letter], action: str, *, attempt: int = 0, note: str = ""
    ) -> None:
        """Note one thing about letters; once it returns, it is noted."""


def send_batch(sender: Sender, audit: Notes, run: str, batch: Batch) -> None:
    """Bring one batch to its end, from wherever an earlier run has left it."""
    if batch.method is Method.ONE_BY_ONE:
        _send_one_by_one(sender, audit, run, batch)
    else:
        _send_in_transaction(sender, audit, run, batch)
    sender.let_go()


def _send_in_transaction(sender: Sender, audit: Notes, run: str, batch: Batch) -> None:
    taking = batch.method is Method.TOGETHER
    if not taking:
        sender.hold(batch.letters)
        if not batch.is_begun:
            audit.note(run, batch.letters, SENDING)
    attempt = sender.committed_attempt(batch)
    if attempt is None:
        attempt = batch.last_attempt + 1
        staged = sender.stage(batch, attempt, taking=taking)
        for letter, reason in staged.refused:
            audit.note(run, [letter], SKIPPED, attempt=attempt, note=reason)
        sender.commit(staged)
        skipped = {letter.key for letter, _ in staged.refused}
    else:
        skipped = batch.noted(SKIPPED, attempt=attempt)
    sent = [letter for letter in batch.letters if letter.key not in skipped]
    sender.remove(sent)
    audit.note(run, sent, SENT, attempt=attempt)


def _send_one_by_one(sender: Sender, audit: Notes, run: str, batch: Batch) -> None:
    ended = batch.noted(SENT, SKIPPED)
    doubtful = batch.noted(IN_DOUBT)
    letters = [letter for letter in batch.letters if letter.key not in ended | doubtful]
    there = sender.hold(letters)
    gone = [letter for letter in letters if letter not in there]
    sent: list[Letter] = []
    if batch.is_begun:
        # What is gone was removed because it was sent. Of what is left, only the first letter can
        # have been sent: those behind it come after its removal.
        sent += gone
        audit.note(run, there[:1], IN_DOUBT, note=_CUT_OFF)
        there = there[1:]
    else:
        audit.note(run, gone, SKIPPED, note=GONE)
        audit.note(run, there, SENDING)
    for letter in there:
        try:
            sender.send(letter)
        except Refused as problem:
            # Noted at once: a letter that stays would otherwise look like one in doubt.
            audit.note(run, [letter], SKIPPED, note=problem.reason)
            continue
        sender.remove([letter])
        sent.append(letter)
    audit.note(run, sent, SENT)
    settled = [
        letter for letter in batch.letters if letter.key in doubtful and not sender.is_there(letter)
    ]
    audit.note(run, settled, SKIPPED, note=_BY_HAND)

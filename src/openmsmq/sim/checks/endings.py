"""How a run ends: every message in exactly one place, and nothing left on its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from openmsmq.model.message import AckRequest, MessageClass
from openmsmq.model.queue import QueueRole
from openmsmq.sim.checks.books import PURGING, Books
from openmsmq.sim.checks.facts import Fate, Kind, SimMessage
from openmsmq.sim.checks.stranded import stranded_of
from openmsmq.sim.scenarios.scenario import ADMIN, SMALL
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.checks.store_watch import Lying
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World


def check(world: World) -> None:
    """Look at every message once everything is over."""
    books = world.books
    stranded = stranded_of(world)
    _check_doors(world)
    check_all_given(world)
    for message in books.messages.values():
        if message.group.fate is Fate.ACKNOWLEDGED:
            if not message.consumed and (
                message.number in world.excused or (stranded and stranded.excuses_message(message))
            ):
                world.stranded_count += 1
                continue
            _check_found(world, message)
        _check_copies(world, message)
        _check_acknowledgments(message, books)


def check_all_given(world: World) -> None:
    """Nothing that can be received is left: nobody has it, or he has been silent for too long."""
    for node in world.nodes:
        for entry in world.books.disks.watches[node.index].entries.values():
            if (
                entry.shelf.role is QueueRole.APPLICATION
                and entry.shelf.path != ADMIN
                and entry.message
            ):
                if entry.message in world.excused:
                    # Its destination had opened a session to where it lay, so it came late.
                    continue
                raise Violation(
                    f"{node.name} has m{entry.message} in {entry.shelf.path} and gives it to nobody"
                )


def check_clerks(world: World) -> None:
    """When remote readers have closed all they know of, nothing is kept for those who know all."""
    remote = world.scenario.remote
    for node in world.nodes:
        if node.door is None or remote is None or not remote.knows_all:
            # Others may share what was opened through a connection that is lost.
            continue
        count = node.door.kept_count()
        if count:
            raise Violation(f"{node.door.name} keeps {count} things that nobody has open")


def _check_doors(world: World) -> None:
    """When all remote readers are gone, nothing is kept for any of them."""
    for node in world.nodes:
        if node.door is not None and not node.door.is_idle():
            raise Violation(f"{node.door.name} keeps something for readers that are gone")


def is_under_way(world: World, *, received: bool) -> bool:
    """Whether anything is on its way; with `received` also whether senders wait for the end."""
    watches = world.books.disks.watches
    if not any(
        watch.outgoing_count or (received and watch.awaiting_count) for watch in watches.values()
    ):
        return False
    roles = (QueueRole.OUTGOING, QueueRole.AWAITING) if received else (QueueRole.OUTGOING,)
    return next(_left(world, roles), None) is not None


def excused_messages(world: World) -> frozenset[int]:
    """Return the messages that have not come, and lie where no way leads on."""
    stranded = stranded_of(world)
    if stranded is None:
        return frozenset()
    return frozenset(
        entry.message
        for node in world.nodes
        for entry in world.books.disks.watches[node.index].entries.values()
        if entry.message
        and entry.shelf.role is QueueRole.OUTGOING
        and not world.books.messages[entry.message].arrivals
        and stranded.excuses(node, entry)
    )


def _left(world: World, roles: tuple[QueueRole, ...]) -> Iterator[tuple[Node, Lying]]:
    """Find what still has to move."""
    stranded, hostile = stranded_of(world), world.books.hostile
    for role in roles:
        for node in world.nodes:
            for entry in world.books.disks.watches[node.index].entries.values():
                if entry.shelf.role is not role or (stranded and stranded.excuses(node, entry)):
                    continue
                if hostile is None or not hostile.is_unwanted(entry):
                    yield node, entry


def why_not_done(world: World) -> Violation:
    """Return what a run still waits for when its time is up."""
    for node in world.lasting:
        if not node.up:
            return Violation(f"{node.name} never came back")
    for application in world.applications:
        if not application.done:
            return Violation(f"{application.name} still waits for its answer")
    for node, entry in _left(world, (QueueRole.OUTGOING, QueueRole.AWAITING)):
        return _stuck(node, entry)
    return Violation("the run does not end")


def _stuck(node: Node, entry: Lying) -> Violation:
    number = entry.message
    what = f"m{number}"
    if entry.message_class or number is None:
        of = "" if number is None else f" of m{number}"
        what = f"an acknowledgment {entry.message_class:#06x}{of}"
    return Violation(
        f"{what} still lies in {entry.shelf.path} of {node.name}, though "
        "nothing has gone wrong for an hour",
        messages=() if number is None else (number,),
    )


def _check_found(world: World, message: SimMessage) -> None:
    """An acknowledged message was received, or there is a reason why not."""
    if message.consumed or _may_be_gone(world.books, message):
        return
    if message.may_have_expired() or world.books.may_be_refused(message):
        return
    if not message.certain and _power_was_lost(world.books, message):
        return
    where = "never came into its queue" if not message.arrivals else "was received by nobody"
    raise Violation(f"{message} ({message.kind.value}) was acknowledged to its sender and {where}")


def _may_be_gone(books: Books, message: SimMessage) -> bool:
    """Whether a purge took it, or a read whose answer was lost."""
    if message.removed_ms is None:
        return False
    if books.purged_late(message):
        return True
    if books.remote is not None and books.remote.may_be_removed(message):
        return True
    holder = message.holder
    if holder is not None and holder.fate is Fate.UNKNOWN:
        return True
    for errand in books.errands.get((message.target.index, message.queue), ()):
        if errand.begun_ms <= message.removed_ms <= errand.ended_ms and (
            errand.unknown or errand.kind == PURGING
        ):
            return True
    return False


def _power_was_lost(books: Books, message: SimMessage) -> bool:
    """Whether an express message met a node that lost power or had no room."""
    return any(
        moment_ms >= message.sent_ms
        for times in (books.disks.crash_times_ms, books.disks.refusal_times_ms)
        for moments in times.values()
        for moment_ms in moments
    )


def _check_copies(world: World, message: SimMessage) -> None:
    if not message.certain or message.group.fate is not Fate.ACKNOWLEDGED:
        return
    in_doubt = message.may_have_expired() or world.books.may_be_refused(message)
    if message.journal_on_success and not message.journal_copies and not in_doubt:
        delivered = message.consumed if message.kind is Kind.TRANSACTIONAL else message.arrivals
        if delivered or not message.remote:
            raise Violation(
                f"{message} asked for a copy in the journal of {message.source.name} and has none"
            )
    journaling = world.scenario.wishes.journaling and message.queue != SMALL
    if journaling and message.consumed and not message.target_journal_copies:
        raise Violation(f"{message} was received from a queue with a journal and is not in it")
    if message.target_journal_copies and message.removed_ms is None:
        raise Violation(f"{message} is in the journal of its queue and was not received")
    _check_dead_letter(world, message)


def _check_dead_letter(world: World, message: SimMessage) -> None:
    """Whoever asked to be kept when his time is up is kept, if he has not arrived elsewhere."""
    if (
        not message.journal_on_failure
        or message.dead_letters
        or message.consumed
        or not message.may_have_expired()
    ):
        return
    if message.remote:
        kept = message.arrivals > 0 or world.books.may_be_refused(message)
    else:
        kept = _may_be_gone(world.books, message)
    if not kept:
        raise Violation(f"{message} expired and is no dead letter, though it asked for that")


def _check_acknowledgments(message: SimMessage, books: Books) -> None:
    asked, got = message.acknowledge, message.acknowledgments
    for received in got:
        if not asked & _asked_by(received):
            raise Violation(
                f"{message} got acknowledgment {received:#06x}, for which it did not ask"
            )
    if MessageClass.ACK_RECEIVE in got and message.removed_ms is None and not message.consumed:
        raise Violation(f"{message} was acknowledged as received and was not")
    if message.group.fate is not Fate.ACKNOWLEDGED or not message.certain:
        return
    if message.target.index in books.report_droppers:
        return
    wants_receipt = asked & AckRequest.POSITIVE_RECEIVE and message.consumed
    if wants_receipt and MessageClass.ACK_RECEIVE not in got:
        raise Violation(f"{message} was received, and its sender never heard of it")
    wants_arrival = asked & AckRequest.POSITIVE_ARRIVAL and message.arrivals
    if wants_arrival and MessageClass.ACK_REACH_QUEUE not in got:
        raise Violation(f"{message} came into its queue, and its sender never heard of it")


def _asked_by(message_class: int) -> int:
    positive = not message_class & 0x8000
    receiving = message_class & 0x4000
    if receiving:
        return AckRequest.POSITIVE_RECEIVE if positive else AckRequest.NEGATIVE_RECEIVE
    return AckRequest.POSITIVE_ARRIVAL if positive else AckRequest.NEGATIVE_ARRIVAL

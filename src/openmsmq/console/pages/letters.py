"""Dead letters by their reason, and their replay: a dry run first, and then the run.

A run sends exactly what the dry run has shown: letters that came later wait for the next one, and a
letter that dies again is not tried twice.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.operating.resending import Way, find_way, send_again, send_as_it_was
from openmsmq.console import limits, words
from openmsmq.console.asking.letters import Group, Letters, Walk
from openmsmq.console.asking.manager_views import DEAD_LETTER_QUEUES
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.model.errors import AccessDenied, MessageLocked, MessageNotFound, MsmqError
from openmsmq.model.limits import FORMAT_NAME_MAX_CHARACTERS

_SHOWN_COUNT: Final = 50
_PROBLEMS_SHOWN_COUNT: Final = 3


async def show_letters(visit: Visit) -> Response:
    """Show the dead letters by reason."""
    found = [await _letters(visit, name) for name in DEAD_LETTER_QUEUES]
    if all(one.problem for one in found):
        # Who may look into neither is told why, as for any other page.
        await visit.manager.queue(DEAD_LETTER_QUEUES[0]).peek_many(1, 0)
    return visit.page("letters.html", found=found, replay_max=limits.REPLAY_MAX_COUNT)


async def _letters(visit: Visit, name: str) -> Letters:
    try:
        return await visit.letters.look(
            visit.session, visit.manager, name, is_person=not visit.is_live
        )
    except MsmqError as error:
        return Letters(name, 0, 0, [], str(error))


# Replay.


class Plan(msgspec.Struct, frozen=True):
    """What a run would do."""

    group: Group
    to: str
    """The queue to which they go."""
    stop: int
    """The letters with lower arrival numbers are meant."""
    letters: list[ReceivedMessage]
    way: Way | None
    problem: str

    @property
    def together_count(self) -> int:
        """How many are sent and taken out in one transaction each."""
        way = self.way
        return 0 if way is None else sum(map(way.is_together, self.letters))


async def _plan(visit: Visit, given: dict[str, str], stop: int | None) -> Plan:
    group = Group(given.get("queue", ""), given.get("reason", ""), given.get("destination", ""))
    if group.queue not in DEAD_LETTER_QUEUES:
        raise BadForm("This is no dead-letter queue.", 404)
    to = given.get("to", "").strip() or group.destination
    if not to:
        raise BadForm("These letters do not say where they are to go: name a queue.")
    letters = []
    async with visit.manager.queue(group.queue) as queue:
        if stop is None:
            stop = (await queue.properties()).last_arrival_number + 1
        async for message, found in Walk().on(queue, stop):
            if found == group:
                letters.append(message)
                if len(letters) == limits.REPLAY_MAX_COUNT:
                    break
    way, problem = None, ""
    try:
        way = await find_way(visit.manager, group.queue, to)
    except MsmqError as error:
        problem = str(error)
    last = letters[-1].arrival_number + 1 if letters else 0
    return Plan(group, to, last, letters, way, problem)


async def show_replay(visit: Visit) -> Response:
    """Show what a run would do, and do nothing."""
    keys = ("queue", "reason", "destination", "to")
    given = {key: visit.asked(key, characters_max=FORMAT_NAME_MAX_CHARACTERS) for key in keys}
    plan = await _plan(visit, given, None)
    return visit.page("replay.html", plan=plan, shown=plan.letters[:_SHOWN_COUNT])


async def replay(visit: Visit) -> Response:
    """Send the letters of a plan again, each in a transaction of its own where that is possible."""
    stop = visit.form.get("stop", "")
    if not (stop.isascii() and stop.isdecimal() and len(stop) < 19):
        raise BadForm("This is no form of the console.")
    plan = await _plan(visit, visit.form, int(stop))
    if plan.way is None:
        raise BadForm(f"Nothing was sent. {plan.problem}", 409)
    sent_count = 0
    stayed: list[str] = []
    for letter in plan.letters:
        try:
            sent = await send_again(
                visit.manager, plan.way, letter.lookup_id, str(letter.message_id), send_as_it_was
            )
            sent_count += sent is not None
        except (MessageNotFound, MessageLocked):
            # Somebody else has taken it, or is about to.
            stayed.append("Somebody else has it.")
        except AccessDenied:
            # All go the same way: who may not send one may send none.
            raise
        except MsmqError as error:
            stayed.append(str(error))
    sentence = f"Sent again: {words.some(sent_count, 'dead letter')}."
    if stayed:
        reasons = " ".join(dict.fromkeys(stayed[:_PROBLEMS_SHOWN_COUNT]))
        sentence += f" Not sent: {words.count(len(stayed))}. {reasons}"
    return visit.go("/dead-letters", sentence, "bad" if stayed else "good")


PAGES: Final = (
    Page("/dead-letters", show_letters),
    Page("/dead-letters/replay", show_replay, replay),
)
